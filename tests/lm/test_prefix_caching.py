"""Prefixes computed once and read by many: the same words and logits, in a pool that holds them and in small ones."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from course import lm, policies
from course.calibration import vllm_live
from course.lm.cache import SharedTables, prefix_ids
from course.lm.prompts import held_out_prompts
from course.memory.kvcache import KVCache

ERROR = 2e-4  # of logits between -30 and 30, whose sums in float32 are added up in another order


@pytest.fixture(scope="module")
def asked():
    """24 questions after one conversation, as the real vLLM was asked."""
    prompts = held_out_prompts()
    longest = max(prompts, key=lambda one: len(one.turns))
    chosen = Random(4).sample([one for one in prompts if len(one.turns) == 1], 24)
    return [(*longest.turns, longest.answer, *one.turns) for one in chosen]


class Heard(lm.Speaking):
    """Keeps the logits of each token of each answer, by (row, position)."""

    def __init__(self, *given, **how):
        super().__init__(*given, **how)
        self.logits = {}

    def _chosen(self, logits, speakers):
        for row, request in speakers:
            self.logits[request.index, len(self.answers[request.index].tokens)] = logits[row].copy()
        return super()._chosen(logits, speakers)


def served(model, monkeypatch, conversations, slots, cache):
    """The run, and its logits."""
    made = []
    monkeypatch.setattr("course.lm.live.Speaking", lambda *given, **how: made.append(Heard(*given, **how)) or made[-1])
    policy = policies.Continuous(slots, 64)
    run = lm.serve_live(lm.Questions.at_once(conversations), policy, model, cache, waits=False)
    return run, made[0].logits


@pytest.mark.parametrize("num_blocks, block_size, slots", [(60, 16, 4), (24, 16, 3), (12, 32, 3)])
def test_words_and_logits_are_the_same_with_prefixes_reused(model, monkeypatch, asked, num_blocks, block_size, slots):
    """The second pool and the third are so small that blocks are overwritten and requests preempted."""
    runs = {}
    for caching in (False, True):
        cache = KVCache(num_blocks, block_size, prefix_caching=caching)
        runs[caching], logits = served(model, monkeypatch, asked[:8], slots, cache)
        runs[caching, "logits"] = logits
    alone, shared = runs[False], runs[True]
    assert shared.words == alone.words
    computed = [int(run.steps.prefill_tokens.sum()) for run in (shared, alone)]
    found = shared.summary()["prefix_cache_hits"]
    assert found > 1000 and computed[0] < computed[1] / 2
    for place, expected in runs[False, "logits"].items():
        assert np.abs(runs[True, "logits"][place] - expected).max() < ERROR


def test_a_history_that_all_share_is_computed_once(model):
    """Of 1,668 prompt tokens 196: the whole first prompt, and of each other what is behind the last full block."""
    history = ["Count from 3 to 9.", "3 4 5 6 7 8 9"] * 4
    load = lm.Questions.at_once(
        [[*history, f"Spell {word}."] for word in ["owl", "cat", "dog", "fish", "bird", "tree", "moon", "star"]] * 3
    )
    alone, shared = (
        lm.serve_live(load, policies.Continuous(8, 256), model, KVCache(2_000, 16, prefix_caching=caching), waits=False)
        for caching in (False, True)
    )
    assert shared.words == alone.words and len(set(shared.words)) == 8
    assert [int(run.steps.prefill_tokens.sum()) for run in (shared, alone)] == [196, 1_668]


def test_as_many_tokens_are_found_as_vllm_found(model, asked):
    recorded = vllm_live.read("prefix_on")
    load = lm.Questions(asked, recorded.due - recorded.due[0], max_tokens=1)
    cache = KVCache(169, 32, prefix_caching=True)
    run = lm.serve_live(load, policies.Continuous(8, 256), model, cache, waits=False)
    assert run.workload.prompt_tokens.tolist() == recorded.prompt_tokens.tolist()
    counts = run.summary()
    assert (counts["prefix_cache_queries"], counts["prefix_cache_hits"]) == (6433, 5504)
    assert recorded.prompt_tokens.sum() == 6433


def test_a_policy_that_pads_finds_nothing_and_says_the_same(model, asked):
    cache = KVCache(200, 16, prefix_caching=True)
    run = lm.serve_live(lm.Questions.at_once(asked[:2]), policies.Static(2), model, cache, waits=False)
    assert run.words == tuple(model.answers(asked[:2])) and run.summary()["prefix_cache_hits"] == 0


def test_it_can_be_watched_too(model, asked):
    cache = KVCache(100, 16, prefix_caching=True)
    watch = lm.Watch(lm.Questions.at_once(asked[:3]), policies.Continuous(2, 512), model, cache)
    while not watch.done:
        watch.advance(0)
    assert watch.run.words == tuple(model.answers(asked[:3])) and watch.run.summary()["prefix_cache_hits"] > 200


def test_blocks_have_a_number_for_all_up_to_their_end():
    assert prefix_ids([[1, 2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 9, 4], [3, 4], [3]], 2) == (
        (0, 1),
        (0, 1),
        (0, 2),
        (3,),
        (),
    )


class Asked:
    """A request by its row."""

    def __init__(self, index, computed=0):
        self.index, self.computed = index, computed


def test_tables_share_what_is_full_and_keep_it_until_its_turn_comes():
    tables = SharedTables(prefix_ids([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [7, 8, 9]], 2), 5, 2)
    first = Asked(0)
    assert tables.table(first, 5) == [0, 1, 2]
    second = Asked(1, computed=4)
    assert tables.table(second, 1) == [0, 1, 3]
    tables.release(first)  # 0 and 1 are still held
    third = Asked(2)
    assert tables.table(third, 3) == [4, 2]
    tables.release(second)  # the last one first: 3, 1, 0
    tables.release(third)  # 2, 4
    assert tables.table(Asked(1, computed=4), 1) == [0, 1, 3]
    assert tables.table(Asked(0, computed=4), 1) == [0, 1, 2]


def test_who_lost_its_slot_gives_its_blocks_back():
    tables = SharedTables(prefix_ids([[1, 2, 3], [4, 5]], 2), 2, 2)
    away = Asked(0)
    assert tables.table(away, 3) == [0, 1]
    tables.release_preempted()
    assert tables.table(Asked(1), 2) == [1]
    assert tables.table(Asked(0, computed=2), 0) == [0]


@pytest.mark.parametrize("num_blocks, slots, k", [(60, 4, 4), (30, 3, 6), (24, 3, 2)])
def test_drafts_and_prefixes_together_say_the_same_words(model, draft, asked, num_blocks, slots, k):
    """In the small pools requests are preempted, and find again what was accepted and nothing that was not."""
    load = lm.Questions.at_once(asked[:8])
    policy = policies.Drafting(policies.Continuous(slots, 64), k)
    runs = {
        caching: lm.serve_live(
            load, policy, model, KVCache(num_blocks, 16, prefix_caching=caching), draft=draft, waits=False
        )
        for caching in (False, True)
    }
    assert runs[True].words == runs[False].words == tuple(model.answers(asked[:8]))
    shared, alone = (runs[caching].summary() for caching in (True, False))
    assert shared["prefix_cache_hits"] > 1000 and shared["computed_tokens"] < alone["computed_tokens"]
    accepted = [found["accepted_tokens"] / found["drafted_tokens"] for found in (shared, alone)]
    assert accepted[0] > 0.9 * accepted[1]  # the draft finds its own keys and values: without them it would guess


def test_blocks_of_rejected_drafts_are_the_next_to_be_taken_and_hold_nothing():
    tables = SharedTables(prefix_ids([[1, 2, 3]], 2), 6, 2)
    one = Asked(0)
    tables.table(one, 3)
    one.computed = 3
    assert tables.table(one, 1, drafts=4) == [0, 1, 2, 3]
    tables.verified(one, 5)  # its own token and one of the drafts
    one.computed = 5
    assert tables.table(one, 1) == [0, 1, 2]
    tables.release(one)
    assert tables.table(Asked(0, computed=6), 1) == [0, 1, 2, 3]  # the last is the one that was given back
