"""Lab 07: its exercises against the engine, other ways of solving them, and the policy made of an answer."""

import numpy as np
import pytest

from course import Workload, policies, serve
from course.exercises.cards import Card
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab07, load
from course.lessons.lab07 import decision, facts, long_prompt, rush, share
from course.lessons.lab07.long_prompt import PROMPT, STEP
from course.steptime import PowerLaw, Step

EXERCISES = {exercise.id: exercise for exercise in load("07").exercises}


@pytest.mark.parametrize("twin", [False, True])
def test_the_steps_of_a_prompt_are_those_of_the_engine(twin):
    prompt, budget, decodes = facts.STEPS_TWIN if twin else facts.STEPS
    load_ = Workload(
        arrival=np.r_[np.zeros(decodes), 10.5],
        prompt_tokens=np.r_[np.ones(decodes, dtype=int), prompt],
        output_tokens=np.r_[np.full(decodes, 200), 1],
    )
    run = serve(load_, policies.Continuous(decodes + 1, budget), PowerLaw(t0=1, c=0, alpha=1))
    steps = run.steps.prefill_tokens[run.steps.start >= run.admitted[-1]]
    one = EXERCISES["steps"].twin if twin else EXERCISES["steps"]
    assert (steps > 0).sum() == one.solution


def test_the_largest_chunk_keeps_its_limit_and_the_next_breaks_it():
    def last(chunk, behind=None):
        return STEP(Step(32, 32 * 700, ((chunk, PROMPT - chunk if behind is None else behind),)))

    for one, limit in ((EXERCISES["chunk"], 0.025), (EXERCISES["chunk"].twin, 0.020)):
        assert last(one.solution) <= limit < last(one.solution + 64) and one.solution % 64 == 0
    for chunk in (64, 384, 1_024):  # a limit that its step just keeps
        assert facts.largest_chunk(last(chunk)) == chunk == facts.largest_chunk(last(chunk, 0), first=True)
    # The promise holds in the simulator too, with 28 chats and 3 newcomers.
    chunk = EXERCISES["chunk"].solution
    assert 0.7 * 0.025 < long_prompt.moment(chunk + 32, chunk, streaming=28).gap <= 0.025


def test_the_share_takes_other_ways_of_writing_it_and_describes_what_it_does_not_know():
    def with_a_counter(decoding, prompts, budget, cap):
        tokens, left = {}, budget
        for request in decoding:
            tokens[request] = 1
            left -= 1
        for request in prompts:
            if left <= 0:
                break
            tokens[request] = min(prompts[request], cap, left)
            left -= tokens[request]
        return tokens

    def last_come_first_served(decoding, prompts, budget, cap):
        return share.share(decoding, dict(reversed(prompts.items())), budget, cap)

    def empties(decoding, prompts, budget, cap):
        tokens = share.share(decoding, prompts, budget, cap)
        prompts.clear()
        return tokens

    one = EXERCISES["share"]
    assert judge(one, with_a_counter).status == RIGHT
    verdict = judge(one, last_come_first_served)
    assert verdict.status == WRONG and verdict.mistake is None and verdict.hint
    assert judge(one, empties).status == WRONG and "work on a copy" in judge(one, empties).hint
    assert share.share([1, 3], {5: 40, 6: 7, 7: 30}, 12, 5) == {1: 1, 3: 1, 5: 5, 6: 5}  # the example of the text


@pytest.mark.parametrize(("budget", "cap"), [(2_048, 512), (512, 256)])
def test_without_preemption_vllms_order_is_decodes_first(budget, cap):
    """Whoever runs was admitted into what those in front left, and those take less from then on, not more."""
    few = long_prompt.requests(every=2.0, num_chats=150)
    mine = serve(few, share.as_policy(share.share, 64, budget, cap), STEP)
    theirs = serve(few, long_prompt.engine(budget, cap), STEP)
    assert np.array_equal(mine.response, theirs.response) and np.array_equal(mine.ttft, theirs.ttft)


def test_an_answer_at_work():
    assert not isinstance(lab07.at_work(share.share), Card)
    for wrong, said in (
        (lambda *_: None, "returns nothing yet"),
        (lambda decoding, prompts, *_: dict.fromkeys(decoding, 1) | prompts, "max_num_batched_tokens"),
        (lambda *_: {}, "does not run yet"),
        (lambda *_: {99: 1}, "request 99 is neither"),
        (lambda *_: 3, "no dictionary"),
    ):
        card = lab07.at_work(wrong)
        assert isinstance(card, Card) and said.lower() in card.text().lower(), card.text()


