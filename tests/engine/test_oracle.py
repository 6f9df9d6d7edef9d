"""`serve`, the plain loop and the oracle in tests/helpers agree to the last bit: tokens, times, columns of steps."""

from collections import Counter
from itertools import pairwise

import hypothesis
import numpy as np
from hypothesis import given

from course import KVCache, policies, steptime
from course.engine.fast import stretch
from tests.helpers import oracle_own, strategies
from tests.helpers.own_policies import Decided
from tests.helpers.sizes import size
from tests.helpers.strategies import Case, compare, examples


def overtaken(out) -> bool:
    """Whether somebody waited while a later one was admitted."""
    order = sorted(
        [who for who, when in enumerate(out.admitted) if when is not None], key=lambda who: (out.arrival[who], who)
    )
    return any(out.admitted[after] < out.admitted[before] for before, after in pairwise(order))


def compare_many(cases, number: int) -> Counter:
    """Compare on that many random cases; how many of them had what is rare in it."""
    seen = Counter()

    @given(cases)
    @examples(number)
    def agree(case):
        out = compare(case)
        ends = {row["end"] for row in out.steps}
        found = {
            "preempted": any(out.preempted),
            "preempted twice": max(out.preempted) > 1,
            "a prompt in chunks": out.chunked > 0,
            "idle": out.idle > 0,
            "an arrival on a step end": not ends.isdisjoint(out.arrival),
            "an answer of one token": 1 in case.output,
            "an answer that brings a request": any(before is not None for before in case.after),
            "blocks of one token": case.cache is not None and case.cache.block_size == 1,
            "one slot": case.policy.max_num_seqs == 1,
            "padding": any(row["wasted"] for row in out.steps),
            "a request without a turn": out.starved > 0,
            "somebody overtaken": overtaken(out),
            "back from the host": out.returned > 0,
            "no hole though enough is free": out.fragmented > 0,
            "gave up": any(why == "gave up" for why, *_ in out.left.values()),
            "rejected": any(why == "rejected" for why, *_ in out.left.values()),
            "told to come again": bool(out.retries),
            "gave up while away": any(who in out.retries and why[0] == "gave up" for who, why in out.left.items()),
            "left in the middle of a prompt": any(tokens for _, _, tokens in out.left.values()),
            "left after a preemption": any(out.preempted[who] for who in out.left),
            "a token too late": any(out.token_times[who] for who in out.left),
            "guesses, and some without one": case.guess is not None
            and len({None, *case.guess}) > 1
            and None in case.guess,
        }
        for name in (name for name, here in found.items() if here):
            seen[name] += 1
            hypothesis.event(name)

    agree()
    return seen


