"""Lab 04: the exercise that is a program, and why the gain is what the text says. Numbers are facts.py's."""

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab04, load
from course.lessons.lab04 import facts, further, refill, side_by_side, three_batchers
from course.lessons.lab04.three_batchers import STEP
from course.workload import lengths

LAB = load("04")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def small():
    return Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, 1.0), seed=0
    )


def test_the_refill_takes_other_ways_of_writing_it_and_describes_what_it_does_not_know():
    def with_a_comprehension(running, waiting, slots):
        free = max(0, slots - len(running))
        return {**running, **{request: waiting[request] for request in [*waiting][:free]}}

    def last_come_first_served(running, waiting, slots):
        tokens = dict(running)
        for request in list(waiting)[::-1][: slots - len(tokens)]:
            tokens[request] = waiting[request]
        return tokens

    assert judge(exercise("refill"), with_a_comprehension).status == RIGHT
    assert judge(exercise("refill"), last_come_first_served).status == WRONG
    assert judge(exercise("refill"), lambda running, waiting, slots: [1]).status == WRONG
    assert refill.refill({1: 1, 2: 1, 4: 1}, {6: 100, 7: 50}, 3) == {1: 1, 2: 1, 4: 1}  # no slot is free


def test_the_refill_is_the_packages_own_policy():
    yours = serve(small(), refill.as_policy(refill.refill, 4), STEP)
    theirs = serve(small(), policies.Continuous(4, max_num_batched_tokens=8192), STEP)
    assert np.array_equal(yours.response, theirs.response)


def test_a_refill_at_work():
    """A board for one that works; a sentence for the stub, for one that raises, and for what the engine refuses."""
    assert "Your refill has answered everybody" in lab04.at_work(refill.refill).text()
    assert "returns nothing yet" in lab04.at_work(lambda running, waiting, slots: None).text()
    assert "no request that runs or waits" in lab04.at_work(lambda running, waiting, slots: {99: 1}).text()
    assert "it needs 3 slots" in lab04.at_work(refill.ignores_the_slots).text()
    assert "is not defined" in lab04.at_work(lambda running, waiting, slots: missing).text()  # noqa: F821


def test_a_decision_is_read_as_people_write_it():
    decision = exercise("decision")
    assert judge(decision, {"max_num_seqs": 64}).status == RIGHT
    assert "nearly empty" in judge(decision, {"--gpu-memory-utilization": 0.8}).hint  # whatever the value
    assert judge(decision, None).status == NOT_ATTEMPTED
    assert judge(decision, {"--max-num-seqs": 65}).status == WRONG


@pytest.mark.parametrize("answers", [facts.WASTE, facts.WASTE_TWIN, facts.RATIO, facts.RATIO_TWIN])
def test_the_exercises_numbers_come_from_runs(answers):
    slots = len(answers)
    batch = Workload(arrival=[0] * slots, prompt_tokens=[5] * slots, output_tokens=list(answers))
    steps = serve(batch, policies.Static(slots), STEP).steps
    paid = steps.wasted.sum() + steps.useful.sum()
    assert steps.wasted.sum() == facts.padding(answers)
    assert facts.ratio(answers) == pytest.approx(paid / steps.useful.sum())


@pytest.mark.parametrize(
    ("slots", "output_cv", "gain", "drawn", "bound"),
    [(32, 0.0, 1.03, 1.0, 1.0), (32, 0.1, 1.26, 1.21, 1.22), (8, 1.0, 2.51, 2.55, 2.66), (32, 1.0, 3.85, 3.94, 4.34),
     (32, 2.0, 7.10, 6.78, 7.70), (128, 1.0, 6.00, 6.16, 6.55), (128, 2.0, 16.96, 13.03, 14.12)],
)  # fmt: skip
def test_the_gain_and_its_bound(slots, output_cv, gain, drawn, bound):
    """As first computed with a simulator of its own; the tolerance is the last digit."""
    found = three_batchers.gain(slots, output_cv)
    assert (found.gain, found.drawn_bound, found.bound) == pytest.approx((gain, drawn, bound), abs=0.006)


def test_why_the_gain_leaves_the_bound():
    """Prompts make it smaller, most with many slots and a small spread; keys and values of padding make it larger."""

    def without_keys(step):
        return STEP(steptime.Step(step.decodes, 0, step.prefill_chunks))

    def measured(slots, output_cv, step_time=STEP, num_requests=2_000):
        g = side_by_side.saturated_gain(step_time, max_num_seqs=slots, output_cv=output_cv, num_requests=num_requests)
        return g.gain / g.drawn_bound

    assert measured(128, 0.2) < measured(8, 0.2) < 1
    assert measured(128, 2.0) > 1.2
    # Padding reads keys and values. Three batches show it; a step time of one's own is called for every step: slow.
    assert measured(128, 2.0, num_requests=384) > 1.5 * measured(128, 2.0, without_keys, num_requests=384)


def test_where_every_step_costs_the_same_the_gain_is_the_bound():
    found = side_by_side.saturated_gain(
        steptime.PowerLaw(t0=5e-3, c=0, alpha=1), max_num_seqs=32, output_cv=1.0, num_requests=20_000
    )
    # 624 batches; the longest of 32 has a standard deviation of 40% of its mean, so the mean of them is good to 2%.
    assert found.gain == pytest.approx(found.bound, rel=0.04)


def test_what_the_tables_of_the_deeper_notebook_say():
    tables = {name: dict((row[0], row[1:]) for row in getattr(lab04, name)().rows) for name in further.__all__}

    def numbers(table, row):
        cells = (cell.partition(" ")[0].rstrip("x%").replace(",", "") for cell in tables[table][row])
        return [float(cell) for cell in cells if cell]

    expected, drawn = numbers("exponential_answers", "32 slots")
    assert expected == pytest.approx(sum(1 / k for k in range(1, 33)), abs=0.005)
    assert drawn == pytest.approx(expected, rel=0.02)
    moments, joined = numbers("joins", "continuous")
    assert 0 < joined <= moments and numbers("joins", "dynamic")[1] == 0
    assert numbers("through_a_batcher", "through the batcher") > numbers("through_a_batcher", "straight to the engine")
    images = {label: numbers("in_a_closed_loop", label)[1] for label in tables["in_a_closed_loop"] if label}
    assert images["16 clients, delay 5 ms"] > 1.05 * images["16 clients, delay 0 ms"]
    assert images["8 clients, delay 5 ms"] < 0.95 * images["8 clients, delay 0 ms"]
    assert numbers("wanted_shares", "static, the chat, simulated")[1] == 100  # it does not idle
    # By hand: 62 batches are a small sample, and their longest answers 8% shorter than expected.
    static, continuous = (numbers("capacity_by_hand", f"{name}, recorded") for name in ("static", "continuous"))
    assert static[3] / static[2] == pytest.approx(1.08, abs=0.01) and 0.9 < 4 / static[1] < 1.1
    assert continuous[3] == pytest.approx(continuous[2], rel=0.01)
    # More than the padding of the answers explains: prompts are padded as well.
    _, _, gain, answers, prompts = numbers("the_trace", "32")
    assert gain > 1.5 * answers and prompts == pytest.approx(3.8, abs=0.05)
    durations, each, latency = (numbers("duration_is_no_latency", row) for row in (
        "100 at once: duration", "duration / requests", "mean latency"))  # fmt: skip
    assert durations[0] == durations[2] and durations[1] == pytest.approx(durations[0] + 0.1, abs=2e-3)
    assert latency[2] > 90 * each[2]  # duration / requests is no latency


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'one_tracer'"):
        lab04.one_tracer  # noqa: B018
