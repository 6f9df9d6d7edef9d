"""Lab 04: what the text says in numbers, and the exercises with their mistakes."""

import inspect

import numpy as np
import pytest

from course import Workload, policies, queueing, serve, steptime
from course.exercises import load
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab04
from course.lessons.lab04 import exercises, further, refill, side_by_side, three_batchers
from course.lessons.lab04.other_loads import TRACE
from course.lessons.lab04.three_batchers import CHAT, ROOFLINE, STEP
from course.workload import lengths
from tests.helpers.places import SOLUTIONS

LAB = load("04")
DEEPER = SOLUTIONS / "04_static_dynamic_continuous_deeper.py"


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def small():
    return Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, 1.0), seed=0
    )


# Exercises


def test_the_refill_takes_other_ways_of_writing_it_and_describes_what_it_does_not_know():
    def with_a_comprehension(running, waiting, slots):
        free = max(0, slots - len(running))
        return {**running, **{request: waiting[request] for request in [*waiting][:free]}}

    def last_come_first_served(running, waiting, slots):
        tokens = dict(running)
        for request in list(waiting)[::-1][: slots - len(tokens)]:
            tokens[request] = waiting[request]
        return tokens

    def stub(running, waiting, slots): ...

    assert judge(exercise("refill"), with_a_comprehension).status == RIGHT
    assert judge(exercise("refill"), stub).status == NOT_ATTEMPTED
    assert judge(exercise("refill"), last_come_first_served).status == WRONG
    assert judge(exercise("refill"), lambda running, waiting, slots: [1]).status == WRONG


def test_a_slots_edge():
    """No slot free: `list(waiting)[: -1]` would let somebody in."""
    assert refill.refill({1: 1, 2: 1, 4: 1}, {6: 100, 7: 50}, 3) == {1: 1, 2: 1, 4: 1}


def test_the_refill_is_the_packages_own_policy():
    yours = serve(small(), refill.as_policy(refill.refill, 4), STEP)
    theirs = serve(small(), policies.Continuous(4, max_num_batched_tokens=8192), STEP)
    assert np.array_equal(yours.response, theirs.response)


def test_a_refill_at_work():
    """A figure for one that works; a sentence for the stub, for one that raises, and for what the engine refuses."""
    assert "yours" in " ".join(note.text for note in lab04.at_work(refill.refill).layout.annotations)
    assert "returns nothing yet" in lab04.at_work(lambda running, waiting, slots: None).text()
    assert "no request that runs or waits" in lab04.at_work(lambda running, waiting, slots: {99: 1}).text()
    assert "does not run yet" in lab04.at_work(refill.ignores_the_slots).text()
    assert "is not defined" in lab04.at_work(lambda running, waiting, slots: missing).text()  # noqa: F821


def test_a_decision_is_read_as_people_write_it():
    assert judge(exercise("decision"), {"max_num_seqs": 64}).status == RIGHT
    memory = judge(exercise("decision"), {"--gpu-memory-utilization": 0.8})
    assert memory.hint == exercises.OTHER_FLAGS[1].hint  # whatever the value
    assert judge(exercise("decision"), None).status == NOT_ATTEMPTED
    assert judge(exercise("decision"), {"--max-num-seqs": 65}).status == WRONG


@pytest.mark.parametrize("item", LAB.exercises, ids=lambda item: item.id)
def test_a_twin_is_another_exercise(item):
    twin = item.twin
    assert judge(twin, twin.solution).status == RIGHT
    assert judge(twin, item.solution).status == WRONG
    for position, mistake in enumerate(twin.mistakes):
        verdict = judge(twin, mistake.answer)
        assert (verdict.status, verdict.mistake) == (WRONG, position)


def test_the_exercises_numbers_come_from_runs():
    for answers in (exercises.WASTE, exercises.WASTE_TWIN, exercises.RATIO, exercises.RATIO_TWIN):
        slots = len(answers)
        batch = Workload(arrival=[0] * slots, prompt_tokens=[5] * slots, output_tokens=list(answers))
        steps = serve(batch, policies.Static(slots), STEP).steps
        assert steps.wasted.sum() == exercises.padding(answers)
        paid = steps.wasted.sum() + steps.useful.sum()
        assert exercises.ratio(answers) == pytest.approx(paid / steps.useful.sum())


