"""The kernel that writes whole answers, and the toy step that loops: on every device, against plain float64."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from course.gpu.errors import KernelError
from course.gpu.ops import decode_bell, decode_loop, decode_step
from course.gpu.ops.generate import Generate
from course.gpu.ops.queue import Queue
from course.gpu.transformer import Shape
from course.gpu.transformer.reference import forward, random_arrays
from tests.gpu.ops.test_compile import written

# hidden 96 and inner 224 leave lanes without a word; three heads share one of keys and values, as in the draft. The CPU
# shim takes 0.2 s for a token of "grouped" and 0.04 s for one of "tiny".
SHAPES = {
    "grouped": Shape(layers=2, hidden=64, inner=96, heads=4, kv_heads=2, width=32, vocabulary=64, tied=True),
    "tiny": Shape(layers=1, hidden=32, inner=32, heads=2, kv_heads=1, width=32, vocabulary=16, tied=True),
    "one kv head": Shape(layers=1, hidden=96, inner=224, heads=3, kv_heads=1, width=32, vocabulary=48, tied=True),
}
PROMPTS = [[5, 13, 3], [7]]
CONTEXT = 70
# bf16 rounds weights, keys and values to 2^-9; logits are sums of 64 to 96 products of about 1 (the head) of such
# numbers behind up to two layers. The largest difference seen is 0.05, of logits up to 25.
ERROR = 0.25


@cache
def arrays(name: str) -> dict[str, np.ndarray]:
    return random_arrays(SHAPES[name], seed=3)


def launched(queue: Queue, name: str, most: int, last: int = -1) -> tuple[np.ndarray, ...]:
    """tokens, lengths and the largest logits, of PROMPTS."""
    model = Generate(queue, SHAPES[name], arrays(name), CONTEXT)
    found = model.prepare(PROMPTS, most, last)
    found.launch()
    queue.wait()
    tokens, lengths, tops = (queue.device.to_numpy(one) for one in (found.tokens, found.lengths, found.tops))
    return tokens, lengths, tops


@pytest.mark.parametrize("name", SHAPES)
def test_each_token_is_the_most_likely_one_of_the_plain_forward(on: Queue, name: str) -> None:
    """Or within rounding of it; and the logit that the kernel found largest is the one of float64."""
    tokens, lengths, tops = launched(on, name, most=3)
    assert lengths.tolist() == [len(prompt) + 3 for prompt in PROMPTS]
    for row, prompt in enumerate(PROMPTS):
        assert tokens[row, : len(prompt)].tolist() == prompt
        end = int(lengths[row])
        logits = forward(SHAPES[name], arrays(name), tokens[row, : end - 1], np.float64)
        assert np.abs(tops[row, : end - 1] - logits.max(-1)).max() < ERROR
        for at in range(len(prompt), end):
            assert logits[at - 1, tokens[row, at]] > logits[at - 1].max() - 2 * ERROR


def test_more_than_32_positions_are_attended_to(on: Queue) -> None:
    """A group of lanes takes 32 at a time."""
    tokens, lengths, tops = launched(on, "tiny", most=45)
    logits = forward(SHAPES["tiny"], arrays("tiny"), tokens[0, : lengths[0] - 1], np.float64)
    assert lengths[0] == 48
    assert np.abs(tops[0, : lengths[0] - 1] - logits.max(-1)).max() < ERROR


def test_an_answer_ends_at_the_last_token_and_at_the_end_of_the_context(on: Queue) -> None:
    tokens, lengths, _ = launched(on, "tiny", most=4)
    last = int(tokens[0, len(PROMPTS[0]) + 1])
    again, ends, _ = launched(on, "tiny", most=4, last=last)
    for row, prompt in enumerate(PROMPTS):
        answer = tokens[row, len(prompt) : lengths[row]].tolist()
        wanted = answer[: answer.index(last) + 1] if last in answer else answer
        assert again[row, len(prompt) : ends[row]].tolist() == wanted
    model = Generate(on, SHAPES["tiny"], arrays("tiny"), 10)
    assert [len(one) for one in model.answers(PROMPTS, 100, -1)] == [7, 9]


def test_a_launch_can_be_made_again(on: Queue) -> None:
    model = Generate(on, SHAPES["tiny"], arrays("tiny"), CONTEXT)
    found = model.prepare(PROMPTS[:1], 3, -1)
    found.launch()
    on.wait()
    first = on.device.to_numpy(found.tokens).copy()
    found.reset()
    found.launch()
    on.wait()
    assert np.array_equal(on.device.to_numpy(found.tokens), first)
    assert on.device.to_numpy(found.lengths).tolist() == [6]


@pytest.mark.gpu
@pytest.mark.parametrize(("cluster", "threads"), [(1, 256), (2, 256), (8, 512), (16, 512), (16, 1_024)])
def test_every_cluster_writes_the_same(compiled: Queue, cluster: int, threads: int) -> None:
    if not compiled.device.is_gpu or compiled.largest_cluster < cluster:
        pytest.skip(f"this device joins at most {compiled.largest_cluster} blocks")
    one = Generate(compiled, SHAPES["grouped"], arrays("grouped"), CONTEXT, cluster=1, threads=256)
    many = Generate(compiled, SHAPES["grouped"], arrays("grouped"), CONTEXT, cluster=cluster, threads=threads)
    assert many.answers(PROMPTS, 40, -1) == one.answers(PROMPTS, 40, -1)


@pytest.mark.parametrize("said", ["CLUSTER=16 THREADS=512", "CLUSTER=2 THREADS=256"])
def test_the_form_of_clusters_compiles_for_hopper_without_a_spill(said: str, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("there is no nvcc on the PATH: CUDA is not compiled here")
    command = [nvcc, "-arch=sm_90", "-cubin", "-std=c++17", "-Xptxas=-v", "-Werror=all-warnings"]
    command += [*(f"-D{one}" for one in said.split()), str(written(tmp_path, "generate")), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert " 0 bytes spill stores" in done.stderr


def test_what_cannot_be_is_refused(on: Queue) -> None:
    shape, given = SHAPES["grouped"], arrays("grouped")
    with pytest.raises(ValueError, match="16-bit numbers, not heads of 32, tied = True and fp32"):
        Generate(on, shape, given, 20, kind="fp32")
    with pytest.raises(ValueError, match="a cluster of 64 blocks of 256 threads: this device joins at most"):
        Generate(on, shape, given, 20, cluster=64, threads=256)
    model = Generate(on, shape, given, 20)
    with pytest.raises(ValueError, match="prompt 1 has 0 tokens: 1 to 19 leave room to answer"):
        model.prepare([[1], []], 3, -1)
    with pytest.raises(ValueError, match="prompt 0 has 20 tokens"):
        model.prepare([[1] * 20], 3, -1)
    with pytest.raises(ValueError, match="outside of the vocabulary of 64"):
        model.prepare([[64]], 3, -1)


# The toy


@pytest.mark.parametrize(("batch", "steps"), [(5, 1), (1, 4)])
def test_the_loop_computes_the_step(on: Queue, batch: int, steps: int) -> None:
    put = on.device.to_device
    out, count = put(np.full(batch, np.nan, np.float32)), put(np.zeros(1, np.uint32))
    decode_loop.prepare(on, out, count, work=300, steps=steps, threads=64)()
    on.wait()
    right = decode_step.reference(batch, 300)
    assert np.abs(on.device.to_numpy(out) / right - 1).max() < decode_step.tolerance(300, 64)


def test_blocks_that_cannot_all_run_do_not_wait_for_each_other(on: Queue) -> None:
    many = on.multiprocessors + 1
    put = on.device.to_device
    with pytest.raises(ValueError, match=f"{many} blocks cannot wait for each other on {many - 1} multiprocessors"):
        decode_loop.prepare(on, put(np.zeros(many, np.float32)), put(np.zeros(1, np.uint32)), work=9, steps=2)


@pytest.mark.gpu
def test_on_a_gpu_all_blocks_wait_for_each_other(compiled: Queue) -> None:
    if not compiled.device.is_gpu:
        pytest.skip("the CPU runs block after block")
    put = compiled.device.to_device
    out, count = put(np.zeros(16, np.float32)), put(np.zeros(1, np.uint32))
    decode_loop.prepare(compiled, out, count, work=300, steps=50)()
    compiled.wait()
    assert compiled.device.to_numpy(count).tolist() == [16 * 49]
    assert np.abs(compiled.device.to_numpy(out) / decode_step.reference(16, 300) - 1).max() < 1e-5


@pytest.mark.parametrize("sequences", [1, 5])
def test_every_ring_of_the_bell_brings_the_tokens(on: Queue, sequences: int) -> None:
    bell = decode_bell.Bell(on, sequences=sequences, work=300, steps=3, threads=64)
    right = decode_step.reference(sequences, 300)
    with pytest.raises(ValueError, match=r"waits for 3 steps after start\(\)"):
        bell.ring()
    for _ in range(2):
        bell.start()
        for _ in range(2):
            bell._out[:] = np.nan
            assert np.abs(bell.ring() / right - 1).max() < decode_step.tolerance(300, 64)
        bell.stop()
    if on.device.is_gpu:
        with pytest.raises(ValueError, match="blocks cannot wait at once"):
            decode_bell.Bell(on, sequences=on.multiprocessors + 1, work=1, steps=1)


@pytest.mark.gpu
def test_a_bell_that_nobody_rings_gives_up(compiled: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled.device.is_gpu:
        pytest.skip("on a CPU nobody waits")
    monkeypatch.setattr(decode_bell, "PATIENCE", 10)
    bell = decode_bell.Bell(compiled, sequences=4, work=300, steps=3)
    bell.start()
    compiled.wait()
    with pytest.raises(KernelError, match="was not rung in time"):
        bell.ring()
