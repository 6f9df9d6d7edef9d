"""The loop that is read and the fast one are one meaning: the same runs, to the last bit."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given

from course import Workload, policies, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish, serve
from tests.helpers import strategies
from tests.helpers.strategies import examples, fresh

KINDS = {
    "continuous": strategies.continuous,
    "storms": strategies.storms,
    "many in chunks": strategies.many_in_chunks,
    "batches": strategies.batches,
    "shortest first": strategies.shortest_first,
    "sharing": strategies.sharing,
    "prefill first": strategies.prefill_first,
    "windows": strategies.windows,
    "own": strategies.decided,
    "rivals": strategies.rivals,
    "rate limits": strategies.rate_limits,
    "leaving": partial(strategies.leaving, sharing_too=True),
}
TIMES = (
    "arrival",
    "admitted",
    "first_computed",
    "last_computed",
    "response",
    "preempted",
    "ttft",
    "tpot",
    "e2e",
    "itl",
)
COLUMNS = (
    "start", "end", "running", "useful", "wasted", "decodes", "decode_context", "prefill_tokens", "preemptions",
    "dropped", "queue", "blocks",
)  # fmt: skip


def plainly(case):
    """The run of the plain loop."""
    engine = PlainEngine(fresh(case.policy), case.step_time, case.cache)
    engine.follow(case.load)
    return finish(engine)


def differences(one, other):
    """What is not equal in two runs, to the last bit."""
    found = [name for name in TIMES if not np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)]
    found += [name for name in COLUMNS if not np.array_equal(getattr(one.steps, name), getattr(other.steps, name))]
    found += (
        []
        if (one.outcome == other.outcome).all()
        and (one.log.left, one.log.retries) == (other.log.left, other.log.retries)
        else ["outcome"]
    )
    found += [] if np.array_equal(one.log.tokens, other.log.tokens) else ["tokens"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_the_fast_loop(kind):
    @given(KINDS[kind]())
    @examples(250, 25)
    def equal(case):
        fast = serve(case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (found := differences(fast, plainly(case))), f"{found}: {case}"
        assert repr(fast.summary()) == repr(plainly(case).summary())

    equal()


class SkipsOneTurn(policies.Policy):
    """Lists all that run, in order of admission, but for one step without request 0; notes who prefills."""

    max_num_seqs = 2

    def __init__(self, prefilling):
        self.prefilling = prefilling

    def schedule(self, state):
        self.prefilling.append([request.index for request in state.prefilling])
        runs = [*state.running, *state.waiting]
        turns = runs[1:] if state.now == 1 else runs
        return policies.Schedule({request: min(request.remaining, 2) for request in turns})


def test_one_that_got_no_turn_stands_behind_those_that_prefill_already():
    load, second, seen = Workload([0.0, 0.0], [1, 9], [3, 1]), steptime.PowerLaw(t0=1, c=0, alpha=1), ([], [])
    engine = PlainEngine(SkipsOneTurn(seen[0]), second)
    engine.follow(load)
    engine.run()
    fast = Engine(SkipsOneTurn(seen[1]), second)
    fast.follow(load)
    fast.run()
    assert seen[0] == seen[1] == [[], [1], [1, 0], [1], [1]]
