"""Prefixes that are shared, by hand: what each loop finds, keeps and refuses."""

from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime, traces
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.memory.prefixes import lru_hits
from course.policies import Request
from tests.helpers import executors
from tests.helpers.asking import BOTH

# By hand

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def served(run, load, blocks, slots=8, budget=64, block_size=4, **cache):
    return run(
        load, policies.Continuous(slots, budget), SECOND, KVCache(blocks, block_size, prefix_caching=True, **cache)
    )


def plain_serve(load, policy, step_time, cache):
    engine = PlainEngine(policy, step_time, cache)
    engine.follow(load)
    return finish(engine)


LOOPS = (*BOTH, plain_serve)


@pytest.mark.parametrize("run", LOOPS)
def test_the_second_finds_what_the_first_has(run):
    """Ten tokens in blocks of 4: two are full. Of eight only one is found, since the last token is always computed."""
    load = Workload([0.0, 5.0, 9.0], [10, 10, 8], [3, 1, 1], prefix=[("a", "b", "c"), ("a", "b", "c"), ("a", "b")],
                    prefix_block_size=4)  # fmt: skip
    done = served(run, load, 10)
    assert done.log.lookups.tolist() == [[0, 10, 0], [1, 10, 8], [2, 8, 4]]
    assert done.steps.prefill_tokens.tolist() == [10, 0, 0, 2, 4]
    numbers = done.summary()
    assert numbers["prefix_cache_queries"] == 28 and numbers["prefix_cache_hits"] == 12
    assert numbers["prefix_hit_rate"] == numbers["prefix_hit_rate_first"] == 12 / 28
    assert numbers["prefix_evicted_blocks"] == 0
    # Three blocks hold one request: a stranger's three push out both that have a hash, and are like nobody else's.
    load = Workload([0.0, 5.0, 9.0], [10, 9, 10], [1] * 3, prefix=[("a", "b"), (), ("a", "b")], prefix_block_size=4)
    done = served(run, load, 3)
    assert done.log.lookups[:, 2].tolist() == [0, 0, 0] and done.summary()["prefix_evicted_blocks"] == 2


