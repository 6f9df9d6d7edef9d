"""Policies that lie about how long their answer holds, hand in odd things, or reach for what is not theirs.

Whatever they do, slots, budget and blocks are kept, the run ends, and what is refused is refused with a sentence.
"""

import math
from collections import ChainMap
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.engine.serving import Engine
from course.policies import Request, Schedule
from course.policies.base import DECODES
from tests.helpers import strategies
from tests.helpers.asking import BOTH
from tests.helpers.own_policies import Own
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [60, 4, 1])


def everybody(state):
    return {request: request.remaining for request in (*state.running, *state.waiting)}


def ends_of(decide, cache=None, run=serve):
    return run(LOAD, Own(decide), SECOND, cache).response.tolist()


HONEST = [60.0, 4.0, 2.0]


# Lies about `until`


class Liar(policies.Continuous):
    """Says of every answer that it holds for good, also where the budget cut a prompt or somebody was sent away."""

    def schedule(self, state):
        said = super().schedule(state)
        return Schedule(said.tokens, said.preempt, said.decodes, math.inf)


@given(st.one_of(strategies.continuous(), strategies.storms(), strategies.many_in_chunks()))
@examples(80)
def test_a_liar_hurts_itself_alone(case):
    """It may serve others later than an honest one, or be refused; what an engine has is never exceeded."""
    liar = replace(case, policy=Liar(**vars(case.policy)))
    try:
        run = liar.served()
    except ValueError as error:
        assert str(error).startswith("Liar.schedule broke the rules in step ")
        assert "KV blocks more than the cache" in str(error)
        return
    steps, policy = run.steps, case.policy
    assert (steps.running <= policy.max_num_seqs).all()
    assert (steps.decodes + steps.prefill_tokens <= policy.max_num_batched_tokens).all()
    assert case.cache is None or (steps.blocks <= case.cache.num_blocks).all()
    assert [len(run.token_times(i)) for i in range(len(run))] == list(case.output)
    assert (run.e2e > 0).all() and (steps.end[1:] > steps.end[:-1]).all()
    assert steps.decodes.sum() + steps.prefill_tokens.sum() == steps.dropped.sum() + sum(
        prompt + output - 1 for prompt, output in zip(case.prompt, case.output, strict=True)
    )


@pytest.mark.parametrize("run", BOTH)
def test_who_holds_through_a_shortage_of_blocks_is_refused(run):
    """Two of 5 prompt and 60 output tokens; the last free block is taken in the step that computes token 41 of each."""
    careless = Own(lambda s: Schedule({r: r.remaining for r in s.waiting}, decodes=True, until=math.inf))
    with pytest.raises(ValueError, match=r"in step 36 .*it takes 1 KV blocks more than the cache of 41 has: preempt"):
        run(Workload([0.0, 0.0], [5, 5], [60, 60]), careless, SECOND, KVCache(41, 2))


@pytest.mark.parametrize(
    "until",
    [-1, -math.inf, 0, Fraction(7, 3), Fraction(-7, 3), 10**400, -(10**400), np.float32(2.5), np.int64(3), 1e300, 2.5],
)
def test_a_time_of_any_kind_while_somebody_runs(until):
    """In the past, not at all a float, larger than any float: the answer holds until then, or for one step."""
    assert ends_of(lambda s: Schedule({r: r.remaining for r in s.waiting}, decodes=True, until=until)) == HONEST


# Odd answers that say nothing wrong


class Twice(dict):
    """Everything in it two times over, for whoever goes through it."""

    def items(self):
        return [*super().items(), *super().items()]


class Empty(dict):
    def __bool__(self):
        return False

    def __len__(self):
        return 0


class Fickle(Schedule):
    """Says something else each time it is looked at."""

    __slots__ = ("looks",)

    def __getattribute__(self, name):
        if name != "tokens":
            return super().__getattribute__(name)
        self.looks = super().__getattribute__("looks") + 1 if self.looks else 1
        return super().__getattribute__("tokens") if self.looks == 1 else {0: 10**9}


