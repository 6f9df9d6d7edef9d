"""Executors: nobody knows how long an answer will be, and several tokens may leave in one step."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies
from course.engine.executor import Executor, Outcome
from course.engine.plain import PlainEngine
from course.engine.run import Run
from course.engine.serving import Engine, finish
from course.policies import Request
from tests.engine.test_plain import differences
from tests.helpers import oracle, strategies
from tests.helpers.asking import BOTH
from tests.helpers.executors import Toy
from tests.helpers.sizes import size
from tests.helpers.strategies import examples

AT_MOST = 30
KINDS = {
    "Continuous": st.one_of(strategies.storms(), strategies.continuous(most=10)),
    "ShortestFirst": strategies.shortest_first(),
    "batches": strategies.batches(),
    "windows": strategies.windows(),
    "own": strategies.decided(),
}


@st.composite
def toys(draw, cases):
    """A case whose outputs count for nothing, and a seed for the executor that ends the answers."""
    case = draw(cases)
    n, longest, policy = len(case.prompt), max(case.prompt) + AT_MOST, strategies.fresh(case.policy)
    if getattr(policy, "enable_chunked_prefill", True) is False:
        policy.max_num_batched_tokens = max(policy.max_num_batched_tokens, longest)
    cache = None
    if draw(st.sampled_from([True, True, False])):
        size = draw(st.sampled_from([1, 2, 16]))
        preempts = isinstance(policy, policies.Continuous | strategies.Decided)
        slots = draw(st.sampled_from([1, 1, 1.25])) if preempts else min(policy.max_num_seqs, n)
        cache = KVCache(int(-(-longest // size) * slots) + draw(st.integers(0, 2)), size)
    return replace(case, policy=policy, cache=cache), draw(st.integers(0, 2**16))


def live(case, executor, honour_until=True):
    """(engine, run) of the case's requests served by this executor; the run with the lengths that came out."""
    return served(case, Engine(strategies.fresh(case.policy), executor, case.cache, honour_until=honour_until))


def plainly(case, executor):
    """The same by the plain loop."""
    return served(case, PlainEngine(strategies.fresh(case.policy), executor, case.cache))


class Generous:
    """The same policy, held to no token budget by the engine."""

    max_num_batched_tokens = math.inf

    def __init__(self, policy):
        self.policy, self.max_num_seqs, self.padded = policy, policy.max_num_seqs, policy.padded

    def schedule(self, state):
        return self.policy.schedule(state)


def served(case, engine):
    engine.follow(case.load)
    log = engine.run()
    load = replace(case.load, output_tokens=log.lengths - case.load.prompt_tokens)
    return engine, Run(load, case.policy, engine.limits, engine.executor, case.cache, log)


def toy_for(case, seed, several=1):
    cache = case.cache
    if cache is None:
        return Toy(seed, AT_MOST, several)
    return Toy(seed, AT_MOST, several, tables=True, block_size=cache.block_size, num_blocks=cache.num_blocks)


