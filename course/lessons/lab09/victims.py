"""The exercise "whom to send away": a rule, its known wrong turns, and the rule at work in the engine.

A rule gets `computed`, the tokens in the cache of each request that runs, in order of admission, and returns the place
of the one that gives way, counted from 0. There are at least two.
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

Rule = Callable[[list[int]], int]

PROBES: tuple[tuple[list[int]], ...] = (
    ([300, 40, 900],),
    ([20, 400, 90],),
    ([500, 80, 80, 600],),
    ([7, 7],),
    ([60, 30, 10],),
    ([10, 800, 200, 200],),
)
"""What a rule is tried with: one argument each."""


def spares_the_first(computed: list[int]) -> int:
    """Whoever has computed least, of equals the last, but never the one admitted first."""
    least = min(computed[1:])
    return max(place for place in range(1, len(computed)) if computed[place] == least)


def last(computed: list[int]) -> int:
    """The rule of vLLM."""
    return len(computed) - 1


def anybody(computed: list[int]) -> int:
    """The first may go as well."""
    return max(place for place, tokens in enumerate(computed) if tokens == min(computed))


def first_of_equals(computed: list[int]) -> int:
    """Of equals the first."""
    return computed.index(min(computed[1:]), 1)


def most(computed: list[int]) -> int:
    """Whoever has computed most, of equals the last, but never the one admitted first."""
    largest = max(computed[1:])
    return max(place for place in range(1, len(computed)) if computed[place] == largest)


def tokens_not_place(computed: list[int]) -> int:
    """The tokens of the victim in place of its place."""
    return min(computed[1:])


def first_in(computed: list[int]) -> int:
    """The one admitted first."""
    return 0


class Ruled(policies.Continuous):
    """Continuous batching with a rule for victims."""

    def __init__(self, rule: Rule, **settings: Any):
        super().__init__(**settings)
        self.rule = rule

    def victim(self, state: State, running: Sequence[Request]) -> Request:
        """Whom the rule names; the last one where only one is left."""
        if len(running) < 2:
            return running[-1]
        place = self.rule([request.computed for request in running])
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
    if tried(rule, lambda: rule([5, 3, 3]) is None)[0]:
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
