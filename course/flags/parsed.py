"""What a command line of an engine means, and how its values are read."""

import re
from dataclasses import dataclass
from typing import Any

from course.base.settings import quote
from course.flags import variables
from course.flags.kv import KVSettings
from course.policies import Policy


@dataclass(frozen=True)
class ParsedCommand:
    """What a command line means.

    engine: its name and version. model: its name, None if the line names none. policy, kv: what runs. defaults:
    setting -> why it has a value that was not given. left_out: options that change neither batching nor KV memory here.
    notes: what a reader should know.
    """

    model: str | None
    policy: Policy
    kv: KVSettings
    defaults: dict[str, str]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    engine: str = ""


def present(option: str, value: Any) -> Any:
    """The value. ValueError if it is a variable without a value."""
    missing = list(variables.empty(value)) if isinstance(value, str) else []
    if missing:
        raise ValueError(
            f"{option} is {quote(value)}: {missing[0]} is a variable without a value; write its value "
            "instead, or give it with --env"
        )
    return value


def flag(option: str, value: Any) -> bool:
    """Whether a flag is on; `true` and `false` if a file wrote them."""
    if isinstance(value, str):
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{option} must be true or false, not {quote(value)}")
        return value.lower() in ("true", "1")
    return bool(value)


def word(option: str, value: str) -> str:
    """A word as it is."""
    return value


def whole(option: str, value: str) -> int:
    """A plain whole number: vLLM takes 8k for a few options only."""
    try:
        if len(value) > 30:
            raise ValueError
        return int(value)
    except ValueError:
        hint = ": vLLM reads 8k only for the token budget and lengths" if re.fullmatch(r"\d+[kKmM]", value) else ""
        raise ValueError(f"{option} must be a whole number, not {quote(value)}{hint}") from None


def whole_or_none(option: str, value: str) -> int | None:
    """A whole number, or nothing."""
    return None if value in ("", "None") else whole(option, value)


def real(option: str, value: str) -> float:
    """A number."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{option} must be a number, not {quote(value)}") from None


def length(option: str, value: str) -> int | None:
    """A length, or auto (also -1) for what fits the memory."""
    if value.strip() == "-1" or value.strip().lower() == "auto":
        return None
    return human(option, value)


def human(option: str, value: str) -> int | None:
    """A whole number, where 1k is 1,000 and 1K is 1,024, as vLLM's human_readable_int."""
    if value in ("", "None"):
        return None
    text = value.strip()
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)([kKmMgGtT])", text)
    if match is None:
        return whole(option, text)
    number, letter = match.groups()
    power = "kmgt".index(letter.lower()) + 1
    if letter.islower():
        return int(float(number) * 1000**power)
    if "." in number:
        raise ValueError(
            f"{option} {quote(value)}: vLLM takes no decimals before {letter} (1,024 to the power {power}); "
            f"{number}{letter.lower()} counts in thousands"
        )
    return int(number) * 1024**power
