"""Numbers as people read them."""

from math import isfinite


def seconds(value: float) -> str:
    """Seconds for people: milliseconds below one second, at three significant digits, and no powers of ten."""
    if not isfinite(value):
        return "no limit"
    if value >= 999.5:
        return f"{value:,.0f} s"
    return f"{value * 1e3:.3g} ms" if value < 0.9995 else f"{value:.3g} s"
