"""The draft model drafts, the model verifies: the same words, whatever is drafted, sampled or preempted."""

import numpy as np
import pytest

from course import KVCache, lm, policies
from course.lm.live import Drafter
from course.lm.prompts import held_out_prompts
from tests.helpers.sizes import size

PROMPTS = [prompt.turns for prompt in held_out_prompts()][:: size(6, 1)]
AT_ONCE = lm.Questions.at_once(PROMPTS)


@pytest.fixture(scope="module")
def models():
    return lm.load(), lm.load("draft")


@pytest.fixture(scope="module")
def plain(models):
    return lm.serve_live(AT_ONCE, policies.Continuous(8, 512), models[0], waits=False)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_the_words_stay_the_same_in_fewer_steps(models, plain, k):
    policy = policies.Drafting(policies.Continuous(8, 512), k)
    run = lm.serve_live(AT_ONCE, policy, models[0], draft=models[1], waits=False)
    assert run.words == plain.words and run.ended == plain.ended
    assert len(run.steps) < len(plain.steps)
    found = run.summary()
    assert 0 < found["accepted_tokens"] < found["drafted_tokens"]
    assert found["computed_tokens"] - (found["drafted_tokens"] - found["accepted_tokens"]) == sum(
        len(models[0].prompt(prompt)) for prompt in PROMPTS
    ) + int(run.workload.output_tokens.sum()) - len(run)


@pytest.mark.parametrize(
    "how", [{"sampling": lm.Sampling(0.8, seed=3)}, {"cache": KVCache(24)}], ids=["sampled", "few"]
)
def test_sampled_and_preempted(models, how):
    """A token that is drawn depends on seed, request and position; a draft is right if it is that one."""
    policy = policies.Continuous(8, 512)
    plain = lm.serve_live(AT_ONCE, policy, models[0], waits=False, **how)
    run = lm.serve_live(AT_ONCE, policies.Drafting(policy, 3), models[0], draft=models[1], waits=False, **how)
    assert run.words == plain.words and run.steps.accepted.any()
    assert ("cache" in how) == bool(run.preempted.any())


def test_what_was_drafted_is_kept(models):
    policy = policies.Drafting(policies.Continuous(8, 512), 4)
    run = lm.serve_live(AT_ONCE, policy, models[0], draft=models[1], waits=False)
    answers = run.step_time.answers
    for answer in answers.values():
        for at, tokens, right in answer.drafted:
            assert list(tokens[:right]) == answer.tokens[at : at + right]
    drafted = sum(len(tokens) for answer in answers.values() for _, tokens, _ in answer.drafted)
    assert drafted <= run.steps.drafted.sum()  # drafts beyond the limit of an answer are counted, and not computed
    assert sum(right for answer in answers.values() for *_, right in answer.drafted) == run.steps.accepted.sum()


def test_at_the_limit_of_an_answer(models):
    asked = lm.Questions.at_once(PROMPTS, max_tokens=5)
    plain = lm.serve_live(asked, policies.Continuous(8, 512), models[0], waits=False)
    policy = policies.Drafting(policies.Continuous(8, 512), 4)
    run = lm.serve_live(asked, policy, models[0], draft=models[1], waits=False)
    assert run.words == plain.words and (run.workload.output_tokens <= 5).all()


def test_a_draft_with_another_vocabulary(models):
    class Other:
        class config:
            vocab_size = 7

    with pytest.raises(lm.LMError, match=r"The draft has 7 tokens and the model .*: a draft needs the model's own"):
        Drafter(Other, models[0], 4, 16)


def test_without_a_draft_the_model_verifies_none(models):
    with pytest.raises(ValueError, match="it drafts tokens, which Speaking cannot verify"):
        lm.serve_live(AT_ONCE, policies.Drafting(policies.Continuous(8, 512), 2), models[0], waits=False)
    assert np.isfinite(lm.serve_live(AT_ONCE, policies.Continuous(8, 512), models[0], waits=False).e2e).all()
