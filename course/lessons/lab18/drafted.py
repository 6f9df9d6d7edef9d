"""Drafts beside a prefix cache: fewer decode steps, each of which takes longer. Modelled.

The course's engine draws drafts one by one, without a prefix cache and at ten times the CPU seconds
(`course.engine.speculative`). Here a request decodes once for every time that something is accepted; tests compare the
two where both can run. Left out: the drafts' share of the token budget and of the blocks, and the context of the answer
that a request is ahead by.
"""

from __future__ import annotations

import numpy as np

from course.engine.step import StepTimeModel
from course.workload import Workload

RING = 2**14  # draws that all requests read: so many that their mean is right within 0.5%
ACCEPT = 0.7  # of the drafts, if those before were accepted: assumed, as in lab 13
HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-6  # of a pass of an EAGLE-like head, and of each sequence in it: modelled


class Drafted(StepTimeModel):
    """Seconds of a step in which each decode verifies k drafts: so many rows more in the matrix products, and the head.

    step_time: of a step without drafts.
    """

    sound = True
    badge = "modelled: an EAGLE-like head, and each draft one row more"

    def __init__(self, step_time: StepTimeModel, drafts: int):
        self.step_time, self.drafts = step_time, drafts

    def more(self, decodes: int) -> float:
        """Seconds that drafting and verifying add."""
        if not decodes:
            return 0.0
        line = self.step_time.decode_line
        rows = line(decodes * (1 + self.drafts))[0] - line(decodes)[0]
        return self.drafts * (HEAD_S + HEAD_EACH_S * decodes) + rows

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        plain = self.step_time.seconds(decodes, decode_context, tokens, pairs, prefill_context)
        return plain + self.more(decodes)

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        base, slope = self.step_time.decode_line(decodes)
        return base + self.more(decodes), slope


def decode_steps(load: Workload, drafts: int, accept: float = ACCEPT) -> np.ndarray:
    """Steps that emit something, of each request: its first token, and then 1 to drafts + 1 tokens a step, drawn.

    The same request draws the same in every workload that has it at this row.
    """
    rng = np.random.default_rng([18, drafts])
    many = max(RING, int(load.output_tokens.max()))
    right = rng.random((many, drafts)) < accept
    emitted = 1 + np.logical_and.accumulate(right, axis=1).sum(axis=1)
    starts = rng.integers(many, size=len(load))
    # Each request reads the same ring of draws from a place of its own.
    through = np.concatenate([[0], np.cumsum(np.concatenate([emitted, emitted]))])
    left = load.output_tokens - 1
    return 1 + np.searchsorted(through, through[starts] + left) - starts
