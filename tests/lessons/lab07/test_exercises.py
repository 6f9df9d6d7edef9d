"""Lab 07: its exercises against the engine, other ways of solving them, and the policy made of an answer."""

import numpy as np
import pytest

from course import Workload, policies, serve
from course.exercises.cards import Card
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab07, load
from course.lessons.lab07 import decision, facts, lab, long_prompt, share
from course.lessons.lab07.long_prompt import PROMPT, STEP
from course.steptime import PowerLaw, Step

LAB = load("07")


def exercise(name):
    return next(item for item in LAB.exercises if item.id == name)


@pytest.mark.parametrize("one", [exercise("steps"), exercise("steps").twin], ids=["exercise", "twin"])
def test_the_steps_of_a_prompt_are_those_of_the_engine(one):
    prompt, budget, decodes = facts.STEPS if one is exercise("steps") else facts.STEPS_TWIN
    load_ = Workload(
        arrival=np.r_[np.zeros(decodes), 10.5],
        prompt_tokens=np.r_[np.ones(decodes, dtype=int), prompt],
        output_tokens=np.r_[np.full(decodes, 200), 1],
    )
    run = serve(load_, policies.Continuous(decodes + 1, budget), PowerLaw(t0=1, c=0, alpha=1))
    steps = run.steps.prefill_tokens[run.steps.start >= run.admitted[-1]]
    assert (steps > 0).sum() == one.solution


def test_the_largest_chunk_keeps_its_limit_and_the_next_breaks_it():
    def last(chunk):
        return STEP(Step(32, 32 * 700, ((chunk, PROMPT - chunk),)))

    for one, limit in ((exercise("chunk"), 0.025), (exercise("chunk").twin, 0.020)):
        assert last(one.solution) <= limit < last(one.solution + 64) and one.solution % 64 == 0
    # The promise holds in the simulator too, with 28 chats and 3 newcomers.
    chunk = exercise("chunk").solution
    before, after = long_prompt.moment(chunk + 32, chunk, streaming=28).longest_gap
    assert 0.7 * 0.025 < after - before <= 0.025


@pytest.mark.parametrize("chunk", [64, 384, 1_024])
def test_a_limit_that_a_last_step_just_keeps_has_its_chunk(chunk):
    limit = STEP(Step(32, 32 * 700, ((chunk, PROMPT - chunk),)))
    assert facts.largest_chunk(limit) == chunk
    assert facts.largest_chunk(STEP(Step(32, 32 * 700, ((chunk, 0),))), first=True) == chunk


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

    assert judge(exercise("share"), with_a_counter).status == RIGHT
    assert judge(exercise("share"), lambda *_: None).status == NOT_ATTEMPTED
    verdict = judge(exercise("share"), last_come_first_served)
    assert verdict.status == WRONG and verdict.mistake is None and verdict.hint


def test_a_share_that_empties_the_callers_dictionary_is_not_right():
    def empties(decoding, prompts, budget, cap):
        tokens = share.share(decoding, prompts, budget, cap)
        prompts.clear()
        return tokens

    verdict = judge(exercise("share"), empties)
    assert verdict.status == WRONG and "work on a copy" in verdict.hint


def test_the_example_of_the_text():
    assert share.share([1, 3], {5: 40, 6: 7, 7: 30}, 12, 5) == {1: 1, 3: 1, 5: 5, 6: 5}


@pytest.mark.parametrize(("budget", "cap"), [(2_048, 512), (512, 256)])
def test_without_preemption_vllms_order_is_decodes_first(budget, cap):
    """Whoever runs was admitted into what those in front left, and those take less from then on, not more."""
    for every in (20.0, 2.0):
        few = long_prompt.requests(every=every, num_chats=150)
        mine = serve(few, share.as_policy(share.share, 64, budget, cap), STEP)
        theirs = serve(few, long_prompt.engine(budget, cap), STEP)
        assert np.array_equal(mine.response, theirs.response) and np.array_equal(mine.ttft, theirs.ttft)
        assert np.nanmax(long_prompt.longest_gaps(theirs)) <= theirs.steps.seconds.max()


def test_an_answer_at_work():
    assert not isinstance(lab07.at_work(share.share), Card)
    assert lab07.at_work(lambda *_: None).heading == "Your share returns nothing yet."
    for wrong, said in (
        (lambda decoding, prompts, *_: dict.fromkeys(decoding, 1) | prompts, "max_num_batched_tokens"),
        (lambda *_: {}, "does not run yet"),
        (lambda *_: {99: 1}, "request 99 is neither"),
        (lambda *_: 3, "no dictionary"),
    ):
        card = lab.at_work(wrong)
        assert isinstance(card, Card) and said.lower() in card.text().lower(), card.text()


