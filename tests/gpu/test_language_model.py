"""The language model of `course.lm` on each device: the same logits as in NumPy but for rounding; the same words."""

from __future__ import annotations

from functools import cache
from random import Random
from threading import Thread

import numpy as np
import pytest

from course import gpu, lm, policies
from course.gpu.ops import product
from course.gpu.plain import PlainDevice
from course.lm import device as lm_device
from course.lm import weights
from course.lm.loading import FOLDERS
from course.lm.prompts import held_out_prompts
from course.memory.kvcache import KVCache
from tests.gpu.conftest import DEVICES, queue_on
from tests.helpers.lm_reference import reference
from tests.helpers.lm_schedules import alone, is_certain, side_by_side, speak
from tests.helpers.sizes import size

# As in tests/lm/test_forward.py: float32 rounds to 6e-8 of a value; logits are up to 40, sums of a few thousand such
# roundings that partly cancel. The largest difference seen here was 3.4e-5, and 6e-5 there. Products in TF32, which
# rounds to 5e-4 of a value, would be far off.
ERROR = 5e-4
MARGIN = 100  # times the measured error, as in tests/lm/test_committed_prompts.py
SAMPLED = lm.Sampling(temperature=2.5, seed=7)  # hot enough that some words are not the greedy ones

NUMPY = lm.load()
PROMPTS = sorted(held_out_prompts(), key=lambda one: len(NUMPY.prompt(one.turns)) + len(one.answer))
ASKED = [NUMPY.prompt(one.turns) for one in PROMPTS]
WANTED = [[*NUMPY.tokenizer.encode(one.answer), NUMPY.tokenizer.end] for one in PROMPTS]
FEW = 8  # prompts on the CPU shim, where all would take minutes
MANY = size(small=16, whole=None)  # and elsewhere


@cache
def loaded(kind: str, name: str) -> lm.LanguageModel:
    return lm.load(name, device=queue_on(kind).device)


@pytest.fixture(params=DEVICES)
def model(request: pytest.FixtureRequest) -> lm.LanguageModel:
    """The model on each device; on the CPU shim the draft, which is a tenth of it."""
    return loaded(request.param, "draft" if request.param == "cpu-shim" else "model")


@pytest.fixture(params=DEVICES)
def large(request: pytest.FixtureRequest) -> tuple[lm.LanguageModel, slice]:
    """The model on each device, and which committed prompts to ask there: all, or a few short ones."""
    return loaded(request.param, "model"), slice(FEW if request.param == "cpu-shim" else MANY)


