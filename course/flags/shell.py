"""The words of one command in a script: where it begins and ends, and the variables that stand beside it."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from course.base.settings import quote
from course.flags import variables

ENGINES = re.compile(
    r"vllm\s+serve(?!\w)|vllm\.entrypoints\.openai\.api_server|vllm-openai|sglang\.launch_server|sglang\s+serve(?!\w)|trtllm-serve"
)


@dataclass(frozen=True)
class Source:
    """One command: its words, and sentences about how it was read."""

    words: tuple[str, ...]
    notes: tuple[str, ...]


def from_shell(script: str, variables_of_image: Mapping[str, str]) -> Source:
    """The words of the first command that starts an engine, or of the first command; what follows it is noted."""
    script = re.sub(r"\\\r?\n", " ", script)  # a line that ends in a backslash goes on in the next one
    script = variables.without_arrays(script)
    match = next((one for one in ENGINES.finditer(script) if not _in_remark(script, one.start())), None)
    head, line = "", script
    if match is None and "\n" in script.strip() and not script.lstrip().startswith("-"):
        raise ValueError("no line of this script starts a server of vLLM, SGLang or TensorRT-LLM, except in comments")
    if match:
        begin = max(script.rfind(mark, 0, match.start()) + len(mark) for mark in ("\n", ";", "&&", "|", "("))
        begin = begin if any(mark in script[: match.start()] for mark in "\n;&|(") else 0
        head, line = script[:begin], script[begin:]
    values = {
        **variables_of_image,
        **variables.assignments(head),
        **(variables.assignments(line[: line.find("-")]) if match else {}),
    }
    fallbacks: dict[str, str] = {}
    end = end_of(line)
    several = variables.set_twice(head, line[:end])
    others = [one for one in ENGINES.finditer(line, end) if not _in_remark(line, one.start())]
    rest = line[end:].split()
    notes = (
        [f"what follows {quote(rest[0])} does not belong to vLLM's command, and is left out"]
        if rest and rest[0][0] != "#"
        else []
    )
    try:
        words = shlex.split(variables.fill(line[:end], values, fallbacks))
    except ValueError as error:
        raise ValueError(
            f"the end of the command line cannot be read ({str(error).lower()}): is a quote missing?"
        ) from None
    if match and match[0] == "vllm-openai" and not any(word == "run" or word.startswith("-") for word in words):
        raise ValueError(
            "vLLM's image is named here, and no command or option of it: paste the command, or the arguments"
        )
    notes += [f"{name} is set to {number} values: the last one counts, {quote(values[name])}; --env gives another"
              for name, number in several.items()]  # fmt: skip
    if others:
        notes.append(f"{1 + len(others)} commands of this text start an engine: the first one is read")
    notes += [f"{name} is a variable without a value: its default counts, {quote(value)}"
              for name, value in fallbacks.items()]  # fmt: skip
    return Source(tuple(words), tuple(notes))


def _in_remark(script: str, place: int) -> bool:
    return script[script.rfind("\n", 0, place) + 1 : place].lstrip().startswith("#")


def end_of(line: str) -> int:
    """Where the command ends.

    Before a pipe, a redirection, a semicolon or a remark that no quotes hold, or before a line that does not go on with
    an option, as lines do whose backslashes were lost.
    """
    quote, place = "", 0
    while place < len(line):
        letter = line[place]
        if letter == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "\n" and not re.match(r"\s*([-$#]|\Z)", line[place:]):
            return place
        elif letter in "|&;<>" or (letter == "#" and line[place - 1 : place].strip() == ""):
            number = re.search(r"(?:^|\s)[012]$", line[:place]) if letter in "<>" else None  # of 2>&1
            return number.start() if number else place
        place += 1
    return len(line)
