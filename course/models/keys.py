"""A config.json read by the meaning of its keys, whatever a family calls them."""

from collections.abc import Mapping
from typing import Any

from course.settings import shown, whole

MAX_SIZE = 10**7  # of a dimension, a vocabulary, a context length; Llama 4 Scout has a context of 10,485,760
MAX_LAYERS = 10_000


class Keys:
    """The keys of one level of a config. A value of None, or of what a switch is off with, is as good as absent."""

    def __init__(self, values: Mapping[str, Any], place: str):
        self.values, self.place = values, place

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def present(self, *names: str) -> list[str]:
        return [name for name in names if name in self]

    def raw(self, *names: str) -> Any:
        """The value under the first of these names that is there, else None."""
        found = self.present(*names)
        return self.values[found[0]] if found else None

    def size(self, *names: str, low: int = 1, high: int = 10 * MAX_SIZE) -> int | None:
        """The whole number that these names stand for, None without any; ValueError where they disagree."""
        found = {name: self.number(name, self.values[name], low, high) for name in self.present(*names)}
        if len(set(found.values())) > 1:
            pairs = " and ".join(f"{name} = {value}" for name, value in found.items())
            raise self.refusal(f"{pairs} mean the same and disagree: one of them must go")
        return next(iter(found.values()), None)

    def needed(self, meaning: str, *names: str, low: int = 1, high: int = 10 * MAX_SIZE) -> int:
        """The same; ValueError that names the keys where there is none."""
        value = self.size(*names, low=low, high=high)
        if value is None:
            raise self.refusal(f"the {meaning} is missing: it needs {' or '.join(names[:3])}")
        return value

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.refusal(f"{name} must be true or false, not {shown(value)}")

    def number(self, name: str, value: Any, low: int = 1, high: int = 10 * MAX_SIZE) -> int:
        try:
            return whole(name, value, low=low, high=high)
        except ValueError as error:
            raise self.refusal(str(error)) from None

    def refusal(self, why: str) -> ValueError:
        return ValueError(f"{self.place}: {why}")