def test_continuous():
    seen = compare_many(strategies.continuous(), 150)
    for rare in ("preempted", "a prompt in chunks", "idle", "an arrival on a step end", "an answer of one token"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"
    for rare in ("an answer that brings a request", "blocks of one token", "one slot"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def test_preemption_storms():
    seen = compare_many(strategies.storms(), 120)
    assert seen["preempted"] >= size(0, 40)
    assert seen["preempted twice"] >= size(0, 20)
    assert seen["a prompt in chunks"] >= size(0, 20)


def test_many_prompts_in_chunks_at_once():
    """First come first served never passes over a running request, so no decode goes without its token.

    Whoever is cut short by the budget is the last in the order of admission, and gets one token at least: those before
    it ask for no more than they got in the step before, when it got one too.
    """
    seen = compare_many(strategies.many_in_chunks(), 80)
    assert seen["a prompt in chunks"] >= size(0, 40)
    assert seen["preempted"] >= size(0, 5)
    assert seen["a request without a turn"] == 0


def test_those_that_leave():
    """Patience, in any policy's queue and in the middle of a prompt; and one that rejects."""
    seen = compare_many(strategies.leaving(), 150)
    # What is rare in those: who leaves after a preemption, who gives up between two attempts.
    seen += compare_many(strategies.cut_short(), 20)
    seen += compare_many(strategies.leaving(strategies.decided()), 80)
    seen += compare_many(strategies.leaving(strategies.rate_limits()), 20)
    for what in (
        "gave up", "rejected", "left in the middle of a prompt", "left after a preemption", "a token too late",
        "told to come again", "gave up while away",
    ):  # fmt: skip
        assert seen[what] >= size(0, 3), f"hardly ever: {what}"


def test_whom_the_client_sends_for_one_that_is_rejected():
    """The policy lets one in and rejects another at once: the next comes at that time, and waits for a step."""
    policy = Decided(oracle_own.AtRandom(682, rejects=True), 1, 1, False)
    nobody, start = (None,) * 3, (0.125,) * 3
    case = Case(start, (1,) * 3, (1,) * 3, nobody, (0.0,) * 3, policy, strategies.by_order, None, cap=2)
    out = compare(case)
    assert list(out.left) == [1] and [row["queue"] for row in out.steps] == [1, 0]


def test_a_rate_limit_with_retry_after():
    seen = compare_many(strategies.rate_limits(), 120)
    assert seen["told to come again"] >= size(5, 30) and seen["rejected"] >= size(1, 8)
    assert seen["an arrival on a step end"] >= size(1, 8)


def test_long_answers():
    seen = compare_many(strategies.long_answers(), 60)
    assert seen["idle"] >= size(0, 1) and seen["an arrival on a step end"] >= size(0, 1)


def test_static_and_dynamic():
    seen = compare_many(strategies.batches(), 100)
    for rare in ("padding", "idle", "an arrival on a step end", "an answer that brings a request", "one slot"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def test_shortest_first():
    seen = compare_many(strategies.shortest_first(), 110)
    for rare in ("somebody overtaken", "preempted twice", "a prompt in chunks", "an answer that brings a request"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"
    assert seen["guesses, and some without one"] >= size(0, 3)


def test_rivals_of_paging():
    seen = compare_many(strategies.rivals(), 210) + compare_many(strategies.holes(), 40)
    for rare in ("preempted twice", "a prompt in chunks", "back from the host", "no hole though enough is free"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def test_prefill_first():
    seen = compare_many(strategies.prefill_first(), 150)
    for rare in (
        "preempted twice",
        "a prompt in chunks",
        "a request without a turn",
        "an answer that brings a request",
    ):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def test_windows():
    seen = compare_many(strategies.windows(), 90)
    for rare in ("idle", "an arrival on a step end", "an answer that brings a request", "one slot"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def test_a_policy_that_does_whatever_is_allowed():
    seen = compare_many(strategies.decided(), 200)
    for rare in ("preempted twice", "a prompt in chunks", "a request without a turn", "idle", "somebody overtaken"):
        assert seen[rare] >= size(0, 3), f"hardly ever: {rare}"


def columns(n, **given):
    """A case's columns for n requests that all come at 0, but for what is given."""
    plain = {"arrival": (0.0,) * n, "after": (None,) * n, "think_time": (0.0,) * n}
    return {**plain, **given}


def test_an_answer_longer_than_one_array_of_steps(monkeypatch):
    """So many steps in which nothing changes, but for one request that comes and goes in the middle of them."""
    monkeypatch.setattr(stretch, "_LONGEST", 1 << 12)
    compare(
        Case(
            **columns(2, arrival=(0.0, 30.0), prompt=(5, 40), output=(13_005, 300)),
            policy=policies.Continuous(2, 64),
            step_time=steptime.PowerLaw(t0=5e-3, c=2e-4, alpha=0.9, prefill=2e-5, context=1e-9),
            cache=KVCache(num_blocks=900),
        )
    )


def test_many_requests_at_the_limit_of_slots_budget_and_blocks():
    """What random cases of 24 requests cannot reach: a queue of hundreds, and blocks that run short time and again."""
    rng = np.random.default_rng(5)
    n = 600
    out = compare(
        Case(
            **columns(
                n,
                arrival=tuple(np.cumsum(rng.exponential(0.02, n)).tolist()),
                prompt=tuple(rng.integers(1, 120, n).tolist()),
                output=tuple(rng.integers(1, 90, n).tolist()),
            ),
            policy=policies.Continuous(16, 128, long_prefill_token_threshold=50, scheduler_reserve_full_isl=False),
            step_time=steptime.Roofline("llama-3.1-8b", "H100"),
            cache=KVCache(num_blocks=60),
        )
    )
    assert sum(out.preempted) > 20
    assert out.chunked > 100 and out.starved == 0
    assert max(row["queue"] for row in out.steps) > 100


def test_many_users_who_ask_again_at_once():
    """A closed loop with no think time: each answer brings a request that arrives on the end of a step."""
    users, rounds = 7, 6
    n = users * rounds
    after = (None,) * users + tuple(range(n - users))
    for policy in (policies.Continuous(4, 40), policies.Static(3), policies.Dynamic(3, 0.25)):
        out = compare(
            Case(
                **columns(n, after=after, prompt=(3, 30, 9) * (n // 3), output=(1, 4, 9, 2, 2, 6) * (n // 6)),
                policy=policy,
                step_time=steptime.PowerLaw(t0=0.125, c=0, alpha=1),
            )
        )
        ends = {row["end"] for row in out.steps}
        assert all(when in ends for when in out.arrival[users:])
