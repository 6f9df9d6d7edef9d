"""Requests that are given up between two steps: whatever they are doing, all that they held comes home."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, policies
from course.engine.arrivals import NEVER
from course.engine.cancel import cancel
from course.engine.executor import Executor, Outcome
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Request
from course.steptime import PowerLaw
from tests.engine import test_plain
from tests.engine.test_leaving import accounted
from tests.helpers import strategies
from tests.helpers.executors import Toy
from tests.helpers.strategies import examples, fresh

POLICIES = {
    "continuous": lambda: policies.Continuous(3, 7),
    "shortest first": lambda: policies.ShortestFirst(3, 7),
    "prefill first": lambda: policies.PrefillFirst(3, 7),
    "static": lambda: policies.Static(3),
    "window": lambda: policies.Window(3, 0.2),
}


@pytest.mark.parametrize("name", POLICIES)
def test_everything_comes_home(name):
    """At random times somebody is given up: waiting, in the middle of a prompt, decoding, or sent back."""
    seen = set()

    @given(st.integers(0, 2**16), st.lists(st.tuples(st.integers(0, 7), st.integers(1, 30)), max_size=8))
    @examples(60)
    def serve_all(seed, gone):
        size = 200 if name in ("static", "window") else 12
        engine = Engine(POLICIES[name](), Toy(seed, 12), KVCache(size, 4))
        requests = [engine.submit(Request(0.3 * i, 3 + 4 * i % 17)) for i in range(8)]
        given_up = set()
        for when in range(1, 31):
            engine.advance(when / 5)
            for row in [row for row, at in gone if at == when]:
                request = requests[row]
                if request.life.engine is not engine:
                    continue
                what = (
                    "waits" if request in engine.waiting
                    else "comes" if request not in engine.running
                    else "decodes" if request.life.decodes_from >= 0 else "prefills"
                )  # fmt: skip
                seen.add(what)
                before, free = request.emitted, engine.pool.free
                cancel(engine, request)
                engine.executor.finished.add(row)  # in a padded batch it is padding from now on
                given_up.add(row)
                if not engine.limits.padded:
                    assert request not in (*engine.waiting, *engine.running)
                    assert request.emitted == before
                    assert engine.pool.free >= free
                    with pytest.raises(ValueError, match="not with this engine"):
                        cancel(engine, request)
        log = engine.run()
        assert engine.pool.free == size
        assert not engine.running and not engine.waiting and engine.answered == 8
        lengths = log.lengths - [request.prompt_tokens for request in requests]
        for row in range(8):
            if row not in given_up:
                assert lengths[row] == engine.executor.emitted[row]
            elif not engine.limits.padded:
                assert lengths[row] == engine.executor.emitted.get(row, 0)

    serve_all()
    assert {"waits", "decodes", "comes"} <= seen
    assert ("prefills" in seen) == (not name.startswith(("static", "window")))


def test_refusals():
    engine = Engine(policies.Continuous(2, 8), PowerLaw(0.01, 0.001, 1))
    request = engine.submit(Request(0.0, 4), 5)
    live = Engine(policies.Continuous(2, 8), Toy(1))
    for stranger in (request, 3, Request(0.0, 1)):
        with pytest.raises(ValueError, match="not with this engine"):
            cancel(live, stranger)


def test_what_became_of_each_request():
    """One is given up after its second token; both have their rows, and the Run says which was answered."""

    class FiveTokens(Executor):
        def execute(self, work):
            return Outcome(1.0, [request for request in work.decodes if request.emitted == 4])

    engine = Engine(policies.Continuous(2, 8), FiveTokens())
    _, gone = engine.submit(Request(0.0, 4)), engine.submit(Request(0.0, 4))
    engine.advance(2.0)
    cancel(engine, gone)
    run = finish(engine)
    assert run.workload.output_tokens[0] == 5
    assert run.outcome.tolist() == ["answered", "cancelled"]
    assert run.workload.output_tokens[1] == 2 and len(run.token_times(1)) == 2


def test_one_without_a_token_has_a_row():
    engine = Engine(policies.Continuous(2, 8), Toy(1))
    engine.submit(Request(0.0, 4))
    gone = engine.submit(Request(9.0, 4))
    cancel(engine, gone)
    run = finish(engine)
    assert run.outcome.tolist() == ["answered", "cancelled"] and len(run.token_times(1)) == 0
    assert run.workload.output_tokens[1] == 1 and np.isnan([run.ttft[1], run.e2e[1], run.admitted[1]]).all()
    assert run.response[1] == 9  # it never came


def test_a_batch_whose_end_is_known_goes_on():
    for kind in (Engine, PlainEngine):
        engine = kind(policies.Static(2), PowerLaw(0.01, 0.001, 1))
        first, _, waits = (engine.submit(Request(0.0, 4), 5) for _ in range(3))
        engine.advance(0.02) if kind is Engine else engine.step()
        with pytest.raises(ValueError, match="is in a padded batch, which is served to an end that is known"):
            cancel(engine, first)
        cancel(engine, waits)
        assert finish(engine).outcome.tolist() == ["answered", "answered", "cancelled"]


def test_a_complete_answer_that_holds_its_slot_for_one_step_more():
    engine = PlainEngine(policies.Continuous(2, 8), PowerLaw(1, 0, 1), async_scheduling=True)
    first = engine.submit(Request(0.0, 4), 1)
    engine.step()
    with pytest.raises(ValueError, match="has its answer already, and leaves after the next step"):
        cancel(engine, first)


KINDS = st.one_of(
    strategies.continuous(), strategies.storms(), strategies.sharing(), strategies.rivals(), strategies.decided()
)


class Stopping(PlainEngine):
    """A plain loop that rests no further than `stop`, as `advance` does: the policy is asked again then."""

    stop = NEVER

    def rest(self, until, stop=NEVER):
        super().rest(until, min(stop, self.stop))


@given(KINDS, st.data())
@examples(120)
def test_a_simulated_engine_too_and_both_loops_alike(case, data):
    """Some are cancelled at some times, whatever they are doing then; the loops differ in nothing."""
    end = case.served().makespan + case.arrival[0]
    times = st.one_of(st.floats(0, 1.1 * end), st.just(0.0))
    gone = sorted(data.draw(st.lists(st.tuples(times, st.integers(1, max(1, len(case.prompt) - 1))), max_size=6)))
    runs = []
    for kind in (Engine, Stopping):
        engine, requests = kind(fresh(case.policy), case.step_time, case.cache), {}
        columns = [case.load.guess, case.load.tenant, case.load.tags, case.load.deadline]
        for row, arrival in enumerate(case.arrival):
            guess, tenant, tags, deadline = (None if c is None or c[row] != c[row] else c[row] for c in columns)
            labels = {"guess": guess, "tenant": tenant, "tags": tags or (), "deadline": deadline}
            requests[row] = engine.submit(Request(arrival, case.prompt[row], **labels), case.output[row])
        for when, row in gone:
            if kind is Engine:
                engine.advance(when)
            engine.stop = when
            while kind is Stopping and engine.now < when and not engine.done:
                engine.step()
            if row in requests and requests[row].life.engine is engine:
                cancel(engine, requests[row])
        engine.stop = NEVER
        runs.append(finish(engine))
        if case.cache:
            assert engine.pool.free == case.cache.num_blocks
    # An engine that is empty is advanced no further by the plain loop: whoever has not come is cancelled earlier there.
    assert not (found := test_plain.differences(*runs)), f"{found}: {case}, {gone}"
    summary = runs[0].summary()
    assert summary["computed_tokens"] == accounted(runs[0], summary)
