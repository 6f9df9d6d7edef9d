"""The live executor with odd requests, sizes and memory, on NumPy: the tokens of each request alone, or a sentence."""

from __future__ import annotations

from copy import copy
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, gpu, policies, serve
from course.engine.live import serve_live
from course.gpu.queues import queue
from tests.helpers.strategies import examples
from tests.tools.test_live import LOAD, SIZES, Tiny
from tools.gpu.captured import CaptureSizes
from tools.gpu.live import LiveLlama, replayed

pytestmark = pytest.mark.filterwarnings("error")

FEW_AND_MANY = (
    SIZES,
    CaptureSizes(),
    CaptureSizes(tokens=(4,), chunks=(1,), decodes=1, alone=0),
    CaptureSizes(tokens=(1, 2, 64), chunks=(2,), decodes=8, alone=1),
)
LONGEST = 40


@cache
def tiny() -> Tiny:
    """Of memory that holds numbers whose squares are too large, as new memory may."""
    device = copy(gpu.device("numpy"))
    device.empty = lambda shape, dtype: np.full(shape, 1e30 if np.dtype(dtype) == np.float32 else 7, dtype)
    return Tiny(queue(device))


@st.composite
def loads(draw) -> Workload:
    n = draw(st.integers(1, 4))
    prompt = st.sampled_from((1, 2, 15, 16, 17, 27))
    answer = st.integers(1, 12)
    if draw(st.booleans()):  # all alike
        return Workload([0.0] * n, [draw(prompt)] * n, [draw(answer)] * n)
    arrival = sorted(draw(st.lists(st.sampled_from((0.0, 0.001)), min_size=n, max_size=n)))
    return Workload(arrival, *(draw(st.lists(one, min_size=n, max_size=n)) for one in (prompt, answer)))


@st.composite
def policies_of(draw) -> policies.Policy:
    batch = draw(st.integers(1, 4))
    kinds = (
        policies.Static(batch),
        policies.Dynamic(batch, draw(st.sampled_from((0.0, 0.001)))),
        policies.Continuous(batch, draw(st.sampled_from((batch, 8, 64)))),
        policies.Continuous(batch, 64, enable_chunked_prefill=False),
    )
    return draw(st.sampled_from(kinds))


@given(loads(), policies_of(), st.integers(1, 12), st.sampled_from(FEW_AND_MANY), st.booleans())
@examples(60)
def test_tokens_and_times_or_the_sentence_of_a_simulator(load, policy, blocks, sizes, tight) -> None:
    """tight: the executor was made for the longest request alone, and not for the padding of a batch."""
    most = int((load.prompt_tokens + load.output_tokens - 1).max())
    live = LiveLlama(tiny().llama, longest=most if tight else LONGEST, sizes=sizes)
    memory = KVCache(blocks, 16)
    try:
        run = serve_live(load, policy, live, memory)
    except ValueError as error:
        assert "blocks" in str(error)
        with pytest.raises(ValueError, match="blocks"):
            serve(load, policy, lambda step: 1e-3, memory)
        return
    for i in range(len(load)):
        prompt, answer = np.split(live.tokens[i], [load.prompt_tokens[i]])
        expected, close = tiny().greedy(prompt, load.output_tokens[i])
        assert close or answer.tolist() == expected
    again = serve(load, policy, replayed(live.seconds), memory)
    assert np.array_equal(run.e2e, again.e2e) and np.array_equal(run.response, again.response)


@given(st.sampled_from(FEW_AND_MANY), st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
@examples(100)
def test_every_size_can_be_prepared_and_is_known_before(sizes, tokens, chunks, decodes) -> None:
    chunks = min(chunks, tokens)
    size = sizes.of(tokens, chunks, decodes)
    assert size[0] >= max(tokens, size[1]) and size[1] >= chunks and size[2] >= decodes
    assert size in sizes.up_to(40, 40, 9) and sizes.of(*size) == size


def test_another_run_needs_a_start_over() -> None:
    """Else its requests would get the prompts of those before, under the same numbers."""
    live, policy, memory = LiveLlama(tiny().llama, longest=64, sizes=SIZES), policies.Continuous(4, 24), KVCache(20, 16)
    serve_live(LOAD, policy, live, memory)
    with pytest.raises(ValueError, match=r"requests of another run: call start_over\(\) first"):
        serve_live(Workload([0.0], [5], [5]), policy, live, memory)
    live.start_over()
    assert len(serve_live(Workload([0.0], [5], [5]), policy, live, memory).steps.start) == len(live.seconds) == 5


@pytest.mark.parametrize("token", [1.5, float("nan"), True, "a", None, 80, -1], ids=repr)
def test_a_prompt_that_is_none(token: object) -> None:
    odd = LiveLlama(tiny().llama, longest=64, sizes=SIZES, prompts=lambda request: [token] * request.prompt_tokens)
    with pytest.raises(ValueError, match=r"tokens, whole numbers: |outside the vocabulary"):
        serve_live(LOAD, policies.Continuous(2, 24), odd, KVCache(20, 16))
