"""One step for several sequences: recorded on an H100, and measured here with the small language model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from course import lm
from course.lessons.lab00.answer import QUESTIONS, model
from course.lm.threads import one_thread
from course.steptime import Step, recorded

STEP = recorded("h100-llama3-8b")
CONTEXT = 512  # tokens of each sequence on the H100
HERE_CONTEXT = 64  # and here
MOST = 16
SIZES = (1, 2, 4, 8, 16)
TRIES = 15


def on_h100(sequences: int) -> float:
    """Seconds of a step that moves so many sequences on by one token each, each behind 512 tokens."""
    return STEP(Step(sequences, sequences * CONTEXT, ()))


def prefill_on_h100(tokens: int) -> float:
    """Seconds of a step that computes a prompt of so many tokens, and nothing else."""
    return STEP(Step(0, 0, ((tokens, 0),)))


@lru_cache(maxsize=1)
def here() -> Mapping[int, float]:
    """Seconds of a decode step on this CPU by number of sequences, measured once: the shortest of some, one thread.

    What lengthens a step is mostly who else uses the machine: the median of a busy minute compares nothing. The sizes
    take turns.
    """
    mind = model()
    prompt = np.resize(mind.prompt(QUESTIONS[-1]), HERE_CONTEXT)
    cache = lm.PagedKV(mind.config, MOST * (HERE_CONTEXT + 1), 1)
    tables = np.arange(MOST * (HERE_CONTEXT + 1)).reshape(MOST, -1)
    taken: dict[int, list[float]] = {size: [] for size in SIZES}
    with one_thread():
        mind.forward(np.tile(prompt, MOST), [HERE_CONTEXT] * MOST, [0] * MOST, tables, cache)
        for _ in range(TRIES):
            for size in SIZES:
                began = time.perf_counter()
                mind.forward(prompt[:1].repeat(size), [1] * size, [HERE_CONTEXT] * size, tables[:size], cache)
                taken[size].append(time.perf_counter() - began)
    return {size: min(seconds) for size, seconds in taken.items()}


@dataclass(frozen=True)
class Together:
    """One number of sequences: what a step takes on the H100, and what was measured here by number of sequences."""

    sequences: int
    measured: Mapping[int, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Seconds of the step on the H100."""
        return on_h100(self.sequences)

    @property
    def ratio(self) -> float:
        """Against a step for one."""
        return self.seconds / on_h100(1)

    @property
    def gain(self) -> float:
        """Tokens a second, against one sequence alone."""
        return self.sequences / self.ratio


def step(sequences: int) -> Together:
    """A step for so many sequences on the H100."""
    return Together(sequences)


def step_here_too(sequences: int) -> Together:
    """The same with what was measured on this machine."""
    return replace(step(sequences), measured=here())


def rows(result: Together) -> list[tuple[str, ...]]:
    """Rows for a table: the H100, and this machine where it was measured."""
    n, measured = result.sequences, result.measured
    columns = [_column(n, result.seconds, on_h100(1))]
    heads = ["H100, recorded"]
    if measured:
        sizes = list(measured)
        took = float(np.interp(n, sizes, [measured[size] for size in sizes]))
        columns.append(_column(n, took, measured[1]))
        heads.append("this CPU, measured")
    labels = ("a step takes", "against a step for one", "tokens a second", "against one alone")
    return [("", *heads), *((label, *values) for label, *values in zip(labels, *columns, strict=True))]


def _column(sequences: int, seconds: float, alone: float) -> tuple[str, str, str, str]:
    ratio = seconds / alone
    per_second = float(f"{sequences / seconds:.3g}")
    return f"{1e3 * seconds:.2f} ms", f"{ratio:.2f}x", f"{per_second:,.0f}", f"{sequences / ratio:.1f}x"
