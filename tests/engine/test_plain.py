"""The loop that is read and the fast one are one meaning: the same runs, to the last bit."""

import numpy as np
import pytest
from hypothesis import given

from course.engine.plain import PlainEngine
from course.engine.serving import finish, serve
from tests.helpers import strategies
from tests.helpers.strategies import examples, fresh

KINDS = {
    "continuous": strategies.continuous,
    "storms": strategies.storms,
    "many in chunks": strategies.many_in_chunks,
    "batches": strategies.batches,
    "shortest first": strategies.shortest_first,
    "prefill first": strategies.prefill_first,
    "windows": strategies.windows,
    "own": strategies.decided,
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
