"""Shell variables in a command line: those whose value stands beside it are filled in, the others are named.

    MAX=64 vllm serve m --max-num-seqs $MAX ${CACHE:---enable-prefix-caching}

A default after :- or - counts if the variable is not known. What stays empty is left as it is written, so that
an error can name the one that is missing.
"""

import re
from collections.abc import Iterator, Mapping

VARIABLE = re.compile(
    r"\$\$|\$\{(?P<braced>[A-Za-z_][\w.]*)(?:(?P<how>:?[-+?=])(?P<rest>[^}]*))?\}|\$(?P<bare>[A-Za-z_]\w*)"
    r"|\$\((?P<kube>[A-Za-z_]\w*)\)",
    re.ASCII,
)
ASSIGNMENT = re.compile(
    r"(?:^|[\s;&])(?:export\s+|-e\s+|--env[\s=])?([A-Za-z_]\w*)="
    r"""("[^"\n]*"|'[^'\n]*'|(?:\$\{[^}\n]*\}|[^\s;&|"'])*)""",
    re.ASCII | re.MULTILINE,
)
DEEPEST = 5  # values may name other variables


def assignments(text: str) -> dict[str, str]:
    """The variables that a script sets, with their values as they are written; the last one counts."""
    return {name: value[1:-1] if value[:1] in ('"', "'") else value for name, value in ASSIGNMENT.findall(text)}


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