def test_the_case_by_hand():
    runs = three_batchers.by_hand()
    assert {name: len(run.steps) for name, run in runs.items()} == {"static": 9, "continuous": 6}
    assert runs["static"].makespan / runs["continuous"].makespan == 1.5 and runs["static"].steps.wasted.sum() == 6
    assert runs["continuous"].steps.wasted.sum() == 0
    assert (exercises.padding((6, 1)), exercises.padding(exercises.WASTE), exercises.ratio(exercises.RATIO)) == (
        5,
        100,
        2.5,
    )


# What the text says in numbers. The tolerance of each is the last digit that the text shows.


def test_the_recorded_steps_do_not_reach_a_padded_batch_of_the_trace():
    most = 65_536
    assert STEP(steptime.Step(0, 0, ((most, 0),))) > 0
    with pytest.raises(ValueError, match=f"up to {most:,} prompt tokens per step, and a step asks for 131,296"):
        serve(side_by_side.at_once(TRACE), policies.Static(32), STEP)
    assert "reaches 131,296 tokens in one step, and no step of more than 65,536 was recorded" in " ".join(
        DEEPER.read_text(encoding="utf-8").replace("\n# ", " ").split()
    )


def test_the_question():
    """People grumble at 4 requests/s, wait for minutes at 6, and the GPU is busy with padding."""
    four, six = (serve(CHAT.scaled(rate), policies.Static(32), STEP) for rate in (4, 6))
    assert 30 < np.percentile(four.e2e, 95) < 60 and np.percentile(six.e2e, 95) > 120
    assert six.steps.seconds.sum() / six.makespan > 0.98
    assert side_by_side.slot_utilisation(six) == pytest.approx(0.26, abs=5e-3)
    assert CHAT.output_tokens.min() < 20 and CHAT.output_tokens.max() > 2_000


@pytest.mark.parametrize(
    ("slots", "output_cv", "gain", "drawn", "bound"),
    [(32, 0.0, 1.03, 1.0, 1.0), (32, 0.1, 1.26, 1.21, 1.22), (8, 1.0, 2.51, 2.55, 2.66), (32, 1.0, 3.85, 3.94, 4.34),
     (32, 2.0, 7.10, 6.78, 7.70), (128, 1.0, 6.00, 6.16, 6.55), (128, 2.0, 16.96, 13.03, 14.12)],
)  # fmt: skip
def test_the_gain_and_its_bound(slots, output_cv, gain, drawn, bound):
    found = three_batchers.gain(slots, output_cv)
    assert found.gain == pytest.approx(gain, abs=0.006)
    assert found.drawn_bound == pytest.approx(drawn, abs=0.006)
    assert found.bound == pytest.approx(bound, abs=0.006)


def test_why_the_gain_leaves_the_bound():
    """Prompts make it smaller, most with many slots and a small spread; keys and values of padding make it larger."""

    def without_keys(step):
        return STEP(steptime.Step(step.decodes, 0, step.prefill_chunks))

    def measured(slots, output_cv, step_time=STEP, prompt_tokens=512, num_requests=2_000):
        g = side_by_side.saturated_gain(
            step_time, max_num_seqs=slots, output_cv=output_cv, prompt_tokens=prompt_tokens, num_requests=num_requests
        )
        return g.gain / g.drawn_bound

    assert measured(32, 1.0) < 1 < measured(32, 1.0, prompt_tokens=1)
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


def test_capacity_by_hand():
    need = queueing.demand(prompt_tokens=512, output_tokens=256, output_cv=1.0)
    longest = queueing.lognormal_gain(batch=32, output_cv=1.0)
    static = queueing.static_capacity(need, longest, STEP, max_num_seqs=32)
    continuous = queueing.continuous_capacity(need, STEP, max_num_seqs=32, max_num_batched_tokens=8192)
    found = three_batchers.gain(32, 1.0)
    assert static.requests_per_s < 4.5 and continuous.requests_per_s > 16  # "4 requests/s", "16"
    # 62 batches: their longest answers are a small sample, and 8% shorter than expected.
    assert found.static / static.output_tokens_per_s == pytest.approx(1.08, abs=0.01)
    assert found.continuous == pytest.approx(continuous.output_tokens_per_s, rel=0.01)
    assert 0.9 < 4 / static.requests_per_s < 1.1  # "just about at capacity"


