"""Lab 04: what the text says in numbers, and the exercises with their mistakes."""

import numpy as np
import pytest

from course import Workload, policies, queueing, serve, steptime
from course.exercises import load
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons.lab04 import refill, side_by_side, three_batchers
from course.lessons.lab04.three_batchers import CHAT, H100, TRACE
from course.workload import lengths
from tests.helpers.places import SOLUTIONS

LAB = load("04")
SOURCE = SOLUTIONS / "04_static_dynamic_continuous.py"


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def small():
    return Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, 1.0), seed=0
    )


# Exercises


def test_hints_do_not_contain_the_answer():
    answers = {"waste": "100", "bound": "1/i", "refill": "state.waiting[:", "trace": "2.4"}
    for item in LAB.exercises:
        for hint in (item.hint, *(mistake.hint for mistake in item.mistakes)):
            assert answers[item.id] not in hint, hint


def test_the_refill_takes_other_ways_of_writing_it_and_describes_what_it_does_not_know():
    def with_a_loop(state):
        tokens, queue = {}, list(state.waiting)
        for request in state.running:
            tokens[request] = 1
        while queue and len(tokens) < state.max_num_seqs:
            request = queue.pop(0)
            tokens[request] = request.prompt_tokens
        return tokens

    def last_come_first_served(state):
        tokens = {request: request.remaining for request in state.running}
        for request in state.waiting[::-1][: state.max_num_seqs - len(tokens)]:
            tokens[request] = request.remaining
        return tokens

    def stub(state):
        tokens = None
        return tokens

    assert judge(exercise("refill"), with_a_loop).status == RIGHT
    assert judge(exercise("refill"), stub).status == NOT_ATTEMPTED
    verdict = judge(exercise("refill"), last_come_first_served)
    assert verdict.status == WRONG and "answered at" in verdict.hint
    assert "dict of requests" in judge(exercise("refill"), lambda state: [1]).hint


def test_the_refill_is_the_packages_own_policy():
    yours = serve(small(), policies.FromFunction(refill.refill, max_num_seqs=4), H100)
    theirs = serve(small(), policies.Continuous(4, max_num_batched_tokens=8192), H100)
    assert np.array_equal(yours.response, theirs.response)


