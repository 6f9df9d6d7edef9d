"""Lab 05: the loops against a loop written again here, the window on a card, exercises, and what is launched."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from course import gpu
from course.exercises.judge import RIGHT, judge
from course.gpu.bench import Settings
from course.gpu.errors import KernelError
from course.lessons import lab05, load
from course.lessons.lab05 import adaptive, facts, figures, knobs, machine, night, on_a_card, rule, sketch, toy, vision
from tests.helpers.figures import valid
from tests.helpers.places import SOLUTIONS

LAB = load("05")


# The toy


def test_a_step_goes_through_the_two_times_that_are_quoted():
    for batch, took in toy.POINTS:
        assert toy.STEP.seconds(batch, 0, 0, 0, 0) == pytest.approx(took)
        assert toy.STEP.seconds(batch - 1, 0, 1, 1, 1) == pytest.approx(took)  # one of them starts


def test_a_gap_of_a_busy_loop_is_its_top_up_and_the_step_of_a_token():
    """Within 0.1%: a gap before the next step's window is not of this one's batch."""
    for window_ms in (2.0, 4.0, 6.0):
        found = toy.served("note", window_ms)
        assert found.tpot == pytest.approx(window_ms / 4e3 + found.step_of_a_token, rel=1e-3)
        assert found.step_of_a_token > 1.05 * found.step


def by_the_book(arrival: np.ndarray, window: float, slots: int, tokens: int) -> tuple[np.ndarray, float]:
    """TTFT of the loop that waits before every step, and the seconds of its steps, as the benchmark has it."""
    left, first = np.full(len(arrival), tokens), np.full(len(arrival), np.nan)
    now = computed = 0.0
    active: list[int] = []
    coming = 0
    while active or coming < len(arrival):
        until = now + window / 4 if active else max(now, arrival[coming]) + window
        while coming < len(arrival) and arrival[coming] <= until and len(active) < slots:
            active.append(coming)
            coming += 1
        took = toy.T0 + toy.C * len(active)
        now, computed = until + took, computed + took
        for each in active:
            first[each] = now if math.isnan(first[each]) else first[each]
            left[each] -= 1
        active = [each for each in active if left[each]]
    return first - arrival, computed


@pytest.mark.parametrize(("window_ms", "rate", "bmax"), [(6.0, 80, 16), (2.0, 80, 16), (20.0, 40, 4), (6.0, 120, 8)])
def test_the_loop_that_waits_is_that_of_the_benchmark(window_ms, rate, bmax):
    found = toy.served("note", window_ms, rate, bmax, num_requests=300)
    ttft, computed = by_the_book(found.run.arrival, window_ms / 1e3, bmax, toy.TOKENS)
    np.testing.assert_allclose(found.run.ttft, ttft, rtol=0, atol=1e-9)  # sums of thousands of steps in another order
    assert found.computing == pytest.approx(computed)
    assert found.gpu_tokens == pytest.approx(300 * toy.TOKENS / computed)


def test_the_four_requests_by_hand():
    assert toy.by_hand().ttft.tolist() == [3, 2, 3, 1.5] and toy.by_hand(0.0).ttft.tolist() == [1, 1, 1, 1.5]
    assert len(toy.by_hand().steps) == 4 and len(toy.by_hand(0.0).steps) == 7
    valid(lab05.four_by_hand())


@pytest.mark.parametrize(
    ("loop", "window_ms", "rate", "bmax"),
    [("note", 6.0, 80, 16), *itertools.product(("note", "window"), (0.0, 20.0), (20, 120), (1, 32))],
)
def test_the_toy_at_every_corner(loop, window_ms, rate, bmax):
    found = toy.served(loop, window_ms, rate, bmax)
    assert found.busy * found.gpu_tokens == pytest.approx(found.tokens_per_second)
    assert found.batch == pytest.approx(toy.REQUESTS * toy.TOKENS / len(found.run.steps))
    assert {len(row) for row in toy.rows(found)} == {2}
    valid(figures.service(found))


def test_who_comes_to_an_idle_engine_opens_the_window():
    """At a light load they wait for all of it, and the others for none or a part."""
    found = toy.served("window", 6.0, 20)
    wait = found.run.queue_wait
    assert wait[found.idle].max() <= 6e-3 + 1e-9 and wait[~found.idle].max() < 1.9e-3
    opened = wait[found.idle] > 6e-3 - 1e-9
    assert 0.8 < opened.mean() < 1 and found.idle[0]


def test_the_mean_wait_of_the_formula_is_that_of_windows_that_requests_open():
    """Answers of one token whose step takes no time to speak of: each wait is the window's."""
    load = on_a_card.Workload.poisson(150, 20_000, 1, 1, 0)
    run = on_a_card.serve(load, on_a_card.policies.Window(64, 0.01), on_a_card.steptime.PowerLaw(1e-9, 0, 1))
    assert 1e3 * run.queue_wait.mean() == pytest.approx(rule.mean_wait(10.0, 150.0), rel=0.01)  # 20,000 draws
    assert rule.mean_wait(10.0, 150.0) == pytest.approx(7.0)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "soon"])
