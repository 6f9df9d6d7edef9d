"""K and V that come from elsewhere: they take blocks and are not computed, until a preemption loses them."""

import numpy as np
import pytest
from hypothesis import given

from course import KVCache, Workload, policies, steptime
from course.engine.fleet import Fleet
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Request
from tests.engine import test_plain
from tests.helpers import strategies
from tests.helpers.sizes import size
from tests.helpers.strategies import compare, examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
A_TOKEN = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=1)
LOOPS = (PlainEngine, Engine)
BY_THE_ORACLE = (
    strategies.continuous(), strategies.storms(), strategies.many_in_chunks(), strategies.shortest_first(),
)  # fmt: skip
OTHERS = (strategies.sharing(), strategies.prefill_first(), strategies.windows(), strategies.leaving())
no_choices = lambda case: not isinstance(case.policy, strategies.Decided)  # noqa: E731  (it plans with prompts alone)
plain_memory = lambda case: case.cache is None or not case.cache.simulated_only  # noqa: E731


def submitted(loop, requests, cache=None, slots=4, step_time=SECOND, budget=640):
    engine = loop(policies.Continuous(slots, budget), step_time, cache)
    for request, output in requests:
        engine.submit(request, output)
    return finish(engine)


@pytest.mark.parametrize("loop", LOOPS)
def test_by_hand(loop):
    """A prompt of 8 takes 9 s here, and none if it comes whole: its last token is a decode of 1 s, and so are all."""
    here = submitted(loop, [(Request(0.0, 8), 3)], step_time=A_TOKEN)
    whole = submitted(loop, [(Request(0.0, 8, computed=8), 3)], step_time=A_TOKEN)
    half = submitted(loop, [(Request(0.0, 8, computed=5), 3)], step_time=A_TOKEN)
    assert here.token_times(0).tolist() == [9, 10, 11]
    assert whole.token_times(0).tolist() == [1, 2, 3]
    assert half.token_times(0).tolist() == [4, 5, 6]
    assert (whole.steps.decodes.tolist(), whole.steps.prefill_tokens.tolist()) == ([1, 1, 1], [0, 0, 0])
    assert half.steps.prefill_tokens.tolist() == [3, 0, 0]
    assert (whole.steps.decode_context.tolist(), half.steps.decode_context.tolist()) == ([8, 9, 10], [0, 9, 10])
    for run, elsewhere, computed in ((here, 0, 10), (half, 5, 5), (whole, 7, 3)):
        summary = run.summary()
        assert (summary["elsewhere_tokens"], summary["computed_tokens"]) == (elsewhere, computed)


@pytest.mark.parametrize("loop", LOOPS)
def test_it_takes_blocks_when_it_gets_its_slot(loop):
    """Blocks of 4 tokens, 5 of them. 0 and 1 bring 8 tokens each; 1 has to wait until 0 has gone."""
    requests = [(Request(0.0, 9, computed=9), 2), (Request(0.0, 9, computed=9), 2)]
    run = submitted(loop, requests, KVCache(5, 4))
    assert run.steps.blocks.tolist() == [3, 3, 3, 3]
    assert run.token_times(1).tolist() == [3, 4]
    assert run.log.brought.tolist() == [[0, 0, 8], [1, 2, 8]]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_preemption_loses_it(loop):
    """Both bring 3 of 4 tokens, in 4 blocks of 2. Each needs a third block in the second step, and there is none."""
    requests = [(Request(0.0, 4, computed=4), 4), (Request(0.0, 4, computed=4), 4)]
    run = submitted(loop, requests, KVCache(4, 2), step_time=A_TOKEN)
    assert run.preempted.tolist() == [0, 1]
    # 1 emitted one token; when 0 has gone, it computes its prompt and that token again.
    assert run.token_times(1).tolist() == [1, 4 + 1 + 5, 11, 12]
    summary = run.summary()
    assert (summary["elsewhere_tokens"], summary["recomputed_tokens"]) == (6, 4)
    assert summary["computed_tokens"] == 2 * (4 + 4 - 1) - 6 + 4


