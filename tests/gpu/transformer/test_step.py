"""A tiny model: every form of a step against plain NumPy, and against itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from course import gpu
from course.gpu.ops import e4m3, numbers
from course.gpu.ops.queue import Queue
from course.gpu.transformer import Llama, Shape, Step, Weights, reference
from course.models import ModelSpec, model

TINY = Shape(layers=2, hidden=64, inner=96, heads=4, kv_heads=2, width=32, vocabulary=80)
WIDE = Shape(layers=2, hidden=128, inner=160, heads=4, kv_heads=1, width=64, vocabulary=96, tied=True)
# How far logits may be from float32, as a share of their root mean square. Between the embedding and a logit stand
# about 20 roundings to `kind` in a row, each of 2^-9 (2^-12) on average for bf16 (fp16); errors of that many random
# steps add up to sqrt(20) of one, and the largest of some hundred logits is three times that. The measured maximum
# is about half of these.
NEAR = {"bf16": 0.06, "fp16": 0.008, "fp32": 2e-5}


class Tiny:
    """A model with given weights, and what plain NumPy says of some sequences."""

    def __init__(self, queue: Queue, shape: Shape, kind: str, seed: int = 0) -> None:
        arrays = reference.random_arrays(shape, seed)
        self.kind, self.shape = kind, shape
        self.exact = {name: numbers.decode(numbers.encode(value, kind), kind) for name, value in arrays.items()}
        weights = Weights.given(queue, shape, arrays, kind=kind)
        self.llama = Llama(queue, shape, blocks=40, weights=weights, max_tokens=96, max_sequences=40, max_positions=256)
        rng = np.random.default_rng(seed)
        self.sequences = [rng.integers(0, shape.vocabulary, n) for n in (37, 5, 64)]
        order = rng.permutation(40).tolist()
        self.tables = [[order.pop() for _ in range(-(-(len(ids) + 4) // 16))] for ids in self.sequences]

    def right(self, s: int, end: int | None = None) -> np.ndarray:
        """The logits after the first `end` tokens of sequence s."""
        return reference.forward(self.shape, self.exact, self.sequences[s][:end])[-1]

    def step(self, ids: Any, tables: Any, **how: Any) -> np.ndarray:
        step = Step(self.llama, max_blocks=8, **how)
        step.write(ids, tables)
        step.run()
        return step.logits()

    def prefill(self, s: int, begin: int = 0, end: int | None = None, table: Any = None) -> np.ndarray:
        ids = self.sequences[s][begin:end]
        return self.step(ids, [table or self.tables[s]], chunks=[(len(ids), begin)])[0]

    def close(self, found: np.ndarray, right: np.ndarray) -> None:
        assert np.all(np.isfinite(found))
        error = np.abs(found - right).max() / np.sqrt((right * right).mean())
        assert error < NEAR[self.kind], f"logits are off by {error:.3g} of their root mean square"


@pytest.fixture(params=[(WIDE, "bf16"), (TINY, "fp16"), (TINY, "fp32")], ids=["wide-bf16", "tiny-fp16", "tiny-fp32"])
def tiny(on: Queue, request: pytest.FixtureRequest) -> Tiny:
    return Tiny(on, *request.param)


def test_prefill_and_decodes_equal_plain_numpy(tiny: Tiny) -> None:
    for s, ids in enumerate(tiny.sequences):
        tiny.close(tiny.prefill(s, 0, len(ids) - 1), tiny.right(s, len(ids) - 1))
    ids = [int(one[-1]) for one in tiny.sequences]
    for form in ("library", "auto"):
        found = tiny.step(ids, tiny.tables, lengths=[len(one) for one in tiny.sequences], form=form)
        for s in range(3):
            tiny.close(found[s], tiny.right(s))


def test_chunked_prefill_equals_a_whole_one(tiny: Tiny) -> None:
    whole = tiny.prefill(2)
    for begin, end in ((0, 16), (16, 23), (23, 63), (63, 64)):
        found = tiny.prefill(2, begin, end)
    tiny.close(found, whole)
    tiny.close(found, tiny.right(2))


def test_a_batch_equals_each_sequence_alone_and_blocks_may_lie_anywhere(tiny: Tiny) -> None:
    lengths = [len(one) for one in tiny.sequences]
    together = []
    for tables in (tiny.tables, [[0, 1, 2], [3], [4, 5, 6, 7, 8]]):
        for s in range(3):
            tiny.prefill(s, 0, lengths[s] - 1, tables[s])
        ids = [int(one[-1]) for one in tiny.sequences]
        together.append(tiny.step(ids, tables, lengths=lengths))
        for s in range(3):
            alone = tiny.step([ids[s]], [tables[s]], lengths=[lengths[s]])
            tiny.close(together[-1][s], alone[0])
    assert np.array_equal(*together)  # the same work in the same order, whatever the blocks are called


def test_a_mixed_step_equals_its_parts(tiny: Tiny) -> None:
    tiny.prefill(0, 0, 36)
    tiny.prefill(1, 0, 4)
    tiny.prefill(2, 0, 30)
    ids = [*tiny.sequences[2][30:50], tiny.sequences[0][-1], tiny.sequences[1][-1]]
    tables = [tiny.tables[s] for s in (2, 0, 1)]
    found = tiny.step(ids, tables, chunks=[(20, 30)], lengths=[37, 5])
    tiny.close(found[0], tiny.right(2, 50))
    tiny.close(found[1], tiny.right(0))
    tiny.close(found[2], tiny.right(1))


def test_more_decodes_than_one_group_of_rows(tiny: Tiny) -> None:
    many = 20  # copies of one sequence, each with a block of its own
    ids = tiny.sequences[1]
    tables = [[i] for i in range(many)]
    tiny.prefill(1, 0, 4, tables[0])
    tiny.llama.queue.wait()
    for cache in (*tiny.llama.k, *tiny.llama.v):
        cache[1:many] = cache[:1]
    tiny.llama.queue.wait()
    found = tiny.step([int(ids[-1])] * many, tables, lengths=[5] * many)
    for row in found:
        tiny.close(row, tiny.right(1))


@pytest.mark.parametrize("form", ["library", "auto"])
def test_new_tokens_of_a_decode_equal_plain_numpy(tiny: Tiny, form: str) -> None:
    """As drafts are verified: each of the last four tokens gets the logits that it has after those before it."""
    lengths = [len(one) for one in tiny.sequences]
    for s in range(3):
        tiny.prefill(s, 0, lengths[s] - 4)
    ids = np.concatenate([one[-4:] for one in tiny.sequences])
    found = tiny.step(ids, tiny.tables, lengths=lengths, newest=4, form=form).reshape(3, 4, -1)
    for s in range(3):
        for row in range(4):
            tiny.close(found[s, row], tiny.right(s, lengths[s] - 3 + row))


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["fused", "library"])
def test_replays_of_a_graph_give_the_same_bits(on: Queue, form: str) -> None:
    if not on.captures:
        pytest.skip("graphs are captured on CUDA only")
    tiny = Tiny(on, WIDE, "bf16")
    lengths = [len(one) for one in tiny.sequences]
    for s in range(3):
        tiny.prefill(s, 0, lengths[s] - 1)
    step = Step(tiny.llama, lengths=lengths, max_blocks=8, form=form)
    step.write([int(one[-1]) for one in tiny.sequences], tiny.tables)
    step.run()
    eager = step.logits()
    replay = step.captured()
    for _ in range(20):
        step._logits.fill(0xFFFF)
        step.queue.cupy.cuda.Stream.null.synchronize()
        replay()
        assert np.array_equal(step.logits(), eager)
    for s in range(3):
        tiny.close(eager[s], tiny.right(s))


@pytest.mark.parametrize(("shape", "kind"), [(WIDE, "bf16"), (TINY, "fp32")], ids=["fused", "library"])
def test_a_cache_of_8_bit_numbers_is_read_as_it_was_rounded(on: Queue, shape: Shape, kind: str) -> None:
    arrays = reference.random_arrays(shape, 5)
    scales = np.float32([0.01, 0.02])[None, :, None]
    llama = Llama(
        on, shape, blocks=8, weights=Weights.given(on, shape, arrays, kind=kind), max_tokens=32, max_sequences=32,
        max_positions=64, kv_cache_dtype="fp8_e4m3", kv_scales=scales,
    )  # fmt: skip
    ids = np.random.default_rng(5).integers(0, shape.vocabulary, 19)
    step = Step(llama, lengths=[1], max_blocks=2)
    for at, one in enumerate(ids[:18]):
        step.write([one], [[5, 2]], lengths=[at + 1])
        step.run()
    exact = {name: numbers.decode(numbers.encode(value, kind), kind) for name, value in arrays.items()}
    parts = iter(range(2 * shape.layers))  # keys and values of each layer by turns

    def kept(values: np.ndarray) -> np.ndarray:
        scale = scales[0, next(parts) % 2, 0]
        return e4m3.decode(e4m3.encode(values / scale)) * scale

    right, rounds = reference.forward(shape, exact, ids[:18], kept=kept)[-1], numbers.roundoff(kind)
    error = np.abs(step.logits()[0] - right).max() / np.sqrt((right * right).mean())
    # Beside the roundings of other steps, a key or value may be rounded to the other side: that is 2^-3 of it, for one
    # in 2^-3 / (2 x roundoff) of them.
    assert error < NEAR[kind] + 4 * (2.0**-3 * rounds) ** 0.5, error
    plain = np.abs(reference.forward(shape, exact, ids[:18])[-1] - right).max() / np.sqrt((right * right).mean())
    assert kind == "bf16" or error < plain / 20  # rounding is seen
    with pytest.raises(ValueError, match="a cache of 8-bit numbers serves decodes"):
        Step(llama, chunks=[(4, 0)])


def test_random_weights_are_the_same_everywhere(on: Queue) -> None:
    found = Weights.random(on, TINY, seed=3)
    plain = Weights.random(Queue(_numpy()), TINY, seed=3)
    on.wait()
    for name, array in plain.arrays.items():
        assert np.array_equal(on.device.to_numpy(found.arrays[name]), array), name
    for name, array in plain.packed.items():
        assert np.array_equal(on.device.to_numpy(found.packed[name]), array), name


def _numpy() -> Any:
    return gpu.device("numpy")


def test_shapes_of_models() -> None:
    shape = Shape.of(model("llama-3.1-8b"))
    assert shape.step_weight_bytes("bf16") == model("llama-3.1-8b").step_weight_bytes
    assert shape.kv_bytes_per_token("bf16") == 131_072
    with pytest.raises(ValueError, match="9 query heads over 1 KV heads"):
        Shape(1, 64, 64, 9, 1, 64, 64)
    with pytest.raises(ValueError, match="the hidden size must be a multiple of 32, not 40"):
        Shape(1, 40, 64, 2, 1, 32, 64)
    spec = ModelSpec("odd", 1, 64, 64, 2, 1, 32, 64, "made up", layers=())
    with pytest.raises(ValueError, match="odd"):
        Shape.of(spec)


def test_bad_input_is_refused() -> None:
    tiny = Tiny(Queue(_numpy()), TINY, "bf16")
    step = Step(tiny.llama, chunks=[(3, 0)], lengths=[5], max_blocks=4)
    good = {"ids": [1, 2, 3, 4], "tables": [[0], [1]]}
    step.write(**good)
    for change, message in [
        ({"ids": [1, 2, 3]}, "ids must be 4 whole numbers"),
        ({"ids": [1, 2, 3, 80]}, "token 80 is outside the vocabulary of 80"),
        ({"ids": [1.0, 2, 3, 4]}, "whole numbers"),
        ({"tables": [[0], [40]]}, "block 40 of sequence 1 is outside the cache of 40 blocks"),
        ({"tables": [[0], []]}, "sequence 1 has 5 tokens and 0 blocks of 16: too few"),
        ({"tables": [[0], [1, 2, 3, 4, 5]]}, "its table has room for 4"),
        ({"tables": [[0]]}, "1 chunks and 1 decodes, and was given 1, 1 and 1 block tables"),
        ({"lengths": [0]}, "a length of 0 tokens"),
        ({"lengths": [300]}, "it must be 1 to 256"),
        ({"cached": [4], "tables": [[0], [0]]}, "the same slot"),
        ({"cached": [-1]}, "behind -1 cached"),
    ]:
        with pytest.raises(ValueError, match=message):
            step.write(**(good | change))
    with pytest.raises(ValueError, match="a step of 97 tokens"):
        Step(tiny.llama, chunks=[(97, 0)])
    with pytest.raises(ValueError, match="needs a chunk or a decode"):
        Step(tiny.llama)
    with pytest.raises(ValueError, match="the fused form takes"):
        Step(tiny.llama, chunks=[(3, 0)], form="fused")
    arrays = reference.random_arrays(TINY, 0)
    del arrays["norm"]
    with pytest.raises(ValueError, match="the weight 'norm' is missing"):
        Weights.given(Queue(_numpy()), TINY, arrays)


class OutOfMemoryError(Exception):
    """Has the name that CuPy's has."""


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError])
def test_too_little_memory_is_said_with_the_amount(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    queue = Queue(_numpy())
    weights = Weights.random(queue, TINY)

    def none(shape: Any, dtype: Any) -> Any:
        raise error("no room")

    monkeypatch.setattr(type(queue.device), "empty", lambda self, shape, dtype: none(shape, dtype))
    # 2 layers x K and V x 5,000,000 blocks of 2 heads x 16 tokens x 32 numbers of 2 bytes.
    with pytest.raises(gpu.KernelError, match=r"a cache of 5000000 blocks .* need 41\.0 GB of GPU memory"):
        Llama(queue, TINY, blocks=5_000_000, weights=weights)
    with pytest.raises(gpu.KernelError, match=r"the weights of 2 layers need 0\.0 GB of GPU memory"):
        Weights.random(queue, TINY)
