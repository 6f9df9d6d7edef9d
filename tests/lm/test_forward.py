"""The forward pass: equal to the plain reference, and the same however the work is cut and stored."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import lm
from course.lm import weights
from course.lm.loading import FOLDERS
from tests.helpers.lm_reference import reference

# Float32 rounds to 6e-8 of a value; logits here are up to 40 and are sums of a few thousand such roundings that partly
# cancel. The largest difference seen between two orders of the sums, or to float64, was 6e-5.
ERROR = 5e-4
DRAFT = lm.load("draft")


def whole(model: lm.Model, tokens: list[int], block_size: int = 16) -> np.ndarray:
    """Logits after each token of one sequence, computed in one step."""
    cache = lm.PagedKV(model.config, -(-len(tokens) // block_size), block_size)
    return model.forward(tokens, [len(tokens)], [0], [range(cache.num_blocks)], cache, every=True)


def in_chunks(model: lm.Model, tokens: list[int], counts: list[int]) -> np.ndarray:
    """The same in steps of these counts."""
    cache = lm.PagedKV(model.config, -(-len(tokens) // 16))
    found, done = [], 0
    for count in counts:
        part = tokens[done : done + count]
        found.append(model.forward(part, [count], [done], [range(cache.num_blocks)], cache, every=True))
        done += count
    return np.concatenate(found)


def random_tokens(number: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(4, 2048, number).tolist()


@pytest.mark.parametrize("name", ["model", "draft"])
def test_it_equals_the_plain_float64_forward(name: str, request: pytest.FixtureRequest, asked, wanted):
    model = request.getfixturevalue(name)
    stored = weights.read(FOLDERS[name] / "model.safetensors")
    for tokens in (asked[0] + wanted[0], random_tokens(40, 0)):
        tokens = tokens[:60]
        expected = reference(model.config, stored, tokens)
        found = whole(model, tokens)
        assert found.dtype == np.float32
        assert np.abs(found - expected).max() < ERROR


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_chunked_equals_whole(counts: list[int], seed: int):
    tokens = random_tokens(sum(counts), seed)
    assert np.abs(in_chunks(DRAFT, tokens, counts) - whole(DRAFT, tokens)).max() < ERROR


def test_chunked_equals_whole_in_the_large_model(model):
    tokens = random_tokens(200, 1)
    assert np.abs(in_chunks(model, tokens, [64, 1, 1, 100, 34]) - whole(model, tokens)).max() < ERROR


def test_a_ragged_batch_equals_each_row_alone(model):
    """Chunks, decodes and first tokens side by side: each row as if it were alone."""
    draw, computed, counts = Random(0), [], []
    for _ in range(16):
        computed.append(draw.choice((0, 0, 7, 16, 33, 150)))
        counts.append(draw.choice((1, 1, 1, 2, 17, 60)))
    sequences = [
        random_tokens(done + count, row) for row, (done, count) in enumerate(zip(computed, counts, strict=True))
    ]
    cache = lm.PagedKV(model.config, 16 * 16)
    tables = [range(16 * row, 16 * (row + 1)) for row in range(16)]
    for row, done in enumerate(computed):
        if done:
            model.forward(sequences[row][:done], [done], [0], [tables[row]], cache)
    step = [token for done, tokens in zip(computed, sequences, strict=True) for token in tokens[done:]]
    found = model.forward(step, counts, computed, tables, cache)
    for row, tokens in enumerate(sequences):
        assert np.abs(found[row] - whole(model, tokens)[-1]).max() < ERROR


def test_shuffled_blocks_equal_contiguous_ones_to_the_bit(model):
    """The numbers are gathered into the same arrays, so that nothing may differ."""
    tokens, last = random_tokens(150, 2), [5, 6, 7]
    contiguous, shuffled = lm.PagedKV(model.config, 40), lm.PagedKV(model.config, 40)
    table = np.random.default_rng(0).permutation(40)[:10]
    found = []
    for cache, blocks in ((contiguous, np.arange(10)), (shuffled, table)):
        logits = [model.forward(tokens, [150], [0], [blocks], cache)]
        logits += [model.forward([token], [1], [150 + i], [blocks], cache) for i, token in enumerate(last)]
        found.append(np.concatenate(logits))
    assert np.array_equal(*found)


def test_a_block_size_changes_nothing_but_rounding(model):
    tokens = random_tokens(100, 3)
    expected = whole(model, tokens)
    for block_size in (1, 7, 128):
        assert np.abs(whole(model, tokens, block_size) - expected).max() < ERROR


def test_preempted_and_recomputed_equals_undisturbed(model):
    """A row decodes, loses its blocks to another, and is computed again, its own tokens too, in other blocks."""
    tokens, other = random_tokens(60, 4), random_tokens(48, 5)
    cache = lm.PagedKV(model.config, 8)
    model.forward(tokens[:50], [50], [0], [[0, 1, 2, 3]], cache)
    for place in range(50, 59):
        model.forward([tokens[place]], [1], [place], [[0, 1, 2, 3]], cache)
    model.forward(other, [48], [0], [[3, 1, 2]], cache)  # overwrites three of the four blocks
    again = model.forward(tokens, [60], [0], [[7, 0, 4, 6]], cache)
    assert np.abs(again[0] - whole(model, tokens)[-1]).max() < ERROR


def test_rows_may_share_the_blocks_of_a_common_prefix(model):
    prefix, ends = random_tokens(32, 7), [random_tokens(9, 8), random_tokens(1, 9)]
    cache = lm.PagedKV(model.config, 8)
    model.forward(prefix, [32], [0], [[5, 2]], cache)
    found = model.forward(ends[0] + ends[1], [9, 1], [32, 32], [[5, 2, 0], [5, 2, 7]], cache)
    for row, end in enumerate(ends):
        assert np.abs(found[row] - whole(model, prefix + end)[-1]).max() < ERROR


def test_what_a_block_held_before_does_not_matter(model):
    tokens = random_tokens(21, 6)
    clean, used = lm.PagedKV(model.config, 4), lm.PagedKV(model.config, 4)
    used.keys += np.random.default_rng(0).normal(0, 100, used.keys.shape).astype(np.float32)
    used.values += 1e6
    found = [model.forward(tokens, [21], [0], [[2, 0]], cache) for cache in (clean, used)]
    assert np.array_equal(*found)


def test_the_last_entries_of_a_table_are_ignored(model):
    cache = lm.PagedKV(model.config, 4)
    padded = np.array([[1, 2, -1, -1], [3, -1, -1, 99]])
    found = model.forward(range(4, 4 + 25), [20, 5], [0, 0], padded, cache)
    assert np.array_equal(found, model.forward(range(4, 4 + 25), [20, 5], [0, 0], [[1, 2], [3]], cache))


def test_logits_of_every_token_include_those_of_the_last(model):
    cache = lm.PagedKV(model.config, 8)
    arguments = (range(4, 34), [20, 10], [0, 0], [[0, 1], [2]], cache)
    every, last = model.forward(*arguments, every=True), model.forward(*arguments)
    assert every.shape == (30, 2048) and last.shape == (2, 2048)
    assert np.abs(every[[19, 29]] - last).max() < ERROR


@pytest.mark.parametrize(
    ("tokens", "counts", "computed", "tables", "sentence"),
    [
        ([], [], [], [], "at least one row"),
        ([], [0], [0], [[0]], "at least one token"),
        ([1], [1], [-1], [[0]], "at least one token"),
        ([1, 2], [1], [0], [[0]], "compute 1 tokens, but 2 are given"),
        ([2048], [1], [0], [[0]], "not one of the 2048"),
        ([1], [1], [512], [range(33)], "513 tokens is longer than the context of 512"),
        ([1], [1], [16], [[0]], "needs 2 blocks; its block table has 1"),
        ([1], [1], [0], [[4]], "names block 4; there are 4"),
        ([1], [1], [0], [[-1]], "names block -1"),
        ([1, 2], [1, 1], [0, 0], [[0]], "Each of the 2 rows needs a block table"),
        ([1, 2], [1, 1], [0, 0], [[0], [0]], "a block is in two block tables"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_with_a_sentence(model, tokens, counts, computed, tables, sentence: str):
    with pytest.raises(lm.LMError, match=sentence):
        model.forward(tokens, counts, computed, tables, lm.PagedKV(model.config, 4))


@pytest.mark.parametrize(("blocks", "size"), [(0, 16), (-1, 16), (2.5, 16), (4, 0)])
def test_a_cache_needs_blocks_and_tokens_in_them(model, blocks, size):
    with pytest.raises(ValueError, match="must be a whole number"):
        lm.PagedKV(model.config, blocks, size)


def test_a_cache_larger_than_memory_is_refused_with_a_sentence(model):
    with pytest.raises(lm.LMError, match="which this machine does not have: ask for fewer blocks"):
        lm.PagedKV(model.config, 10**9, 2**20)
