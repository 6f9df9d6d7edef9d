"""An engine that is stepped: submitted to one by one, advanced in pieces, it does what `serve` does, to the bit."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.engine.answer import PATIENCE
from course.engine.run import Run
from course.engine.serving import Engine
from course.policies import Request, Schedule
from tests.helpers import strategies
from tests.helpers.own_policies import Own
from tests.helpers.strategies import differences, examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
KINDS = {
    "continuous": st.one_of(strategies.continuous(most=12), strategies.storms(), strategies.many_in_chunks()),
    "shortest first": strategies.shortest_first(),
    "prefill first": strategies.prefill_first(),
    "static and dynamic": strategies.batches(),
    "windows": strategies.windows(),
    "own": strategies.decided(),
}


def engine_for(case, honour_until=True):
    return Engine(fresh(case.policy), case.step_time, case.cache, honour_until=honour_until)


def checked(case, engine, want):
    """Run it to its end, and hold it against the oracle."""
    log = engine.run()
    found = differences(case, Run(case.load, case.policy, engine.limits, case.step_time, case.cache, log), want)
    assert not found, f"differs from the oracle in {', '.join(found)}: {case}"
    assert engine.pool.free == (math.inf if case.cache is None else case.cache.num_blocks)


def times_within(case, want):
    """Some times of the run, on its step ends and between them, to advance to."""
    end = max(want.response)
    ends = st.sampled_from([row["end"] for row in want.steps])
    return st.lists(st.one_of(ends, st.floats(0, 1.25 * end), st.just(0.0)), max_size=8).map(sorted)


@pytest.mark.parametrize("kind", KINDS)
def test_one_by_one_with_advances_in_between(kind):
    @given(KINDS[kind].filter(lambda case: not any(before is not None for before in case.after)), st.data())
    @examples(45)
    def agree(case, data):
        want = case.by_the_oracle()
        engine = engine_for(case, data.draw(st.booleans()))
        guess = case.guess or (None,) * len(case.prompt)
        for i, arrival in enumerate(case.arrival):
            # As a router does it: up to the arrival, while a step may be under way that ends after it.
            engine.advance(data.draw(st.sampled_from([0.0, 0.5, 1.0])) * arrival)
            request = Request(arrival, case.prompt[i], guess=guess[i])
            assert engine.submit(request, case.output[i]) is request and request.index == i
        for when in data.draw(times_within(case, want)):
            if not isinstance(case.policy, policies.Static):  # it waits for more, until it hears that nobody comes
                engine.advance(when)
        checked(case, engine, want)

    agree()


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_in_pieces(kind):
    """Also with turns, whose arrivals nobody knows beforehand; `run` after some of it is there takes its shortcut."""

    @given(KINDS[kind], st.data())
    @examples(45)
    def agree(case, data):
        want = case.by_the_oracle()
        engine = engine_for(case, data.draw(st.booleans()))
        engine.follow(case.load)
        for when in data.draw(times_within(case, want)):
            if not isinstance(case.policy, policies.Static):
                engine.advance(when)
                assert engine.steps == sum(row["start"] < when for row in want.steps)
        checked(case, engine, want)

    agree()


def test_static_waits_for_a_full_batch_until_run_closes_the_queue():
    engine = Engine(policies.Static(2), SECOND)
    for arrival in (0.0, 0.5, 1.0):
        engine.submit(Request(arrival, 5), 2)
    engine.advance(100.0)
    assert engine.steps == 2 and engine.answered == 2  # 0 and 1; nobody knows whether 2 stays alone
    engine.submit(Request(120.0, 5), 1)
    engine.submit(Request(130.0, 5), 1)
    log = engine.run()
    assert log.clock.tolist() == [1.5, 2.5, 121.0, 122.0, 131.0]


def test_a_million_idle_advances_cost_nobody_patience():
    for policy in (policies.Dynamic(4, 1e6), policies.Window(4, 1e6), policies.Static(4)):
        engine = Engine(policy, SECOND)
        engine.submit(Request(0.0, 5), 2)
        for when in range(1, PATIENCE + 10_000):
            engine.advance(when / 100)
        assert engine.steps == 0
        assert len(engine.run().clock) == 2


# What is refused


@pytest.fixture
def engine():
    return Engine(policies.Continuous(2, 8), SECOND, KVCache(20))


def test_nobody_was_submitted(engine):
    engine.advance(5.0)
    assert engine.steps == 0
    with pytest.raises(
        ValueError, match="no request was submitted, so there is nothing to serve: submit a request, or"
    ):
        engine.run()
    engine.submit(Request(5.0, 5), 1)  # that was no end
    assert engine.run().clock.tolist() == [6.0]


def test_a_request_in_the_past_and_one_given_twice(engine):
    request = engine.submit(Request(0.0, 5), 3)
    with pytest.raises(ValueError, match=r"Request\(0, .*\) was submitted before: make another one"):
        engine.submit(request, 3)
    with pytest.raises(ValueError, match=r"Request\(0, .*\) was submitted before: make another one"):
        Engine(policies.Static(2), SECOND).submit(request, 3)
    engine.advance(2.0)
    with pytest.raises(ValueError, match=r"Request\(-1, .*\) arrives at 1.5 s, and the engine is already at 2 s"):
        engine.submit(Request(1.5, 5), 3)
    engine.advance(2.5)
    assert engine.now == 3.0
    engine.submit(Request(2.5, 5), 3)  # it comes while a step is under way, and joins after it
    assert engine.run().clock.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, None, True, "0", 1e11, 10**400])
def test_times_that_cannot_be(engine, bad):
    with pytest.raises(ValueError, match=r"^arrival must be a "):
        engine.submit(Request(bad, 5), 3)
    with pytest.raises(ValueError, match=r"^until must be a "):
        engine.advance(bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0, -1, 2.5, None, True, "5", 10**10])
def test_tokens_that_cannot_be(engine, bad):
    with pytest.raises(ValueError, match=r"^prompt_tokens must be a whole number"):
        engine.submit(Request(0.0, bad), 3)
    request = Request(0.0, 5)
    with pytest.raises(ValueError, match="output_tokens"):
        engine.submit(request, bad)
    assert request.index == -1 and engine.submit(request, 3) is request  # it may be given again
    assert len(engine.run().clock) == 3


@pytest.mark.parametrize("bad", [None, 5, "a request", Schedule()])
def test_what_is_no_request(engine, bad):
    with pytest.raises(ValueError, match=r"^an engine serves requests \(policies.Request\), not "):
        engine.submit(bad, 3)
    with pytest.raises(ValueError, match=r"^an engine follows a Workload, not "):
        engine.follow(bad)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((None, SECOND), "an engine needs a policy with a schedule method, not None"),
        ((policies.Static, SECOND), "an engine needs a policy with a schedule method, not <class .*Static"),
        ((policies.Static(2), 0.1), "an engine needs an executor or a step time, not 0.1"),
        ((policies.Static(2), steptime.PowerLaw), "an engine needs an executor or a step time, not <class .*PowerLaw"),
        ((policies.Static(2), SECOND, 100), "the cache must be a KVCache or None, not 100"),
    ],
)
def test_arguments_of_another_kind(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Engine(*arguments)
    with pytest.raises(ValueError, match="honour_until must be True or False, not 1"):
        Engine(policies.Static(2), SECOND, honour_until=1)


def test_one_workload_and_before_all_others(engine):
    load = Workload([0.0], [5], [2])
    engine.submit(Request(0.0, 5), 3)
    with pytest.raises(
        ValueError, match="an engine takes one workload, and only before any other request: submit the others"
    ):
        engine.follow(load)
    other = Engine(policies.Continuous(2, 8), SECOND)
    other.follow(load)
    with pytest.raises(
        ValueError, match="an engine takes one workload, and only before any other request: submit the others"
    ):
        other.follow(load)
    other.submit(Request(0.5, 5), 4)
    assert (other.run().lengths - 5).tolist() == [2, 4]


def test_after_run_an_engine_is_done(engine):
    engine.submit(Request(0.0, 5), 3)
    log = engine.run()
    engine.advance(100.0)
    assert engine.steps == 3 and engine.run().clock.tolist() == log.clock.tolist()
    with pytest.raises(ValueError, match="this engine has served all requests: submit before `run`, with `advance` in"):
        engine.submit(Request(50.0, 5), 3)


@pytest.mark.parametrize("what", ["submit", "advance", "run", "follow"])
@pytest.mark.parametrize("who", ["the policy", "the step time"])
def test_an_engine_cannot_be_used_from_inside(what, who):
    calls = {
        "submit": lambda: engine.submit(Request(50.0, 5), 3),
        "advance": lambda: engine.advance(50.0),
        "run": lambda: engine.run(),
        "follow": lambda: engine.follow(Workload([50.0], [5], [2])),
    }

    def decide(state):
        if who == "the policy" and state.now > 0:
            calls[what]()
        return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})

    def seconds(step):
        if who == "the step time" and step.decodes:
            calls[what]()
        return 1.0

    engine = Engine(Own(decide), seconds)
    engine.submit(Request(0.0, 5), 3)
    for _ in range(2):  # and what broke off is not taken up again
        with pytest.raises(ValueError, match="this engine is in the middle of serving, or stopped there with an err"):
            engine.run()


def test_another_engine_can_be_used_from_inside():
    load = Workload([0.0, 0.5], [5, 5], [3, 2])
    inner = []

    def decide(state):
        inner.append(serve(load, policies.Continuous(2, 8), SECOND).makespan)
        return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})

    run = serve(load, Own(decide), SECOND)
    assert run.makespan == 3.0 and inner == [3.0] * len(run.steps)


def test_engines_side_by_side_do_not_touch_each_other():
    """In turn, on one policy, one description of a cache and one step time; each as if it were alone."""

    @given(st.lists(KINDS["continuous"], min_size=2, max_size=3), st.data())
    @examples(15)
    def agree(cases, data):
        policy = policies.ShortestFirst(**vars(cases[0].policy))
        engines = [Engine(policy, cases[0].step_time, KVCache(400, 2)) for _ in cases]
        budget = policy.max_num_batched_tokens
        loads = [case.load for case in cases if max(case.prompt) + max(case.output) <= budget] or [
            Workload([0], [1], [1])
        ]
        for engine, load in zip(engines, loads, strict=False):
            engine.follow(load)
        for when in sorted(data.draw(st.lists(st.floats(0, 10), max_size=6))):
            for engine in engines:
                engine.advance(when)
        for engine, load in zip(engines, loads, strict=False):
            log, alone = engine.run(), serve(load, policy, cases[0].step_time, KVCache(400, 2))
            assert np.array_equal(log.clock, alone.steps.end)
            assert engine.pool.free == 400

    agree()


# What a policy may know of a request


def test_requests_carry_what_the_workload_says_and_cannot_be_written():
    load = Workload(
        [0.0, 0.0, 1.0], [5, 6, 7], [2, 1, 1],
        class_=["chat", "code", "chat"], tenant=[7, 8, 9], prefix=((1, 2), (), (1,)),
        guess=np.array([3.5, np.nan, 1.0]),
    )  # fmt: skip
    seen = {}

    def look(state):
        for request in (*state.running, *state.waiting):
            seen[request.index] = (request.class_, request.tenant, request.prefix, request.guess)
            for name in ("class_", "tenant", "prefix", "guess", "arrival", "prompt_tokens", "remaining", "known"):
                with pytest.raises(ValueError, match=f"a policy changed a request: it set {name} of Request"):
                    setattr(request, name, 1)
        return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})

    serve(load, Own(look), SECOND)
    assert seen == {0: ("chat", 7, (1, 2), 3.5), 1: ("code", 8, (), None), 2: ("chat", 9, (1,), 1.0)}
    one = Request(0.0, 5, class_="x", tenant="y", prefix=(3,), guess=2)
    assert (one.class_, one.tenant, one.prefix, one.guess) == ("x", "y", (3,), 2)


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_request_is_not_copied(how):
    """A copy would pass for a request that decodes, and count as one."""
    with pytest.raises(ValueError, match=r"Request\(-1, .*\) cannot be copied or pickled: it is a view of its engine"):
        how(Request(0.0, 5))
