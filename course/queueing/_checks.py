"""The checks that only queueing theory needs; the rest is `course.base.settings`.

Rates, times and spreads are kept to what any system could have, so that no product of them leaves the range of floats
and no sum runs for hours.
"""

from typing import Any

from course.base.settings import MAX_TOKENS, quote, real, whole

SMALLEST, LARGEST = 1e-12, 1e12  # requests/s, and seconds
MOST_SLOTS = 1_000_000  # Erlang's recursion over as many takes a tenth of a second


def rate(name: str, value: Any) -> float:
    """Requests/s; else ValueError."""
    return real(name, value, low=SMALLEST, high=LARGEST)


def seconds(name: str, value: Any) -> float:
    """A duration that is not 0; else ValueError."""
    return real(name, value, low=SMALLEST, high=LARGEST)


def length(name: str, value: Any, low: float = 1.0) -> float:
    """A mean number of tokens; else ValueError."""
    return real(name, value, low=low, high=MAX_TOKENS)


def spread(name: str, value: Any) -> float:
    """A coefficient of variation; else ValueError."""
    return real(name, value, low=0, high=10_000)


def slots(name: str, value: Any, most: int = MOST_SLOTS) -> int:
    """How many servers, slots, or requests a batch; else ValueError."""
    return whole(name, value, high=most)


def by_size(name: str, values: Any, of: str) -> list[float]:
    """Rates or seconds, one for each size of a batch; ValueError for none, too many, or a bad one, which is named."""
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a list with the {of} with 1, 2, ... requests, not {quote(values)}")
    numbers: list[float] = []
    for value in values:
        if len(numbers) == MOST_SLOTS:
            raise ValueError(f"{name} has more than {MOST_SLOTS:,} entries, one per batch size: give fewer")
        numbers.append(real(f"{name}[{len(numbers)}]", value, low=SMALLEST, high=LARGEST))
    if not numbers:
        raise ValueError(f"{name} is empty: give the {of} with 1, 2, ... requests in the batch")
    return numbers


def kind(name: str, value: Any, of: type, example: str) -> None:
    """ValueError unless `value` is one of these."""
    if not isinstance(value, of):
        raise ValueError(f"{name} must be a {of.__name__}, such as {example}, not {quote(value)}")


def step_model(step_time: Any) -> None:
    """ValueError unless it is a callable, and not a class of step times itself."""
    if isinstance(step_time, type) or not callable(step_time):
        raise ValueError(
            "step_time must be a callable from a Step to seconds, such as steptime.PowerLaw(t0=5e-3, c=2e-4, alpha=1), "
            f"not {quote(step_time)}"
        )


def share(name: str, value: Any) -> float:
    """A quantile such as 0.99: at least 0 and below 1."""
    value = real(name, value, low=0.0, high=1.0)
    if value == 1:
        raise ValueError(
            f"{name} must be below 1, not 1: the wait of the slowest request has no bound; ask for 0.999 instead"
        )
    return value


def stable(arrival_rate: float, capacity: float, remedy: str) -> float:
    """The utilisation arrival_rate / capacity, refused at 1 and above, where no mean exists."""
    utilisation = arrival_rate / capacity
    # Rounding may leave a load of exactly 1 a hair below it, as in 49 x (1 / 49).
    if utilisation > 1 - 1e-12:
        raise ValueError(
            f"utilisation is {utilisation:.3g}: {arrival_rate:.4g} requests/s arrive and {capacity:.4g} can be served, "
            f"so the queue grows without end and has no mean. {remedy}"
        )
    return utilisation
