"""How a decision is read: a flag of an engine or a tool and its value, as they are typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from course.exercises import nodes
from course.exercises.compare import as_number


def flag_typed(flag: object) -> str:
    """A flag as on a command line, "--max-num-seqs", whatever its dashes, underscores and capitals were."""
    return "--" + str(flag).strip().casefold().lstrip("-").replace("_", "-")


def value_typed(value: Any) -> Any:
    """A value as typed: "2,048", "2_048" and 2048.0 are 2048; anything that is no number stays what it is."""
    if isinstance(value, str):
        typed = nodes.as_number(value.strip())
        value = value if typed is None else typed
    number = as_number(value)
    return value if number is None or not number.is_integer() else int(number)


def one_flag(right: str) -> Callable[[Any], dict[str, Any]]:
    """What of an answer {flag: value} is compared: the flag, and its value if the flag is `right`.

    A wrong flag has one hint, whatever its value. What is returned raises NotImplementedError if nothing is filled
    in, and ValueError for anything but one flag.
    """

    def choice(answer: Any) -> dict[str, Any]:
        if not isinstance(answer, Mapping):
            raise ValueError('give a dictionary with one flag and its value, such as {"--flag": 1}')
        chosen = {flag: value for flag, value in answer.items() if value is not None}
        if not chosen:
            raise NotImplementedError("no flag is chosen yet")
        if len(chosen) > 1:
            raise ValueError("choose one flag")
        ((flag, value),) = chosen.items()
        name = flag_typed(flag)
        return {"flag": name, "value": value_typed(value) if name == right else 0}

    return choice
