"""How a decision is read: a flag of an engine or a tool and its value, as they are typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from course.exercises import nodes
from course.exercises.compare import as_number, brief

_COMMA = re.compile(r"[-+]?(?:0,|\d+,(?!\d{3}$))\d+")


def flag_typed(flag: object) -> str:
    """A flag as on a command line, "--max-num-seqs", whatever its dashes, underscores and capitals were."""
    return "--" + str(flag).strip().casefold().lstrip("-").replace("_", "-")


def value_typed(value: Any) -> Any:
    """A value as typed: "2,048", "2_048" and 2048.0 are 2048; anything that is no number stays what it is.

    Raises ValueError for a number with a decimal comma.
    """
    if isinstance(value, str):
        if _COMMA.fullmatch(value.strip()):
            raise ValueError(f"{value.strip()} has a decimal comma: write {value.strip().replace(',', '.')}")
        typed = nodes.as_number(value.strip())
        value = value if typed is None else typed
    number = as_number(value)
    return value if number is None or not number.is_integer() else int(number)


def the_flag(answer: Any, example: str = '{"--flag": 1}') -> tuple[str, Any]:
    """The one flag of an answer {flag: value} and its value, both as they are typed; None stands for not chosen.

    Raises NotImplementedError if nothing is filled in, and ValueError for anything but one flag.
    """
    if not isinstance(answer, Mapping):
        raise ValueError(f"give a dictionary with one flag and its value, such as {example}")
    flags = {flag_typed(flag): value_typed(value) for flag, value in answer.items() if value is not None}
    if not flags:
        raise NotImplementedError("no flag is chosen yet")
    if len(flags) > 1:
        raise ValueError("choose one flag")
    ((flag, value),) = flags.items()
    return flag, value


def one_flag(right: str, offered: Sequence[Any] = ()) -> Callable[[Any], dict[str, Any]]:
    """What of an answer {flag: value} is compared: the flag, and its value if the flag is `right`.

    A wrong flag has one hint, whatever its value; with False it is the flag that turns it off, `--no-...`. What is
    returned raises as `the_flag` does, and ValueError for a value that is not `offered`, if any are: it may keep a
    promise, and would be judged as if it did not.
    """

    def choice(answer: Any) -> dict[str, Any]:
        name, value = the_flag(answer)
        if value is False:
            name = f"--no-{name.removeprefix('--')}"
        if name == right and offered and value not in offered:
            values = ", ".join(f"{one:,}" for one in offered)
            raise ValueError(f"{brief(value)} is none of the values to choose from: {values}")
        return {"flag": name, "value": value if name == right else 0}

    return choice
