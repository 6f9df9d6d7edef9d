"""Drafts where prompts share their prefixes, and where preempted requests go to the host."""

from dataclasses import replace
from functools import cache

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Speculative, Workload, policies, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.memory.prefix_spans import Chain, Copy, Span
from course.policies import Drafting
from tests.engine.test_drafts import SECOND, by, verifying
from tests.engine.test_plain import differences
from tests.engine.test_prefixes_at_random import AtRandom, sharing
from tests.helpers import oracle, oracle_drafts, strategies
from tests.helpers.sizes import size
from tests.helpers.strategies import GRID, examples

BOTH = pytest.mark.parametrize("loop", [Engine, PlainEngine])


def accounted(case, engine, run):
    """Every token computed has its reason, no limit is passed, and all blocks come home."""
    steps, found = run.steps, run.summary()
    needed = sum(p + o - 1 for p, o in zip(case.prompt, case.output, strict=True))
    rejected = found["drafted_tokens"] - found["accepted_tokens"]
    hits = found.get("prefix_cache_hits", 0)
    assert rejected >= 0 and found["drafted_tokens"] == engine.executor.drafted
    assert found["computed_tokens"] == needed + found["recomputed_tokens"] - hits + rejected
    computed = steps.decodes + steps.prefill_tokens + steps.drafted
    assert (computed <= case.policy.max_num_batched_tokens).all()
    assert (steps.blocks <= case.cache.num_blocks).all() and engine.pool.free == case.cache.num_blocks
    assert steps.useful.sum() == sum(case.output)


def the_same(one, other):
    assert not differences(one, other)
    assert np.array_equal(one.log.lookups, other.log.lookups)
    assert np.array_equal(one.steps.shared, other.steps.shared)
    assert np.array_equal(one.steps.drafted, other.steps.drafted)


@pytest.mark.parametrize("part", range(size(1, 4)))
def test_both_loops_are_the_oracle(part):
    """Times, hits, preemptions, blocks held and held in common: equal to the last bit."""
    seen = dict.fromkeys(("hits", "preempted", "drafts", "accepted"), 0)

    @hypothesis.seed(part)
    @given(sharing(), st.integers(1, 6), st.data())
    @examples(300, 60)
    def equal(case, k, data):
        k = min(k, int(case.policy.max_num_batched_tokens) - 1, case.cache.num_blocks * case.cache.block_size)
        right = data.draw(st.lists(st.booleans(), min_size=len(case.prompt), max_size=len(case.prompt)))
        executor = Speculative(case.step_time, GRID, [float(one) for one in right], verify=verifying)

        def step_time(decodes, context, chunks):
            return float(case.step_time(steptime.Step(decodes, context, chunks)))

        def more(many, context, drafts):
            alone = step_time(many, context, ())
            return drafts * GRID + (verifying(many, drafts, max(round(context / many), drafts + 1)) - alone)

        requests = oracle.Requests(case.arrival, case.prompt, case.output, case.after, case.think_time, None)
        memory = {"num_blocks": case.cache.num_blocks, "block_size": case.cache.block_size}
        want, hits, spared = oracle_drafts.serve_drafting(
            requests, step_time, **vars(case.policy), **memory, drafting=(k, right, more), text_of=cache(case.known_as)
        )
        drafting = replace(case, policy=Drafting(case.policy, k))
        for loop in (PlainEngine, Engine):
            engine, run = by(loop, drafting, executor)
            found = strategies.differences(drafting, run, want)
            found += [] if run.log.lookups.tolist() == [list(hit) for hit in hits] else ["hits"]
            found += [] if run.steps.shared.tolist() == spared else ["steps.shared"]
            found += [] if run.steps.drafted.tolist() == [row["drafted"] for row in want.steps] else ["steps.drafted"]
            assert not found, f"{loop.__name__} differs from the oracle in {', '.join(found)}: {drafting}, {right}"
            accounted(drafting, engine, run)
        seen["hits"] += any(there for *_, there in hits)
        seen["preempted"] += any(want.preempted)
        seen["drafts"] += run.steps.drafted.any()
        seen["accepted"] += run.steps.accepted.any()

    equal()
    assert min(seen.values()) >= size(5, 30), seen