COLUMNS = ("arrival", "admitted", "first_computed", "last_computed", "response", "preempted", "ttft", "tpot", "e2e")


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_unknown_length(kind):
    """Every token once and in order, all blocks home; and the same as simulated with the lengths that came out."""
    seen = {"preempted": 0, "blocks": 0}

    @given(toys(KINDS[kind]), st.booleans())
    @examples(30)
    def agree(toy, honour_until):
        case, seed = toy
        executor = toy_for(case, seed)
        engine, run = live(case, executor, honour_until)
        assert not differences(run, plainly(case, toy_for(case, seed))[1])
        assert executor.followed == case.load
        for i in range(len(run)):
            times = run.token_times(i)
            assert len(times) == executor.emitted[i]
            assert (np.diff(times) > 0).all() and times[0] > run.arrival[i]
        assert run.steps.useful.sum() == sum(executor.emitted.values())
        assert engine.pool.free == (math.inf if case.cache is None else case.cache.num_blocks)
        assert len(run.steps) == len(executor.seconds)

        for again in BOTH:
            seconds = iter(executor.seconds)
            same = again(run.workload, strategies.fresh(case.policy), lambda step, left=seconds: next(left), case.cache)
            assert next(seconds, None) is None
            for name in COLUMNS:
                assert np.array_equal(getattr(run, name), getattr(same, name), equal_nan=True), name
            for name in oracle.COLUMNS:  # a simulated padded batch knows its longest answer, and reserves blocks for it
                if name != "blocks" or not run.batch_answers:
                    assert np.array_equal(getattr(run.steps, name), getattr(same.steps, name)), name
            assert np.array_equal(np.sort(run.itl), np.sort(same.itl))
        if case.cache is not None:
            assert run.steps.blocks.tolist() == executor.blocks
        seen["preempted"] += bool(run.preempted.any())
        seen["blocks"] += case.cache is not None

    agree()
    assert seen["blocks"] >= size(0, 5)
    assert seen["preempted"] >= (size(0, 5) if kind in ("Continuous", "ShortestFirst", "own") else 0)


@pytest.mark.parametrize("kind", KINDS)
def test_several_tokens_a_step(kind):
    """Counts, times and gaps from what the executor noted; blocks from what the requests said that they held."""

    @given(toys(KINDS[kind]))
    @examples(30)
    def agree(toy):
        case, seed = toy
        # Room for all: what leaves besides takes blocks that no policy has planned for.
        cache = case.cache and replace(case.cache, num_blocks=case.cache.num_blocks * len(case.prompt))
        case = replace(case, cache=cache)
        executor = toy_for(case, seed, several=4)
        case = replace(case, policy=Generous(case.policy))  # no policy plans with what leaves besides
        engine, run = live(case, executor)
        assert not differences(run, plainly(case, toy_for(case, seed, several=4))[1])
        computed = run.summary()["computed_tokens"] - run.summary()["recomputed_tokens"]
        assert run.batch_answers or computed == sum(case.prompt) + sum(executor.emitted.values()) - len(run)
        ends = run.steps.end
        for i in range(len(run)):
            left = np.repeat(ends[[step for step, _ in executor.noted[i]]], [count for _, count in executor.noted[i]])
            assert np.array_equal(run.token_times(i), left)
            assert len(left) == executor.emitted[i] == run.workload.output_tokens[i]
            if len(left) > 1 and not run.batch_answers:
                assert run.tpot[i] == (left[-1] - left[0]) / (len(left) - 1)
                assert run.ttft[i] == left[0] - run.arrival[i]
        gaps = [np.diff(run.token_times(i)) for i in range(len(run)) if not run.batch_answers]
        assert np.array_equal(np.sort(run.itl), np.sort(np.concatenate([*gaps, []])))
        useful = np.zeros(len(ends), dtype=int)
        for noted in executor.noted.values():
            for step, count in noted:
                useful[step] += count
        assert np.array_equal(run.steps.useful, useful)
        assert engine.pool.free == (math.inf if case.cache is None else case.cache.num_blocks)
        if case.cache is not None:
            assert run.steps.blocks.tolist() == executor.blocks

    agree()


def test_two_tokens_a_step_by_hand():
    """Prompt 3, then 2 tokens a step, the prompt's step included: 1-2 | 3-4 | 5, of one second each."""

    class Twice(Executor):
        def execute(self, work):
            (request,) = [*work.decodes, *(one for one, _ in work.chunks)]
            last = request.emitted == 4
            return Outcome(1.0, [request] if last else (), {request: 1 if last else 2})

    case = strategies.Case((0.0,), (3,), (9,), (None,), (0.0,), policies.Continuous(2, 8), None, KVCache(8, 2))
    engine, run = live(case, Twice())
    assert run.token_times(0).tolist() == [1, 1, 2, 2, 3]
    assert sorted(run.itl) == [0, 0, 1, 1]
    assert run.steps.useful.tolist() == [2, 2, 1]
    assert run.tpot.tolist() == [0.5]
    # 3 prompt tokens; 4 then cached for 1 decode more, so 5; then 6 and 7: as many as are in the cache in each step.
    assert run.steps.blocks.tolist() == [2, 3, 4]
    assert run.steps.decode_context.tolist() == [0, 5, 7]
    assert engine.pool.free == 8