def random_tokens(number: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(4, 2048, number).tolist()


def last(model: lm.LanguageModel, tokens: list[int]) -> np.ndarray:
    """The logits after the last token of a sequence, computed alone and in one step."""
    kv = model.paged_kv(-(-len(tokens) // 16))
    return model.forward(tokens, [len(tokens)], [0], [range(kv.num_blocks)], kv)[0]


def differ(one: np.ndarray, other: np.ndarray) -> float:
    assert one.dtype == other.dtype == np.float32 and np.isfinite(one).all()
    return float(np.abs(one - other).max())


# The forward pass


@pytest.mark.parametrize("name", ["model", "draft"])
@pytest.mark.parametrize("kind", DEVICES)
def test_it_equals_the_plain_float64_forward(kind: str, name: str) -> None:
    model, tokens = loaded(kind, name), ASKED[3] + WANTED[3]
    stored = weights.read(FOLDERS[name] / "model.safetensors")
    expected = reference(model.config, stored, tokens)
    kv = model.paged_kv(3)
    every = model.forward(tokens, [len(tokens)], [0], [[2, 0, 1]], kv, every=True)
    assert every.shape == expected.shape and np.abs(every - expected).max() < ERROR
    assert np.abs(last(model, tokens) - expected[-1]).max() < ERROR


@pytest.mark.parametrize("counts", [[41], [16, 16, 9], [7, 1, 1, 30, 2], [1] * 6 + [35]])
def test_chunked_equals_whole(model: lm.LanguageModel, counts: list[int]) -> None:
    tokens, done = random_tokens(41, 1), 0
    kv = model.paged_kv(3)
    for count in counts:
        found = model.forward(tokens[done : done + count], [count], [done], [range(3)], kv)
        done += count
    assert differ(found[0], last(model, tokens)) < ERROR


def test_a_ragged_batch_equals_each_row_alone(model: lm.LanguageModel) -> None:
    """Chunks, decodes and first tokens in any order, in shuffled blocks: each row as if it were alone."""
    computed, counts = [0, 16, 7, 33, 0, 20], [1, 1, 12, 1, 5, 17]
    sequences = [
        random_tokens(done + count, row) for row, (done, count) in enumerate(zip(computed, counts, strict=True))
    ]
    order = np.random.default_rng(0).permutation(18)
    tables, kv = order.reshape(6, 3), model.paged_kv(18)
    for row, done in enumerate(computed):
        if done:
            model.forward(sequences[row][:done], [done], [0], tables[[row]], kv)
    step = [token for done, tokens in zip(computed, sequences, strict=True) for token in tokens[done:]]
    every = model.forward(step, counts, computed, tables, kv, every=True)
    found = model.forward(step, counts, computed, tables, kv)
    for row, (tokens, end) in enumerate(zip(sequences, np.cumsum(counts), strict=True)):
        assert differ(found[row], last(model, tokens)) < ERROR
        assert differ(found[row], every[end - 1]) < ERROR


def test_shuffled_blocks_equal_contiguous_ones_to_the_bit(model: lm.LanguageModel) -> None:
    """The same work in the same order, whatever the blocks are called."""
    tokens, table = random_tokens(35, 2), np.random.default_rng(0).permutation(8)[:3]
    found = []
    for blocks in (np.arange(3), table):
        kv = model.paged_kv(8)
        logits = [
            model.forward(tokens[:34], [34], [0], [blocks], kv),
            model.forward(tokens[34:], [1], [34], [blocks], kv),
        ]
        found.append(np.concatenate(logits))
    assert np.array_equal(*found)


def test_preempted_and_recomputed_equals_undisturbed(model: lm.LanguageModel) -> None:
    """A row decodes, loses its blocks to another, and is computed again, its own tokens too, in other blocks."""
    tokens, kv = random_tokens(37, 4), model.paged_kv(6)
    model.forward(tokens[:34], [34], [0], [[0, 1, 2]], kv)
    for place in (34, 35):
        model.forward([tokens[place]], [1], [place], [[0, 1, 2]], kv)
    model.forward(random_tokens(20, 5), [20], [0], [[2, 1]], kv)  # overwrites two of the three blocks
    again = model.forward(tokens, [37], [0], [[5, 0, 4]], kv)
    assert differ(again[0], last(model, tokens)) < ERROR


def test_rows_may_share_the_blocks_of_a_common_prefix(model: lm.LanguageModel) -> None:
    prefix, ends, kv = random_tokens(16, 7), [random_tokens(9, 8), random_tokens(1, 9)], model.paged_kv(4)
    model.forward(prefix, [16], [0], [[2]], kv)
    found = model.forward(ends[0] + ends[1], [9, 1], [16, 16], [[2, 0], [2, 3]], kv)
    for row, end in enumerate(ends):
        assert differ(found[row], last(model, prefix + end)) < ERROR


def test_what_a_block_held_before_does_not_matter(model: lm.LanguageModel) -> None:
    kv, queue = model.paged_kv(4), model._queue
    for part in (*kv.llama.k, *kv.llama.v):
        queue.write(part, np.full(part.shape, np.nan, np.float32))
    tokens = random_tokens(21, 6)
    model.forward(tokens[:19], [19], [0], [[2, 0]], kv)
    assert differ(model.forward(tokens[19:], [2], [19], [[2, 0]], kv)[0], last(model, tokens)) < ERROR
    assert differ(model.forward(tokens[20:], [1], [20], [[2, 0]], kv)[0], last(model, tokens)) < ERROR


def test_a_step_larger_than_all_before_finds_the_cache_as_it_was(
    model: lm.LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lm_device, "TOKENS", 32)
    monkeypatch.setattr(lm_device, "SEQUENCES", 2)
    tokens, kv = random_tokens(60, 10), model.paged_kv(7)
    model.forward(tokens[:20], [20], [0], [[5, 1]], kv)
    step = tokens[20:] + tokens[:3]
    found = model.forward(step, [40, 1, 1, 1], [20, 0, 0, 0], [[5, 1, 4, 2], [0], [3], [6]], kv)
    assert differ(found[0], last(model, tokens)) < ERROR


def test_another_thread_may_compute(model: lm.LanguageModel) -> None:
    """As the engine of the HTTP server does."""
    found: list[np.ndarray] = []
    thread = Thread(target=lambda: found.append(last(model, ASKED[0])))
    thread.start()
    thread.join()
    assert differ(found[0], last(model, ASKED[0])) < ERROR


# The words


def test_each_decision_of_a_committed_prompt_keeps_its_margin(large: tuple[lm.LanguageModel, slice]) -> None:
    """A hundred times what the device makes of a logit, in a batch and alone, against NumPy and against float64."""
    model, some = large
    asked, wanted = ASKED[some], WANTED[some]
    batch = side_by_side(model, asked, wanted)
    stored = weights.read(FOLDERS["model"] / "model.safetensors")
    error = 0.0
    for i, (before, answer) in enumerate(zip(asked, wanted, strict=True)):
        error = max(error, differ(batch[i], alone(NUMPY, before, answer)))
        if i < FEW:  # the plain forward is slow
            exact = reference(model.config, stored, before + answer[:-1])[len(before) - 1 :]
            single = alone(model, before, answer)
            error = max(error, *(float(np.abs(one - exact).max()) for one in (batch[i], single)))
    assert 0 < error < ERROR
    for logits, answer in zip(batch, wanted, strict=True):
        assert logits.argmax(-1).tolist() == answer
        best, second = np.sort(logits, axis=-1)[:, :-3:-1].T
        assert (best - second).min() > MARGIN * error


@pytest.mark.parametrize(("longest_chunk", "preempt"), [(512, 0.0), (8, 0.05)])
def test_the_words_do_not_depend_on_device_or_schedule(
    large: tuple[lm.LanguageModel, slice], longest_chunk: int, preempt: float
) -> None:
    model, some = large
    asked, wanted = ASKED[some], WANTED[some]
    assert speak(model, asked, Random(0), longest_chunk=longest_chunk, preempt=preempt) == wanted


def test_sampled_words_do_not_depend_on_the_device(large: tuple[lm.LanguageModel, slice]) -> None:
    model, some = large
    asked = ASKED[some][:32]
    here = speak(NUMPY, asked, Random(0), sampling=SAMPLED)
    there = speak(model, asked, Random(1), longest_chunk=20, sampling=SAMPLED)
    certain = [
        is_certain(alone(NUMPY, before, one), SAMPLED, i, len(before), ERROR)
        for i, (before, one) in enumerate(zip(asked, here, strict=True))
    ]
    assert sum(certain) > len(asked) / 2
    assert all(one == other for one, other, sure in zip(here, there, certain, strict=True) if sure)


@pytest.mark.parametrize("policy", [policies.Static(4), policies.Continuous(3, 16)])
def test_policies_change_no_word(large: tuple[lm.LanguageModel, slice], policy: policies.Policy) -> None:
    model, some = large
    chosen = PROMPTS[some][:5]
    run = lm.serve_live(lm.Questions.at_once([one.turns for one in chosen]), policy, model)
    assert run.words == tuple(one.answer for one in chosen)


def test_a_cache_with_too_few_blocks_changes_no_word(large: tuple[lm.LanguageModel, slice]) -> None:
    """Somebody loses all blocks and is computed again."""
    model, some = large
    three = slice(9, 12) if some.stop == FEW else slice(-3, None)  # the first that need two blocks each, or the longest
    chosen = PROMPTS[three]
    most = max(len(before) + len(answer) for before, answer in zip(ASKED[three], WANTED[three], strict=True))
    kv = KVCache(-(-most // 16) + 1, 16)
    run = lm.serve_live(lm.Questions.at_once([one.turns for one in chosen]), policies.Continuous(3, 64), model, kv)
    assert run.preempted.sum() > 0
    assert run.words == tuple(one.answer for one in chosen)


# What cannot be


def test_a_device_that_is_not_there_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(lm.LMError, match=r"no device is called 'tpu'.*Without a device it runs in NumPy\."):
        lm.load("draft", device="tpu")

    def none(kind: str) -> gpu.Device:
        raise gpu.KernelError(f"no driver for {kind} is installed")

    monkeypatch.setattr(gpu, "device", none)
    with pytest.raises(lm.LMError, match=r"cannot run on this device: no driver for cuda is installed\."):
        lm.load("draft", device="cuda")


def test_a_device_without_a_library_for_products_is_refused_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AMD GPU, today."""

    def none(*args: object, **how: object) -> None:
        raise gpu.KernelError("products of many rows need cuBLASLt, which exists on CUDA only")

    monkeypatch.setattr(product, "prepare", none)
    with pytest.raises(lm.LMError, match="cannot run on this device: products of many rows need cuBLASLt"):
        lm.load("draft", device=PlainDevice())


def test_a_cache_larger_than_memory_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise MemoryError("nothing left")

    model = lm.load("draft", device=PlainDevice())
    monkeypatch.setattr(model.device, "empty", full)
    with pytest.raises(lm.LMError, match=r"a cache of 7 blocks .* need 0\.0 GB .*: nothing left\."):
        model.paged_kv(7)


def test_a_cache_that_does_not_fit_is_refused_with_a_sentence() -> None:
    model = loaded("numpy", "draft")
    with pytest.raises(lm.LMError, match="16 tokens in a block: on a device block_size cannot be 5"):
        model.paged_kv(4, 5)
    with pytest.raises(ValueError, match="num_blocks must be a whole number"):
        model.paged_kv(0)
    with pytest.raises(lm.LMError, match="not on the device: make one with the paged_kv of this model"):
        model.forward([5], [1], [0], [[0]], NUMPY.paged_kv(1))
    with pytest.raises(lm.LMError, match="another device's: make one with the paged_kv of this model"):
        NUMPY.forward([5], [1], [0], [[0]], model.paged_kv(1))
    with pytest.raises(lm.LMError, match="a block is in two block tables"):
        model.forward([1, 2], [1, 1], [0, 0], [[0], [0]], model.paged_kv(1))
