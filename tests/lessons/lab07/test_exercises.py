"""Lab 07: its exercises in three parts, other ways of solving them, and what the answers are held against."""

import re

import numpy as np
import pytest

from course import Workload, policies, serve
from course.exercises import load
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons.lab07 import long_prompt, share
from course.lessons.lab07.long_prompt import PROMPT, STEP
from course.steptime import Step
from tests.helpers.places import SOLUTIONS

LAB = load("07")
SOURCE = SOLUTIONS / "07_chunked_prefill.py"


def exercise(name):
    return next(item for item in LAB.exercises if item.id == name)


def test_hints_do_not_contain_the_answer():
    answers = {"pairs": "655", "ttft": "min(", "chunk": "decodes *", "share": "== 1"}
    for item in LAB.exercises:
        for hint in (item.hint, *(mistake.hint for mistake in item.mistakes)):
            assert answers[item.id] not in hint, hint


def test_the_pairs_are_those_that_a_mask_shows():
    mask = np.tri(2_000, dtype=bool)  # row: query, column: key
    assert exercise("pairs").solution == mask[1_024:1_536].sum() == 655_616
    assert Step(0, 0, ((512, 1_024),)).prefill_pairs == exercise("pairs").solution
    assert judge(exercise("pairs"), 655_617).status == WRONG


def test_a_prompt_in_chunks_is_what_the_engine_does():
    for prompt, chunk in ((2_000, 512), (5_000, 5_000), (700, 64)):
        alone = Workload(arrival=[0], prompt_tokens=[prompt], output_tokens=[1])
        run = serve(alone, policies.Continuous(1, chunk), STEP)
        assert exercise("ttft").solution(STEP, prompt, chunk) == pytest.approx(run.ttft[0], rel=1e-12)


def test_the_largest_chunk_keeps_its_limit_and_the_next_breaks_it():
    for step_time, prompt, decodes, context, limit in exercise("chunk").probes:
        chunk = exercise("chunk").solution(step_time, prompt, decodes, context, limit)
        last, more = (
            step_time(Step(decodes, decodes * context, ((size, prompt - size),))) for size in (chunk, chunk + 64)
        )
        assert last <= limit < more
    # What the lab prints below the exercise: the promise holds in the simulator too.
    chunk = exercise("chunk").solution(STEP, PROMPT, 32, 700, 0.050)
    before, after = long_prompt.moment(chunk + 32, chunk, PROMPT, 28).longest_gap
    assert 0.8 * 0.050 < after - before <= 0.050


def test_the_shared_step_takes_other_ways_of_writing_it_and_describes_what_it_does_not_know():
    def by_what_was_emitted(state, cap):
        tokens, left = {}, state.max_num_batched_tokens
        for request in state.running:
            if request.emitted:
                tokens[request] = 1
                left -= 1
        prompts = [request for request in state.running if not request.emitted]
        for request in prompts + list(state.waiting)[: state.max_num_seqs - len(state.running)]:
            if left <= 0:
                break
            tokens[request] = min(request.remaining, cap, left)
            left -= tokens[request]
        return tokens

    def last_come_first_served(state, cap):
        tokens = {request: 1 for request in state.running if request.remaining == 1}
        left = state.max_num_batched_tokens - len(tokens)
        free = state.max_num_seqs - len(state.running)
        for request in (*state.running[::-1], *state.waiting[:free]):
            if request not in tokens and min(cap, left) > 0:
                tokens[request] = min(request.remaining, cap, left)
                left -= tokens[request]
        return tokens

    def stub(state, cap):
        tokens = None
        return tokens

    assert judge(exercise("share"), by_what_was_emitted).status == RIGHT
    assert judge(exercise("share"), stub).status == NOT_ATTEMPTED
    verdict = judge(exercise("share"), last_come_first_served)
    assert verdict.status == WRONG and verdict.mistake is None and "at [s]" in verdict.hint


@pytest.mark.parametrize(("budget", "cap"), [(2_048, 512), (512, 256)])
def test_without_preemption_vllms_order_is_decodes_first(budget, cap):
    """Whoever runs was admitted into what those in front left, and those take less from then on, not more."""
    for every in (20.0, 2.0):
        few = long_prompt.requests(every=every, num_chats=150)
        mine = serve(few, policies.FromFunction(lambda state, cap=cap: share.share(state, cap), 64, budget), STEP)
        theirs = serve(few, long_prompt.engine(budget, cap), STEP)
        assert np.array_equal(mine.response, theirs.response) and np.array_equal(mine.ttft, theirs.ttft)
        assert np.nanmax(long_prompt.longest_gaps(theirs)) <= theirs.steps.seconds.max()


def test_the_words_that_the_source_must_have():
    text = SOURCE.read_text(encoding="utf-8")
    assert re.findall(r'lab\.check\("(\w+)"', text) == [item.id for item in LAB.exercises]
    for call in ("predict", "recap"):
        assert re.findall(rf'lab\.{call}\("(\w+)"', text) == [item.id for item in LAB.predictions]
    for flag in ("--max-num-batched-tokens", "--long-prefill-token-threshold", "--chunked-prefill-size",
                 "enable_chunked_context"):  # fmt: skip
        assert flag in text