def fickle(state):
    schedule = Fickle.__new__(Fickle)
    schedule.looks = 0
    Schedule.__init__(schedule, everybody(state))
    schedule.looks = 0
    return schedule


SAME = {
    "decodes in words and in the list": lambda s: Schedule(everybody(s), decodes=True, until=math.inf),
    "decodes in words that are all": lambda s: Schedule({r: r.remaining for r in s.waiting}, decodes=True),
    "a dict with everything twice": lambda s: Schedule(Twice(everybody(s))),
    "a dict that seems empty": lambda s: Schedule(Empty(everybody(s))),
    "no dict, but a mapping": lambda s: Schedule(ChainMap(everybody(s), {})),
    "another kind of schedule": fickle,
    "tokens of another kind": lambda s: Schedule({r: np.int32(n) for r, n in everybody(s).items()}),
    "tokens as fractions": lambda s: Schedule({r: Fraction(n) for r, n in everybody(s).items()}),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("run", BOTH)
def test_the_same_in_other_words(name, run):
    assert ends_of(SAME[name], KVCache(100, 2), run) == HONEST


def test_somebody_sent_away_may_come_back_in_the_same_answer():
    """It has all to compute again: 5 prompt tokens and 3 of its answer, in one step, and loses no time by it."""

    def decide(state):
        again = state.now == 3
        tokens = {r: r.known if again and r in state.running else r.remaining for r in (*state.running, *state.waiting)}
        return Schedule(tokens, preempt=state.running if again else ())

    run = serve(LOAD, Own(decide), SECOND, KVCache(100, 2))
    assert run.response.tolist() == HONEST
    assert run.preempted.tolist() == [1, 1, 0] and run.steps.dropped[3] == 7 + 8
    assert run.steps.prefill_tokens.tolist()[:5] == [11, 7, 0, 17, 0]
    assert run.steps.blocks.tolist()[2:5] == [4 + 4, 4 + 5, 5]


def test_a_padded_batch_takes_counts_of_any_kind():
    def decide(state):
        longest = max((r.prompt_tokens for r in state.waiting), default=0)
        everyone = dict.fromkeys(state.running, np.int64(1)) or dict.fromkeys(state.waiting, np.int64(longest))
        return Schedule(everyone)

    policy = Own(decide)
    policy.padded = True
    assert serve(LOAD, policy, SECOND).response.tolist() == [60.0, 60.0, 61.0]


PADDED = {
    "a stranger": (lambda s: Schedule({Request(0.0, 5): 5}), r"it runs Request\(-1, .*is neither running nor waiting"),
    "somebody who comes later": (
        lambda s: Schedule(dict.fromkeys((*s.running, *s.waiting), 1)) if s.running else whole(s),
        r"it admits Request\(2, .*, but no request can join a running padded batch",
    ),
    "nobody's tokens": (lambda s: Schedule(dict.fromkeys(s.waiting, 0)), r"the tokens of Request\(0, .*, not 0"),
    "too many": (
        lambda s: whole(s) if len(s.waiting) == 3 else Schedule(until=5.0),
        "it needs 3 slots, and max_num_se",
    ),
}


def whole(state):
    return Schedule(dict.fromkeys(state.waiting, max(request.prompt_tokens for request in state.waiting)))


@pytest.mark.parametrize("name", PADDED)
def test_a_padded_batch_keeps_to_its_own(name):
    decide, sentence = PADDED[name]
    policy = Own(decide, 2)
    policy.padded = True
    with pytest.raises(ValueError, match=sentence):
        serve(LOAD, policy, SECOND)


def test_a_padded_batch_takes_nobody_who_has_not_come():
    policy = Own(lambda state: Schedule({later: 5}), 2)
    policy.padded = True
    engine = Engine(policy, SECOND)
    engine.submit(Request(0.0, 5), 2)
    later = engine.submit(Request(5.0, 5), 2)
    with pytest.raises(ValueError, match=r"it runs Request\(1, .*is neither running nor waiting"):
        engine.run()


def test_a_batch_that_does_not_fit_is_told_of_one_slot_at_least():
    """Each fits alone, 50 tokens; together they are padded to 50 prompt and 45 output tokens, 47 blocks each."""
    load = Workload([0.0, 0.0], [50, 5], [1, 45])
    with pytest.raises(ValueError, match="lower max_num_seqs to at most 1, or give the cache more blocks"):
        serve(load, policies.Static(2), SECOND, KVCache(25, 2))
    assert len(serve(load, policies.Static(1), SECOND, KVCache(25, 2)))


# What is not theirs


def elsewhere():
    return Engine(policies.Static(2), SECOND).submit(Request(0.0, 5), 2)


OTHERS = {
    "runs one of its own": (
        lambda s: Schedule({Request(0.0, 5): 5}),
        r"it runs Request\(-1, .*is neither running nor waiting",
    ),
    "runs one of another engine": (
        lambda s: Schedule({elsewhere(): 5}),
        r"it runs Request\(0, .*is neither running nor waiting",
    ),
    "preempts one of another engine": (
        lambda s: Schedule(everybody(s), preempt=[elsewhere()]),
        r"it preempts Request\(0, .*, which is not running",
    ),
    "preempts one twice": (
        lambda s: Schedule(everybody(s), preempt=[*s.running, *s.running]),
        r"it preempts Request\(0, .*, which is not running",
    ),
    "preempts letters": (lambda s: Schedule(everybody(s), preempt="ab"), "it preempts 'a', which is not running"),
    "preempts a generator": (lambda s: Schedule(everybody(s), preempt=iter(())), "preempt must be a list of requests"),
    "preempts all and lets all decode": (
        lambda s: Schedule(preempt=s.running, decodes=True) if s.running else Schedule(everybody(s)),
        "it preempts but runs nothing",
    ),
    "lets nobody decode": (
        lambda s: Schedule(decodes=True, until=math.inf),
        "it runs nothing although 0 requests are running",
    ),
    "gives two tokens to a decode in words": (
        lambda s: Schedule({r: 2 for r in s.running} or everybody(s), decodes=True),
        "it gives 2 tokens to .* which has 1 left to compute",
    ),
    "sends itself away for ever": (
        lambda s: Schedule({r: 1 for r in (*s.running, *s.waiting)}, preempt=s.running),
        "it has preempted 20,000 times since the last token left",
    ),
    "waits a hair's breadth for ever": (
        lambda s: Schedule(until=math.nextafter(s.now, math.inf)),
        "it runs nothing although 0 requests are running",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_theirs_is_refused(name):
    decide, sentence = OTHERS[name]
    with pytest.raises(ValueError, match=rf"^Own.schedule broke the rules in step \d+ .*{sentence}"):
        serve(LOAD, Own(decide), SECOND, KVCache(100, 2))


def test_limits_are_those_of_the_beginning():
    def decide(state):
        policy.max_num_seqs = policy.max_num_batched_tokens = 10**6
        return Schedule(everybody(state))

    policy = Own(decide, 2)
    with pytest.raises(ValueError, match="it needs 3 slots, and max_num_seqs is 2"):
        serve(LOAD, policy, SECOND)


def test_requests_that_are_gone_are_unknown():
    """Answered ones, later in the same run and in the next."""
    kept = []

    def decide(state):
        kept.extend(request for request in state.waiting if request not in kept)
        return Schedule({**everybody(state), **{request: 1 for request in kept if request.emitted == 4}})

    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"it runs Request\([01], .*emitted=4\), which is neither running nor waiting"
        ):
            serve(LOAD, Own(decide), SECOND)


@pytest.mark.parametrize("preempts", [False, True])
def test_a_request_that_has_not_come_yet_is_unknown(preempts):
    def decide(state):
        return Schedule(everybody(state), preempt=[later]) if preempts else Schedule({later: 5})

    engine = Engine(Own(decide), SECOND)
    engine.submit(Request(0.0, 5), 2)
    later = engine.submit(Request(5.0, 5), 2)
    with pytest.raises(ValueError, match=r"Request\(1, .*\), which is (neither running nor waiting|not running)"):
        engine.run()


def test_what_a_policy_writes_into_its_state_is_gone_the_next_time():
    def decide(state):
        assert state.now < 1e9 and state.decodes < 77 and state.free_slots <= 4
        state.now, state.decodes, state.free_slots, state.prefilling = 1e9, 77, 1000, (1, 2)
        return Schedule(everybody(state))

    assert ends_of(decide) == HONEST


def test_the_answer_that_all_policies_share_cannot_be_changed():
    class Mine(policies.Continuous):
        def schedule(self, state):
            said = super().schedule(state)
            said.until = None
            return said

    with pytest.raises(
        ValueError, match="this answer is shared by all policies: make a Schedule of your own to change"
    ):
        serve(LOAD, Mine(4, 64), SECOND)
    assert (DECODES.until, DECODES.decodes, DECODES.tokens, DECODES.preempt) == (math.inf, True, {}, ())


def test_an_answer_used_again_counts_as_it_is_each_time():
    answer = Schedule()

    def decide(state):
        answer.tokens = everybody(state)
        return answer

    assert ends_of(decide) == HONEST


# Sizes


def test_large_blocks_and_many_slots():
    """Blocks of 2^20 tokens, one a request; a million slots."""
    load = Workload.fixed(interval=0.5, num_requests=200, prompt_tokens=10, output_tokens=7)
    free = serve(load, policies.Continuous(4, 64), SECOND)
    for run in BOTH:
        for policy in (policies.Continuous(4, 64), policies.ShortestFirst(4, 64)):
            large = run(load, policy, SECOND, KVCache(4, 2**20))
            assert np.array_equal(large.e2e, free.e2e)
            assert large.steps.blocks.max() == 4
    many = serve(load, Own(lambda s: Schedule(everybody(s)), 10**6, 10**7), SECOND, KVCache(10**6))
    assert np.array_equal(many.e2e, serve(load, policies.Continuous(10**6, 10**7), SECOND).e2e)


# An engine's own requests that can never be served


@pytest.mark.parametrize(
    ("policy", "cache", "tokens", "sentence"),
    [
        (
            policies.Continuous(2, 8),
            KVCache(2, 2),
            (5, 9),
            "request 1 needs 13 tokens of KV cache, 7 blocks, and num_blo",
        ),
        (
            policies.Static(1),
            KVCache(2, 2),
            (50, 9),
            "request 1 needs 58 tokens of KV cache, 29 blocks, and num_blocks",
        ),
        (policies.Continuous(2, 8, False), None, (50, 9), "request 1 may need 58 tokens in one step"),
        (policies.Continuous(2, 8), None, (5, 10**9), "request 1 alone, with 5 prompt and 1,000,000,000 output tokens"),
    ],
)
def test_a_request_that_can_never_be_served_is_not_taken(policy, cache, tokens, sentence):
    prompt, output = tokens
    engine = Engine(policy, SECOND, cache)
    engine.submit(Request(0.0, 1), 3)
    with pytest.raises(ValueError, match=sentence):
        engine.submit(Request(0.0, prompt), output)
    with pytest.raises(ValueError, match=sentence.replace("request 1", "request 0")):
        Engine(policy, SECOND, cache).follow(Workload([0.0], [prompt], [output]))
    engine.submit(Request(0.0, 2), 2)
    assert (engine.run().lengths - [1, 2]).tolist() == [3, 2]
