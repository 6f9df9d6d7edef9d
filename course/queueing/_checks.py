"""Two checks that only queueing theory needs; the rest is `course.settings`."""

from course.settings import real


def share(name: str, value: object) -> float:
    """A quantile such as 0.99: at least 0 and below 1."""
    value = real(name, value, low=0.0, high=1.0)
    if value == 1:
        raise ValueError(
            f"{name} must be below 1, not 1: the slowest request of all has no bound; ask for 0.999 instead"
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