class Drafts(AtRandom):
    """Drafts as well, beside whom it preempts and admits, where the plan has blocks for them."""

    def schedule(self, state):
        answer = super().schedule(state)
        there = [request for request in answer.tokens if request.emitted and request.remaining == 1]
        there = [request for request in there if request in state.running and request not in state.prefilling]
        drafts = {request: self.draw.randint(0, 5) for request in there}
        left = self.max_num_batched_tokens - sum(answer.tokens.values())
        plan = state.plan(decodes=False)
        for request in answer.preempt:
            plan.release(request)
        for request, tokens in answer.tokens.items():
            plan.take(request, tokens)
        needed = sum(-(-count // state.block_size) for count in drafts.values())
        if sum(drafts.values()) > left or needed > plan.free:
            return answer
        return policies.Schedule(answer.tokens, answer.preempt, drafts=drafts)


@pytest.mark.parametrize("part", range(size(1, 4)))
def test_both_loops_agree_whatever_a_policy_does(part):
    """Who is sent away, joins, rests and drafts is drawn, all in one step."""
    seen = dict.fromkeys(("drafts beside a preemption", "hits"), 0)

    @hypothesis.seed(part)
    @given(sharing(), st.integers(0, 999))
    @examples(300, 80)
    def equal(case, seed):
        limits = case.policy.max_num_seqs, case.policy.max_num_batched_tokens
        case = replace(case, policy=Drafts(seed, *limits))
        executor = Speculative(case.step_time, GRID, 0.7, verify=verifying, seed=seed)
        runs = []
        for loop in (PlainEngine, Engine):
            engine = loop(Drafts(seed, *limits), executor.fresh(), case.cache)
            engine.follow(case.load)
            runs.append(finish(engine))
            accounted(case, engine, runs[-1])
        the_same(*runs)
        seen["drafts beside a preemption"] += ((runs[0].steps.drafted > 0) & (runs[0].steps.preemptions > 0)).any()
        seen["hits"] += len(runs[0].log.lookups) and runs[0].log.lookups[:, 2].any()

    equal()
    assert min(seen.values()) >= size(3, 20), seen


def test_what_was_preempted_comes_back_from_the_host_with_its_accepted_drafts():
    seen = {"came back": 0}

    @given(strategies.rivals().filter(lambda case: case.cache.host_blocks), st.integers(0, 5), st.integers(0, 99))
    @examples(150, 40)
    def equal(case, k, seed):
        k = min(k, int(case.policy.max_num_batched_tokens) - 1, case.cache.num_blocks * case.cache.block_size)
        executor = Speculative(case.step_time, GRID, 0.7, seed=seed)
        case = replace(case, policy=Drafting(case.policy, k))
        runs = []
        for loop in (PlainEngine, Engine):
            engine, run = by(loop, case, executor)
            accounted(case, engine, run)
            runs.append(run)
        the_same(*runs)
        dropped = runs[0].summary()["recomputed_tokens"]
        seen["came back"] += bool(runs[0].preempted.any()) and dropped == 0 and bool(runs[0].steps.drafted.any())

    equal()
    assert seen["came back"] >= size(1, 10), seen


# By hand


@BOTH
def test_a_draft_that_no_block_ever_holds_is_refused_and_one_of_several_blocks_is_not(loop):
    load = Workload([0.0], [3], [9])
    engine = loop(Drafting(policies.Continuous(4, 64), 33), Speculative(SECOND), KVCache(2, 16))
    engine.follow(load)
    with pytest.raises(
        ValueError, match="33 drafts take 3 KV blocks, and num_blocks is 2: nothing would ever be drafted"
    ):
        engine.run()
    engine = loop(Drafting(policies.Continuous(4, 64), 7), Speculative(SECOND, accept=1.0), KVCache(8, 2))
    engine.follow(load)
    assert finish(engine).steps.drafted.tolist() == [0, 7]


def served(loop, load, blocks, k, accept, **settings):
    policy = Drafting(policies.Continuous(8, 64, **settings), k)
    engine = loop(policy, Speculative(SECOND, accept=accept), KVCache(blocks, 4, prefix_caching=True))
    engine.follow(load)
    return finish(engine)


@BOTH
def test_accepted_drafts_are_found_by_the_next_turn(loop):
    """Prompt 8, answer 9, all drafts right: 16 tokens are in the cache, and the follow-up of 17 finds four blocks."""
    ids = ("a", "b", "c", "d")
    load = Workload([0.0, 9.0], [8, 17], [9, 1], prefix=[ids, ids], prefix_block_size=4, prefix_answers=True)
    run = served(loop, load, 20, 3, 1.0)
    assert run.steps.drafted[:3].tolist() == [0, 3, 3]
    assert run.log.lookups.tolist() == [[0, 8, 0], [1, 17, 16]]


@BOTH
def test_rejected_drafts_are_never_found(loop):
    """With nothing accepted the cache holds what it holds without drafts, and drafts take blocks from it for a step."""
    ids = ("a", "b", "c", "d")
    load = Workload([0.0, 4.0], [8, 17], [9, 1], prefix=[ids, ids], prefix_block_size=4, prefix_answers=True)
    run = served(loop, load, 20, 7, 0.0)
    # At 4 s the first has computed 8 + 3 tokens: two blocks are full, and the third is in the step that begins.
    assert run.log.lookups.tolist() == [[0, 8, 0], [1, 17, 12]]
    assert run.steps.blocks.tolist()[:2] == [2, 4]  # 9 tokens and 7 drafts


@BOTH
@pytest.mark.parametrize(("k", "found"), [(4, 8), (5, 4)])
def test_a_draft_pushes_out_what_nobody_holds(loop, k, found):
    """Four blocks of 4: two keep an answered prompt, one holds a prompt of 3 and its first token, one is for drafts.

    Four of them fit in it; a fifth takes a block more, the last one that the old prompt has.
    """
    load = Workload([0.0, 2.0, 9.0], [8, 3, 9], [1, 2, 1], prefix=[("a", "b"), (), ("a", "b")], prefix_block_size=4)
    run = served(loop, load, 4, k, 0.0)
    assert run.steps.drafted.tolist()[:3] == [0, 0, k]
    assert run.log.lookups[-1].tolist() == [2, 9, found]


@BOTH
def test_of_two_blocks_alike_the_older_one_is_shared(loop):
    """0 computes 3 tokens of its prompt a step, and gives up at 4 s. 1 has drafts that are all right.

    The block T of 1 is full when the second step has ended, that of 0 is scheduled in the third. So it is with 1, which
    goes on, that 2 shares T; a, which both filled in one step, was 0's first, and nobody else holds that.
    """
    load = Workload(
        [0.0, 0.0, 4.0], [30, 3, 9], [2, 40, 1], patience=[3.5, np.nan, np.nan],
        prefix=[("a", "T", "z"), ("a", "T"), ("a", "T", "w")], prefix_block_size=4, prefix_answers=True,
    )  # fmt: skip
    run = served(loop, load, 40, 4, 1.0, long_prefill_token_threshold=3)
    assert run.log.lookups[-1].tolist() == [2, 9, 8]
    assert run.steps.shared.tolist()[:6] == [0, 0, 0, 0, 1, 0]


def test_a_span_grows_only_while_its_ages_are_right():
    """Its blocks came in steps 10, 14, 18: one of step 22 goes on, others have another age."""
    span = Span(2, 5, Chain(object(), (), 1, 0))
    span.copies.append(Copy(span, set(), 10, 4, 1))
    assert span.goes_on(22, 4, 1)
    assert not span.goes_on(18.5, 4, 1) and not span.goes_on(30, 4, 1)
    assert not span.goes_on(22, 0, 1)  # several blocks at once, of which the second would seem younger
    assert not span.goes_on(22, 4, 2)  # after a preemption
    span.forked = True
    assert not span.goes_on(22, 4, 1)
