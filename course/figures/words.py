"""Numbers as people read them."""

from math import isfinite


def seconds(value: float) -> str:
    """Seconds for people: milliseconds below one second, at three significant digits."""
    if not isfinite(value):
        return "no limit"
    return f"{value * 1e3:.3g} ms" if value < 0.9995 else f"{value:.3g} s"
