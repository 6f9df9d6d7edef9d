"""Exercises 2 and 3: the speed-up, how many drafts a step should have, and the wrong answers; the policy that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from course.lessons.lab13 import pays
from course.policies import Drafting, Policy, State


def speed_up(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """Times the tokens/s. plain, verify: seconds of a step; draft: of one pass of the draft."""
    return (1 - accept ** (k + 1)) / (1 - accept) * plain / (k * draft + verify)


def forgets_its_own(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """Counts the accepted drafts alone."""
    return ((1 - accept ** (k + 1)) / (1 - accept) - 1) * plain / (k * draft + verify)


def one_pass(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """Takes all drafts for one pass."""
    return (1 - accept ** (k + 1)) / (1 - accept) * plain / (draft + verify)


def upside_down(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """The time of a token in place of its inverse."""
    return 1 / speed_up(plain, draft, verify, k, accept)


def all_accepted(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """As if each draft were accepted."""
    return (k + 1) * plain / (k * draft + verify)


def for_nothing(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """As if a pass of the draft took no time."""
    return speed_up(plain, 0.0, verify, k, accept)


def one_term_less(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """Sums as many terms as there are drafts."""
    return (1 - accept**k) / (1 - accept) * plain / (k * draft + verify)


def alike(plain: float, draft: float, verify: float, k: int, accept: float) -> float:
    """As if each draft were accepted with the same chance, whatever became of those before it."""
    return (1 + k * accept) * plain / (k * draft + verify)


def how_many(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """The number of drafts with the most tokens/s, 0 if all lose. verify[k - 1]: seconds of a step with k drafts."""
    best, most = 0, 1.0
    for k, step in enumerate(verify, start=1):
        gain = speed_up(plain, draft, step, k, accept)
        if gain > most:
            best, most = k, gain
    return best


def never_none(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """Drafts even where all lose."""
    return max(range(1, len(verify) + 1), key=lambda k: speed_up(plain, draft, verify[k - 1], k, accept))


def most_tokens(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """Looks at the tokens of a step and not at its time."""
    return len(verify)


def counts_from_zero(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """The place in the list in place of the number of drafts."""
    return max(0, how_many(plain, draft, verify, accept) - 1)


def passes_once(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """Takes all drafts of a step for one pass."""
    return _most([one_pass(plain, draft, step, k, accept) for k, step in enumerate(verify, start=1)])


def one_term_short(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """Sums as many terms as there are drafts."""
    return _most([one_term_less(plain, draft, step, k, accept) for k, step in enumerate(verify, start=1)])


def _most(gains: Sequence[float]) -> int:
    return max((k for k, gain in enumerate(gains, start=1) if gain > 1), key=lambda k: gains[k - 1], default=0)


def last_that_gains(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """The most drafts that gain anything."""
    gains = [speed_up(plain, draft, step, k, accept) for k, step in enumerate(verify, start=1)]
    return max((k for k, gain in enumerate(gains, start=1) if gain > 1), default=0)


def at_least_a_tenth(plain: float, draft: float, verify: Sequence[float], accept: float) -> int:
    """Twin: drafts only where the best number gains more than a tenth."""
    best = how_many(plain, draft, verify, accept)
    return best if best and speed_up(plain, draft, verify[best - 1], best, accept) > 1.1 else 0


def seconds_of(batch: int) -> tuple[float, float, list[float]]:
    """(plain step, pass of the modelled head, steps that verify 1 to MOST drafts) of a batch [s]."""
    found = [pays.pays(k=k, batch=batch) for k in range(1, pays.MOST + 1)]
    return found[0].plain, pays.head(batch, 1, 0.0), [one.verification for one in found]


TIMES = [[5.0, 0.3, 6.0, 2, 0.8], [4.0, 0.5, 4.5, 4, 0.6], [9.0, 3.0, 20.0, 3, 0.3]]
"""Probes of exercise 2: milliseconds of a step, of a pass and of a verification, drafts, acceptance."""

# Of exercise 3: batches of 1 to 256 at some acceptances
PROBES = [
    [*seconds_of(batch), accept]
    for batch, accept in ((1, 0.8), (8, 0.6), (64, 0.6), (256, 0.3), (128, 0.8), (128, 0.6), (128, 0.4))
]


class AdaptiveK(Drafting):
    """Drafts as many as a function of (plain, draft, verify, acceptance) says for the batch of the moment."""

    def __init__(self, policy: Policy, accept: float, function: Callable[..., int] = how_many):
        self.accept, self.function = accept, function
        super().__init__(policy, pays.MOST)

    def drafts(self, state: State) -> int:
        """What the function says."""
        return self.function(*seconds_of(min(state.decodes, pays.BATCHES[-1])), self.accept)
