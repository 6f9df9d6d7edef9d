"""Requests that end without their answer: rejected by the policy, or given up because the first token took too long."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import SLO, KVCache, Workload, policies, serve, steptime
from course.engine import metrics
from course.engine.answer import Broken
from course.engine.cancel import cancel
from course.engine.fleet import Fleet
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import POLICIES, Request, Schedule
from tests.engine import test_drafts, test_plain, test_prefixes_at_random
from tests.helpers import strategies
from tests.helpers.asking import BOTH, serve_asking
from tests.helpers.own_policies import Own
from tests.helpers.strategies import examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
NAN = math.nan


def accounted(run, summary):
    """Tokens that are accounted for, in words of the summary; needed is said again here."""
    load = run.workload
    whole = run.outcome == "answered"
    needed = int((load.prompt_tokens + load.output_tokens - 1)[whole].sum())
    return (
        needed + summary["recomputed_tokens"] + summary["padding_tokens"] + summary["abandoned_tokens"]
        + summary["drafted_tokens"] - summary["accepted_tokens"] - summary.get("prefix_cache_hits", 0)
    )  # fmt: skip


def plainly(load, policy, step_time, cache=None):
    engine = PlainEngine(fresh(policy), step_time, cache)
    engine.follow(load)
    return finish(engine)


ALL = (*BOTH, plainly)


# By hand


@pytest.mark.parametrize("how", ALL)
def test_patience_by_hand(how):
    """One slot, steps of a second, 3 tokens an answer: 0 has it from 0 to 3 s.

    1 waits 2.5 s at most: it goes when the step that was under way at 2.5 s has ended. 2 waits 4 s: its only chance is
    the step from 3 to 4 s, and that is in time. 3 waits 6.5 s; its token comes at 7 s, when 2 has had its 3.
    """
    load = Workload([0.0] * 4, [2] * 4, [3] * 4, patience=[NAN, 2.5, 4.0, 6.5], slo=SLO(ttft=10))
    run = how(load, policies.Continuous(1, 64), SECOND)
    assert run.outcome.tolist() == ["answered", "gave up", "answered", "gave up"]
    assert run.answered.tolist() == [True, False, True, False]
    assert run.response.tolist() == [3, 3, 6, 7]
    assert np.array_equal(run.ttft, [1, NAN, 4, NAN], equal_nan=True)
    assert np.array_equal(run.e2e, [3, NAN, 6, NAN], equal_nan=True)
    assert np.array_equal(run.tpot, [1, NAN, 1, NAN], equal_nan=True)
    assert np.array_equal(run.admitted, [0, NAN, 3, 6], equal_nan=True)
    assert run.token_times(1).tolist() == [] and run.token_times(3).tolist() == [7]
    assert len(run.steps) == 7 and run.steps.queue.tolist() == [3, 3, 3, 1, 1, 1, 0]
    summary = run.summary()
    assert (summary["rejected"], summary["gave_up"], summary["abandoned_tokens"]) == (0, 2, 2)
    assert summary["computed_tokens"] == 2 * 4 + 2 == accounted(run, summary)
    assert summary["goodput"] == summary["requests_per_second"] == 2 / 7
    assert summary["share_within_slo"] == 0.5 and metrics.meets_slos(run).tolist() == run.answered.tolist()
    assert summary["output_tokens_per_second"] == 6 / 7 and summary["total_tokens_per_second"] == 10 / 7


@pytest.mark.parametrize("how", ALL)
def test_in_the_middle_of_a_prompt_and_with_an_answer_that_comes_too_late(how):
    """Chunks of 4: 0 has computed 8 of its 12 tokens when its 1.5 s are over. 1 is complete at 3 s, and waited 2.75."""
    load = Workload([0.0, 0.0], [12, 2], [5, 1], patience=[1.5, 2.75])
    run = how(load, policies.Continuous(2, 4), SECOND, KVCache(10, 4))
    assert run.outcome.tolist() == ["gave up", "gave up"]
    assert run.response.tolist() == [2, 3] and np.isnan(run.ttft).all() and np.isnan(run.e2e).all()
    assert run.token_times(1).tolist() == [3]
    assert run.steps.blocks.tolist() == [1, 2, 1] and run.steps.running.tolist() == [1, 1, 1]
    summary = run.summary()
    assert summary["abandoned_tokens"] == 8 + 2 == summary["computed_tokens"]
    assert summary["goodput"] == 0


def test_an_idle_engine_notices_when_patience_ends():
    """The window lasts 5 s and nobody else comes: whoever waits 2 s goes at 2 s, not when the window is over."""
    load = Workload([0.0, 8.0], [2, 2], [1, 1], patience=[2.0, NAN])
    for how in ALL:
        run = how(load, policies.Window(4, 5.0), SECOND)
        assert run.response.tolist() == [2, 14] and run.outcome.tolist() == ["gave up", "answered"]


class Refuses(policies.Continuous):
    """No more than so many wait."""

    def __init__(self, max_num_seqs, max_num_batched_tokens, most):
        super().__init__(max_num_seqs, max_num_batched_tokens)
        self.most = most

    def schedule(self, state):
        too_many = tuple(state.waiting)[self.most + state.free_slots :]
        return Schedule(reject=too_many) if too_many else super().schedule(state)


@pytest.mark.parametrize("how", ALL)
def test_rejected_by_hand(how):
    """One slot, one may wait: of four at 0 s two are sent away at once, the one at 0.5 s when the step has ended."""
    load = Workload([0.0] * 4 + [0.5], [2] * 5, [2] * 5)
    run = how(load, Refuses(1, 64, 1), SECOND)
    assert run.outcome.tolist() == ["answered", "answered", "rejected", "rejected", "rejected"]
    assert run.response.tolist() == [2, 4, 0, 0, 1]
    assert np.isnan(run.ttft[2:]).all() and np.isnan(run.queue_wait[2:]).all()
    assert len(run.steps) == 4 and run.steps.start[0] == 0  # rejecting takes no time
    summary = run.summary()
    assert (summary["rejected"], summary["abandoned_tokens"], summary["goodput"]) == (3, 0, 2 / 4)
    assert summary["little_residual"] == 0 and summary["mean_in_system"] == (2 + 4 + 0.5) / 4


@pytest.mark.parametrize("how", ALL)
def test_the_next_turn_and_the_place_in_the_client(how):
    """A turn that follows a request that was sent away, and a client that has one out at a time."""
    follows = Workload(
        [0.0, 0.0, NAN], [2] * 3, [3] * 3, after=[-1, -1, 1], think_time=[0, 0, 0.5], patience=[NAN, 1.5, NAN]
    )
    run = how(follows, policies.Continuous(1, 64), SECOND)
    assert run.outcome.tolist() == ["answered", "gave up", "answered"] and run.arrival.tolist() == [0, 0, 2.5]
    one_out = Workload([0.0] * 3, [2] * 3, [3] * 3, patience=[0.5, 0.5, NAN], max_concurrency=1)
    run = how(one_out, policies.Continuous(1, 64), SECOND)
    assert run.outcome.tolist() == ["gave up", "gave up", "answered"] and run.arrival.tolist() == [0, 1, 2]
    assert run.client_wait.tolist() == [0, 1, 2]


def test_rejected_and_run_in_one_answer():
    def decide(state):
        return (
            Schedule({state.waiting[0]: 2}, reject=state.waiting[1:]) if len(state.waiting) else Schedule(decodes=True)
        )

    for kind in (Engine, PlainEngine):
        engine = kind(Own(decide), SECOND)
        engine.follow(Workload([0.0] * 3, [2] * 3, [2] * 3))
        run = finish(engine)
        assert run.outcome.tolist() == ["answered", "rejected", "rejected"] and run.steps.end.tolist() == [1, 2]


@pytest.mark.parametrize("kind", [Engine, PlainEngine])
@pytest.mark.parametrize(
    ("reject", "sentence"),
    [
        (lambda state: [state.waiting[0], state.waiting[0]], r"it rejects Request\(0, .*\), which does not wait"),
        (lambda state: ["me"], "it rejects 'me', which does not wait"),
        (lambda state: [Request(0.0, 3)], r"it rejects Request\(-1, .*\), which does not wait"),
        (lambda state: 3, "reject must be a list of requests, or a dict of them to seconds, not 3"),
        (lambda state: state.running, r"it rejects Request\(0, .*\), which does not wait"),
    ],
)
def test_answers_that_break_the_rules(kind, reject, sentence):
    def decide(state):
        if not reject(state):
            return Schedule({state.waiting[0]: 3})
        return Schedule(reject=reject(state))

    engine = kind(Own(decide), SECOND)
    engine.submit(Request(0.0, 3), 4)
    with pytest.raises(Broken, match=sentence):
        engine.run()
    both = kind(Own(lambda state: Schedule({r: 1 for r in state.waiting}, reject=state.waiting[:1])), SECOND)
    both.submit(Request(0.0, 3), 4)
    with pytest.raises(Broken, match=r"it rejects Request\(0, .*\) and gives it tokens: do one of the two") as caught:
        both.run()
    assert caught.value.rule == "reject" and len(caught.value.requests) == 1


def test_who_goes_while_the_host_keeps_it_gives_the_host_back():
    """Its 2 + 1 tokens are on the host when it is cancelled: they were computed for nobody, and the host is free."""

    def decide(state):
        if state.now == 2:
            return Schedule({state.waiting[0]: 2}, preempt=state.running)
        return Schedule({r: r.remaining for r in [*state.running, *state.waiting][:1]})

    for kind in (Engine, PlainEngine):
        engine = kind(Own(decide, max_num_seqs=1), SECOND, KVCache(8, block_size=2, host_blocks=6))
        gone, _ = engine.submit(Request(0.0, 2), 9), engine.submit(Request(0.0, 2), 1)
        while engine.now < 3:
            engine.advance(engine.now + 1) if kind is Engine else engine.step()
        assert engine.pool.host_free == 4
        cancel(engine, gone)
        assert engine.pool.host_free == 6
        run = finish(engine)
        assert run.abandoned_tokens == 3 and run.outcome.tolist() == ["cancelled", "answered"]


def test_refusals():
    for wrong, sentence in (([0.0], "patience of request 0 must be above 0 seconds"), ([-1.0], "must be from 0 to")):
        with pytest.raises(ValueError, match=sentence):
            Workload([0.0], [1], [1], patience=wrong)
    load = Workload([0.0], [1], [1], patience=[1.0])
    with pytest.raises(ValueError, match=r"patience in a padded batch.* is not modelled"):
        serve(load, policies.Static(2), SECOND)
    with pytest.raises(ValueError, match="patience with async_scheduling is not modelled"):
        serve(load, policies.Continuous(2, 64), SECOND, async_scheduling=True)
    engine = Engine(policies.Continuous(2, 64), SECOND)
    with pytest.raises(ValueError, match=r"patience must be a .*number above 0"):
        engine.submit(Request(0.0, 1, patience=0), 1)
    with pytest.raises(ValueError, match="no step ran: all 1 requests were rejected, or left before"):
        serve(load, Own(lambda state: Schedule(reject=state.waiting)), SECOND)


def test_cut_and_merged_like_other_columns():
    load = Workload([0.0, 2.0], [1, 1], [1, 1], patience=[1.0, NAN])
    assert load.head(1).patience.tolist() == [1.0]
    both = load.concat(Workload([1.0], [1], [1]))
    assert np.array_equal(both.patience, [1, NAN, NAN], equal_nan=True)


def test_in_a_fleet():
    load = Workload([0.0] * 6, [2] * 6, [3] * 6, patience=[NAN, NAN, 2.5, NAN, NAN, 2.5])
    fleet = Fleet([Engine(policies.Continuous(1, 64), SECOND) for _ in range(2)])
    run = fleet.serve(load)
    assert run.outcome.tolist() == ["answered"] * 2 + ["gave up"] + ["answered"] * 2 + ["gave up"]
    assert run.response.tolist() == [3, 3, 3, 6, 6, 3] and run.summary()["gave_up"] == 2


# At random


@given(strategies.leaving(sharing_too=True))
@examples(200)
def test_all_is_accounted_for(case):
    computed = 0

    def count(step):  # a plain callable: served step by step
        nonlocal computed
        computed += step.decodes + step.prefill_tokens
        return case.step_time(step)

    engine = Engine(fresh(case.policy), count, case.cache)
    engine.follow(case.load)
    run = finish(engine)
    summary = run.summary()
    assert computed == summary["computed_tokens"] == accounted(run, summary)
    if case.cache:
        assert engine.pool.free == case.cache.num_blocks
        assert not case.cache.host_blocks or engine.pool.host_free == case.cache.host_blocks
    ends = run.arrival + (np.inf if run.workload.patience is None else run.workload.patience)
    in_time = np.isnan(ends) | (run.first_computed <= ends)
    assert (in_time == (run.outcome == "answered"))[run.outcome != "rejected"].all()
    assert (run.response >= run.arrival).all() and (run.steps.queue >= 0).all()
    assert np.isnan(run.ttft[~run.answered]).all() and not np.isnan(run.ttft[run.answered]).any()
    little = run.little()
    assert abs(little.residual) <= 1e-9 * max(1, little.L)  # sums of as many floats, in another order
    assert not metrics.meets_slos(run, slo=SLO())[~run.answered].any()


@given(strategies.leaving(sharing_too=True))
@examples(120)
def test_asking_before_every_step_changes_nothing(case):
    one, other = case.served(), serve_asking(case.load, fresh(case.policy), case.step_time, case.cache)
    assert not (found := test_plain.differences(one, other)), f"{found}: {case}"


PATIENCE = st.one_of(st.none(), st.sampled_from([0.125, 0.5, 2.5]), st.floats(1e-3, 3))


def some_leave(case, data):
    """The same, with patience; the first stays."""
    n = len(case.prompt)
    return replace(case, patience=(None, *data.draw(st.lists(PATIENCE, min_size=n - 1, max_size=n - 1))))


@given(test_prefixes_at_random.sharing(), st.data())
@examples(100, 20)
def test_with_prefixes_that_are_shared(case, data):
    """What somebody computed and left behind is found by others."""
    case = some_leave(case, data)
    engine = Engine(fresh(case.policy), case.step_time, case.cache)
    engine.follow(case.load)
    run = finish(engine)
    assert not (found := test_plain.differences(run, test_plain.plainly(case))), f"{found}: {case}"
    summary = run.summary()
    assert summary["computed_tokens"] == accounted(run, summary)
    assert engine.pool.free == case.cache.num_blocks


@given(test_drafts.drafting(st.one_of(strategies.continuous(), strategies.storms(), strategies.decided())), st.data())
@examples(100, 20)
def test_with_drafts(drawn, data):
    case, executor = some_leave(drawn[0], data), drawn[1]
    (engine, run), (_, plain) = (test_drafts.by(loop, case, executor) for loop in (Engine, PlainEngine))
    assert not (found := test_plain.differences(run, plain)), f"{found}: {case}"
    summary = run.summary()
    assert summary["computed_tokens"] == accounted(run, summary)
    assert not case.cache or engine.pool.free == case.cache.num_blocks


SETTINGS = {
    "fair": {}, "priority": {"ageing": 0.5}, "bucket": {"tokens_per_second": 4_000, "burst": 700},
    "rate-limit": {"tokens_per_second": 4_000, "burst": 700},
    "window": {"window": 0.02}, "note-window": {"window": 0.02}, "prefill-share": {"prefill_share": 0.5},
    "prefill-every": {"every": 2}, "shortest-first": {"by": "prompt"},
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, kind in POLICIES.items() if not kind.padded])
def test_under_every_policy(name):
    """In overload, with too few blocks and people who leave: tokens are accounted for, and the loops are one."""
    kind = POLICIES[name]
    named = inspect.signature(kind).parameters
    limits = {key: value for key, value in (("max_num_seqs", 8), ("max_num_batched_tokens", 256)) if key in named}
    if missing := [
        key for key, p in named.items() if p.default is p.empty and key not in (*limits, *SETTINGS.get(name, {}))
    ]:
        pytest.skip(f"its own tests give {', '.join(missing)}")
    policy = kind(**limits, **SETTINGS.get(name, {}))
    load = Workload.gamma(60, 2, 120, 200, 30, seed=5)
    rng = np.random.default_rng(5)
    load = replace(
        load, patience=rng.choice([NAN, 0.3, 1.0], 120), tenant=rng.integers(0, 3, 120), slo=SLO(ttft=0.4, tpot=0.05)
    )
    card, cache = steptime.Roofline("llama-3.1-8b", "L40S"), KVCache(120)
    run = serve(load, policy, card, cache)
    summary = run.summary()
    assert summary["computed_tokens"] == accounted(run, summary)
    assert summary["gave_up"] > 0 and (run.outcome == "answered").sum() > 0
    assert not test_plain.differences(run, plainly(load, policy, card, cache))
