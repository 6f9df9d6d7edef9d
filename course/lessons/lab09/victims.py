"""The exercise "whom to send away": a rule, its known wrong turns, and the rule at work in the engine.

A rule gets `computed`, the tokens in the cache of each request that runs, in order of admission, and `spared`, the
place of the one that must stay. It returns the place of the one that gives way. Places count from 0; there are two
requests at least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from course import policies
from course.engine.serving import serve
from course.exercises.cards import Card
from course.exercises.learner import tried
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab09 import pool
from course.policies import Request, State

Rule = Callable[[list[int], int], int]

PROBES: tuple[tuple[list[int], int], ...] = (
    ([300, 40, 900], 0),
    ([20, 400, 90], 0),
    ([500, 80, 80, 600], 0),
    ([7, 7], 1),
    ([60, 30, 10], 2),
    ([10, 800, 200, 200, 800], 0),
    ([90, 700, 50, 700], 3),
)


def fewest(computed: list[int], spared: int) -> int:
    """Whoever has computed least, of equals the last, but never the one that is spared."""
    others = [place for place in range(len(computed)) if place != spared]
    return min(reversed(others), key=lambda place: computed[place])


def last(computed: list[int], spared: int) -> int:
    """The rule of vLLM."""
    return len(computed) - 1


def last_but_spared(computed: list[int], spared: int) -> int:
    """The rule of vLLM among all but the spared one."""
    return max(place for place in range(len(computed)) if place != spared)


def counted_without_spared(computed: list[int], spared: int) -> int:
    """The place in what is left of the list once the spared one is out."""
    place = fewest(computed, spared)
    return place - (place > spared)


def anybody(computed: list[int], spared: int) -> int:
    """The spared one may go as well."""
    return fewest(computed, -1)


def first_of_equals(computed: list[int], spared: int) -> int:
    """Of equals the first."""
    return min((place for place in range(len(computed)) if place != spared), key=lambda place: computed[place])


def most(computed: list[int], spared: int) -> int:
    """Whoever has computed most, of equals the last, but never the one that is spared."""
    others = [place for place in range(len(computed)) if place != spared]
    return max(reversed(others), key=lambda place: computed[place])


def tokens_not_place(computed: list[int], spared: int) -> int:
    """The tokens of the victim in place of its place."""
    return computed[fewest(computed, spared)]


class Ruled(policies.Continuous):
    """Continuous batching with a rule for victims."""

    def __init__(self, rule: Rule, **settings: Any):
        super().__init__(**settings)
        self.rule = rule

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Whom the rule names, the first of those that run being spared; the last one where only one is left."""
        if len(running) < 2:
            return running[-1]
        place = self.rule([request.computed for request in running], 0)
        if type(place) is not int or not 0 <= place < len(running):
            raise ValueError(f"the rule returned {place!r}, and places go from 0 to {len(running) - 1}")
        return running[place]


def with_rule(rule: Rule) -> pool.Served:
    """The thousand questions served with this rule."""
    settings = {"max_num_seqs": pool.SLOTS, "max_num_batched_tokens": pool.BUDGET, "engine_version": pool.VERSION}
    cache = pool.out_of_blocks().cache
    return pool.Served(serve(pool.requests(), Ruled(rule, **settings), pool.STEP, cache), cache)


@cache
def frees_most() -> pool.Served:
    """The evening of the ticket."""
    return with_rule(most)


def at_work(rule: Rule) -> Table | Card:
    """The learner's rule beside the engine's, in numbers; a sentence for one that is empty or breaks off."""
    if tried(rule, lambda: rule([5, 3, 3], 0) is None)[0]:
        return Card("Your rule returns nothing yet.")
    found, said = tried(rule, with_rule, rule)
    if found is None:
        return Card("Your rule does not run yet.", [said])
    rows: list[tuple[str, ...]] = [("", "output", "preemptions", "of one request, at most", "longest gap")]
    rows += [
        (
            name,
            f"{one.tokens_per_second:,.0f} tokens/s",
            f"{one.preemptions:,}",
            f"{one.most}",
            seconds(one.longest_gap),
        )
        for name, one in (("last admitted", pool.out_of_blocks()), ("your rule", found))
    ]
    return table(rows, f"A thousand questions, 40,000 tokens [{pool.STEP.simulated}]")
