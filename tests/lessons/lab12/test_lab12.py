"""Lab 12: its recording against itself and by hand, its loop against the definition, its explorers at their corners."""

import itertools
import random

import numpy as np
import pytest

from course.exercises import Lab
from course.exercises.progress import Progress
from course.gpu.ops.queue import Queue
from course.gpu.plain import PlainDevice
from course.lessons.lab12 import (
    by_hand,
    capture,
    decision,
    facts,
    figures,
    lab,
    one_step,
    python_part,
    sketch,
    tasks,
    ticket,
)  # fmt: skip
from course.lessons.lab12 import who_waits as who
from course.lessons.lab12.on_device import DEPENDENT, FORMS, GRAPH, LAUNCHES, PERSISTENT, Toy, spent
from course.lessons.lab12.recorded import recording
from tests.helpers.figures import valid


def test_four_kernels_by_hand():
    """Launches of 6, kernels of 2: the last begins at 24 and ends at 26. The graph: 6 + 4 x 2 + 3 x .5."""
    assert by_hand.launched().wall == 26
    assert by_hand.graph().wall == 15.5


@pytest.mark.parametrize("work", one_step.WORKS)
def test_the_timelines_are_those_of_the_clock(work):
    """A profiler slows the calls, by up to twice; the card's part is within a tenth where one call starts all."""
    for form in FORMS:
        found = one_step.one_step(form, work)
        assert len(found.kernels) == (1 if form == PERSISTENT else recording().launches)
        assert len(found.calls) == (recording().launches if form == LAUNCHES else 1)
        assert 0 < found.busy <= 1 and found.span > 0
    graph = one_step.one_step(GRAPH, work)
    assert graph.every == pytest.approx(1e6 * recording().each(GRAPH, work), rel=0.1)
    dependent = one_step.one_step(DEPENDENT, work)
    assert np.array(dependent.kernels).sum(1).tolist() == sorted(np.array(dependent.kernels).sum(1).tolist())
    # No form is faster than its kernels, one behind the other, by more than what of them overlaps.
    assert dependent.wall > 0.8 * recording().launches * dependent.kernel


def test_a_step_of_the_formula_is_the_recorded_one_within_a_quarter():
    """n max(launch, kernel) and n (kernel + between), for sixteen kernels; calls and the wait come on top."""
    for work in one_step.WORKS:
        launched, graph = (one_step.one_step(form, work) for form in (LAUNCHES, GRAPH))
        launch = 1e6 * recording().of_count(LAUNCHES, 128).host / 128
        assert launched.wall == pytest.approx(16 * max(launch, launched.kernel) + 10, rel=0.25)
        assert graph.wall == pytest.approx(16 * 1e6 * recording().each(GRAPH, work) + 10, rel=0.25)


@pytest.mark.parametrize("work", one_step.WORKS)
def test_the_card_is_idle_from_the_end_of_a_launched_kernel_to_the_begin_of_the_next(work):
    found = one_step.one_step(LAUNCHES, work)
    begins, lengths = np.array(found.kernels).T
    gap = np.median(begins[1:] - (begins + lengths)[:-1])
    assert tasks.idle({}, found) == pytest.approx(gap, abs=0.05)  # two medians of times of 0.01 µs


# Program and card


def test_a_service_by_hand():
    card, run, start = (who.spent(who.LARGE, LAUNCHES).queued, who.spent(who.LARGE, LAUNCHES).wall,
                        who.spent(who.LARGE, LAUNCHES).host)  # fmt: skip
    assert who.waits().step == pytest.approx(0.4e-3 + run)
    assert who.waits(planned=who.DURING).step == pytest.approx(max(card, 0.4e-3 + start))
    assert who.waits(planned=who.DURING, plan_ms=20).step == pytest.approx(20e-3 + start)
    for found in map(who.waits, who.MODELS):
        assert tasks.card_waits({}, found) == pytest.approx(1e3 * found.step * (1 - found.busy))


def test_corners_hold_what_must_be():
    for model, form, planned, plan in itertools.product(who.MODELS, who.FORMS, who.PLANS, (0.05, 0.4, 0.8)):
        found = who.waits(model, form, planned, plan)
        assert 0 < found.busy <= 1 and 0 < found.program <= 1
        assert found.step >= max(found.card, found.plan)
        assert who.waits(model, form, who.DURING, plan).step <= found.step + 1e-12
        valid(figures.two_rows(found))
        assert len(who.rows(found)) == 6
    for form, work in itertools.product(FORMS, (one_step.WORKS[0], one_step.WORKS[-1])):
        valid(figures.timeline(one_step.one_step(form, work)))


@pytest.mark.parametrize(("plan", "batch"), list(itertools.product((0.2, 0.4, 0.6), (1, 8))))
def test_the_decision_holds_around_its_load(plan, batch):
    """Also for one sequence, and a quicker or slower program: the 8B gains by async scheduling, not by graphs."""
    now = who.waits(who.LARGE, LAUNCHES, who.AFTER, plan, batch)
    behind = who.waits(who.LARGE, LAUNCHES, who.DURING, plan, batch)
    graph = who.waits(who.LARGE, who.GRAPH, who.AFTER, plan, batch)
    assert behind.step < now.step - 0.8 * plan / 1e3
    assert graph.step > 0.99 * now.step


def test_what_follows_from_a_decision_is_said(tmp_path):
    """In words of the question, not in those by which answers are compared; and what a right one gains."""
    check = Lab("12", Progress(tmp_path), show=False).check
    assert check("decision", {"--max-cudagraph-capture-size": 4}).lines[0].startswith("With it: steps are launched.")
    assert "TPOT falls from 4.39 to 3.96 ms" in check("decision", {"--async-scheduling": True}).lines[0]


