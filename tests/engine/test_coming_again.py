"""Requests that are told to come again: Retry-After, by a policy of one's own and by a gateway with a rate limit."""

import math

import numpy as np
import pytest

from course import Workload, policies, steptime
from course.engine.answer import Broken
from course.engine.plain import PlainEngine
from course.engine.serving import Engine
from course.policies import Request, Schedule
from course.policies.waiting import FEW
from tests.engine.test_leaving import ALL, SECOND
from tests.helpers.own_policies import Own

NAN = math.nan


class ComesAgain(policies.Continuous):
    """Whoever does not find a free slot is told to come again in 1.5 s, twice at most."""

    def schedule(self, state):
        out = tuple(state.waiting)[state.free_slots :]
        self.told = getattr(self, "told", {})
        for request in out:
            self.told[request.index] = self.told.get(request.index, 0) + 1
        return (
            Schedule(reject={r: 1.5 if self.told[r.index] < 3 else None for r in out})
            if out
            else super().schedule(state)
        )


@pytest.mark.parametrize("how", ALL)
def test_told_to_come_again(how):
    """One slot, steps of a second. 0 has it until 3 s. 1 comes at 0, 1.5 (looked at at 2 s, after the step) and 3.5 s.

    2 comes at 2 s (told so with 1, at once), and at 3.5 s together with 1, which is before it; and gives up then, since
    its 2.5 s of patience are over. 3 comes at 4 s (looked at at 4.5 s) and at 6 s: 1 has gone when the step has ended.
    """
    load = Workload([0.0, 0.0, 2.0, 4.0], [2] * 4, [3] * 4, patience=[NAN, NAN, 1.5, NAN])
    run = how(load, ComesAgain(1, 64), SECOND)
    assert run.retries.tolist() == [0, 2, 1, 1]
    assert run.outcome.tolist() == ["answered", "answered", "gave up", "answered"]
    assert run.ttft[1] == 4.5 and run.arrival.tolist() == [0, 0, 2, 4]  # counted from when it came first
    assert run.response[2] == 3.5
    assert run.summary()["gave_up"] == 1


def test_who_comes_again_for_ever_is_noticed():
    for kind in (Engine, PlainEngine):
        engine = kind(Own(lambda state: Schedule(reject=dict.fromkeys(state.waiting, 1.0))), SECOND)
        engine.submit(Request(0.0, 3), 4)
        with pytest.raises(Broken, match=r"it has told .* to come again 1,000 times: let it in, or reject it for good"):
            engine.run()
        assert engine.now == 1_000  # seconds: the first time at 0, then each second
        for seconds in (0, -1, NAN, "soon"):
            engine = kind(Own(lambda state, s=seconds: Schedule(reject=dict.fromkeys(state.waiting, s))), SECOND)
            engine.submit(Request(0.0, 3), 4)
            with pytest.raises(Broken, match=r"the seconds after which .* comes again must be"):
                engine.run()


class AgainThenShortest(policies.ShortestFirst):
    """The shortest answer first; the three shortest are told once to come again after 1.5 s."""

    def __init__(self):
        super().__init__(1, 64, by="guess")
        self.told = set()

    def schedule(self, state):
        there = super().schedule(state)  # they have been sorted with the others
        new = [request for request in state.waiting if request.guess <= 3 and request.index not in self.told]
        self.told |= {request.index for request in new}
        return Schedule(reject=dict.fromkeys(new, 1.5)) if new else there


def test_who_comes_again_is_sorted_anew():
    """One slot, steps of a second. Without the three shortest the next one begins; then they are back, and first."""
    long = np.array([*range(2 * FEW, 0, -1)])  # more than are sorted anew each time
    load = Workload([0.0] * len(long), [2] * len(long), long, guess=long)
    for how in ALL:
        run = how(load, AgainThenShortest(), SECOND)
        assert run.outcome.tolist() == ["answered"] * len(long)
        assert long[np.argsort(run.ttft)].tolist() == [4, 1, 2, 3, *range(5, 2 * FEW + 1)]


def test_who_had_a_slot_is_not_told_to_come_again():
    def decide(state):
        if state.running and state.now == 1:
            return Schedule({state.waiting[0]: 2}, preempt=state.running)
        if state.now == 2 and len(state.waiting):
            return Schedule(reject=dict.fromkeys(state.waiting, 1.0))
        return Schedule({r: r.remaining for r in [*state.running, *state.waiting][:1]})

    for kind in (Engine, PlainEngine):
        engine = kind(Own(decide, max_num_seqs=1), SECOND)
        engine.follow(Workload([0.0, 0.0], [2, 2], [3, 3]))
        with pytest.raises(Broken, match="to come again, which had a slot before: reject it for good, or let it wait"):
            engine.run()


@pytest.mark.parametrize("how", ALL)
def test_a_gateway_with_a_rate_limit(how):
    """Buckets of 10 tokens, 2 tokens a second. Prompts of 6: the second of a tenant finds 4, and 6 after 1 s.

    Tenant 1 asks at 0, 0 and 0.5 s. The second comes again at 1 s and takes all 6; the third finds 5 at 0.5 s, is told
    1 s, finds 1 at 1.5 s (2.5 s to go: 3) and passes at 4.5 s. Tenant 2 has a bucket of its own; 12 tokens never fit.
    """
    load = Workload([0.0, 0.0, 0.0, 0.5, 0.75], [6, 6, 6, 6, 12], [1] * 5, tenant=[1, 1, 2, 1, 2])
    quick = steptime.PowerLaw(t0=0.0625, c=0, alpha=1)
    run = how(load, policies.RateLimit(8, 64, tokens_per_second=2, burst=10), quick)
    assert run.retries.tolist() == [0, 1, 0, 2, 0]
    assert run.outcome.tolist() == ["answered"] * 4 + ["rejected"]
    assert run.ttft[:4].tolist() == [0.0625, 1.0625, 0.0625, 4.0625]
    assert run.policy.passed == {0, 1, 2, 3}
