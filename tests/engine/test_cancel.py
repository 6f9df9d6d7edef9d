"""Requests that are given up between two steps: whatever they are doing, all that they held comes home."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, policies
from course.engine.cancel import cancel
from course.engine.executor import Executor, Outcome
from course.engine.serving import Engine, finish
from course.policies import Request
from course.steptime import PowerLaw
from tests.helpers.executors import Toy
from tests.helpers.strategies import examples

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
    with pytest.raises(ValueError, match="knows how long each answer will be"):
        cancel(engine, request)
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


def test_a_run_has_no_row_without_a_token():
    engine = Engine(policies.Continuous(2, 8), Toy(1))
    engine.submit(Request(0.0, 4))
    gone = engine.submit(Request(9.0, 4))
    cancel(engine, gone)
    with pytest.raises(ValueError, match="request 1 was cancelled before its first token"):
        finish(engine)
