"""What holds in every run: each answer once, tokens in order, limits kept, work and time accounted for."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Policy
from course.workload import lengths
from tests.helpers import oracle, own_policies, strategies
from tests.helpers.asking import serve_asking
from tests.helpers.strategies import Case, examples


@st.composite
def with_own_policy(draw):
    """A random case, but with one of the policies of tests/helpers/own_policies.py."""
    case = draw(strategies.continuous(most=12))
    slots, longest = case.policy.max_num_seqs, max(case.prompt) + max(case.output)
    in_order = st.sampled_from([own_policies.ShortestPromptFirst, own_policies.LastComeFirstServed])
    kinds = [in_order.map(lambda kind: kind(slots, slots + 5))]
    if longest <= 4096:
        kinds += [st.builds(own_policies.OneAtATime), st.builds(own_policies.NewestPreempts)]
    if case.cache is None:
        kinds.append(st.builds(lambda: own_policies.TakingTurns(slots, slots + 5)))
    return replace(case, policy=draw(st.one_of(kinds)))


ANY = st.one_of(
    strategies.continuous(),
    strategies.storms(),
    strategies.many_in_chunks(),
    strategies.batches(),
    with_own_policy(),
)


@given(ANY)
@examples(150)
def test_each_request_is_answered_once_with_its_tokens_in_order(case):
    run = case.served()
    ends = set(run.steps.end.tolist())
    for i, output in enumerate(case.output):
        times = run.token_times(i)
        assert len(times) == output
        assert (np.diff(times) > 0).all()
        assert run.arrival[i] <= run.admitted[i] < times[0] == run.first_computed[i]
        assert ends.issuperset(times.tolist())
        assert times[-1] == run.last_computed[i] <= run.response[i]
    assert run.batch_answers or (run.last_computed == run.response).all()
    for i, before in enumerate(case.after):
        if before is not None:
            assert run.arrival[i] == run.response[before] + case.think_time[i]
        else:
            assert run.arrival[i] == case.arrival[i]


@given(ANY)
@examples(100)
def test_the_clock_never_runs_back(case):
    steps = case.served().steps
    assert (steps.end > steps.start).all()
    assert (steps.start[1:] >= steps.end[:-1]).all()
    assert np.array_equal(steps.seconds, steps.end - steps.start)


@given(ANY)
@examples(150)
def test_slots_budget_and_blocks_are_kept(case):
    run = case.served()
    steps = run.steps
    assert (steps.running >= 1).all() and (steps.running <= case.policy.max_num_seqs).all()
    assert (steps.decodes + steps.prefill_tokens >= 1).all()
    assert (steps.queue >= 0).all() and (steps.useful >= 0).all() and (steps.wasted >= 0).all()
    if not run.batch_answers:
        assert (steps.decodes + steps.prefill_tokens <= case.policy.max_num_batched_tokens).all()
    if case.cache is None:
        assert not steps.blocks.any()
    else:
        assert (steps.blocks >= 1).all() and (steps.blocks <= case.cache.num_blocks).all()


class Watched(Policy):
    """Another policy, with a look at the blocks each time it is asked."""

    def __init__(self, policy, cache):
        self.policy, self.cache, self.asked = policy, cache, 0
        self.max_num_seqs, self.max_num_batched_tokens = policy.max_num_seqs, policy.max_num_batched_tokens

    def fresh(self):
        return self  # the test reads how often it was asked

    def schedule(self, state):
        self.asked += 1
        for request in state.running:  # as many as its tokens fill, not one more
            assert request.blocks == oracle.new_blocks(0, request.computed, self.cache.block_size)
        assert state.free_blocks == self.cache.num_blocks - sum(request.blocks for request in state.running)
        assert not any(request.blocks or request.computed for request in state.waiting)
        return self.policy.schedule(state)


@given(st.one_of(strategies.continuous(), strategies.storms()).filter(lambda case: case.cache))
@examples(60)
def test_all_blocks_come_home(case):
    watched = Watched(case.policy, case.cache)
    run = serve_asking(case.load, watched, case.step_time, case.cache)
    assert watched.asked >= len(run.steps)
    # Those whom the last step answers are all who are left: they alone hold blocks in it.
    last = np.flatnonzero(run.response == run.steps.end[-1])
    tokens = [case.prompt[i] + case.output[i] - 1 for i in last]
    assert run.steps.blocks[-1] == sum(oracle.new_blocks(0, each, case.cache.block_size) for each in tokens)
    assert run.steps.running[-1] == len(last)


@given(ANY)
@examples(100)
def test_littles_law_is_exact_over_a_whole_run(case):
    run = case.served()
    law, stays = run.little(), [end - begin for begin, end in zip(run.arrival, run.response, strict=True)]
    # Sums of a few dozen floats, taken in another order: equal but for rounding.
    assert law.L * run.makespan == pytest.approx(sum(stays), rel=1e-12)
    assert law.W * len(run) == pytest.approx(sum(stays), rel=1e-12)
    assert law.arrival_rate == len(run) / run.makespan
    assert law.carried_in == law.carried_out == 0
    assert abs(law.residual) <= 1e-12 * law.L
    times, counts = run.number_in_system()
    assert counts[-1] == 0 and (np.diff(times) > 0).all() and (counts >= 0).all()


@given(ANY, st.floats(0, 1), st.floats(0, 1))
@examples(60)
def test_littles_law_over_a_window_has_edge_terms(case, one, other):
    run = case.served()
    start, end = (run.arrival.min() + share * run.makespan for share in sorted((one, other)))
    if end - start > 1e-3 * run.makespan:
        law = run.little(start, end)
        # A short window divides what little rounding there is by its length: a thousandth of the run at the least.
        assert abs(law.residual) <= 1e-9 * max(law.L, 1)
        inside = [max(0.0, min(b, end) - max(a, start)) for a, b in zip(run.arrival, run.response, strict=True)]
        assert law.L * law.seconds == pytest.approx(sum(inside), rel=1e-9, abs=1e-9)


@given(ANY)
@examples(120)
def test_every_token_computed_is_accounted_for(case):
    """Tokens computed = needed + computed again after a preemption + padding, each counted by itself."""
    counted = defaultdict(int)

    def count(step):  # a plain callable: served step by step
        counted["computed"] += step.decodes + step.prefill_tokens
        return case.step_time(step)

    class Counted(type(case.policy)):
        def schedule(self, state):
            schedule = super().schedule(state)
            counted["recomputed"] += sum(request.computed for request in schedule.preempt)
            counted["preemptions"] += len(schedule.preempt)
            return schedule

    policy = Counted.__new__(Counted)
    policy.__dict__.update(vars(case.policy))
    run = serve(case.load, policy, count, case.cache)
    needed = sum(p + o - 1 for p, o in zip(case.prompt, case.output, strict=True))
    padding = 0
    if run.batch_answers:
        batches = defaultdict(list)
        for i, when in enumerate(run.admitted.tolist()):
            batches[when].append(i)
        for batch in batches.values():
            steps = max(case.prompt[i] for i in batch) + max(case.output[i] for i in batch) - 1
            padding += len(batch) * steps - sum(case.prompt[i] + case.output[i] - 1 for i in batch)
    assert counted["computed"] == needed + counted["recomputed"] + padding
    for summary in (run.summary(), case.served().summary()):
        assert summary["computed_tokens"] == counted["computed"]
        assert summary["recomputed_tokens"] == counted["recomputed"]
        assert summary["preemptions"] == counted["preemptions"]
        assert summary["padding_tokens"] == padding
        assert summary["useful_slot_steps"] + summary["wasted_slot_steps"] == run.steps.running.sum()


def in_system(run, when):
    return [i for i in range(len(run)) if run.arrival[i] <= when < run.response[i]]


def gaps(run):
    """(from, to) of the times in which no step ran."""
    late = np.flatnonzero(run.steps.start[1:] > run.steps.end[:-1])
    return [(run.steps.end[k], run.steps.start[k + 1]) for k in late]


@given(st.one_of(strategies.continuous(), strategies.many_in_chunks(), with_own_policy()))
@examples(100)
def test_never_idle_while_somebody_is_there(case):
    run = case.served()
    for begin, end in gaps(run):
        assert not in_system(run, begin)
        assert end in run.arrival
    assert run.steps.start[0] == run.arrival.min()
    if isinstance(case.policy, policies.Continuous) and case.cache is None and case.policy.enable_chunked_prefill:
        full = run.steps.running == case.policy.max_num_seqs
        spent = run.steps.decodes + run.steps.prefill_tokens == case.policy.max_num_batched_tokens
        assert (full | spent)[run.steps.queue > 0].all()


@given(strategies.batches())
@examples(80)
def test_a_batch_starts_as_soon_as_its_policy_allows(case):
    run = case.served()
    delay, slots = getattr(case.policy, "max_queue_delay", None), case.policy.max_num_seqs
    for start in sorted(set(run.admitted.tolist())):
        waiting = [i for i in in_system(run, start) if run.admitted[i] >= start]
        if len(waiting) >= slots:
            continue
        if delay is not None:
            assert start >= min(run.arrival[i] for i in waiting) + delay
        else:  # whoever comes later follows an answer that is not out yet
            later = np.flatnonzero(run.arrival > start)
            assert all(case.after[i] is not None and run.response[case.after[i]] > start for i in later)
    for begin, end in gaps(run):
        waiting = [i for i in range(len(run)) if run.arrival[i] < end and run.response[i] > begin]
        assert len(waiting) < slots
        if delay is not None and waiting:
            assert end <= min(run.arrival[i] for i in waiting) + delay


@pytest.mark.parametrize(
    "policy",
    [
        policies.Continuous(8, 128),
        policies.Static(8),
        policies.Dynamic(8, 0.05),
        own_policies.ShortestPromptFirst(8, 128),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_the_same_seed_gives_the_same_run(policy):
    def run(seed):
        load = Workload.gamma(30, 2, 200, lengths.uniform(1, 200), lengths.lognormal(20, 1), seed=seed)
        return serve(load, policy, steptime.Roofline("llama-3.1-8b", "H100"), KVCache(3000))

    one, same, other = run(7), run(7), run(8)
    for name in ("arrival", "ttft", "tpot", "e2e", "queue_wait", "admitted", "response", "itl"):
        assert np.array_equal(getattr(one, name), getattr(same, name), equal_nan=True)
    for name in oracle.COLUMNS:
        assert np.array_equal(getattr(one.steps, name), getattr(same.steps, name))
    assert str(one.summary()) == str(same.summary()) != str(other.summary())  # as text: NaN is not equal to NaN


def test_what_a_run_holds_cannot_be_changed():
    run = Case((0.0,), (3,), (2,), (None,), (0.0,), policies.Continuous(1, 8), steptime.PowerLaw(1, 0, 1)).served()
    for name in ("arrival", "ttft", "tpot", "e2e", "queue_wait", "admitted", "response", "itl"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(run, name)[0] = 1.0