def test_the_page_of_the_decision_is_that_of_its_run():
    page = decision.metrics_page()
    run, at = decision.now().run, decision.moment()
    assert at == run.arrival[run.workload.class_ == "long"].max() + 1 < run.makespan
    here = [request for request in range(len(run)) if run.arrival[request] <= at]
    gaps = np.concatenate([np.diff(times[times <= at]) for times in map(run.token_times, here)])
    assert f'vllm:inter_token_latency_seconds_bucket{{le="0.1"}} {(gaps <= 0.1).sum()}\n' in page
    assert f'vllm:inter_token_latency_seconds_bucket{{le="+Inf"}} {len(gaps)}\n' in page
    began = sum(run.token_times(request)[0] <= at for request in here)
    assert page.endswith(f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {began}')
    running, waiting = (int(line.split()[1]) for line in page.splitlines()[:2])
    assert waiting > 0 and running < long_prompt.SLOTS / 2  # some wait though slots are free
    ended = sum(run.token_times(request)[-1] <= at for request in here)
    assert running + waiting == len(here) - ended


BUDGET, CAP = decision.BUDGET, decision.CAP
KEPT = [{CAP: 512}, {CAP: 256}, {BUDGET: 2_048, CAP: 512}, {BUDGET: 1_024, CAP: 256}]
BROKEN = [{BUDGET: 1_024}, {BUDGET: 2_048}, {CAP: 1_024}, {BUDGET: 8_192, CAP: 512}, {BUDGET: 1_024, CAP: 512}]


@pytest.mark.parametrize("answer", KEPT, ids=str)
def test_every_choice_that_keeps_both_promises_is_right(answer):
    assert judge(exercise("decision"), answer).status == RIGHT


@pytest.mark.parametrize("answer", [*BROKEN, {"--max-num-seqs": 128}], ids=str)
def test_one_that_breaks_a_promise_is_wrong_and_has_a_hint_of_its_own(answer):
    verdict = judge(exercise("decision"), answer)
    assert verdict.status == WRONG and verdict.mistake is not None


@pytest.mark.parametrize(("seed", "faster"), [(0, 0.9), (0, 1.1), (1, 1.0)])
def test_the_decision_holds_at_other_rates_and_in_another_draw(seed, faster):
    load_ = long_prompt.requests(seed=seed, faster=faster)
    for answer in (*KEPT, *BROKEN):
        policy = long_prompt.engine(answer.get(BUDGET, decision.START), answer.get(CAP, 0))
        found = long_prompt.outcome(load_, policy)
        kept = found.itl["max"] <= decision.GAP and found.chat_ttft["p99"] <= decision.FIRST
        assert kept == (answer in KEPT), (answer, found.itl["max"], found.chat_ttft["p99"])


def test_the_twin_promises_shorter_gaps():
    twin = exercise("decision").twin
    assert judge(twin, {BUDGET: 1_024, CAP: 256}).status == RIGHT
    assert judge(twin, {BUDGET: 2_048, CAP: 512}).status == WRONG


def test_a_decision_is_read_as_it_is_typed():
    one = exercise("decision")
    assert judge(one, {"max_num_batched_tokens": "2,048", "long-prefill-token-threshold": 512}).status == RIGHT
    assert judge(one, {CAP: "512", "--max-num-seqs": None}).status == RIGHT
    assert judge(one, {}).status == judge(one, {"--flag": None}).status == NOT_ATTEMPTED
    assert judge(one, {BUDGET: None, CAP: 0}).status == WRONG
    for wrong, said in (
        ({CAP: 1}, "16 or more"),
        ({BUDGET: "many"}, "whole number"),
        ({"--port": 1}, "none of the two"),
    ):
        verdict = judge(one, wrong)
        assert verdict.status == WRONG and said in verdict.hint, verdict.hint


def test_the_wrong_turns_of_the_share_on_the_example_of_the_text():
    probe = share.PROBES[0]
    made = {
        share.without_cap: {1: 1, 3: 1, 5: 10},
        share.prompts_first: {5: 5, 6: 5, 7: 2},
        share.forgets_the_budget: {1: 1, 3: 1, 5: 5, 6: 5, 7: 5},
        share.forgets_the_decodes: {1: 1, 3: 1, 5: 5, 6: 5, 7: 2},
        share.leaves_out_the_decodes: {5: 5, 6: 5},
        share.cap_for_all: {1: 1, 3: 1, 5: 5},
        share.zero_chunks: {1: 1, 3: 1, 5: 5, 6: 5, 7: 0},
        share.never_cuts: {1: 1, 3: 1, 5: 5, 6: 5},
        share.one_prompt: {1: 1, 3: 1, 5: 5},
    }
    assert {turn.__name__: turn(*probe) for turn in made} == {turn.__name__: tokens for turn, tokens in made.items()}
