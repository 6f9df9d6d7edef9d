"""The functions that lab 16 asks for, and the plausible wrong ones.

Lengths of time are in seconds. What the wrong ones do is said by the hints in `asks.yaml`.
"""

PROBES = (
    ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [0.1, 3.5, 0.2, 0.2, 0.2, 0.2]),
    ([0.0, 0.5, 1.0, 5.0, 5.5], [0.75, 0.25, 0.5, 0.25, 1.0]),
    ([2.0, 2.1, 2.2], [1.0, 1.0, 1.0]),
)


def felt_ttft(planned, seconds):
    """TTFT from the plan, for a client with one request in flight: it sends late while an answer is late."""
    free, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        free = max(free, moment) + took
        found.append(free - moment)
    return found


def as_written(planned, seconds):
    """Takes the times as the client wrote them down."""
    return list(seconds)


def never_idle(planned, seconds):
    """Takes the client for busy from the first request on."""
    total, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        total += took
        found.append(total - moment)
    return found


def one_step_back(planned, seconds):
    """Waits for the answer before, as if that one had been sent on time."""
    found, before = [], 0.0
    for moment, took in zip(planned, seconds, strict=True):
        found.append(max(before, moment) + took - moment)
        before = moment + took
    return found


def moments(planned, seconds):
    """Gives the moments of the first tokens instead of the waits for them."""
    return [moment + whole for moment, whole in zip(planned, felt_ttft(planned, seconds), strict=True)]


def late(planned, seconds):
    """How late each request was sent."""
    return [whole - took for whole, took in zip(felt_ttft(planned, seconds), seconds, strict=True)]


def tpot_of(per_token: float, tokens: int, ttft: float) -> float:
    """TPOT from E2E / tokens of one answer, in the unit of the arguments."""
    return (per_token * tokens - ttft) / (tokens - 1)