def test_a_window_that_cannot_be_is_refused_with_a_sentence(bad):
    for serve in (
        lambda: toy.served("window", bad),
        lambda: on_a_card.both(window_ms=bad),
        lambda: Settings(window_ms=bad),
        lambda: adaptive.with_function(lambda gaps, company, most: bad, adaptive.DAY),
    ):
        with pytest.raises((ValueError, TypeError), match=r"window|number|operand"):
            serve()


# On a card


@pytest.mark.parametrize(
    ("work", "rate", "window_ms", "card"),
    [
        (on_a_card.CHAT, 12.0, 50.0, "H100"),
        *itertools.product((on_a_card.CHAT, on_a_card.ONE), (1.5, 96.0), (0.0, 50.0), on_a_card.CARDS),
    ],
)
def test_a_card_at_every_corner(work, rate, window_ms, card):
    found = on_a_card.both(work, rate, window_ms, card)
    assert found.never.window == 0 and found.waits.window == window_ms / 1e3
    if not window_ms:
        assert found.later == found.spared == 0
    assert {len(row) for row in on_a_card.rows(found)} == {3}
    valid(figures.with_and_without(found))


def test_the_anchor_of_the_sketch_is_what_the_run_says():
    assert sketch.P95.true[0] == pytest.approx(sketch.AT_NONE, abs=0.05)  # as rounded


# Exercises and the decision


def test_a_learners_window_that_breaks_or_is_empty_is_told():
    assert "returns nothing yet" in repr(lab05.at_work(lambda gaps, company, most: None))
    assert "does not run yet" in repr(lab05.at_work(lambda gaps, company, most: -1.0))
    shown = repr(lab05.at_work(adaptive.window))
    assert "yours" in shown and "simulated on recorded steps" in shown


def test_the_window_is_asked_for_at_an_idle_engine_with_the_latest_gaps():
    asked = []
    policy = adaptive.Adaptive(64, lambda gaps, company, most: asked.append(gaps) or 0.0)
    load = on_a_card.load(on_a_card.ONE, 4.0, 30)
    adaptive.serve(load, policy, on_a_card.step_time("H100"))
    gaps = 1e3 * np.diff(load.arrival)
    assert len(asked) >= 25 and max(map(len, asked)) == adaptive.KEPT
    for found in asked:
        (place,) = np.flatnonzero(np.isclose(gaps, found[-1], rtol=1e-9, atol=0))
        np.testing.assert_allclose(found, gaps[max(0, place + 1 - adaptive.KEPT) : place + 1])


def test_a_constant_function_is_that_window_from_the_second_request_on():
    """Milliseconds in, as the window of the policy; the first request opens none, since no gap is known."""
    constant = adaptive.with_function(lambda gaps, company, most: 4.0, adaptive.NIGHT)
    waits = constant.run.queue_wait
    assert np.median(waits) == pytest.approx(0.004, abs=1e-9) and waits[0] == 0


def test_the_page_of_the_notebook_is_what_the_service_wrote():
    text = (SOLUTIONS / "05_admission_window.py").read_text(encoding="utf-8")
    shown = [line for line in vision.page() if f"# {line}\n" in text]
    assert len(shown) == 2
    run = vision.served(0).run
    assert f'nv_inference_exec_count{{model="vision",version="1"}} {len(run.steps)}' in vision.page()
    alone = run.e2e - run.queue_wait
    assert alone.min() == pytest.approx(4.5e-3) and len(run) == 12_000


