"""Lab 04: what its explorers and tables compute, and why the gain is what the text says. Numbers are facts.py's."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.exercises.judge import RIGHT, WRONG, judge
from course.lessons import lab04, load
from course.lessons.lab04 import facts, night, other_loads, refill, side_by_side, three_batchers
from course.lessons.lab04 import figures as draw
from course.lessons.lab04.three_batchers import CHAT, STEP
from course.workload import lengths
from tests.helpers.figures import valid

LAB = load("04")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def table(rows):
    return {name: cells for name, *cells in rows}


# The exercises


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
    small = Workload.poisson(
        rate=10, num_requests=16, prompt_tokens=1024, output_tokens=lengths.lognormal(64, 1.0), seed=0
    )
    yours = serve(small, refill.as_policy(refill.refill, 4), STEP)
    theirs = serve(small, policies.Continuous(4, max_num_batched_tokens=8192), STEP)
    assert np.array_equal(yours.response, theirs.response)


def test_a_refill_at_work():
    """A board for one that works; a sentence for the stub, for one that raises, and for what the engine refuses."""
    assert "Your refill has answered everybody" in lab04.at_work(refill.refill).text()
    assert "returns nothing yet" in lab04.at_work(lambda running, waiting, slots: None).text()
    assert "no request that runs or waits" in lab04.at_work(lambda running, waiting, slots: {99: 1}).text()
    assert "it needs 3 slots" in lab04.at_work(refill.ignores_the_slots).text()


@pytest.mark.parametrize("answers", [facts.WASTE, facts.WASTE_TWIN, facts.RATIO, facts.RATIO_TWIN])
def test_the_exercises_numbers_come_from_runs(answers):
    slots = len(answers)
    batch = Workload(arrival=[0] * slots, prompt_tokens=[5] * slots, output_tokens=list(answers))
    steps = serve(batch, policies.Static(slots), STEP).steps
    paid = steps.wasted.sum() + steps.useful.sum()
    assert steps.wasted.sum() == facts.padding(answers)
    assert facts.ratio(answers) == pytest.approx(paid / steps.useful.sum())


# Saturation


@pytest.mark.parametrize(
    ("slots", "output_cv", "gain", "drawn", "bound"),
    [(32, 0.1, 1.26, 1.21, 1.22), (8, 1.0, 2.51, 2.55, 2.66), (32, 1.0, 3.85, 3.94, 4.34),
     (128, 2.0, 16.96, 13.03, 14.12)],
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


def test_saturation_is_counted_until_the_last_one_has_a_slot():
    """Four requests of 3 tokens, two slots, a step of 1 s: the last two join at 3 s, when 6 tokens are out."""
    four = side_by_side.at_once(CHAT.head(4))
    four = type(four)(four.arrival, np.ones(4, dtype=int), np.full(4, 3))
    run = serve(four, policies.Continuous(2, 64), steptime.PowerLaw(1, 0, 1))
    assert side_by_side.saturated_tokens_per_second(run) == pytest.approx(6 / 3)
    with pytest.raises(ValueError, match="nobody waited"):
        side_by_side.saturated_tokens_per_second(serve(four, policies.Continuous(4, 64), steptime.PowerLaw(1, 0, 1)))


# What explorers, tables and graphs show


@pytest.mark.parametrize(("output_cv", "delay"), [*itertools.product((0.0, 1.0, 2.0), (0.0, 1.0))])
def test_one_trace(output_cv, delay):
    runs = three_batchers.one_trace(output_cv, delay)
    rows = table(three_batchers.trace_rows(runs))
    for column, (name, run) in enumerate(runs.items()):
        assert len(run) == 12 and (run.admitted >= run.arrival).all() and run.steps.running.max() <= 3
        wanted, padding = run.workload.output_tokens.sum(), run.steps.wasted.sum()
        assert run.steps.useful.sum() == wanted and (name != "continuous" or padding == 0)
        assert rows["mean time to an answer"][column] == f"{run.e2e.mean():.2f} s"
        assert rows["slot-steps wanted + padding"][column] == f"{wanted:,} + {padding:,}"


@pytest.mark.parametrize(("slots", "output_cv"), [*itertools.product((4, 32, 128), (0.0, 0.4, 2.0))])
def test_the_gain_its_dot_and_its_rows(slots, output_cv):
    found = three_batchers.saturated(slots, output_cv)
    result, rows = found.recorded, table(three_batchers.saturated_rows(found))
    if slots <= 32:  # 62 batches and more: within the spread of the longest answers
        assert result.gain == pytest.approx(result.bound, rel=0.15)
    assert found.theory.gain == pytest.approx(result.gain, rel=0.12)  # both models of one card
    assert draw.gain(three_batchers.gain_sweep(), result).data[2].y[0] == pytest.approx(result.gain, rel=1e-5)
    rates = [f"{rate:,.0f} tokens/s" for rate in (result.static, result.continuous)]
    assert rows["recorded steps"] == [*rates, f"{result.continuous / result.static:.2f}x"]
    assert rows["slot-steps for each token"][-1] == f"{result.drawn_bound:.2f}x"


@pytest.mark.parametrize("slots", three_batchers.BATCHES)
@pytest.mark.parametrize("output_cv", [0.0, 1.0, 2.0])
def test_the_labels_of_the_gain_are_apart(slots, output_cv):
    """In decades of the axis, of which a label takes 0.15 at the height of the lab; the claim is below its band."""
    figure = draw.gain(three_batchers.gain_sweep(), three_batchers.gain(slots, output_cv))
    (words,) = (trace for trace in figure.data if trace.name == "labels")
    said, _, lower = (np.log10(y) for y in words.y)
    assert words.textposition == ("bottom left", "top left", "bottom left")
    assert words.y[1] == max(line.y[-1] for line in figure.data[:2]) and lower - 0.15 > said


def test_the_table_of_the_question():
    rows = table(three_batchers.weeks())
    for rate in (4, 6):
        run = serve(CHAT.scaled(rate), policies.Static(32), STEP)
        assert rows[f"{rate} requests/s"] == [
            f"{np.percentile(run.e2e, 95):.0f} s",
            f"{run.steps.seconds.sum() / run.makespan:.0%}",
        ]


def test_the_operators_graphs_are_the_night():
    found = night.night()
    figure = draw.operators_graphs(found)
    valid(figure)
    assert figure.data[1].y == pytest.approx(found.median, rel=1e-4)
    assert found.requests == pytest.approx(sum(night.RATES) * night.HOUR, rel=0.02)
    assert found.rate == pytest.approx(np.array(night.RATES), rel=0.1)
    assert figure.layout.xaxis3.ticktext[0] == "20:00"


# The optional notebook


@pytest.mark.parametrize("rate", [2.0, 17.0])  # at 17 answers begin in time that do not end in time
def test_under_load(rate):
    result = other_loads.under_load(rate, 1.0, ("e2e", 95))
    rows = table(other_loads.load_rows(result))
    for column, (name, policy) in enumerate(side_by_side.three_policies(32, 1.0).items()):
        run = serve(CHAT.scaled(rate), policy, STEP)
        assert rows["whole answer, p95"][column] == f"{np.percentile(run.e2e, 95):.2f} s"
        assert rows["first token, p95"][column] == f"{np.percentile(run.ttft, 95):.2f} s"
        assert rows["tokens/s"][column] == f"{run.workload.output_tokens.sum() / run.makespan:,.0f}"
        assert rows["requests/s within 10 s"][column] == f"{(run.e2e <= 10).sum() / run.makespan:.2f}"
        wasted, useful = run.steps.wasted.sum(), run.steps.useful.sum()
        assert rows["padding"][column] == f"{wasted / (wasted + useful):.0%}", name


@pytest.mark.parametrize("rate", [100, 1_000, 4_000])
def test_for_one_step_continuous_is_dynamic_without_delay_to_the_bit(rate):
    images = Workload.poisson(rate=rate, num_requests=1_000, prompt_tokens=1, output_tokens=1, seed=3)
    step = steptime.PowerLaw(t0=2e-3, c=0, alpha=1, prefill=0.25e-3)
    continuous = serve(images, policies.Continuous(16, max_num_batched_tokens=16), step)
    assert np.array_equal(continuous.e2e, serve(images, policies.Dynamic(16, 0.0), step).e2e)


def test_what_the_tables_say():
    def numbers(shown, row):
        cells = table(shown.rows)[row]
        return [float(cell.partition(" ")[0].rstrip("x%").replace(",", "")) for cell in cells if cell]

    assert numbers(lab04.wanted_shares(), "static, the chat, simulated")[1] == 100  # it does not idle
    # More than the padding of the answers explains: prompts are padded as well.
    _, _, gain, answers, prompts = numbers(lab04.the_trace(), "32")
    assert gain > 1.5 * answers and prompts == pytest.approx(3.8, abs=0.05)
