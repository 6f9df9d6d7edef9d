"""Lab 17's exercise 2: how long a token bucket lets a request wait, and known wrong turns.

A bucket held `level` tokens `seconds` ago, and fills by `rate` tokens/s up to `burst`; a request costs `cost` tokens.
"""

PROBES = [
    [500.0, 2.0, 100.0, 1_000.0, 900.0],  # it fills, and waits
    [700.0, 60.0, 50.0, 1_000.0, 1_000.0],  # it was full long ago
    [100.0, 4.0, 50.0, 600.0, 450.0],
    [600.0, 1.0, 200.0, 2_000.0, 300.0],  # nobody waits
    [0.0, 10.0, 80.0, 500.0, 500.0],
]


def wait(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """Seconds until the request passes."""
    level = min(burst, level + rate * seconds)
    return max(0.0, cost - level) / rate


def never_filled(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """What came in since is forgotten."""
    return wait(level, 0.0, rate, burst, cost)


def overflowing(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """The bucket holds any number of tokens."""
    return wait(level, seconds, rate, level + rate * seconds, cost)


def always_full(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """The bucket is full when the request comes."""
    return wait(burst, 0.0, rate, burst, cost)


def whole(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """The whole cost comes in while the request waits."""
    return cost / rate


def missing(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """Tokens in place of seconds."""
    return wait(level, seconds, rate, burst, cost) * rate


def negative(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """A request that need not wait passes before it comes."""
    return (cost - min(burst, level + rate * seconds)) / rate


def left(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """Twin: what the bucket holds when the request has passed [tokens]."""
    return max(0.0, min(burst, level + rate * seconds) - cost)


def left_overflowing(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """The same of a bucket that holds any number of tokens."""
    return max(0.0, level + rate * seconds - cost)


def in_debt(level: float, seconds: float, rate: float, burst: float, cost: float) -> float:
    """The same of a request that does not wait for what is missing."""
    return min(burst, level + rate * seconds) - cost
