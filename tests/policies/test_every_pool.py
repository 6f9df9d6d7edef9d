"""Every policy on every pool, and ten lines of one's own: all is answered, the loops agree, all blocks come home."""

from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.cli import knobs
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import registry
from tests.engine.test_plain import differences

POOLS = {
    "plain": {},
    "prefixes": {"prefix_caching": True},
    "swap": {"host_blocks": 6, "host_seconds": 0.25},
    "contiguous": {"reserve": "longest", "max_model_len": 40},
    "compaction": {"reserve": "length", "max_model_len": 40, "compaction": 0.5},
}
SECOND = steptime.PowerLaw(t0=1, c=0.125, alpha=1)
N = 14
LOAD = Workload(
    np.arange(N) / 2.0, [16 + 3 * (i % 5) for i in range(N)], [2 + 5 * (i % 3) for i in range(N)],
    prefix=[tuple(range(4)) if i % 2 else (100 + i,) for i in range(N)], prefix_block_size=4,
    tenant=[f"tenant {i % 3}" for i in range(N)], class_=[i % 2 for i in range(N)], guess=[12.0] * N,
    tags=[{"priority": i % 3} for i in range(N)], deadline=[20.0 + i for i in range(N)],
)  # fmt: skip


class OneAtATime(policies.Policy):
    """The first of those that run, else of those that wait."""

    max_num_seqs, max_num_batched_tokens = 4, 64

    def schedule(self, state):
        turn = (state.running or state.waiting)[:1]
        return policies.Schedule(tokens={request: request.remaining for request in turn})


class WhoFits(policies.Policy):
    """All that run while there is room, the last one gives way, and one newcomer that fits."""

    max_num_seqs, max_num_batched_tokens = 4, 64

    def schedule(self, state):
        plan, tokens, running, away = state.plan(decodes=False), {}, list(state.running), []
        while running and len(tokens) < len(running):
            request = running[len(tokens)]
            if plan.take(request, request.remaining, if_fit=request.remaining):
                tokens[request] = request.remaining
            else:
                away.append(running.pop())
                plan.release(away[-1])
                tokens.pop(away[-1], None)
        left = self.max_num_batched_tokens - sum(tokens.values())
        for request in state.waiting[: 0 if away or len(running) == self.max_num_seqs else 1]:
            need = plan.remaining(request)
            if need <= left and plan.take(request, need, if_fit=need):
                tokens[request] = need
        return policies.Schedule(tokens, away)


GIVEN = {option.name: option.default for option in knobs.OPTIONS} | {"max_num_seqs": 4, "max_num_batched_tokens": 64}
OWN = {"one at a time": OneAtATime, "who fits": WhoFits}


def made(name):
    return OWN[name]() if name in OWN else knobs.build(name, GIVEN)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", [*registry.POLICIES, *OWN])
def test_all_is_served(name, pool):
    """Blocks are short, but for policies that do not look at them: those have enough for four at full length."""
    policy = made(name)
    cache = KVCache(60 if policy.padded or isinstance(policy, policies.Window) else 24, 4, **POOLS[pool])
    if policy.padded and cache.reserve:
        with pytest.raises(ValueError, match="reserves for whole batches"):
            serve(LOAD, policy, SECOND, cache)
        return
    runs = []
    for loop in (Engine, PlainEngine):
        engine = loop(made(name), SECOND, cache)
        engine.follow(LOAD)
        runs.append(finish(engine))
        assert engine.pool.free == cache.num_blocks
    fast, plain = runs
    assert differences(fast, plain) == []
    assert fast.answered.all() and fast.steps.useful.sum() == LOAD.output_tokens.sum()
    assert (fast.steps.blocks <= cache.num_blocks).all()
    assert name != "continuous" or bool(cache.reserve) != fast.preempted.any()  # else blocks are not short


def test_what_is_shared_is_found_under_every_policy_that_does_not_pad():
    for name in [*registry.POLICIES, *OWN]:
        if not (policy := made(name)).padded:
            run = serve(replace(LOAD, tenant=None), policy, SECOND, KVCache(60, 4, prefix_caching=True))
            assert run.summary()["prefix_cache_hits"] >= 16, name