def test_the_exercises_numbers_come_from_runs():
    batch = Workload(arrival=[0, 0, 0], prompt_tokens=[5, 5, 5], output_tokens=[100, 20, 80])
    assert serve(batch, policies.Static(3), H100).steps.wasted.sum() == exercise("waste").solution == 100
    assert exercise("bound").solution == pytest.approx(queueing.exponential_gain(batch=32).gain)
    full = side_by_side.at_once(TRACE.head(len(TRACE) // 32 * 32))
    steps = serve(full, policies.Static(32), H100).steps
    paid = steps.wasted.sum() + steps.useful.sum()
    assert exercise("trace").solution == pytest.approx(paid / full.output_tokens.sum())


# What the text says in numbers. The tolerance of each is the last digit that the text shows.


def test_the_recorded_steps_do_not_reach_a_padded_batch_of_the_trace():
    recorded = steptime.recorded("h100-llama3-8b")
    most = 65_536
    assert recorded(steptime.Step(0, 0, ((most, 0),))) > 0
    with pytest.raises(ValueError, match=f"up to {most:,} prompt tokens a step, and a step asks for 131,296"):
        serve(side_by_side.at_once(TRACE), policies.Static(32), recorded)
    assert "computes 131,296 prompt tokens in one step, and 65,536 are the most" in " ".join(
        SOURCE.read_text(encoding="utf-8").replace("\n# ", " ").split()
    )


def test_the_question():
    four, six = (serve(CHAT.scaled(rate), policies.Static(32), H100) for rate in (4, 6))
    assert np.percentile(four.e2e, 95) == pytest.approx(33.4, abs=0.05)
    assert np.percentile(six.e2e, 95) == pytest.approx(118.4, abs=0.05)
    assert six.steps.seconds.sum() / six.makespan > 0.98  # the GPU is busy
    assert side_by_side.slot_utilisation(six) == pytest.approx(0.26, abs=5e-3)  # three of four slot-steps are padding


@pytest.mark.parametrize(
    ("slots", "output_cv", "gain", "drawn", "bound"),
    [(32, 0.0, 1.0, 1.0, 1.0), (32, 0.1, 1.27, 1.21, 1.22), (8, 1.0, 2.56, 2.55, 2.66), (32, 1.0, 4.01, 3.94, 4.34),
     (32, 2.0, 7.43, 6.78, 7.70), (128, 1.0, 6.40, 6.16, 6.55), (128, 2.0, 18.71, 13.03, 14.12)],
)  # fmt: skip
def test_the_gain_and_its_bound(slots, output_cv, gain, drawn, bound):
    found = three_batchers.gain(slots, output_cv)
    assert found.gain == pytest.approx(gain, abs=0.006)
    assert found.drawn_bound == pytest.approx(drawn, abs=0.006)
    assert found.bound == pytest.approx(bound, abs=0.006)


def test_the_gain_is_mostly_a_little_above_the_bound_of_its_own_draws():
    table = [three_batchers.gain(slots, cv) for slots in (8, 32, 128) for cv in (0.1, 0.2, 0.3, 1, 2)]
    ratios = {(g.max_num_seqs, g.output_cv): g.gain / g.drawn_bound for g in table}
    below = {setting for setting, ratio in ratios.items() if ratio < 1}
    assert below == {(128, 0.1), (128, 0.2), (128, 0.3)}  # many slots, a small CV
    assert 1 < np.median(list(ratios.values())) < 1.05  # "mostly a few per cent above"


def test_why_the_gain_leaves_the_bound():
    def without_keys(step):
        return H100(steptime.Step(step.decodes, 0, step.prefill_chunks))

    def measured(slots, output_cv, step_time=H100, prompt_tokens=512, num_requests=2_000):
        g = side_by_side.saturated_gain(step_time, max_num_seqs=slots, output_cv=output_cv,
                                        prompt_tokens=prompt_tokens, num_requests=num_requests)  # fmt: skip
        return g.gain / g.drawn_bound

    assert measured(128, 2.0) > 1.4
    # Padding reads keys and values. Three batches show it; a step time of one's own is called for every step: slow.
    assert measured(128, 2.0, num_requests=384) > 1.2 and measured(128, 2.0, without_keys, num_requests=384) < 0.6
    assert measured(32, 0.1) > 1.04 and measured(32, 0.1, prompt_tokens=1) < 1.01  # prompts share the weights' reading
    assert measured(128, 0.1) < 1 < measured(128, 0.1, prompt_tokens=1)  # prompts are so much of the work


def test_where_every_step_costs_the_same_the_gain_is_the_bound():
    found = side_by_side.saturated_gain(
        steptime.PowerLaw(t0=5e-3, c=0, alpha=1), max_num_seqs=32, output_cv=1.0, num_requests=20_000
    )
    # 624 batches; the longest of 32 has a standard deviation of 40% of its mean, so the mean of them is good to 2%.
    assert found.gain == pytest.approx(found.bound, rel=0.04)


def test_predictions():
    assert three_batchers.gain(32, 1.0).gain > 3 and LAB.predictions[0].options[LAB.predictions[0].right].endswith(
        "four times as many"
    )
    gains = [three_batchers.gain(slots, 1.0).gain for slots in three_batchers.BATCHES]
    assert gains == sorted(gains)  # a bigger batch never lets static catch up
    at_three = side_by_side.serve_each(CHAT.scaled(3), side_by_side.three_policies(32), H100)
    offered = CHAT.output_tokens.mean() * 3
    for run in at_three.values():  # below saturation: what is offered, but for the drain after the last arrival (1%)
        assert CHAT.output_tokens.sum() / run.makespan == pytest.approx(offered, rel=0.02)


def test_capacity_by_hand():
    need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
    longest = queueing.lognormal_gain(batch=32, output_cv=1.0)
    static = queueing.static_capacity(need, longest, H100, max_num_seqs=32)
    continuous = queueing.continuous_capacity(need, H100, max_num_seqs=32, max_num_batched_tokens=8192)
    found = three_batchers.gain(32, 1.0)
    assert static.requests_per_s < 6 < 8 < continuous.requests_per_s / 2 < 9.1
    assert continuous.requests_per_s / static.requests_per_s > 4
    assert continuous.requests_per_s == pytest.approx(18, abs=0.1)  # "18 requests/s: three times this rush"
    assert 4 / static.requests_per_s == pytest.approx(0.97, abs=0.005)
    assert found.static / static.output_tokens_per_s == pytest.approx(1.08, abs=0.01)  # "8% apart"
    assert found.continuous == pytest.approx(continuous.output_tokens_per_s, rel=0.01)


def test_the_claims():
    pair = side_by_side.serve_each(side_by_side.at_once(CHAT.head(64)), side_by_side.three_policies(32), H100)
    assert pair["static"].e2e.mean() / pair["continuous"].e2e.mean() == pytest.approx(4.1, abs=0.05)
    assert np.array_equal(CHAT.head(64).output_tokens, three_batchers.chat(num_requests=64).output_tokens)
    one_by_one, _ = three_batchers.timelines("drawn", 4, 0.0, 10, 0.1, 0)  # equal answers: a gain in latency alone
    static, dynamic, continuous = (run.e2e.mean() for run in one_by_one.values())
    assert continuous < 0.8 * min(static, dynamic) and all(r.steps.wasted.sum() == 0 for r in one_by_one.values())
    equal = side_by_side.at_once(Workload.fixed(rate=1, num_requests=100, prompt_tokens=6, output_tokens=50))
    runs = side_by_side.serve_each(equal, side_by_side.three_policies(256), H100)
    assert runs["static"].makespan == pytest.approx(runs["continuous"].makespan)  # one batch of equal requests
    assert runs["continuous"].e2e.mean() > 90 * runs["continuous"].makespan / 100  # duration / requests is no latency


def test_the_trace():
    runs = side_by_side.serve_each(side_by_side.at_once(TRACE), side_by_side.three_policies(32), H100)
    rates = {name: side_by_side.saturated_tokens_per_second(run) for name, run in runs.items()}
    bound = queueing.empirical_gain(batch=32, output_tokens=TRACE.output_tokens).gain
    assert rates["continuous"] / rates["static"] == pytest.approx(4.3, abs=0.05) and bound < 2.5
    assert runs["static"].steps.prefill_tokens.sum() / TRACE.prompt_tokens.sum() == pytest.approx(3.8, abs=0.05)
    assert (TRACE.prompt_tokens.min(), TRACE.prompt_tokens.max()) == (3, 7651)
    assert TRACE.prompt_tokens.mean() == pytest.approx(1161, abs=0.5)
    assert TRACE.output_tokens.mean() == pytest.approx(258, abs=0.5)
    below = serve(TRACE.scaled(2), policies.Dynamic(32, 0.1), H100)
    assert np.isfinite(below.e2e).all() and not below.warnings


def test_break_it():
    night = serve(CHAT.scaled(0.2), policies.Static(32), H100)
    assert np.median(night.e2e) > 60 and night.steps.seconds.sum() / night.makespan < 0.05
    # 62 full batches and one of 16, which starts when nobody else will come.
    assert night.queue_wait.mean() == pytest.approx(31 / (2 * 0.2), rel=0.05)
    short, long = (serve(CHAT.scaled(1), policies.Dynamic(32, delay), H100) for delay in (0.1, 10.0))
    assert np.median(long.e2e) > 3 * np.median(short.e2e)
    rush = side_by_side.serve_each(CHAT.scaled(8), side_by_side.three_policies(32), H100)
    assert rush["static"].warnings and rush["dynamic"].warnings and not rush["continuous"].warnings