@pytest.mark.parametrize("loop", LOOPS)
def test_a_policy_sees_what_remains_to_be_computed(loop):
    seen = []

    class Looks(policies.Continuous):
        def schedule(self, state):
            seen.append([(r.remaining, r.elsewhere, r.computed, r.blocks) for r in (*state.waiting, *state.running)])
            return super().schedule(state)

    engine = loop(Looks(1, 64), SECOND, KVCache(9, 4))
    for request in (Request(0.0, 9), Request(0.0, 9, computed=6), Request(0.0, 9, computed=9)):
        engine.submit(request, 2)
    finish(engine)
    # Whoever waits; the fast loop does not ask before a step in which nothing changes.
    for one in ([(9, 0, 0, 0), (3, 6, 0, 0), (1, 8, 0, 0)], [(3, 6, 0, 0), (1, 8, 0, 0)], [(1, 8, 0, 0)]):
        assert one in seen


def test_a_fleet_gives_each_request_its_own():
    fleet = Fleet([Engine(policies.Continuous(4, 64), A_TOKEN, KVCache(9, 4)) for _ in range(2)])
    run = fleet.serve(Workload([0.0] * 3, [4] * 3, [1] * 3), computed=np.array([0, 2, 4]))
    assert run.ttft.tolist() == [5, 3, 5]  # 2 joins 0 on the first engine
    assert run.log.brought.tolist() == [[2, 0, 3], [1, 1, 2]]
    assert run.summary()["elsewhere_tokens"] == 5


def accounted(run):
    """Tokens that must have been computed."""
    load, summary, whole = run.workload, run.summary(), run.outcome == "answered"
    needed = int((load.prompt_tokens + load.output_tokens - 1)[whole].sum())
    return needed + summary["recomputed_tokens"] + summary["abandoned_tokens"] - summary["elsewhere_tokens"]


def test_equal_to_the_oracle_and_every_token_accounted_for():
    seen = {"preempted": 0, "brought": 0}

    @given(strategies.from_elsewhere(*BY_THE_ORACLE))
    @examples(200, 30)
    def agree(case):
        out, run = compare(case), case.served()
        plain = case.served_by(PlainEngine(fresh(case.policy), case.step_time, case.cache))
        assert not test_plain.differences(run, plain)
        assert np.array_equal(run.log.brought[np.argsort(run.log.brought[:, 0])],
                              plain.log.brought[np.argsort(plain.log.brought[:, 0])])  # fmt: skip
        assert run.summary()["computed_tokens"] == accounted(run)
        seen["preempted"] += any(out.preempted)
        seen["brought"] += len(run.log.brought) > 0

    agree()
    assert seen["preempted"] >= size(0, 20) and seen["brought"] >= size(5, 60)


@given(strategies.from_elsewhere(*OTHERS).filter(no_choices).filter(plain_memory))
@examples(200, 40)
def test_both_loops_agree_with_any_policy(case):
    fast = case.served()
    plain = case.served_by(PlainEngine(fresh(case.policy), case.step_time, case.cache))
    assert not (found := test_plain.differences(fast, plain)), f"{found}: {case}"
    assert fast.summary()["elsewhere_tokens"] == plain.summary()["elsewhere_tokens"]
    assert fast.summary()["computed_tokens"] == accounted(fast)


@pytest.mark.parametrize("loop", LOOPS)
def test_refusals(loop):
    def engine(policy=None, cache=None, **more):
        return loop(policy or policies.Continuous(4, 64), SECOND, cache, **more)

    for one, request, sentence in (
        (engine(), Request(0.0, 5, computed=6), "K and V of 6 tokens come from elsewhere, and .* has a prompt of 5"),
        (engine(), Request(0.0, 5, computed=-1), "computed must be a whole number"),
        (engine(), Request(0.0, 5, computed=1.5), "computed must be a whole number"),
        (engine(policies.Static(4)), Request(0.0, 5, computed=5), "in a padded batch are not modelled"),
        (engine(cache=KVCache(9, 4, prefix_caching=True)), Request(0.0, 5, computed=5), "more than a number of blocks"),
        (engine(cache=KVCache(9, 4, host_blocks=2)), Request(0.0, 5, computed=5), "more than a number of blocks"),
    ):
        with pytest.raises(ValueError, match=sentence):
            one.submit(request, 2)
        one.submit(Request(0.0, 5), 2)
        assert finish(one).response.tolist() == [2]
    with pytest.raises(ValueError, match="with async_scheduling are not modelled"):
        PlainEngine(policies.Continuous(4, 64), SECOND, async_scheduling=True).submit(Request(0.0, 5, computed=1), 2)
