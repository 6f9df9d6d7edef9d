"""Prefill first: steps by hand, and what is refused. tests/engine/test_oracle.py compares it with an obvious loop."""

import math

import numpy as np
import pytest

from course import KVCache, policies, serve, steptime
from course.workload import Workload

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


def test_who_waits_for_blocks_is_looked_at_again_where_others_compute_them():
    """Eight blocks of two. Request 2 goes on over the answer of 1 and needs six blocks at the start, when five are
    free. Request 1 leaves at 7 s, but by 5 s it has filled so much of what both share that 2 fits beside it.
    """
    ids = ("a", "b", "c", "d", "e", "f"), ("a", "b", "x", "y")
    load = Workload([0, 0, 1], [7, 4, 15], [6, 4, 1], prefix=[ids[0], ids[1], (*ids[0], "g")], prefix_block_size=2,
                    prefix_answers=True)  # fmt: skip
    found = run(load, policies.PrefillFirst(8, 64), KVCache(8, 2, prefix_caching=True))
    assert found.token_times(0).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]  # the step at 5 s is a prompt alone
    assert found.log.lookups[-1].tolist() == [2, 15, 10]


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