def test_the_decision_is_read_as_somebody_types_it():
    decision = LAB.exercises[-1]
    assert judge(decision, {"max_queue_delay_microseconds": "10,000"}).status == RIGHT
    assert "microseconds" in judge(decision, {"--max-queue-delay-microseconds": 10}).hint


# The ticket


def test_the_graphs_of_the_ticket_are_those_of_the_night():
    found = night.night()
    hour = (found.run.arrival // night.PART).astype(int)
    assert len(found.p95) == len(night.RATES) == hour.max() + 1
    assert found.p95[6] == np.percentile(found.run.ttft[hour == 6], 95)
    # The last step of an hour runs into the next one, and the last hour goes on until all are answered.
    assert found.busy.sum() * night.PART == pytest.approx(found.run.steps.seconds.sum())
    valid(lab05.ticket_graphs())


# What is launched


def test_the_recorded_card_says_where_it_comes_from_and_is_launch_bound():
    found = knobs.profile()
    assert found.card == "NVIDIA H200" and found.badge.startswith("recorded: NVIDIA H200")
    assert len(found.seconds) == 5 * 6 * 11 and (found.low <= found.seconds).all()
    step = knobs.Steps(16_384, 256)
    assert found.empty_seconds < step.seconds(1, 0, 0, 0, 0) < 2 * found.empty_seconds
    assert step.seconds(12, 0, 0, 0, 0) == pytest.approx(
        (step.seconds(8, 0, 0, 0, 0) + step.seconds(16, 0, 0, 0, 0)) / 2
    )
    assert step.seconds(3, 0, 1, 1, 1) == step.seconds(4, 0, 0, 0, 0)


@pytest.mark.parametrize("loop", ["note", "window"])
def test_the_simulated_benchmark_is_what_the_benchmark_does_with_these_steps(loop):
    from course.gpu import bench

    asked = Settings(loop=loop, nreq=60)
    steps = knobs.Steps(asked.work, asked.threads)
    outcome = bench.run(asked, lambda batch: steps.seconds(batch, 0, 0, 0, 0))
    found = knobs.on_the_card(asked).runs[asked.window_ms]
    np.testing.assert_allclose(found.run.ttft, outcome.ttft, rtol=1e-9)
    assert found.computing == pytest.approx(outcome.busy)


QUICK = {"nreq": 25, "tokens": 2, "bmax": 4, "work": 1_024, "threads": 32, "rate": 80}


def test_every_knob_at_its_ends_shows_the_recorded_card():
    shown = knobs.explorer(gpu.device("numpy"))
    start = {control.name: control.default for control in knobs.CONTROLS}
    recorded = lambda **moved: shown._recorded.compute(**(start | moved))  # noqa: E731
    for control in knobs.CONTROLS:
        ends = ("note", "window") if control.name == "loop" else (control.low, control.high)
        for end in ends:
            found = recorded(**{control.name: end})
            table = knobs.rows(found)
            assert [len(row) for row in table] == [2] * 8 and not any("nan" in row[1] for row in table)
            valid(figures.two_machines(found))


@pytest.mark.parametrize("loop", ["note", "window"])
def test_a_move_launches_the_kernel_and_judges_all_four(loop):
    shown = knobs.explorer(gpu.device("numpy"))
    found = shown.compute(loop=loop, window_ms=4.0, **QUICK)
    assert list(found.here.steps) == list(machine.BATCHES) and list(found.here.runs) == [4.0, 6.0, 2.0]
    table = knobs.rows(found)
    assert [len(row) for row in table] == [3] * 8 and all(row[2].startswith(("yes, ", "no, ")) for row in table[1:5])
    run = found.here.runs[4.0].run
    assert len(run) == 25 and int(run.steps.decodes.sum()) == 25 and (run.steps.seconds > 0).all()
    assert found.here.took > 0 and found.here.gap > 0 and found.here.where
    valid(figures.two_machines(found))


def test_the_longest_gap_is_of_batches_that_fill_the_device(monkeypatch):
    """A small batch ends before the queue holds the next launch, so its gaps say nothing of the kernel."""
    device, measure = gpu.device("numpy"), gpu.measure
    gaps = iter([9.0 if batch < machine.FULL else 0.5 for batch in machine.BATCHES])
    monkeypatch.setattr(gpu, "measure", lambda *a, **k: replace(measure(*a, **k), longest_gap=next(gaps)))
    found = knobs.explorer(device).compute(loop="window", window_ms=6.0, **QUICK)
    assert found.here.gap == 0.5


def test_each_move_launches_anew_and_shows_the_recording_first():
    shown = knobs.explorer(gpu.device("numpy"))
    pieces = list(shown.measuring(loop="window", window_ms=6.0, **QUICK))
    assert not pieces[0].here.where and pieces[0].recorded.runs
    steps = [len(piece.here.steps) for piece in pieces]
    assert steps == sorted(steps) and len(pieces) > 20  # the loop in pieces: a move need not wait for its end
    assert list(pieces[-1].here.runs) == [6.0, 2.0]
    again = list(shown.measuring(loop="window", window_ms=6.0, **QUICK))[-1]
    assert again.here.steps != pieces[-1].here.steps  # measured, not remembered


def test_the_text_is_the_recording_whatever_the_machine(monkeypatch):
    monkeypatch.setattr(knobs, "here", lambda *given: pytest.fail("something was measured"))
    assert "measured" not in knobs.explorer(gpu.device("numpy")).text()


def test_a_run_that_would_take_too_long_is_refused_with_a_sentence(monkeypatch):
    monkeypatch.setattr(knobs, "AFFORDABLE", 0.0)
    found = knobs.explorer(gpu.device("numpy")).compute(loop="note", window_ms=6.0, **QUICK)
    assert not found.here.runs and "ask for fewer requests" in found.warnings[0]
    assert knobs.rows(found)[3][2] == "-"


def test_a_device_that_fails_leaves_the_recording_and_a_sentence(monkeypatch):
    def fails(*_given):
        raise KernelError("the card is gone")

    monkeypatch.setattr(knobs, "DecodeStep", fails)
    found = knobs.explorer(gpu.device("numpy")).compute(loop="note", window_ms=6.0, **QUICK)
    assert found.warnings[0] == "Nothing is measured here: the card is gone."
    valid(figures.two_machines(found))


def test_a_criterion_is_judged_by_its_limit():
    run = lambda p95: SimpleNamespace(p95=p95)  # noqa: E731
    made = machine.Machine("here", {1: 1.0, 16: 8.0}, {6.0: run(1.0), 2.0: run(0.85)}, took=4.9, gap=1.9e-3)
    assert made.gain == 2 and made.fall == pytest.approx(0.15)
    assert [holds for holds, _ in made.passed().values()][::2] == [True, made.fall >= 0.15]
    slow = machine.Machine("here", {1: 1.0, 16: 8.1}, {6.0: run(1.0), 2.0: run(0.9)}, took=5.1, gap=2.1e-3)
    assert not any(holds for holds, _ in slow.passed().values())
    assert {text for _, text in machine.Machine().passed().values()} == {"-"}


def test_the_bulk_example_asks_for_five_times_what_a_full_batch_does():
    found = facts.bulk()
    assert found.warnings and found.run.ttft[-1] > 5
    assert toy.BULK["rate"] * toy.BULK["tokens"] > 5 * 64 / (toy.T0 + 64 * toy.C)


def test_the_busy_share_of_the_decision_follows_from_the_page_and_the_two_times():
    images, batches = (int(line.split()[-1]) for line in vision.page())
    told = facts.facts()
    first, eight = told["vision_one_ms"], told["vision_batch_ms"]
    each = (eight - first) / (vision.BATCH - 1)
    by_hand = (batches * (first - each) + images * each) / 1e3 / vision.MINUTE
    assert told["decision_busy_now"] == pytest.approx(by_hand, rel=1e-9)


def test_a_percentile_that_rose_is_not_said_to_have_fallen_by_less_than_nothing():
    run = SimpleNamespace
    told = {sign: machine.Machine(runs={machine.LONG_MS: run(p95=1.0), machine.SHORT_MS: run(p95=p95)}).passed()
            for sign, p95 in (("down", 0.5), ("up", 1.36))}  # fmt: skip
    (name,) = (name for name in told["up"] if name.startswith("p95"))
    assert told["down"][name] == (True, "50%") and told["up"][name] == (False, "36% up")