def test_the_page_of_the_decision_is_that_of_its_run():
    page = decision.metrics_page()
    run, at = decision.now().run, decision.moment()
    here = [request for request in range(len(run)) if run.arrival[request] <= at]
    gaps = np.concatenate([np.diff(times[times <= at]) for times in map(run.token_times, here)])
    assert f'vllm:inter_token_latency_seconds_bucket{{le="0.1"}} {(gaps <= 0.1).sum()}\n' in page
    assert f'vllm:inter_token_latency_seconds_bucket{{le="+Inf"}} {len(gaps)}\n' in page
    began = sum(run.token_times(request)[0] <= at for request in here)
    assert page.endswith(f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {began}')
    running, waiting = (int(line.split()[1]) for line in page.splitlines()[:2])
    assert waiting > 0 and running < long_prompt.SLOTS / 2  # some wait though slots are free
    assert running + waiting == len(here) - sum(run.token_times(request)[-1] <= at for request in here)


BUDGET, CAP = decision.BUDGET, decision.CAP
KEPT = [{CAP: 512}, {CAP: 256}, {BUDGET: 2_048, CAP: 512}, {BUDGET: 1_024, CAP: 256}]
BROKEN = [{BUDGET: 1_024}, {BUDGET: 2_048}, {CAP: 1_024}, {BUDGET: 8_192, CAP: 512}, {BUDGET: 1_024, CAP: 512}]


@pytest.mark.parametrize(("seed", "faster"), [(0, 1.0), (0, 0.9), (0, 1.1), (1, 1.0)])
def test_the_decision_is_what_the_service_keeps_at_other_rates_and_in_another_draw_too(seed, faster):
    load_ = long_prompt.requests(seed=seed, faster=faster)
    for answer in (*KEPT, *BROKEN):
        policy = long_prompt.engine(answer.get(BUDGET, decision.START), answer.get(CAP, 0))
        found = long_prompt.outcome(load_, policy)
        kept = found.itl["max"] <= decision.GAP and found.chat_ttft["p99"] <= decision.FIRST
        verdict = judge(EXERCISES["decision"], answer)
        assert kept == (answer in KEPT) == (verdict.status == RIGHT), answer
        assert kept or verdict.mistake is not None  # a hint of its own


@pytest.mark.parametrize(("seed", "faster"), [(0, 0.9), (0, 1.1), (1, 1.0)])
def test_the_tickets_repair_works_at_other_rates_and_in_another_draw_and_the_others_do_not(seed, faster):
    rate = rush.RATE * faster
    load_ = Workload.poisson(rate, int(rate * rush.SECONDS), rush.PROMPT, rush.ANSWER, seed)
    answers = (long_prompt.engine(rush.REPAIR), policies.Continuous(128, rush.NOW), long_prompt.engine(rush.NOW, 64))
    repaired, slots, cap = (np.percentile(serve(load_, policy, STEP).ttft, 95) for policy in answers)
    assert repaired < 1 and slots > 5 and cap > 5


def test_a_decision_is_read_as_it_is_typed():
    one = EXERCISES["decision"]
    assert judge(one, {"max_num_batched_tokens": "2,048", "long-prefill-token-threshold": 512}).status == RIGHT
    assert judge(one, {CAP: "512", "--max-num-seqs": None}).status == RIGHT
    assert judge(one, {}).status == judge(one, {"--flag": None}).status == NOT_ATTEMPTED
    assert judge(one, {BUDGET: None, CAP: 0}).status == WRONG
    assert judge(one.twin, {BUDGET: 1_024, CAP: 256}).status == RIGHT
    assert judge(one.twin, {BUDGET: 2_048, CAP: 512}).status == WRONG
    for wrong, said in (
        ({CAP: 1}, "16 or more"),
        ({BUDGET: "many"}, "whole number"),
        ({"--port": 1}, "none of the two"),
    ):
        verdict = judge(one, wrong)
        assert verdict.status == WRONG and said in verdict.hint, verdict.hint
