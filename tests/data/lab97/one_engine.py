"""An engine whose step takes 10 ms and 1 ms for each sequence; every answer has 50 tokens."""

from dataclasses import dataclass

from course import policies, steptime
from course.engine.run import Run
from course.engine.serving import serve
from course.workload import Workload

FIXED_MS, EACH_MS = 10, 1
SLOTS, RATE, ANSWER, REQUESTS = 8, 6, 50, 200
STEP = steptime.PowerLaw(t0=FIXED_MS / 1e3, c=EACH_MS / 1e3, alpha=1)


@dataclass(frozen=True)
class Full:
    """A batch with all slots taken."""

    step_ms: float
    tokens_per_s: float
    answer_s: float


def full(slots: int, answer: int = ANSWER) -> Full:
    """What so many sequences get, each with an answer of so many tokens."""
    step_ms = FIXED_MS + EACH_MS * slots
    return Full(step_ms, 1e3 * slots / step_ms, answer * step_ms / 1e3)


def busy(rate: float, slots: int) -> Run:
    """Poisson arrivals [requests/s] at an engine with so many slots."""
    return serve(Workload.poisson(rate, REQUESTS, 1, ANSWER), policies.Continuous(slots, 64), STEP)


def slots_for(rate: float) -> int:
    """The fewest slots that deliver the tokens of so many requests/s."""
    return next(slots for slots in range(1, 1_000) if full(slots).tokens_per_s >= rate * ANSWER)


def per_request(tokens_per_s: float, answer: float) -> float:
    """Requests/s of an engine that delivers so many tokens/s."""
    return tokens_per_s / answer


def reciprocal(tokens_per_s: float, answer: float) -> float:
    """A slip: seconds a request."""
    return answer / tokens_per_s


def tokens_again(tokens_per_s: float, answer: float) -> float:
    """A slip: multiplies."""
    return tokens_per_s * answer


def answer_s(tokens_per_s: float, answer: float) -> float:
    """Seconds of an answer in a batch that delivers so many tokens/s to its 8 slots."""
    return answer / (tokens_per_s / SLOTS)


PROBES = ((400.0, 50.0), (900.0, 30.0))
