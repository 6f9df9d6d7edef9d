"""The scenario of lab 06: questions about pages of text, and who goes first in a step, prompts or decodes.

Llama-3.1-8B on one H200, 16 requests a second, prompts of 1,500 tokens, answers of about 250 (lognormal, coefficient of
variation 1). 256 slots and a budget of 8,192 tokens, which is the engines' default on that card; their default of 1,024
slots changes nothing here, since never more than 160 are taken. Step times are those recorded on that card.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.policies import Policy
from course.steptime import recorded
from course.workload import Workload, lengths

STEP = recorded("h200-llama3-8b-flash")
BADGE = STEP.simulated.partition(", prompts")[0]  # of an explorer, on one line; tables name the kernels too
RATE, PROMPT, ANSWER, CV = 16, 1_500, 250, 1.0
SLOTS, BUDGET = 256, 8_192
REQUESTS = 640  # 40 seconds of them
MIXED, FIRST = "mixed", "prompts first"
ORDERS = (MIXED, FIRST)
SHARES = {f"1/{part}": 1 / part for part in (2, 4, 8, 16)}
TURNS = {f"every {k}{end} step": k for k, end in ((2, "nd"), (4, "th"), (8, "th"))}
RULES = (MIXED, *SHARES, *TURNS, FIRST)
WINDOW = 1.6  # seconds that the figure shows around the longest gap


@lru_cache(maxsize=64)
def requests(rate: float = RATE, seed: int = 0, number: int = REQUESTS) -> Workload:
    """Poisson arrivals, prompts of one length, lognormal answers."""
    return Workload.poisson(rate, number, PROMPT, lengths.lognormal(ANSWER, cv=CV), seed)


def policy(rule: str, budget: int = BUDGET, slots: int = SLOTS) -> Policy:
    """The policy of a rule: an order, a share of the step for prompts, or prompts in some of the steps."""
    if rule == FIRST:
        return policies.PrefillFirst(slots, budget)
    if rule in SHARES:
        return policies.PrefillShare(slots, budget, SHARES[rule])
    if rule in TURNS:
        return policies.PrefillEvery(slots, budget, TURNS[rule])
    return policies.Continuous(slots, budget)


@dataclass(frozen=True)
class Served:
    """One run under a rule. Times in seconds."""

    rule: str
    budget: int
    slots: int
    rate: float
    run: Run

    @cached_property
    def ttft(self) -> float:
        """Mean time to the first token."""
        return float(self.run.ttft.mean())

    @cached_property
    def ttft_p99(self) -> float:
        """p99 of the time to the first token."""
        return float(np.percentile(self.run.ttft, 99))

    @cached_property
    def e2e(self) -> float:
        """Mean time to the last token."""
        return float(self.run.e2e.mean())

    @cached_property
    def itl_p99(self) -> float:
        """p99 of the gaps over all tokens."""
        gaps, weights = self.run.itl_weighted
        order = np.argsort(gaps)
        upto = np.cumsum(weights[order])
        return float(gaps[order][np.searchsorted(upto, 0.99 * upto[-1])])

    @cached_property
    def gap(self) -> float:
        """The longest time without a token of somebody whose answer had begun."""
        return float(self.run.itl_weighted[0].max())

    @cached_property
    def mixed(self) -> float:
        """Share of the steps that hold prompts and decodes."""
        steps = self.run.steps
        return float(((steps.prefill_tokens > 0) & (steps.decodes > 0)).mean())

    @cached_property
    def prompt_share(self) -> float:
        """Share of the prompts' tokens in all that the steps computed."""
        steps = self.run.steps
        return float(steps.prefill_tokens.sum() / (steps.prefill_tokens.sum() + steps.decodes.sum()))

    @cached_property
    def longest_gap(self) -> tuple[float, float]:
        """From when to when that was: from one step with decodes to the next such step."""
        ends = self.run.steps.end[self.run.steps.decodes > 0]
        worst = int(np.abs(np.diff(ends) - self.gap).argmin())  # after an idle time nobody waited for a token
        return float(ends[worst]), float(ends[worst + 1])

    @cached_property
    def prompts_in_gap(self) -> float:
        """Prompts that were computed in it: tokens over the tokens of a prompt."""
        begin, end = self.longest_gap
        steps = self.run.steps
        here = (steps.start >= begin - 1e-9) & (steps.end <= end + 1e-9)
        return float(steps.prefill_tokens[here].sum() / PROMPT)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the run."""
        return self.run.warnings


@lru_cache(maxsize=256)
def served(rule: str, budget: int = BUDGET, slots: int = SLOTS, rate: float = RATE, seed: int = 0,
           number: int = REQUESTS) -> Served:  # fmt: skip
    """The service under a rule, with this budget and these slots."""
    return Served(rule, budget, slots, rate, serve(requests(rate, seed, number), policy(rule, budget, slots), STEP))


def who_goes_first(order: str, max_num_batched_tokens: int) -> Served:
    """One order with one budget."""
    return served(order, max_num_batched_tokens)


def order_rows(found: Served) -> list[tuple[str, str]]:
    """What the order did to first tokens, gaps and answers."""
    return [
        ("TTFT, mean", seconds(found.ttft)),
        ("ITL, p99", seconds(found.itl_p99)),
        ("longest gap", seconds(found.gap)),
        ("prompt tokens in it", f"{found.prompts_in_gap * PROMPT:,.0f}"),
        ("E2E, mean", f"{found.e2e:.2f} s"),
        ("mixed steps", f"{found.mixed:.0%}"),
    ]


def a_share_for_prompts(rule: str, rate: float, max_num_seqs: int) -> Served:
    """One rule at a rate, with so many slots."""
    return served(rule, BUDGET, max_num_seqs, float(rate))


def share_rows(found: Served) -> list[tuple[str, str]]:
    """The same beside what limits it."""
    run = found.run
    return [
        ("TTFT, mean", seconds(found.ttft)),
        ("of it before its first step", seconds(float(run.queue_wait.mean()))),
        ("longest gap", seconds(found.gap)),
        ("E2E, mean", f"{found.e2e:.2f} s"),
        ("slots taken, at most", f"{run.steps.running.max()} of {found.slots:,}"),
    ]
