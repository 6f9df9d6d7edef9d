"""A vLLM command line as people paste it: its words, and which option each belongs to, as vLLM 0.19 reads them.

Quotes, line ends with backslashes, variables before the command, --name=value, underscores for dashes, short options,
unambiguous beginnings of long ones, and an option given twice (the last counts) are all as in vLLM.
"""

import csv
import difflib
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from course.base.settings import quote
from course.models import engine_defaults

LONGEST = 100_000
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
SERVER = "vllm.entrypoints.openai.api_server"
ANOTHER = frozenset({"bench", "chat", "complete", "run-batch", "collect-env", "launch"})


@dataclass(frozen=True)
class Words:
    """What a command line says. options: name -> value, True or False for a flag. notes: what a reader should know."""

    model: str | None
    options: dict[str, str | bool]
    notes: tuple[str, ...]


@lru_cache
def table() -> tuple[dict[str, str], dict[str, str]]:
    """Long option -> what it takes (flag, switch, value, values, optional), and short option -> long one."""
    text = (files("course") / "data" / "vllm_options.csv").read_text(encoding="utf-8")
    takes, short = {}, {"-O": "--optimization-level"}
    for row in csv.DictReader(text.splitlines()):
        takes[row["option"]] = row["takes"]
        for name in row["short"].split():
            short[name] = row["option"]
    return takes, short


def words(line: str, *, ignore_unknown: bool = False) -> Words:
    """Take a command line apart. ValueError, in a sentence, for one that is no vLLM server's or that vLLM refuses.

    ignore_unknown: options that vLLM 0.19 does not have become a note instead.
    """
    parts, notes = _split(line)
    parts = _arguments(parts)
    options: dict[str, str | bool] = {}
    model, place, unknown = None, 0, []
    while place < len(parts):
        word, place = parts[place], place + 1
        if not word.startswith("-") or word == "-":
            if model is not None:
                raise ValueError(f"{quote(word)} belongs to no option, and the model is {quote(model)} already")
            model = word
            continue
        name, equals, value = word.partition("=")
        found = _option(name)
        if found is None:
            if not ignore_unknown:
                raise ValueError(f"{engine_defaults.VERSION} has no option {quote(name)}{_near(name)}")
            unknown.append(name)
            if not equals and place < len(parts) and not parts[place].startswith("-"):
                place += 1
            continue
        option, on, kind = found
        if kind in ("flag", "switch"):
            if equals:
                raise ValueError(f"{name} takes no value: write {option} or --no-{option[2:]}, not {quote(word)}")
            said: str | bool = on
        elif equals:
            said = value
        else:
            taken = [] if place >= len(parts) or _is_option(parts[place]) else [parts[place]]
            if kind == "values":
                while place + len(taken) < len(parts) and not _is_option(parts[place + len(taken)]):
                    taken.append(parts[place + len(taken)])
            if not taken and kind != "optional":
                raise ValueError(f"{name} needs a value: what is it?")
            place += len(taken)
            said = " ".join(taken)
        if option in options and "." not in name and options[option] != said:
            notes.append(f"{option} is given twice: the last counts, {_value(option, said)}")
        options[option] = said
    if unknown:
        notes.append(f"{engine_defaults.VERSION} does not know {', '.join(dict.fromkeys(unknown))}: left out")
    if "--model" in options:
        if model is not None and model != options["--model"]:
            raise ValueError(f"two models are named, {quote(model)} and {quote(options['--model'])}: which is it?")
        model = str(options.pop("--model"))
    return Words(model, options, tuple(notes))


def _split(line: str) -> tuple[list[str], list[str]]:
    """The words of the first command, and a note where the shell would do something else after it."""
    if not isinstance(line, str):
        raise ValueError(f"a command line is text, not {quote(line)}")
    if len(line) > LONGEST:
        raise ValueError(f"a command line of {len(line):,} letters is too long: at most {LONGEST:,}")
    line = re.sub(r"\\\r?\n", " ", line)  # a line that ends in a backslash goes on in the next one
    end = _end(line)
    rest = line[end:].split()
    notes = [f"what follows {quote(rest[0])} is not vLLM's, and left out"] if rest and rest[0][0] != "#" else []
    try:
        return shlex.split(line[:end]), notes
    except ValueError as error:
        raise ValueError(f"the command line does not end well ({str(error).lower()}): is a quote missing?") from None


def _end(line: str) -> int:
    """Where the command ends: before a pipe, a redirection, a semicolon or a remark that no quotes hold."""
    mark, place = "", 0
    while place < len(line):
        letter = line[place]
        if letter == "\\" and mark != "'":
            place += 1
        elif mark:
            mark = "" if letter == mark else mark
        elif letter in "'\"":
            mark = letter
        elif letter in "|&;<>" or (letter == "#" and line[place - 1 : place].strip() == ""):
            number = re.search(r"(?:^|\s)[012]$", line[:place]) if letter in "<>" else None  # of 2>&1
            return number.start() if number else place
        place += 1
    return len(line)


def _arguments(parts: list[str]) -> list[str]:
    """What follows `vllm serve`, or the words as they are where they start with an option."""
    if parts and parts[0].startswith("-"):
        return parts
    while parts and (ASSIGNMENT.fullmatch(parts[0]) or parts[0] in ("env", "exec", "nohup", "sudo", "time", "$")):
        parts = parts[1:]
    for place, part in enumerate(parts):
        program = part.rsplit("/", 1)[-1]
        following = parts[place + 1] if place + 1 < len(parts) else ""
        if part == SERVER or "vllm-openai" in program:
            rest = parts[place + 1 :]
            return rest[1:] if rest[:1] == ["serve"] else rest
        if program == "vllm" and following == "serve":
            return parts[place + 2 :]
        if program == "vllm" and following in ANOTHER:
            raise ValueError(f"`vllm {following}` starts no server: give the line with `vllm serve`")
    what = quote(" ".join(parts)) if parts else "nothing"
    raise ValueError(f"a vLLM command line starts with `vllm serve MODEL`, or with an option; this is {what}")


def _option(name: str) -> tuple[str, bool, str] | None:
    """(long option, whether it turns a flag on, what it takes), or None where vLLM knows no such option.

    ValueError where a beginning fits several.
    """
    takes, short = table()
    if not name.startswith("--"):
        if re.fullmatch(r"-O\d", name):
            return "--optimization-level", True, "switch"  # the level is part of the word
        long = short.get(name)
        return None if long is None else (long, True, takes[long])
    long = name.split(".", 1)[0].replace("_", "-").rstrip("+")  # --json-option.key sets one part of a JSON option
    known = {option: (option, True, kind) for option, kind in takes.items()}
    known |= {"--no-" + option[2:]: (option, False, "flag") for option, kind in takes.items() if kind == "flag"}
    if long in known:
        return known[long]
    fitting = [option for option in known if option.startswith(long)] if len(long) > 2 else []
    if len(fitting) > 1:
        some = ", ".join(sorted(fitting)[:3]) + (", ..." if len(fitting) > 3 else "")
        raise ValueError(f"{quote(name)} may be {some}: write it out")
    return known[fitting[0]] if fitting else None


def _near(name: str) -> str:
    near = difflib.get_close_matches(name[:60].replace("_", "-"), table()[0], n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _is_option(word: str) -> bool:
    """Whether a word is an option and no value: "-1" is a number, as argparse has it."""
    return word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-\d+|-\d*\.\d+", word)


def _value(option: str, said: str | bool) -> str:
    if isinstance(said, bool):
        return option if said else f"--no-{option[2:]}"
    return quote(said)
