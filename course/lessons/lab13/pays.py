"""When drafts pay: seconds of a step by who drafts, how many, and how many sequences; and requests served with them.

An 8B model on the H200 verifies: recorded, with the keys and values of a sequence read once for all its rows. A 1B
model as the draft is recorded too. An EAGLE-like head is modelled, and the longest suffix that was seen costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq

from course.engine.run import Run
from course.engine.serving import serve
from course.engine.speculative import Speculative
from course.figures.words import seconds as in_words
from course.memory.kvcache import KVCache
from course.policies import Continuous, Drafting
from course.steptime import recorded, verify
from course.workload import Workload

VERIFY = verify()
STEP, SMALL = VERIFY.recording, recorded("h200-llama3-1b")
CONTEXT = 1_000  # tokens that each sequence attends to
HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-6  # of a pass of the modelled head, and of each sequence in it
HEAD, MODEL, SUFFIX = "EAGLE-like head", "1B model", "longest suffix"
DRAFTERS = (HEAD, MODEL, SUFFIX)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
MOST = 7  # drafts that were recorded
TICKET_ACCEPT = 0.6
SLOTS, BUDGET, BLOCKS = 1_024, 8_192, 30_000  # vLLM's defaults on such a card, and a pool that nobody fills


def head(sequences: int, drafts: int, context: float) -> float:
    """Seconds that the modelled head takes for so many drafts of each sequence."""
    return drafts * (HEAD_S + HEAD_EACH_S * sequences)


def small(sequences: int, drafts: int, context: float) -> float:
    """Seconds of so many steps of the recorded 1B model. context: of all sequences."""
    return drafts * SMALL.seconds(sequences, int(context), 0, 0, 0)


def nothing(sequences: int, drafts: int, context: float) -> float:
    """A table that is looked up takes no time on the card."""
    return 0.0


TIMES = {HEAD: head, MODEL: small, SUFFIX: nothing}


def expected(accept: float, k: int) -> float:
    """Tokens that a step gives each sequence, on average: (1 - a^(k + 1)) / (1 - a)."""
    return k + 1.0 if accept == 1 else (1 - accept ** (k + 1)) / (1 - accept)


@dataclass(frozen=True)
class Pays:
    """One step with drafts beside one without. Seconds; tokens of each sequence."""

    drafter: str
    k: int
    accept: float
    batch: int
    plain: float
    draft: float
    verification: float
    tokens: float

    @property
    def speed_up(self) -> float:
        """Times the tokens/s of a step without drafts."""
        return self.tokens * self.plain / (self.draft + self.verification)


@cache
def pays(drafter: str = HEAD, k: int = 4, accept: float = 0.7, batch: int = 1) -> Pays:
    """The step of so many sequences with k drafts each."""
    context = batch * CONTEXT
    return Pays(
        drafter, k, accept, batch, STEP.seconds(batch, context, 0, 0, 0), TIMES[drafter](batch, k, context),
        VERIFY.seconds(batch, k, max(CONTEXT, k + 1)), expected(accept, k),
    )  # fmt: skip


def curve(drafter: str, k: int, accept: float) -> list[float]:
    """The speed-up at each of BATCHES."""
    return [pays(drafter, k, accept, batch).speed_up for batch in BATCHES]


def best_k(drafter: str, accept: float, batch: int) -> int:
    """The number of drafts with the highest speed-up, 0 if all lose."""
    found = {0: 1.0} | {k: pays(drafter, k, accept, batch).speed_up for k in range(1, MOST + 1)}
    return max(found, key=found.__getitem__)


def pays_up_to(drafter: str, k: int, accept: float) -> int:
    """The largest of BATCHES at which drafts pay, 0 if they do at none."""
    return max((batch for batch in BATCHES if pays(drafter, k, accept, batch).speed_up >= 1), default=0)


@cache
def tie(drafter: str, batch: int, k: int) -> float:
    """The acceptance at which k drafts neither gain nor lose; NaN if they lose although all are accepted."""

    def gain(accept: float) -> float:
        return pays(drafter, k, accept, batch).speed_up - 1

    return float(brentq(gain, 0, 1, xtol=1e-6)) if gain(1) > 0 else float("nan")


def rows(found: Pays) -> list[tuple[str, str, str]]:
    """The table beside the figure."""
    return [
        ("", f"{found.k} draft{'s' if found.k > 1 else ''}", "without"),
        ("drafting", in_words(found.draft) if found.draft else "0", "-"),
        ("the model's step", in_words(found.verification), in_words(found.plain)),
        ("tokens a sequence", f"{found.tokens:.2f}", "1"),
        ("tokens/s, all", f"{found.batch * found.tokens / (found.draft + found.verification):,.0f}",
         f"{found.batch / found.plain:,.0f}"),
    ]  # fmt: skip


# Requests that come at once

PROMPT, ANSWER = 1_000, 100  # tokens
MIXES: dict[str, tuple[float, float]] = {"all alike": (0.6, 0.6), "half and half": (0.9, 0.3)}
"""Acceptance of requests with even and odd numbers."""


@dataclass(frozen=True)
class Served:
    """Requests that all come at once, with drafts of the modelled head and without. Seconds."""

    requests: int
    k: int
    mix: str
    run: Run
    plain: Run

    @property
    def accepted(self) -> int:
        """Drafted tokens that left."""
        return int(self.run.steps.accepted.sum())

    @property
    def drafted(self) -> int:
        """Tokens that were drafted."""
        return int(self.run.steps.drafted.sum())

    def tpot(self, odd: int) -> float:
        """Median TPOT of the even or odd requests; of all where they are alike."""
        left, right = MIXES[self.mix]
        return float(np.median(tpots(self.run) if left == right else tpots(self.run)[odd::2]))

    @property
    def plain_tpot(self) -> float:
        """Median TPOT of all without drafts."""
        return float(np.median(tpots(self.plain)))

    @property
    def speed(self) -> float:
        """Tokens/s while the answers are written."""
        return _speed(self.run)

    @property
    def plain_speed(self) -> float:
        """The same without drafts."""
        return _speed(self.plain)


def tpots(run: Run) -> np.ndarray:
    """TPOT of each [s], from the last first token on: prompts of others are over then."""
    return (run.response - run.first_computed.max()) / (run.workload.output_tokens - 1)


def _speed(run: Run) -> float:
    """Tokens/s from the last first token to the last answer."""
    return float((run.workload.output_tokens - 1).sum() / (run.response.max() - run.first_computed.max()))


@cache
def served(requests: int = 16, k: int = 4, mix: str = "all alike", seed: int = 0) -> Served:
    """So many requests with a prompt of PROMPT and an answer of ANSWER tokens."""
    load = Workload(np.zeros(requests), np.full(requests, PROMPT), np.full(requests, ANSWER))
    shares = [MIXES[mix][row % 2] for row in range(requests)]
    whole = max(BUDGET, requests * PROMPT)  # all prompts in one step, so that all answers begin together
    cache = KVCache(BLOCKS, 16)
    plain = serve(load, Continuous(SLOTS, whole), STEP, cache)
    if not k:
        return Served(requests, k, mix, plain, plain)
    executor = Speculative(STEP, head, shares, verify=VERIFY.seconds, seed=seed)
    return Served(requests, k, mix, serve(load, Drafting(Continuous(SLOTS, whole), k), executor, cache), plain)


def served_rows(found: Served) -> list[tuple[str, ...]]:
    """The table beside the figure."""
    left, right = MIXES[found.mix]
    return [
        ("", f"{found.k} draft{'s' if found.k != 1 else ''}", "without"),
        ("tokens/s", f"{found.speed:,.0f}", f"{found.plain_speed:,.0f}"),
        *(
            (
                f"TPOT at {accept:g}",
                in_words(found.tpot(odd)) if odd < found.requests else "-",
                in_words(found.plain_tpot),
            )
            for odd, accept in enumerate([left] if left == right else [left, right])
        ),
        ("drafted tokens", f"{found.drafted:,}", "0"),
        ("of these accepted", f"{found.accepted:,}", "0"),
    ]


def counted(**settings: Any) -> tuple[int, ...]:
    """Drafts accepted at each position, as an engine's counters have it."""
    found = served(**settings)
    return tuple(found.run.step_time.accepted_at[: found.k].tolist())  # type: ignore[union-attr]