def test_the_answers_of_the_decision():
    assert decision.kept({"--async-scheduling": 1}) == decision.kept({"async_scheduling": "1"}) == "the promise holds"
    assert (
        decision.kept({"--max-cudagraph-capture-size": 8}) == "a step takes too long with --max-cudagraph-capture-size"
    )
    for size in (who.BATCH, 256, 512):
        assert decision.kept_twin({"--max-cudagraph-capture-size": size}) == "the promise holds", "a larger one as well"
    assert decision.kept_twin({"--async-scheduling": 1}) == "a step takes too long with --async-scheduling"
    assert decision.kept_twin({"--max-num-seqs": 64}) == "slots are no limit here"
    assert decision.kept({"--max-num-seqs": who.BATCH - 1}) == "some of the eight wait for a slot"
    assert decision.kept({"--async-scheduling": 0}) == decision.kept({"--async-scheduling": False}) == "nothing changes"
    assert decision.kept({"--async-scheduling": True}) == "the promise holds"
    with pytest.raises(NotImplementedError):
        decision.kept({"--async-scheduling": None})
    for wrong, said in ((3, "give a dictionary"), ({"--quick": 1}, "none of the flags of the question"),
                        ({"--async-scheduling": 2}, "1 is on, 0 is off"), ({"--max-num-seqs": -1}, "a whole number"),
                        ({"--async-scheduling": 1, "--max-num-seqs": 1}, "choose one flag")):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            decision.kept(wrong)


@pytest.mark.parametrize("batch", [16, 32])
def test_the_ticket_is_mended_by_graphs_and_by_nothing_else_that_is_offered(batch):
    now = who.waits(who.SMALL, LAUNCHES, who.DURING, ticket.PLAN_MS, batch)
    graph = who.waits(who.SMALL, who.GRAPH, who.DURING, ticket.PLAN_MS, batch)
    quick = who.waits(who.SMALL, LAUNCHES, who.DURING, 0.001, batch)
    assert graph.step < 0.65 * now.step < 0.65 * 1.2 * quick.step


# The loop


@pytest.mark.parametrize("seed", range(5))
def test_the_loop_is_its_definition(seed):
    rng = random.Random(seed)
    sizes = rng.sample(range(1, 40), 4)
    batches = [rng.randint(1, 45) for _ in range(30)]
    found = capture.loop(batches, sizes)
    assert sum(found.values()) == len(batches) and set(found) <= {0, *sizes}
    for size, count in found.items():
        below = [other for other in sizes if size and other < size]
        here = [b for b in batches if (b <= size and all(b > o for o in below)) or (not size and b > max(sizes))]
        assert count == len(here)
    padded = capture.padding(batches, sizes)
    assert sum(padded.values()) == sum(size * count for size, count in found.items()) - sum(
        batch for batch in batches if batch <= max(sizes)
    )


def test_the_kernel_time_of_exercise_2_is_where_the_gain_is():
    for launch, between, gain in (capture.PAYS, capture.PAYS_TWIN):
        kernel = capture.until(launch, between, gain)
        assert launch / (kernel + between) == pytest.approx(gain)


# What is launched and measured


def test_every_form_of_the_toy_computes_its_step():
    queue = Queue(PlainDevice())
    toy = Toy(queue)
    for form in FORMS[:3]:
        step, before = toy.step(form, 300, 2)
        step()
        assert before is None
    assert toy.spent(LAUNCHES, 300, 1, 1).wall > 0


def test_what_is_counted_is_the_step_and_not_what_comes_before():
    calls = []
    found = spent(Queue(PlainDevice()), lambda: calls.append("step"), 2, lambda: calls.append("before"))
    assert calls == ["before", "step"] * 5
    assert 0 <= found.host <= found.wall == found.queued


def test_pythons_part_is_measured_in_three_parts():
    assert [name for name, _ in python_part.measured(8, 4)] == list(python_part.PARTS)
    assert all(value > 0 for _, value in python_part.measured(1, 4))
    explorer = lab.pythons_part()
    for batch, launches in itertools.product(python_part.BATCHES, (1, 128)):
        found = python_part.on_the_card(batch, launches)
        valid(figures.python_parts(found))
        assert [row[0] for row in python_part.rows(found)] == ["", *python_part.PARTS]
    assert "recorded" in explorer.text()


def test_a_machine_whose_device_fails_keeps_the_recording_and_pythons_part(monkeypatch):
    def none():
        raise python_part.gpu.KernelError("no driver")

    monkeypatch.setattr(python_part.gpu, "device", none)
    *_, found = python_part.Bench(None).measuring(8, 2)
    assert set(found.here) == set(python_part.PARTS) and "no driver" in found.warnings[0]


def test_the_bell_of_the_text_is_the_measured_one(root):
    """No file of the recording has it: the text and docs/benchmarks.md say the same."""
    row = f"| 1 | {facts.BELL_LAUNCH} | {facts.BELL_GRAPH} | {facts.BELL_GRAPH} | **{facts.BELL}** |"
    assert row in (root / "docs/benchmarks.md").read_text(encoding="utf-8")


def test_the_drawn_curve_is_the_recording():
    assert [count for count, _ in sketch.steps()] == list(sketch.COUNTS)
    assert sketch.steps()[0][1] == pytest.approx(sketch.ALONE_US, rel=0.05)
