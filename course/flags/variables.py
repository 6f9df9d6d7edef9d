"""Shell variables in a command line: those whose value stands beside it are filled in, the others are named.

    MAX=64 vllm serve m --max-num-seqs $MAX ${CACHE:---enable-prefix-caching}

A default after :- or - counts if the variable is not known. What stays empty is left as it is written, so that
an error can name the one that is missing.
"""

import re
from collections.abc import Iterator, Mapping

from course.base.settings import quote

VARIABLE = re.compile(
    r"\$\$|\$\{(?P<braced>[A-Za-z_][\w.]*|\d)(?:(?P<how>:?[-+?=])(?P<rest>[^}]*))?\}|\$(?P<bare>[A-Za-z_]\w*|\d)"
    r"|\$\((?P<kube>[A-Za-z_]\w*)\)",
    re.ASCII,
)
ASSIGNMENT = re.compile(
    r"(?:^|[\s;&])(?:export\s+|-e\s+|--env[\s=])?([A-Za-z_]\w*)="
    r"""("[^"\n]*"|'[^'\n]*'|(?:\$\{[^}\n]*\}|[^\s;&|"'])*)""",
    re.ASCII | re.MULTILINE,
)
ARRAY = re.compile(r"(?:^|(?<=[\s;]))([A-Za-z_]\w*)(\+?)=\(([^()]*)\)", re.ASCII)
ELEMENTS = re.compile(r'"?\$\{([A-Za-z_]\w*)\[[@*]\]\}"?', re.ASCII)
DEEPEST = 5  # values may name other variables


def assignments(text: str) -> dict[str, str]:
    """The variables that a script sets, with their values as they are written; the last one counts."""
    return {name: value[1:-1] if value[:1] in ('"', "'") else value for name, value in ASSIGNMENT.findall(text)}


def set_twice(text: str, line: str) -> dict[str, int]:
    """The variables of a command that the script sets to several values, as under an `if`, and to how many."""
    used = {match["braced"] or match["bare"] or match["kube"] for match in VARIABLE.finditer(line)}
    values: dict[str, set[str]] = {}
    for name, value in ASSIGNMENT.findall(text):
        values.setdefault(name, set()).add(value)
    return {name: len(some) for name, some in values.items() if name in used and len(some) > 1}


def without_arrays(script: str) -> str:
    """The script with the words of its arrays, ARGS=(--a 1) and ARGS+=(--b), in place of "${ARGS[@]}".

    Raises ValueError for an array that the script does not set.
    """
    words: dict[str, str] = {}
    for name, more, inside in ARRAY.findall(script):
        inside = " ".join(re.sub(r"(?m)(?:^|\s)#.*$", "", inside).split())
        words[name] = f"{words.get(name, '')} {inside}" if more else inside

    def value(match: re.Match) -> str:
        if match[1] not in words:
            raise ValueError(f"{match[1]} is an array that the text does not set: write its words instead")
        return words[match[1]]

    return ELEMENTS.sub(value, ARRAY.sub("", script))


def given(text: str, values: Mapping[str, str]) -> str:
    """The text with these variables alone, whatever the text itself sets them to.

    Raises ValueError for a name that no variable of the text has, and for what cannot be a name.
    """
    seen = set()

    def value(match: re.Match) -> str:
        name, how = match["braced"] or match["bare"] or match["kube"], match["how"]
        if name not in values:
            return match[0]
        seen.add(name)
        return match["rest"] if how in ("+", ":+") else values[name]

    filled = VARIABLE.sub(value, text)
    for name in values:
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise ValueError(f"{quote(name)} is no name of a variable: letters, digits and _ are, as in MODEL=my/model")
        if name not in seen:
            names = ", ".join(dict.fromkeys(empty(text))) or "none"
            raise ValueError(f"no variable is called {name}; the variables of this text: {names}")
    return filled


def fill(text: str, values: Mapping[str, str], fallbacks: dict[str, str] | None = None) -> str:
    """The text with the variables that are known or have a default. fallbacks: gets the defaults that were used."""

    def value(match: re.Match) -> str:
        if match[0] == "$$":
            return "$"
        name, how, rest = match["braced"] or match["bare"] or match["kube"], match["how"], match["rest"]
        if name in values:
            return values[name] if how not in ("+", ":+") else rest
        if how in ("-", ":-", "=", ":="):
            if fallbacks is not None:
                fallbacks[name] = rest.strip("\"'")
            return rest.strip("\"'")
        return "" if how in ("+", ":+") else match[0]

    for _ in range(DEEPEST):
        after = VARIABLE.sub(value, text)
        if after == text:
            break
        text = after
    return text


def empty(text: str) -> Iterator[str]:
    """The variables in a text that have no value, as they are written."""
    for match in VARIABLE.finditer(text):
        if match[0] != "$$":
            yield match[0]