@pytest.mark.parametrize("loop", [Engine, PlainEngine])
def test_what_leaves_besides_counts_in_the_budget(loop):
    """17 decodes, each with 4 drafts that are accepted, compute 85 tokens: more than a budget of 64."""

    class Drafts(Executor):
        def execute(self, work):
            many = {request: 5 for request in work.decodes}
            return Outcome(1.0, [request for request in work.decodes if request.emitted + 5 >= 21], many)

    load = Workload([0.0] * 17, [3] * 17, [21] * 17)
    for budget, refused in ((64, True), (85, False)):
        engine = loop(policies.Continuous(17, budget), Drafts())
        engine.follow(load)
        if refused:
            with pytest.raises(ValueError, match=r"^Drafts computed 85 tokens in one step, .* is 64: emit fewer"):
                engine.run()
            continue
        run = finish(engine)
        assert run.summary()["computed_tokens"] == 17 * (3 + 21 - 1)
        assert run.steps.drafted.tolist() == [0, *[17 * 4] * 4]


# Executors that do not keep to it


class Odd(Executor):
    """Whatever `outcome(request, work)` says; one request runs at a time."""

    def __init__(self, outcome):
        self.outcome = outcome

    def execute(self, work):
        (request,) = [*work.decodes, *(one for one, _ in work.chunks)]
        return self.outcome(request, work)


