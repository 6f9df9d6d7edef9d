"""Drafts: counted in the budget and the blocks, verified in one step, and each rejected one accounted for."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Speculative, Workload, policies, serve, steptime
from course.engine.answer import Broken
from course.engine.executor import Executor, Outcome
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Drafting, Schedule
from tests.engine.test_plain import differences
from tests.helpers import oracle, oracle_drafts, own_policies, strategies
from tests.helpers.strategies import GRID, examples, fresh

KINDS = {
    "continuous": strategies.continuous,
    "storms": strategies.storms,
    "many in chunks": strategies.many_in_chunks,
    "shortest first": strategies.shortest_first,
    "prefill first": strategies.prefill_first,
    "windows": strategies.windows,
    "own": strategies.decided,
}
BOTH = pytest.mark.parametrize("loop", [Engine, PlainEngine])
SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def verifying(sequences, drafts, context):
    """Seconds on the grid of 1/8 s, which floats hold exactly."""
    return GRID * (8 + sequences + drafts) + GRID * (context // 64)


@st.composite
def drafting(draw, cases):
    """(case with a policy that drafts, executor): a case with drafts that are right as a seed has it."""
    case = draw(cases)
    budget = case.policy.max_num_batched_tokens
    most = 6 if case.cache is None else min(6, case.cache.num_blocks * case.cache.block_size)
    k = draw(st.integers(0, min(most, int(min(budget, 7)) - 1)))
    shares = draw(st.lists(st.sampled_from([0.0, 0.3, 0.8, 1.0]), min_size=len(case.prompt), max_size=len(case.prompt)))
    verify = draw(st.sampled_from([None, verifying]))
    time = draw(st.sampled_from([0.0, GRID, SECOND]))
    executor = Speculative(case.step_time, time, shares, verify=verify, seed=draw(st.integers(0, 99)))
    return replace(case, policy=Drafting(case.policy, k)), executor


def by(loop, case, executor):
    """The engine after its run, and the run."""
    engine = loop(fresh(case.policy), executor.fresh(), case.cache)
    engine.follow(case.load)
    return engine, finish(engine)


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_accounted_for_and_both_loops_agree(kind):
    @given(drafting(KINDS[kind]()))
    @examples(60, 12)
    def agree(drawn):
        case, executor = drawn
        engine, run = by(Engine, case, executor)
        assert not differences(run, by(PlainEngine, case, executor)[1])
        assert not differences(run, serve(case.load, fresh(case.policy), executor, case.cache))
        steps, found = run.steps, run.summary()
        needed = sum(p + o - 1 for p, o in zip(case.prompt, case.output, strict=True))
        rejected = found["drafted_tokens"] - found["accepted_tokens"]
        assert 0 <= rejected <= engine.executor.drafted
        assert found["drafted_tokens"] == engine.executor.drafted
        assert found["computed_tokens"] == needed + found["recomputed_tokens"] + rejected
        computed = steps.decodes + steps.prefill_tokens + steps.drafted
        assert computed.sum() == found["computed_tokens"]
        assert (computed <= case.policy.max_num_batched_tokens).all()
        assert steps.useful.sum() == sum(case.output)
        assert case.cache is None or (steps.blocks <= case.cache.num_blocks).all()
        assert engine.pool.free == (math.inf if case.cache is None else case.cache.num_blocks)

    agree()


@pytest.mark.parametrize("kind", ["continuous", "storms", "many in chunks", "shortest first"])
def test_equal_to_the_oracle(kind):
    @given(drafting(KINDS[kind]()), st.data())
    @examples(60, 12)
    def agree(drawn, data):
        case, _ = drawn
        n, k, inner = len(case.prompt), case.policy.num_speculative_tokens, case.policy.policy
        right = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
        executor = Speculative(case.step_time, GRID, [float(one) for one in right], verify=verifying)

        def step_time(decodes, context, chunks):
            return float(case.step_time(steptime.Step(decodes, context, chunks)))

        def more(many, context, drafts):
            alone = step_time(many, context, ())
            return drafts * GRID + (verifying(many, drafts, max(round(context / many), drafts + 1)) - alone)

        guess = case.guess or (None,) * n
        requests = oracle.Requests(case.arrival, case.prompt, case.output, case.after, case.think_time, guess)
        memory = {} if case.cache is None else {key: getattr(case.cache, key) for key in ("num_blocks", "block_size")}
        want, *_ = oracle_drafts.serve_drafting(requests, step_time, **vars(inner), **memory, drafting=(k, right, more))
        run = by(Engine, case, executor)[1]
        assert not (found := strategies.differences(case, run, want)), f"{found}: {case}"
        assert run.steps.drafted.tolist() == [row["drafted"] for row in want.steps]

    agree()


def test_by_hand():
    """Prompt 3, two drafts that are right: 1 | 2-4 | 5-6. Of the last step one draft is beyond the end."""
    load = Workload([0.0], [3], [6])
    run = serve(load, Drafting(policies.Continuous(2, 8), 2), Speculative(SECOND, accept=1.0), KVCache(8, 2))
    assert run.token_times(0).tolist() == [1, 2, 2, 2, 3, 3]
    assert run.steps.drafted.tolist() == [0, 2, 2] and run.steps.accepted.tolist() == [0, 2, 1]
    # 3 prompt tokens; 3 + 1 + 2 in the second step; 6 cached, then 1 + 2 more: 9 in blocks of 2.
    assert run.steps.blocks.tolist() == [2, 3, 5]
    assert run.summary()["computed_tokens"] == 3 + 3 + 3 == (3 + 6 - 1) + 1
    wrong = serve(load, Drafting(policies.Continuous(2, 8), 2), Speculative(SECOND, accept=0.0), KVCache(8, 2))
    assert wrong.token_times(0).tolist() == [1, 2, 3, 4, 5, 6]
    assert wrong.summary()["accepted_tokens"] == 0 and wrong.steps.drafted.sum() == 2 * 5


def test_tokens_a_step_are_those_of_the_formula():
    """(1 - a^(k+1)) / (1 - a) tokens a step, over 40,000 draws: within four of their deviations."""
    share, k, n = 0.7, 4, 20
    load = Workload([0.0] * n, [3] * n, [6_000] * n)
    run = serve(load, Drafting(policies.Continuous(n, 1_000), k), Speculative(SECOND, accept=share, seed=3))
    whole = run.step_time
    expected, draws = (1 - share ** (k + 1)) / (1 - share), whole.drafts
    assert 1 + whole.accepted / draws == pytest.approx(expected, abs=4 * 1.6 / math.sqrt(draws))
    at = whole.accepted_at[:k] / draws
    assert at == pytest.approx(share ** np.arange(1, k + 1), abs=4 * 0.5 / math.sqrt(draws))


def test_a_longer_draft_changes_nothing_about_the_drafts_before():
    load = Workload([0.0] * 3, [3] * 3, [60] * 3)
    runs = [
        serve(load, Drafting(policies.Continuous(3, 64), k), Speculative(SECOND, accept=0.6, seed=5)) for k in (2, 4)
    ]
    first = [int(run.log.tokens[(run.log.tokens[:, 0] == 0) & (run.log.tokens[:, 1] > 0)][0, 3]) for run in runs]
    assert first[0] == min(first[1], 3)


def test_acceptance_by_class_and_by_request():
    load = Workload([0.0] * 4, [3] * 4, [9] * 4, class_=["code", "chat", "code", "chat"])
    for accept in ({"code": 1.0, "chat": 0.0}, [1.0, 0.0, 1.0, 0.0], np.array([1.0, 0.0, 1.0, 0.0])):
        run = serve(load, Drafting(policies.Continuous(4, 64), 3), Speculative(SECOND, accept=accept))
        assert run.e2e.tolist() == [3, 9, 3, 9]


def test_seconds_of_draft_and_verification():
    """One sequence: drafting, and what verification adds to a step of decodes alone."""
    line = steptime.PowerLaw(t0=1, c=0.5, alpha=1)
    load = Workload([0.0], [3], [4])
    policy = Drafting(policies.Continuous(2, 8), 3)
    for executor, seconds in (
        (Speculative(line, accept=1.0), 1 + 0.5 * 4),  # three rows more
        (Speculative(line, 0.25, 1.0), 3 + 3 * 0.25),
        (Speculative(line, line, 1.0), 3 + 3 * 1.5),  # three passes of a draft model
        (Speculative(line, lambda n, k, context: 10 * k + n, 1.0), 3 + 31),
        (Speculative(line, accept=1.0, verify=lambda n, k, context: 7.0), 7),
        (Speculative(lambda step: 1 + step.prefill_tokens, accept=1.0), 1 + 3),  # a callable: as a short prompt
    ):
        assert serve(load, policy, executor).steps.seconds[1] == seconds


def test_recorded_is_what_was_recorded_in_all_its_parts():
    load = Workload([0.0], [3], [4])
    recorded, verify = steptime.recorded("h200-llama3-8b-verify"), steptime.verify().seconds

    def badge(executor):
        return serve(load, Drafting(policies.Continuous(2, 8), 3), executor).steptime

    assert badge(Speculative(recorded, verify=verify)) == recorded.badge
    assert badge(Speculative(recorded, recorded, verify=verify)) == recorded.badge
    assert badge(Speculative(recorded)) == "modelled"  # nobody recorded how its rows are verified
    assert badge(Speculative(recorded, 0.001, verify=verify)) == "modelled"  # nor this draft
    assert badge(Speculative(recorded, verify=lambda n, k, context: 0.1)) == "modelled"


def test_fewer_drafts_if_the_budget_is_short_and_none_if_blocks_are():
    load = Workload([0.0] * 4, [3] * 4, [30] * 4)
    run = serve(load, Drafting(policies.Continuous(4, 14), 4), Speculative(SECOND, accept=0.0))
    assert run.steps.drafted[2] == 4 * 2  # 14 tokens hold two drafts of each
    tight = serve(load, Drafting(policies.Continuous(4, 64), 4), Speculative(SECOND, accept=0.0), KVCache(35, 4))
    assert not tight.preempted.any() and not tight.steps.drafted[-2:].all()


class Says(policies.Policy):
    """A policy that answers as `decide` does."""

    def __init__(self, decide, budget=64, padded=False):
        self.decide, self.max_num_seqs, self.max_num_batched_tokens, self.padded = decide, 17, budget, padded

    def fresh(self):
        return self

    def schedule(self, state):
        tokens = {request: request.remaining for request in state.waiting}
        return Schedule(tokens, decodes=True, drafts=self.decide(state) if state.decodes else 0)


REFUSED = {
    "below 0": (lambda s: -1, "drafts", "drafts are whole numbers from 0 to 1,000, not -1"),
    "too many": (lambda s: 1_001, "drafts", "drafts are whole numbers from 0 to 1,000, not 1001"),
    "a word": (lambda s: "4", "kind", "drafts must be a whole number or a dict of requests to them, not '4'"),
    "True": (lambda s: True, "kind", "drafts must be a whole number or a dict of requests to them, not True"),
    "half": (lambda s: {s.running[0]: 1.5}, "drafts", "drafts are whole numbers from 0 to 1,000, not 1.5"),
    "a stranger": (lambda s: {policies.Request(0.0, 3): 2}, "drafts", "drafts for Request.* does not decode in this"),
    "the budget": (lambda s: 4, "budget", "runs 85 tokens, and max_num_batched_tokens is 64"),
    "the blocks": (lambda s: {s.running[0]: 40}, "blocks", "KV blocks more than the cache of 17 has"),
}


@BOTH
@pytest.mark.parametrize("case", REFUSED)
def test_drafts_that_cannot_be(case, loop):
    decide, rule, sentence = REFUSED[case]
    engine = loop(Says(decide), Speculative(SECOND), KVCache(17, 16))
    engine.follow(Workload([0.0] * 17, [3] * 17, [9] * 17))
    with pytest.raises(Broken, match=sentence) as caught:
        engine.run()
    assert caught.value.rule == rule


@BOTH
def test_who_cannot_verify_says_so(loop):
    load = Workload([0.0] * 2, [3] * 2, [9] * 2)
    for executor, cache, padded, sentence in (
        (SECOND, None, False, "it drafts tokens, which Simulated cannot verify: serve it with .*Speculative"),
        (
            Speculative(SECOND),
            None,
            True,
            "in a padded batch, which counts on one token of each in a step: that is not",
        ),
    ):
        engine = loop(Says(lambda s: 2, padded=padded), executor, cache)
        engine.follow(load)
        with pytest.raises(Broken, match=sentence):
            engine.run()
    with pytest.raises(ValueError, match="what Speculative drafts may reach beyond it: serve without reserve"):
        loop(Says(lambda s: 2), Speculative(SECOND), KVCache(17, 16, reserve="longest", max_model_len=32))
    later = PlainEngine(Says(lambda s: 2), Speculative(SECOND), async_scheduling=True)
    later.follow(load)
    with pytest.raises(Broken, match="with async_scheduling, where a step is planned before it is known what was"):
        later.run()


@BOTH
def test_an_executor_emits_at_most_its_drafts_and_one_token(loop):
    class Odd(Executor):
        verifies = True

        def execute(self, work):
            return Outcome(1.0, (), {request: 4 for request in work.decodes})

    engine = loop(Says(lambda s: 2), Odd())
    engine.follow(Workload([0.0], [3], [9]))
    with pytest.raises(ValueError, match=r"Odd lets 4 tokens leave for Request\(0.*, for which 2 were drafted: 1 more"):
        engine.run()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Speculative(1.0), "step_time must be a step time, not 1.0"),
        (lambda: Speculative(SECOND, -1), "draft_time must be a finite number from 0"),
        (lambda: Speculative(SECOND, accept=1.5), "accept must be a finite number from 0 to 1, not 1.5"),
        (
            lambda: Speculative(SECOND, accept={"a": 2}),
            "accept of class 'a' must be a finite number from 0 to 1, not 2",
        ),
        (lambda: Drafting(policies.Static(4), 2), "Static pads its batches, in which no drafts are verified"),
        (lambda: Drafting(policies.Continuous(4, 8), 8), "a step of 8 tokens has no room for one token and 8 drafts"),
        (lambda: Drafting(policies.Continuous(4, 8), -1), "num_speculative_tokens must be a whole number from 0"),
    ],
)
def test_settings_that_cannot_be(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_who_has_no_acceptance():
    load = Workload([0.0] * 2, [3] * 2, [9] * 2, class_=["code", "chat"])
    policy = Drafting(policies.Continuous(4, 64), 3)
    with pytest.raises(ValueError, match="accept has no class 'chat', which request 1 is of: add it"):
        serve(load, policy, Speculative(SECOND, accept={"code": 0.5}))
    with pytest.raises(ValueError, match="accept has 1 numbers, and there is a request 1: give one for each"):
        serve(load, policy, Speculative(SECOND, accept=[0.5]))


def test_a_policy_of_ones_own_that_looks_at_the_budget_of_the_engine():
    load = Workload([0.0] * 9, [30] * 9, [9] * 9)
    run = serve(load, Drafting(own_policies.ShortestPromptFirst(4, 40), 4), Speculative(SECOND, accept=0.5))
    assert (run.steps.decodes + run.steps.prefill_tokens + run.steps.drafted <= 40).all()
    assert run.steps.drafted.any() and np.isfinite(run.e2e).all()