@pytest.mark.parametrize("run", LOOPS)
def test_in_one_step_and_at_one_time(run):
    """Both come at once: the second finds what the first is only about to compute, and its block counts once."""
    load = Workload([0.0, 0.0], [9, 9], [2, 2], prefix=[("a", "b"), ("a", "x")], prefix_block_size=4)
    done = served(run, load, 10)
    assert done.log.lookups.tolist() == [[0, 9, 0], [1, 9, 4]]
    assert done.steps.blocks.tolist() == [5, 5] and done.steps.shared.tolist() == [1, 1]


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize(
    ("hash_tokens", "block", "found"), [(512, 16, 512), (512, 64, 512), (16, 64, 576), (16, 16, 592)]
)
def test_a_hash_of_512_tokens_serves_smaller_blocks(run, hash_tokens, block, found):
    """Two prompts of 600 tokens that are the same up to token 592, or only up to 512 for all that hashes of 512 say."""
    one = [("same", place) for place in range(600 // hash_tokens)]
    first, second = (tuple([*one, (name, "last")]) for name in ("one", "other"))
    load = Workload([0.0, 9.0], [600, 600], [1, 1], prefix=[first, second], prefix_block_size=hash_tokens)
    done = served(run, load, 1200 // block, budget=2048, block_size=block)
    assert done.log.lookups.tolist() == [[0, 600, 0], [1, 600, found]]


@pytest.mark.parametrize("run", LOOPS)
def test_an_answer_counts_if_the_hashes_go_on_over_it(run):
    for answers, found in ((True, 12), (False, 8)):
        ids = ("a", "b", "c", "d")
        load = Workload([0.0, 9.0], [9, 15], [5, 1], prefix=[ids if answers else ids[:3], ids], prefix_block_size=4,
                        prefix_answers=answers)  # fmt: skip
        assert served(run, load, 20).log.lookups.tolist() == [[0, 9, 0], [1, 15, found]]


@pytest.mark.parametrize("run", LOOPS)
def test_a_preempted_request_finds_its_own_blocks(run):
    """Two of 8 tokens grow until six blocks of 4 are full; the second gives way and comes back to what is left."""
    done = served(run, Workload([0.0, 0.0], [8, 8], [8, 8]), 6)
    assert done.preempted.tolist() == [0, 1]
    assert done.log.lookups.tolist() == [[0, 8, 0], [1, 8, 0], [1, 13, 8]]
    numbers = done.summary()
    assert numbers["prefix_hit_rate_first"] == 0 and numbers["prefix_hit_rate"] == 8 / 29
    assert numbers["computed_tokens"] == 2 * 15 + numbers["recomputed_tokens"] - 8


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize(("version", "found"), [("0.19", 4), ("0.33", 8)])
def test_which_free_blocks_are_reused_first(run, version, found):
    """Five blocks of 4, of which the first two requests leave four full ones behind. Then one of a single token comes
    twice. Its block goes to the head of the queue in 0.33, and is used again; in 0.19 the second takes the oldest of
    the full ones, which is the last of the first request's two.
    """
    ids = [("a", "b"), ("x", "y"), (), (), ("a", "b")]
    load = Workload([0.0, 3.0, 6.0, 7.0, 9.0], [9, 8, 1, 1, 9], [1] * 5, prefix=ids, prefix_block_size=4)
    assert served(run, load, 5, engine_version=version).log.lookups[-1].tolist() == [4, 9, found]


def test_who_finds_room_joins_without_a_question(monkeypatch):
    """With slots, budget and blocks enough, `Continuous` is not asked."""
    asked = []
    schedule = policies.Continuous.schedule
    monkeypatch.setattr(policies.Continuous, "schedule", lambda *given: asked.append(1) or schedule(*given))
    load = Workload(np.arange(20.0), [9] * 20, [7] * 20, prefix=[("a", "b")] * 20, prefix_block_size=4)
    engine = Engine(policies.Continuous(4, 40), SECOND, KVCache(40, 4, prefix_caching=True))
    engine.follow(load)
    assert finish(engine).log.lookups[:, 2].sum() == 19 * 8 and not asked


@pytest.mark.parametrize("run", LOOPS)
def test_who_waits_for_blocks_finds_what_an_answer_fills(run):
    """Four blocks of 4. The last needs three, of which the first has one full and fills another in the step at 4 s:
    then one is enough, and one is free. The second, which came before, keeps its own until 6 s.
    """
    load = Workload([0.0, 1.5, 1.5], [4, 1, 12], [9, 4, 1], prefix=[("a", "b", "c"), (), ("a", "b", "c")],
                    prefix_block_size=4, prefix_answers=True)  # fmt: skip
    done = served(run, load, 4)
    assert done.admitted.tolist() == [0, 2, 4] and done.log.lookups.tolist() == [[0, 4, 0], [1, 1, 0], [2, 12, 8]]


@pytest.mark.parametrize("run", LOOPS)
def test_the_second_of_two_that_say_the_same_goes_on_alone(run):
    """The first leaves with 7 tokens; the second fills the block, and whoever comes then finds it."""
    load = Workload([0.0, 0.0, 5.5], [4, 4, 9], [4, 9, 1], prefix=[("a", "b"), ("a", "b", "c"), ("a", "b")],
                    prefix_block_size=4, prefix_answers=True)  # fmt: skip
    assert served(run, load, 20).log.lookups.tolist() == [[0, 4, 0], [1, 4, 0], [2, 9, 8]]


def test_a_padded_batch_finds_nothing():
    ids = [("a", "b")] * 2
    load = Workload([0.0, 0.0], [8, 8], [3, 3], prefix=ids, prefix_block_size=4)
    for run in LOOPS:
        done = run(load, policies.Static(1), SECOND, KVCache(4, 4, prefix_caching=True))
        assert done.steps.prefill_tokens.tolist() == [8, 0, 0, 8, 0, 0] and not len(done.log.lookups)


def test_all_blocks_come_home():
    for loop in (Engine, PlainEngine):
        engine = loop(policies.Continuous(4, 30), SECOND, KVCache(12, 4, prefix_caching=True))
        engine.follow(Workload(np.arange(30.0) / 3, [14] * 30, [9] * 30, prefix=[("a", "b")] * 30, prefix_block_size=4))
        assert finish(engine).preempted.sum() > 0
        assert engine.pool.free == 12 and engine.steps == len(engine.pool.column) == len(engine.pool.shared)


@pytest.fixture(scope="module")
def mooncake(shared):
    """The trace's first requests with their answers, so far apart that each is served alone."""
    path = shared / "realinputs" / "traces" / "mooncake_conversation_head3000.jsonl"
    if not path.exists():
        pytest.skip("no traces beside the project")
    with pytest.warns():
        return replace(traces.read(path), arrival=np.arange(3000) * 1e6)


def test_mooncake_one_after_the_other(mooncake):
    """25,332 hit blocks by the trace's ids; 23 of these are partial, or hold a prompt's last token."""
    load = replace(mooncake, output_tokens=np.ones(3000, dtype=int))
    for tokens in (512, 256):
        run = serve(load, policies.Continuous(1, 10**6), SECOND, KVCache(512 * 200_000 // tokens, tokens,
                    prefix_caching=True))  # fmt: skip
        full = np.minimum(lru_hits(load).hit_blocks * 512, (load.prompt_tokens - 1) // tokens * tokens)
        assert run.log.lookups[:, 2].tolist() == (full // tokens * tokens).tolist()
        assert tokens != 512 or full.sum() == 25_309 * 512


@pytest.mark.parametrize("blocks, lru, tail, head", [(5_000, 8_695, 8_428, 9_170), (20_000, 22_417, 22_165, 22_499)])
def test_mooncake_in_little_memory(mooncake, blocks, lru, tail, head):
    """Answers take blocks, so the engine of 0.19 finds fewer than a cache that holds prompts alone. 0.33 reuses those
    that nobody can find, the last of each request, before all others, and finds more.
    """
    assert lru_hits(mooncake, blocks).hit_blocks.sum() == lru
    for version, found in (("0.19", tail), ("0.33", head)):
        cache = KVCache(blocks, 512, version, prefix_caching=True)
        run = serve(mooncake, policies.Continuous(1, 10**6, engine_version=version), SECOND, cache)
        assert run.log.lookups[:, 2].sum() == found * 512


# Loads that share


@pytest.mark.parametrize("run", LOOPS)
def test_one_system_prompt_is_computed_once(run):
    """Of 70 tokens 64 are full blocks of 16; each request computes the other 6 and its own 30."""
    load = Workload(np.arange(5.0) * 9, [30] * 5, [2] * 5).with_system_prompt(70)
    done = run(load, policies.Continuous(4, 200), SECOND, KVCache(40, prefix_caching=True))
    assert load.prompt_tokens.tolist() == [100] * 5
    assert done.log.lookups[:, 2].tolist() == [0, 64, 64, 64, 64]
    assert done.steps.prefill_tokens.sum() == 100 + 4 * 36


@pytest.mark.parametrize("run", LOOPS)
@pytest.mark.parametrize("block", [8, 16, 32])
def test_a_turn_finds_the_turns_before_it(run, block):
    """All but what is not in a full block, and the last token, which was never computed; across conversations the
    system prompt only.
    """
    load = Workload.turns(0.01, 4, 3, 30, 20, think_time=1.0, system_tokens=40, seed=1, prefix_block_size=16)
    done = run(load, policies.Continuous(8, 400), SECOND, KVCache(200, block, prefix_caching=True))
    before = np.where(load.after < 0, 0, (load.prompt_tokens + load.output_tokens)[load.after] - 1)
    found = before // block * block
    first = load.after < 0
    found[first] = 40 // max(block, 16) * max(block, 16)
    found[0] = 0
    by_row = done.log.lookups[np.argsort(done.log.lookups[:, 0])]
    assert by_row[:, 2].tolist() == found.tolist()


def test_loads_that_share_refuse_what_cannot_be():
    load = Workload([0.0], [10], [2])
    with pytest.raises(ValueError, match="share prefixes already"):
        load.with_system_prompt(32).with_system_prompt(32)
    with pytest.raises(ValueError, match="tokens must be"):
        load.with_system_prompt(0)
    with pytest.raises(ValueError, match="prefix_block_size must be"):
        load.with_system_prompt(32, prefix_block_size=0)
    with pytest.raises(ValueError, match="prefix_block_size must be"):
        Workload.turns(1.0, 2, 2, 5, 5, prefix_block_size=0)
    assert Workload.turns(1.0, 2, 2, 5, 5).prefix is None


# What is refused


def test_input_that_cannot_be_gets_a_sentence():
    ids = {"prefix": [("a", "b")], "prefix_block_size": 4}
    for wrong, sentence in (
        ({**ids, "prefix_block_size": 0}, "prefix_block_size must be"),
        (
            {**ids, "prefix": [("a", "b", "c")]},
            "request 0 has hashes of 3 blocks of 4 tokens, and its 8 tokens are at most 2",
        ),
        ({"prefix_block_size": 4}, "there is no prefix"),
        ({"prefix": [("a",)], "prefix_answers": True}, "prefix_answers needs prefix_block_size"),
        ({**ids, "prefix_answers": 1}, "prefix_answers must be True or False"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Workload([0.0], [8], [2], **wrong)
    cache, policy = KVCache(4, 4, prefix_caching=True), policies.Continuous(2, 8)
    for load, pool, sentence in (
        (Workload([0.0], [8], [2], prefix=[("a",)]), cache, "request 0 has prefix hashes, and nobody said of how many"),
        (
            Workload([0.0], [8], [2], **ids),
            KVCache(4, 3, prefix_caching=True),
            "stands for 4 tokens and a block of the c",
        ),
        (
            Workload([0.0], [80], [2], **ids),
            cache,
            "81 tokens of KV cache, 21 blocks, and num_blocks is 4: it can never",
        ),
    ):
        for run in LOOPS:
            with pytest.raises(ValueError, match=sentence):
                run(load, policy, SECOND, pool)
    with pytest.raises(ValueError, match="block_size must be"):
        KVCache(4, 0, prefix_caching=True)
    with pytest.raises(ValueError, match="prefix_caching must be True or False, not 'on'"):
        KVCache(4, 4, prefix_caching="on")
    with pytest.raises(ValueError, match="prefix_caching with async_scheduling is not modelled"):
        serve(Workload([0.0], [8], [2]), policy, SECOND, cache, async_scheduling=True)
    with pytest.raises(ValueError, match="prefix_caching is simulated only"):
        Engine(policy, executors.Toy(0), cache)
    engine = Engine(policy, SECOND, cache)
    with pytest.raises(ValueError, match="request 0 has hashes of 3 blocks of 4 tokens, and its 8 tokens"):
        engine.submit(Request(0.0, 8, prefix=("a", "b", "c"), prefix_block_size=4), output_tokens=2)
    engine.submit(Request(0.0, 8, prefix=("a", "b"), prefix_block_size=4), output_tokens=2)
    engine.submit(Request(0.0, 9, prefix=("a", "b"), prefix_block_size=4), output_tokens=1)
    assert finish(engine).log.lookups.tolist() == [[0, 8, 0], [1, 9, 8]]


def test_loads_with_unlike_blocks_do_not_mix():
    small, large = (Workload([0.0], [8], [1], prefix=[("a",)], prefix_block_size=size) for size in (4, 8))
    with pytest.raises(ValueError, match="cannot be merged: prefix_block_size is 4 and 8"):
        small.concat(large)
    both = small.concat(Workload([1.0], [3], [1]))
    assert both.prefix == (("a",), ()) and both.prefix_block_size == 4 and both != replace(both, prefix_block_size=8)
