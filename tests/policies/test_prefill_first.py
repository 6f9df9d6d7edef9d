"""Prefill first: steps by hand, the same run with `until` honoured or ignored, and an obvious loop to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, policies, serve, steptime
from course.engine.loop import Engine
from course.workload import Workload
from tests.helpers.asking import serve_asking
from tests.helpers.strategies import examples

STEP = steptime.PowerLaw(t0=1.0, c=0.0, alpha=1.0)  # every step takes a second, whatever is in it


def run(load, policy, cache=None, step=STEP):
    return serve(load, policy, step, cache)


def test_decodes_wait_while_a_prompt_runs():
    """Two slots; the second request comes at 1.5 s with a prompt of three chunks. The first has its token at 1 s."""
    load = Workload(np.array([0.0, 1.5]), np.array([10, 30]), np.array([4, 2]))
    found = run(load, policies.PrefillFirst(2, 10))
    # Steps: prompt 0; decode 0 (from 1 s); chunks of prompt 1 at 2, 3, 4 s; then both decode.
    assert found.token_times(0).tolist() == [1.0, 2.0, 6.0, 7.0]
    assert found.token_times(1).tolist() == [5.0, 6.0]
    mixed = run(load, policies.Continuous(2, 11))
    assert mixed.token_times(0).tolist() == [1.0, 2.0, 3.0, 4.0]  # vLLM's order: decodes beside the chunks


def test_prompts_share_a_step_and_the_last_one_is_cut():
    load = Workload(np.zeros(3), np.array([6, 6, 6]), np.array([1, 1, 1]))
    found = run(load, policies.PrefillFirst(8, 10))
    assert [found.token_times(i)[0] for i in range(3)] == [1.0, 2.0, 2.0]  # 6 + 4, then 2 + 6
    whole = run(load, policies.PrefillFirst(8, 10, enable_chunked_prefill=False))
    assert [whole.token_times(i)[0] for i in range(3)] == [1.0, 2.0, 3.0]


def test_the_one_with_the_fewest_answer_tokens_is_preempted():
    """Six blocks of one token. When they run out request 0 has more answer tokens than 1, which gives way."""
    load = Workload(np.array([0.0, 1.5]), np.array([2, 2]), np.array([5, 3]))
    found = run(load, policies.PrefillFirst(4, 8), KVCache(num_blocks=6, block_size=1))
    assert found.preempted.tolist() == [0, 1]
    assert found.token_times(0).tolist() == [1.0, 2.0, 4.0, 5.0, 6.0]


def by_hand(arrival, prompt, output, slots, budget, chunked):
    """Unlimited memory: times of all tokens, one step after the other, each of one second and a bit a token."""
    n = len(prompt)
    done, times = [0] * n, [[] for _ in range(n)]
    queue, running = [], []
    to_come, now = sorted(range(n), key=lambda i: (arrival[i], i)), 0.0
    while to_come or queue or running:
        while to_come and arrival[to_come[0]] <= now:
            queue.append(to_come.pop(0))
        if not queue and not running:
            now = arrival[to_come[0]]
            continue
        left, step = budget, {}
        for who in [i for i in running if done[i] < prompt[i]]:
            step[who] = min(prompt[who] - done[who], left)
            left -= step[who]
        while queue and len(running) < slots and left:
            who = queue[0]
            if prompt[who] > left and not chunked:
                break
            running.append(queue.pop(0))
            step[who] = min(prompt[who], left)
            left -= step[who]
        step = {who: tokens for who, tokens in step.items() if tokens}
        decoding = not step
        if decoding:
            step = dict.fromkeys(running, 1)
        now += 1.0 + 0.25 * sum(step.values())
        for who, tokens in step.items():
            done[who] += tokens
            if decoding or done[who] == prompt[who]:
                times[who].append(now)
        running = [who for who in running if len(times[who]) < output[who]]
    return times


@st.composite
def loads(draw):
    n = draw(st.integers(1, 8))
    arrival = np.cumsum([draw(st.sampled_from([0.0, 0.25, 1.0, 3.0, 9.0])) for _ in range(n)])
    return arrival, [draw(st.integers(1, 20)) for _ in range(n)], [draw(st.integers(1, 6)) for _ in range(n)]


@given(
    load=loads(), slots=st.integers(1, 5), budget=st.integers(20, 30), small=st.integers(5, 9), chunked=st.booleans()
)
@examples(150)
def test_an_obvious_loop_says_the_same(load, slots, budget, small, chunked):
    arrival, prompt, output = load
    budget = small if chunked else budget
    expected = by_hand(arrival, prompt, output, slots, budget, chunked)
    step = steptime.PowerLaw(t0=1.0, c=0.25, alpha=1.0, prefill=0.25)
    found = run(Workload(arrival, prompt, output), policies.PrefillFirst(slots, budget, chunked), step=step)
    assert [found.token_times(i).tolist() for i in range(len(prompt))] == expected


@given(
    load=loads(),
    slots=st.integers(1, 5),
    budget=st.integers(5, 30),
    blocks=st.integers(26, 60),
    size=st.sampled_from([1, 3]),
)
@examples(150)
def test_until_changes_nothing_and_all_blocks_come_home(load, slots, budget, blocks, size):
    arrival, prompt, output = load
    work = Workload(arrival, prompt, output)
    found, asked = (
        serving(work, policies.PrefillFirst(slots, budget), STEP, KVCache(blocks, size))
        for serving in (serve, serve_asking)
    )
    for row in range(len(work)):
        assert found.token_times(row).tolist() == asked.token_times(row).tolist()
    assert found.preempted.tolist() == asked.preempted.tolist()
    assert [len(found.token_times(row)) for row in range(len(work))] == output
    assert found.steps.blocks.max() <= blocks
    engine = Engine(policies.PrefillFirst(slots, budget), STEP, KVCache(blocks, size))
    for row in range(len(work)):
        request = policies.Request(float(work.arrival[row]), int(work.prompt_tokens[row]))
        engine.submit(request, output_tokens=int(work.output_tokens[row]))
    engine.run()
    assert engine.pool.free == blocks


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ((0, 10), "max_num_seqs must be a whole number"),
        ((4, 3), "smaller than one decode for each of max_num_seqs=4"),
        ((4, 8, "yes"), "enable_chunked_prefill must be True or False"),
    ],
)
def test_settings_that_cannot_be(settings, why):
    with pytest.raises(ValueError, match=why):
        policies.PrefillFirst(*settings)


def test_a_prompt_that_no_step_can_take():
    load = Workload(np.zeros(1), np.array([11]), np.array([2]))
    with pytest.raises(
        ValueError, match="request 0 has 11 tokens to compute at once, and max_num_batched_tokens is 10"
    ):
        run(load, policies.PrefillFirst(4, 10, enable_chunked_prefill=False))
    assert math.isfinite(run(load, policies.PrefillFirst(4, 10)).e2e[0])