def test_the_claims():
    one_by_one = three_batchers.one_trace(0.0, 0.1)  # equal answers: a gain in latency alone
    static, dynamic, continuous = (run.e2e.mean() for run in one_by_one.values())
    assert continuous < 0.8 * min(static, dynamic) and all(r.steps.wasted.sum() == 0 for r in one_by_one.values())
    equal = side_by_side.at_once(Workload.fixed(rate=1, num_requests=100, prompt_tokens=6, output_tokens=50))
    runs = side_by_side.serve_each(equal, side_by_side.three_policies(256), STEP)
    assert runs["static"].makespan == pytest.approx(runs["continuous"].makespan)  # one batch of equal requests
    assert runs["continuous"].e2e.mean() > 90 * runs["continuous"].makespan / 100  # duration / requests is no latency
    assert runs["dynamic"].makespan == pytest.approx(runs["static"].makespan + 0.1)  # "waits out its delay of 100 ms"


def test_the_trace():
    runs = side_by_side.serve_each(side_by_side.at_once(TRACE), side_by_side.three_policies(32), ROOFLINE)
    rates = {name: side_by_side.saturated_tokens_per_second(run) for name, run in runs.items()}
    bound = queueing.empirical_gain(batch=32, output_tokens=TRACE.output_tokens).gain
    assert rates["continuous"] / rates["static"] > 1.5 * bound  # "larger than the padding of the answers explains"
    assert runs["static"].steps.prefill_tokens.sum() / TRACE.prompt_tokens.sum() == pytest.approx(3.8, abs=0.05)


def test_a_delay_of_ten_seconds_helps_nobody_at_a_low_rate():
    short, long = (serve(CHAT.scaled(1), policies.Dynamic(32, delay), STEP) for delay in (0.1, 10.0))
    assert np.median(long.e2e) > 3 * np.median(short.e2e)


@pytest.mark.parametrize("name", further.__all__)
def test_a_table_of_the_deeper_notebook(name):
    shown = getattr(lab04, name)()
    data = shown._repr_mimebundle_()
    assert data["text/plain"].startswith(shown.caption) and "<table" in data["text/html"]
    assert len({len(row) for row in shown.rows}) == 1 and not inspect.signature(getattr(lab04, name)).parameters
    assert "nan" not in data["text/plain"]


def test_what_the_tables_of_the_deeper_notebook_say():
    tables = {name: dict((row[0], row[1:]) for row in getattr(lab04, name)().rows) for name in further.__all__}
    expected, drawn = map(float, tables["exponential_answers"]["32 slots"])
    assert expected == pytest.approx(sum(1 / k for k in range(1, 33)), abs=0.005) and drawn == pytest.approx(
        expected, rel=0.02
    )
    moments, joined = (int(cell.replace(",", "")) for cell in tables["joins"]["continuous"])
    assert 0 < joined <= moments and tables["joins"]["dynamic"][1] == "0"
    straight, behind = (int(tables["through_a_batcher"][row][0].removesuffix(" ms"))
                        for row in ("straight to the engine", "through the batcher"))  # fmt: skip
    assert behind > straight  # "only delays admission"
    images = {label: float(cells[1].replace(",", "")) for label, cells in tables["in_a_closed_loop"].items() if label}
    assert images["16 clients, delay 5 ms"] > 1.05 * images["16 clients, delay 0 ms"]
    assert images["8 clients, delay 5 ms"] < 0.95 * images["8 clients, delay 0 ms"]
    assert tables["wanted_shares"]["static, the chat, simulated"][1] == "100%"  # it does not idle


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'one_tracer'"):
        lab04.one_tracer  # noqa: B018
