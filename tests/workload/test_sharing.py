"""Documents in front of questions, and agents that fork: what requests have in common, and what a cache finds of it."""

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def found(load, block_size=16):
    """Tokens that each request found, in a cache that is never short, by row."""
    run = serve(load, policies.Continuous(64, 10_000), SECOND, KVCache(10_000, block_size, prefix_caching=True))
    rows = np.asarray(run.log.lookups)
    return dict(zip(rows[:, 0].tolist(), rows[:, 2].tolist(), strict=True))


def test_questions_about_one_document_find_all_its_full_blocks():
    load = Workload.fixed(num_requests=6, prompt_tokens=20, output_tokens=2, interval=10).with_documents(3, 100)
    assert (load.prompt_tokens == 120).all()
    seen, finds = set(), found(load)
    for row, ids in enumerate(load.prefix):
        assert len(ids) == 6 and finds[row] == (96 if ids in seen else 0)
        seen.add(ids)
    assert len(seen) > 1


def test_documents_are_as_popular_as_the_skew_says():
    """Shares 1, 1/2, 1/3 and 1/4 of 20,000 draws: within 5 standard errors of at most 0.0035."""
    questions = Workload.fixed(num_requests=20_000, prompt_tokens=1, output_tokens=1, interval=1)
    load = questions.with_documents(4, 32, skew=1, seed=3)
    shares = np.bincount([ids[0] // 2 for ids in load.prefix]) / 20_000
    assert np.allclose(shares, np.array([12, 6, 4, 3]) / 25, atol=0.0175)
    assert questions.with_documents(4, 32, skew=1, seed=4).prefix != load.prefix


def test_branches_find_the_trunk_with_its_answer_and_nothing_of_each_other():
    """A trunk of 32 + 50 + 9 tokens: 5 full blocks of 16, and its last token is in the sixth."""
    load = Workload.agents(0.01, 3, 4, 50, 9, tool_time=2, system_tokens=32, seed=1)
    assert load.prompt_tokens.reshape(3, 5).tolist() == [[82, 141, 141, 141, 141]] * 3
    assert load.after.reshape(3, 5).tolist() == [[-1] + [row] * 4 for row in (0, 5, 10)]
    finds = found(load)
    assert [finds[row] for row in (0, 5, 10)] == [0, 32, 32]
    assert all(finds[row] == 80 for row in range(15) if row % 5)
    run = serve(load, policies.Continuous(64, 10_000), SECOND)
    assert np.allclose(run.arrival.reshape(3, 5)[:, 1:], run.response.reshape(3, 5)[:, :1] + 2)


def test_a_trunk_of_whole_blocks_is_shared_whole():
    load = Workload.agents(0.01, 1, 2, 40, 8, seed=1)
    assert load.prefix[0] == (0, 1, 2) and [ids[:3] for ids in load.prefix[1:]] == [(0, 1, 2)] * 2
    assert len({one for ids in load.prefix for one in ids}) == 3 + 3 + 3  # 96 tokens of each branch
    # The answer's last token was not computed, so the block that it fills is not there before the first branch.
    assert found(load) == {0: 0, 1: 32, 2: 48}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda load: load.with_documents(0, 10), "documents must be a whole number"),
        (lambda load: load.with_documents(4, 10, skew=-1), "skew must be"),
        (lambda load: load.with_documents(4, 32).with_documents(4, 32), "share prefixes already"),
        (lambda load: Workload.agents(1, 2, 0, 10, 10), "branches must be a whole number"),
        (lambda load: Workload.agents(1, 2, 2, 10, 10, tool_time=-1), "tool_time must be"),
        (lambda load: Workload.agents(1, 10**6, 10**6, 10, 10), "agents that fork into"),
    ],
)
def test_what_cannot_be(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(Workload.fixed(num_requests=2, prompt_tokens=8, output_tokens=2, interval=1))
