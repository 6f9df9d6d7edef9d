"""What the toy's explorers ask of a result."""

from course.engine.run import Run
from course.explore.tasks import Settings
from tests.data.lab97.one_engine import Full, full

FAST = 500  # tokens/s


def tokens(settings: Settings, result: Full) -> float:
    """Tokens/s."""
    return result.tokens_per_s


def fast(settings: Settings, result: Full) -> bool:
    """Whether there are more than FAST tokens/s."""
    return result.tokens_per_s > FAST


def slow(settings: Settings, result: Full) -> bool:
    """Whether an answer takes two seconds or more."""
    return result.answer_s >= 2


def less_than_twice(settings: Settings, result: Full) -> bool:
    """Whether the last doubling of the slots less than doubled the tokens."""
    return result.tokens_per_s < 2 * full(settings["slots"] // 2).tokens_per_s


def room(settings: Settings, result: Full) -> dict[str, str]:
    """What the answers name."""
    return {"tokens": f"{result.tokens_per_s:.0f}", "answer": f"{result.answer_s:.1f} s", "step": f"{result.step_ms:g}"}


def waits(settings: Settings, run: Run) -> float:
    """Mean time before the first step [s]."""
    return float(run.queue_wait.mean())


def queue(settings: Settings, run: Run) -> bool:
    """Whether requests wait for more than a second on average."""
    return waits(settings, run) > 1


def no_queue(settings: Settings, run: Run) -> bool:
    """Whether nobody waits for as long as the longest step."""
    return bool(run.queue_wait.max() < run.steps.seconds.max())


def line(settings: Settings, run: Run) -> dict[str, str]:
    """What the answers name."""
    return {"wait": f"{waits(settings, run):.2f} s", "rate": f"{settings['rate']:g}"}