STRANGER = Request(0.0, 5)
NO_NUMBER = [math.nan, math.inf, 0, 0.0, -1.0, None, True, "1", 1j, 10**400]
ODD = {
    "None": (lambda r, w: None, "Odd.execute must return an Outcome, not None"),
    "a number": (lambda r, w: 1.0, "Odd.execute must return an Outcome, not 1.0"),
    **{
        f"seconds {str(bad)[:9]}": (lambda r, w, bad=bad: Outcome(bad), "the step time must be .* the step of Odd")
        for bad in NO_NUMBER
    },
    "ends a stranger": (
        lambda r, w: Outcome(1.0, [STRANGER]),
        r"Odd ends the answer of Request\(-1, .*emitted nothing",
    ),
    "ends a number": (lambda r, w: Outcome(1.0, [0]), "Odd ends the answer of 0, which emitted nothing"),
    "ends a prompt": (lambda r, w: Outcome(1.0, [r]), r"Odd ends the answer of Request\(0, .*, which emitted nothing"),
    "ends twice": (
        lambda r, w: Outcome(1.0, [r, r] if r.emitted else ()),
        r"Odd ends the answer of Request\(0, .*\) twice in one step",
    ),
    "ends one, no list": (lambda r, w: Outcome(1.0, r), r"Odd: finished must be a list of requests, not Request\(0"),
    "ends a word": (lambda r, w: Outcome(1.0, "all"), "Odd: finished must be a list of requests, not 'all'"),
    "ends None": (lambda r, w: Outcome(1.0, None), "Odd: finished must be a list of requests, not None"),
    "tokens in a list": (lambda r, w: Outcome(1.0, (), [r]), "Odd: tokens must be a dict of requests to token counts"),
    **{
        f"{bad} tokens": (
            lambda r, w, bad=bad: Outcome(1.0, (), {r: bad}),
            r"the tokens that Odd lets leave for Request\(0, .* must be a whole number",
        )
        for bad in [0, -1, 2.5, math.nan, True, None, "2", 10**10]
    },
    "tokens of a stranger": (
        lambda r, w: Outcome(1.0, (), {STRANGER: 2}),
        r"Odd lets 2 tokens leave for Request\(-1, .*, which emitted nothing",
    ),
    "tokens of a number": (lambda r, w: Outcome(1.0, (), {0: 2}), "Odd lets 2 tokens leave for 0, which emitted"),
    "tokens of a prompt": (
        lambda r, w: Outcome(1.0, (), {r: 2}),
        r"Odd lets 2 tokens leave for Request\(0, .*, which emitted nothing",
    ),
    "more tokens than blocks": (
        lambda r, w: Outcome(1.0, (), {r: 500} if w.decodes else None),
        r"500 tokens of Request\(0, .* need more KV blocks than are free: emit fewer",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_outcome_is_refused_with_a_sentence(name):
    outcome, sentence = ODD[name]
    engine = Engine(policies.Continuous(1, 600, long_prefill_token_threshold=4), Odd(outcome), KVCache(20, 2))
    engine.submit(Request(0.0, 6))  # its prompt takes two steps
    with pytest.raises(ValueError, match=sentence) as refusal:
        engine.run()
    assert len(str(refusal.value)) < 300
    with pytest.raises(ValueError, match="this engine is in the middle of serving, or stopped there with an error"):
        engine.run()


def test_padding_emits_nothing():
    """The answer of 1 is complete after the first step; its slot goes on, and must not end or emit again."""

    def serve_two(later):
        class Two(Executor):
            def execute(self, work):
                if work.chunks:
                    return Outcome(1.0, [request for request, _ in work.chunks if request.index == 1])
                return later(*work.decodes)

        engine = Engine(policies.Static(2), Two())
        for _ in range(2):
            engine.submit(Request(0.0, 5))
        return engine.run()

    assert (serve_two(lambda one, other: Outcome(1.0, [one])).lengths - 5).tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"Two ends the answer of Request\(1, .*, which emitted nothing in this step"):
        serve_two(lambda one, other: Outcome(1.0, [other]))
    with pytest.raises(ValueError, match=r"Two lets 1 tokens leave for Request\(1, .*, which emitted nothing"):
        serve_two(lambda one, other: Outcome(1.0, (), {other: 1}))


def test_seconds_and_counts_of_other_kinds_of_number():
    def outcome(request, work):
        tokens = {request: np.int64(2)} if work.decodes else None
        return Outcome(np.float32(0.5), (one for one in [request] if request.emitted == 3), tokens)

    engine = Engine(policies.Continuous(1, 8), Odd(outcome))
    engine.submit(Request(0.0, 6))
    log = engine.run()
    assert log.clock.tolist() == [0.5, 1.0, 1.5] and log.lengths.tolist() == [6 + 5]


def test_an_executor_without_its_method_and_one_with_an_error_of_its_own():
    for executor, error, sentence in (
        (Executor(), NotImplementedError, "Executor needs a method `execute`"),
        (Odd(lambda request, work: 1 / 0), ZeroDivisionError, "division by zero"),
    ):
        engine = Engine(policies.Continuous(1, 8), executor)
        engine.submit(Request(0.0, 6))
        with pytest.raises(error, match=re.escape(sentence)):
            engine.run()


def test_an_answer_that_outgrows_the_cache_is_refused():
    """Nobody knew how long it would be: 6 prompt tokens and 5 of the answer fill all blocks."""
    endless = Odd(lambda request, work: Outcome(1.0))
    engine = Engine(policies.Continuous(4, 64), endless, KVCache(5, 2))
    engine.submit(Request(0.0, 6))
    with pytest.raises(ValueError, match=r"Request\(0, prompt=6, computed=0, emitted=5\) has outgrown .* 5 KV blocks"):
        engine.run()


def test_what_an_executor_is_told_beforehand():
    engine, toy = Engine(policies.Continuous(2, 8), executor := Toy(0)), executor
    engine.submit(Request(0.0, 5), 7)
    engine.submit(Request(1.0, 5))
    assert toy.expected == [(0, 7), (1, None)]
    load = Workload([0.0], [5], [9])
    other = Engine(policies.Continuous(2, 8), fresh := Toy(0))
    other.follow(load)
    assert fresh.followed is load
