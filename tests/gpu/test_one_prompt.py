"""The chunks of a prompt, which lab 07 launches: right in NumPy, and with arguments that the kernels take."""

from __future__ import annotations

import numpy as np
import pytest

from course import gpu
from course.gpu import one_prompt
from course.gpu.one_prompt import OnACpu, OnAGpu, attention
from tests.gpu.conftest import queue_on


@pytest.mark.parametrize("cached", [0, 5])
def test_the_attention_is_that_of_each_query_by_itself(monkeypatch: pytest.MonkeyPatch, cached: int) -> None:
    """Whatever is computed at once; float32 sums of 16 terms leave about 1e-6 of the values."""
    monkeypatch.setattr(one_prompt, "ROWS_AT_ONCE", 4)
    rng = np.random.default_rng(1)
    queries = rng.standard_normal((2, 11, 8), dtype=np.float32)
    keys, values = rng.standard_normal((2, cached + 11, 8), dtype=np.float32)
    found = attention(queries, keys, values, cached)
    for head in range(2):
        for place in range(11):
            seen = cached + place + 1
            weights = np.exp(keys[:seen].astype(float) @ queries[head, place] / 8**0.5)
            assert found[head, place] == pytest.approx(weights @ values[:seen] / weights.sum(), abs=1e-5)


@pytest.mark.parametrize("chunk", [1, 8, 13, 32, 50])
def test_the_chunks_are_the_whole_prompt(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    done: list[tuple[int, int]] = []
    prompt = OnACpu(gpu.device("numpy"), 32)
    monkeypatch.setattr(one_prompt, "attention", lambda q, k, v, cached: done.append((q.shape[1], cached)))
    for launch in prompt.steps(chunk):
        launch()
    assert [cached for _, cached in done] == list(range(0, 32, chunk)) and sum(count for count, _ in done) == 32
    assert prompt._out == pytest.approx(prompt._x @ prompt._w.T, abs=1e-3)  # float32 sums of 1,024 terms


def test_what_a_gpu_is_given_is_a_product_and_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels take these arguments; where there is no GPU their NumPy forms do. A last chunk may be shorter."""
    monkeypatch.setattr(OnAGpu, "MATRIX", (64, 32))
    prompt = OnAGpu(gpu.device("numpy"), 80)
    steps = prompt.steps(32)
    assert len(steps) == 3
    for launch in steps:
        launch()


@pytest.mark.parametrize("tokens", [1, 15, 17])
@pytest.mark.parametrize("chunk", [1, 16, 50])
def test_short_prompts_and_long_chunks(monkeypatch: pytest.MonkeyPatch, tokens: int, chunk: int) -> None:
    monkeypatch.setattr(OnAGpu, "MATRIX", (64, 32))
    for kind in (OnACpu, OnAGpu):
        steps = kind(gpu.device("numpy"), tokens).steps(chunk)
        assert len(steps) == -(-tokens // chunk)
        for launch in steps:
            launch()


@pytest.mark.parametrize("wrong", [0, -5, 2.5, None])
def test_no_tokens(monkeypatch: pytest.MonkeyPatch, wrong: float | None) -> None:
    monkeypatch.setattr(OnAGpu, "MATRIX", (64, 32))
    for kind in (OnACpu, OnAGpu):
        with pytest.raises(ValueError, match="tokens must be a whole number"):
            kind(gpu.device("numpy"), wrong)
        with pytest.raises(ValueError, match="chunk must be a whole number"):
            kind(gpu.device("numpy"), 16).steps(wrong)


@pytest.mark.gpu
def test_no_launch_on_a_gpu_is_faster_than_its_memory_and_its_cores() -> None:
    """By a stopwatch of another stream they would all take no time. No card reads 20 TB/s or does 5,000 TFLOP/s."""
    device = queue_on("cuda").device
    prompt = one_prompt.one_prompt(device, 4_096)
    assert isinstance(prompt, OnAGpu)
    watch, weights = prompt.stopwatch(), 28_672 * 4_096
    for chunk in (64, 4_096):
        for launch in prompt.steps(chunk):
            assert watch.time(launch)[0] > max(2 * weights / 20e12, 2 * chunk * weights / 5e15)
