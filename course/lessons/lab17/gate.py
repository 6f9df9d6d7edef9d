"""Lab 17's exercise 2: how long a token bucket lets the second of two requests wait, and known wrong turns.

A bucket held `level` tokens `seconds` ago, and fills by `rate` tokens/s up to `burst`; two
requests come together, for `first` and `second` tokens.
"""

PROBES = [
    [500.0, 2.0, 100.0, 1_000.0, 450.0, 500.0],  # it fills, and the second waits
    [700.0, 60.0, 70.0, 1_000.0, 900.0, 400.0],  # it was full long ago
    [100.0, 4.0, 50.0, 600.0, 350.0, 120.0],  # both wait
    [600.0, 1.0, 200.0, 2_000.0, 300.0, 100.0],  # nobody waits
    [900.0, 60.0, 50.0, 1_000.0, 300.0, 200.0],
    [0.0, 10.0, 80.0, 500.0, 500.0, 30.0],
]


def wait(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """Seconds until the second passes: the first pays first."""
    level = min(burst, level + rate * seconds)
    return max(0.0, first + second - level) / rate


def never_filled(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """What came in since is forgotten."""
    return wait(level, 0.0, rate, burst, first, second)


def overflowing(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """The bucket holds any number of tokens."""
    return wait(level, seconds, rate, level + rate * seconds, first, second)


def always_full(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """The bucket is full when the two come."""
    return wait(burst, 0.0, rate, burst, first, second)


def whole(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """The whole cost of the second comes in while it waits."""
    return second / rate


def alone(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """As if the first paid nothing."""
    return wait(level, seconds, rate, burst, 0.0, second)


def missing(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """Tokens in place of seconds."""
    return wait(level, seconds, rate, burst, first, second) * rate


def negative(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """Who need not wait passes before coming."""
    return (first + second - min(burst, level + rate * seconds)) / rate


def left(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """Twin: what the bucket holds when both have passed [tokens]."""
    return max(0.0, min(burst, level + rate * seconds) - first - second)


def left_overflowing(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """The same of a bucket that holds any number of tokens."""
    return max(0.0, level + rate * seconds - first - second)


def in_debt(level: float, seconds: float, rate: float, burst: float, first: float, second: float) -> float:
    """The same of a request that does not wait for what is missing."""
    return min(burst, level + rate * seconds) - first - second
