"""Caches in which something is there before it is computed, and token budgets that change: both loops, every policy."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish, serve
from course.memory.block_pool import BlockPool
from course.policies import Schedule
from tests.engine.test_plain import differences, plainly
from tests.helpers import own_policies, strategies
from tests.helpers.asking import BOTH
from tests.helpers.strategies import Case, examples


class HalfThere(BlockPool):
    """Of each prompt three quarters are there whenever it is admitted: 48 tokens of 64."""

    def hit(self, request):
        return request.prompt_tokens * 3 // 4


@dataclass(frozen=True)
class HalfThereCache(KVCache):
    def open(self):
        return HalfThere(self.num_blocks, self.block_size)


def whole_prompts(state):
    """Gives newcomers all of their prompt, whatever is there of it."""
    tokens = {request: 1 for request in state.running}
    tokens |= {request: request.prompt_tokens for request in state.waiting[: state.free_slots]}
    return tokens


POLICIES = {
    "continuous": lambda: policies.Continuous(4, 64),
    "continuous in chunks": lambda: policies.Continuous(4, 9),
    "continuous unchunked": lambda: policies.Continuous(4, 200, enable_chunked_prefill=False),
    "shortest first": lambda: policies.ShortestFirst(4, 20),
    "prefill first": lambda: policies.PrefillFirst(4, 30),
    "window": lambda: policies.Window(4, 0.5),
    "window of the notes": lambda: policies.NoteWindow(4, 0.5),
    "one at a time": own_policies.OneAtATime,
    "last come first": lambda: own_policies.LastComeFirstServed(4, 40),
    "in turns": lambda: own_policies.TakingTurns(4, 40),
    "whole prompts": lambda: policies.FromFunction(whole_prompts, 4),
}


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_there_is_not_computed(name):
    """All tokens but those that were there are computed, at each admission anew; and all blocks come home."""
    roomy = name not in ("continuous", "continuous in chunks", "shortest first", "prefill first", "last come first")

    @given(st.lists(st.tuples(st.integers(1, 64), st.integers(1, 12)), min_size=1, max_size=9), st.integers(0, 8))
    @examples(25)
    def served(sizes, spare):
        prompt, output = map(list, zip(*sizes, strict=True))
        longest = max(map(sum, sizes))
        cache = HalfThereCache((-(-longest // 4)) * (4 if roomy else 1) + spare, 4)
        load = Workload(np.arange(len(prompt)) * 0.3, prompt, output)
        step_time = steptime.PowerLaw(t0=0.125, c=0.01, alpha=1, prefill=0.01, context=1e-4, pairs=1e-4)
        runs = []
        for loop in (Engine, lambda *given: Engine(*given, honour_until=False), PlainEngine):
            engine = loop(POLICIES[name](), step_time, cache)
            engine.follow(load)
            runs.append(finish(engine))
            assert engine.pool.free == cache.num_blocks
        assert not differences(runs[0], runs[1]) and not differences(runs[0], runs[2])
        run = runs[0]
        there = sum((1 + run.preempted[i]) * (prompt[i] * 3 // 4) for i in range(len(run)))
        # `dropped` counts what a victim had in the cache, what was there included.
        computed = sum(prompt) + sum(output) - len(run) + run.summary()["recomputed_tokens"] - there
        assert run.summary()["computed_tokens"] == computed
        assert run.steps.blocks.max() <= cache.num_blocks

    served()


@pytest.mark.parametrize("run", BOTH)
@pytest.mark.parametrize("name", POLICIES)
def test_48_of_64_by_hand(run, name):
    """One prompt of 64 tokens, 48 of them there: the policy sees 16, and a budget of 64 takes them in one step."""
    if name in ("continuous in chunks", "in turns"):
        return
    done = run(Workload([0.0], [64], [3]), POLICIES[name](), steptime.PowerLaw(t0=1, c=0, alpha=1), HalfThereCache(5))
    assert done.log.chunks.tolist() == [[0, 0, 16, 48]]
    assert done.steps.blocks.tolist() == [4, 5, 5]  # the third token's step needs place for 66


@pytest.mark.parametrize("policy", [policies.Static(3), policies.Dynamic(3, 0.5)], ids=repr)
def test_a_padded_batch_computes_its_prompts_whole(policy):
    load = Workload([0.0] * 3, [4, 8, 6], [2, 5, 1])
    step_time = steptime.PowerLaw(t0=1, c=0, alpha=1)
    plain, there = (serve(load, policy, step_time, cache) for cache in (KVCache(40, 4), HalfThereCache(40, 4)))
    engine = PlainEngine(policy, step_time, HalfThereCache(40, 4))
    engine.follow(load)
    assert not differences(plain, there) and not differences(plain, finish(engine))


def test_a_cache_that_has_everything_is_refused():
    class All(BlockPool):
        def hit(self, request):
            return request.known

    class AllCache(KVCache):
        def open(self):
            return All(self.num_blocks, self.block_size)

    for loop in (Engine, PlainEngine):
        engine = loop(policies.Continuous(2, 8), steptime.PowerLaw(t0=1, c=0, alpha=1), AllCache(9))
        engine.follow(Workload([0.0], [5], [2]))
        with pytest.raises(ValueError, match=r"all 5 tokens of Request\(0, .*\) are there, and at least the last one"):
            engine.run()


class Shrinking(policies.Policy):
    """A budget that halves with every step, down to 4; it takes whoever fits."""

    max_num_seqs = 4

    def __init__(self):
        self.max_num_batched_tokens = 64

    def schedule(self, state):
        assert state.max_num_batched_tokens == self.max_num_batched_tokens
        self.max_num_batched_tokens = left = max(4, self.max_num_batched_tokens // 2)
        tokens = {}
        for request in (*state.running, *state.waiting[: state.free_slots]):
            if left:
                tokens[request] = min(left, request.remaining)
                left -= tokens[request]
        return Schedule(tokens)


def test_a_budget_that_changes_from_step_to_step():
    case = Case(
        (0.0,) * 6, (40, 3, 30, 9, 1, 22), (3, 9, 2, 5, 7, 1), (None,) * 6, (0.0,) * 6, Shrinking(),
        steptime.PowerLaw(t0=0.125, c=0.125, alpha=1),
    )  # fmt: skip
    run = serve(case.load, strategies.fresh(case.policy), case.step_time)
    assert not differences(run, plainly(case))
    assert run.steps.budget[:5].tolist() == [32, 16, 8, 4, 4]
    computed = run.steps.decodes + run.steps.prefill_tokens
    assert (computed <= run.steps.budget).all() and (computed[:4] == run.steps.budget[:4]).all()
    assert run.summary()["token_utilisation"] == computed.sum() / run.steps.budget.sum()


@pytest.mark.parametrize("loop", [Engine, PlainEngine])
def test_more_than_a_budget_that_has_shrunk_is_refused(loop):
    class Late(policies.Policy):
        max_num_seqs, max_num_batched_tokens = 4, 64

        def schedule(self, state):
            if state.decodes:
                self.max_num_batched_tokens = 2
                return Schedule(decodes=True)
            return Schedule({request: request.remaining for request in state.waiting})

    engine = loop(Late(), steptime.PowerLaw(t0=1, c=0, alpha=1))
    engine.follow(Workload([0.0] * 3, [5] * 3, [4] * 3))
    with pytest.raises(ValueError, match="it runs 3 tokens, and max_num_batched_tokens is 2"):
        engine.run()


STEP_TIME = steptime.PowerLaw(t0=0.1, c=0.01, alpha=1.0, prefill=0.001)


def both(load, policy, cache):
    """The runs of the fast loop and of the plain one."""
    engine = PlainEngine(policy.fresh(), STEP_TIME, cache)
    fast = serve(load, policy, STEP_TIME, cache)
    engine.follow(load)
    return fast, finish(engine)


class Remembering(BlockPool):
    """All prompts are the beginning of one text, and what was computed of it stays: a warm pool."""

    seen = 0  # tokens of the longest prompt that was answered

    def hit(self, request):
        return min(self.seen, request.prompt_tokens - 1) // self.block_size * self.block_size

    def release(self, request, computed=None):
        self.seen = max(self.seen, request.prompt_tokens)
        super().release(request, computed)


@dataclass(frozen=True)
class KeptCache(KVCache):
    """Opens the pools that it is given, one after the other."""

    pools: tuple = ()

    def open(self):
        self.opened.append(self.pools[len(self.opened)])
        return self.opened[-1]

    @property
    def opened(self):
        return self.__dict__.setdefault("_opened", [])


@pytest.mark.parametrize("chunk", [200, 9])
def test_a_warm_pool_stays_warm(chunk):
    """Requests that come one after the other find what the first one left, however the engine goes through them."""
    load = Workload([0.0, 100.0, 200.0], [64, 64, 32], [5, 5, 5])
    cache = KeptCache(40, 16, pools=(Remembering(40, 16), Remembering(40, 16)))
    fast, plain = both(load, policies.Continuous(4, chunk), cache)
    assert fast.steps.prefill_tokens.sum() == 64 + 16 + 16
    assert not differences(fast, plain)
    assert len(cache.opened) == 2 and all(pool.seen == 64 and pool.free == 40 for pool in cache.opened)


def test_blocks_that_somebody_else_holds_stay_held():
    """A pool that is not empty when the engine gets it: no loop takes those blocks, or opens a pool of its own."""
    load = Workload.poisson(rate=20.0, num_requests=60, prompt_tokens=64, output_tokens=40, seed=0)
    pools = BlockPool(40, 16), BlockPool(40, 16)
    for pool in pools:
        pool.reserve("somebody else", 16 * 16)
    cache = KeptCache(40, 16, pools=pools)
    fast, plain = both(load, policies.Continuous(8, 512), cache)
    assert fast.steps.preemptions.sum() > 0, "blocks must run short"
    # The plain loop asks the pool what is held, by others too; the fast one counts what its own requests hold.
    assert differences(fast, plain) == ["blocks"]
    assert np.array_equal(fast.steps.blocks + 16, plain.steps.blocks)
    assert cache.opened == [*pools] and [pool.free for pool in pools] == [24, 24]
