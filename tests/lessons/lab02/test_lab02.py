"""Lab 02: the floor against an arithmetic of its own, the curve, explorers at their corners, exercises, ticket."""

from __future__ import annotations

import itertools
import math
from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest

from course import gpu
from course.exercises.judge import RIGHT, judge
from course.figures.words import seconds
from course.gpu.queues import queue
from course.gpu.timing import Timing
from course.lessons import lab02, load
from course.lessons.lab02 import (
    by_hand,
    engine_log,
    figures,
    launch,
    on_device,
    one_curve,
    one_step,
)
from course.lessons.lab02 import two_cards as cards
from tests.gpu.conftest import queue_on
from tests.helpers.figures import valid
from tests.helpers.places import SOLUTIONS

LAB = load("02")
# Llama-3.1-8B by hand: 32 layers, hidden size 4,096, inner 14,336, 8 KV heads of 128, a vocabulary of 128,256.
LAYER = 4_096 * (4_096 + 2 * 8 * 128) + 4_096 * 4_096 + 3 * 4_096 * 14_336
WEIGHTS = 32 * LAYER + 4_096 * 128_256
KV = 2 * 32 * 8 * 128 * 2  # bytes a token
READ, MULTIPLY = 3.02e12, 778e12  # bytes/s and FLOP/s of an H100


# A step


@pytest.mark.parametrize(
    ("decodes", "context", "prompt"),
    [(1, 1_024, 0), *itertools.product((1, 256), (256, 2_048), (0, 128, 2_048))],
)
def test_a_step_at_every_corner(decodes, context, prompt):
    """Against bytes and FLOPs that are counted here; prompt tokens do not pass the head, one of each step does."""
    found = one_step.one_step(decodes, context, prompt)
    assert found.reading_weights == pytest.approx(2 * WEIGHTS / READ, rel=1e-3)
    assert found.reading_kv == pytest.approx(KV * decodes * context / READ, rel=1e-9)
    flops = 2 * WEIGHTS * decodes + 2 * 32 * LAYER * prompt
    assert found.flops == pytest.approx(flops, rel=1e-3) and found.computing == pytest.approx(
        flops / MULTIPLY, rel=1e-3
    )
    # Q and K, and P and V: two products of two FLOPs, in 32 heads of 128, over all pairs of a prompt.
    pairs = prompt * (prompt + 1) / 2
    assert found.attention == pytest.approx(4 * 32 * 32 * 128 * pairs / MULTIPLY, rel=1e-3)
    assert found.floor == pytest.approx(
        max(found.reading_weights, found.computing) + found.reading_kv + found.attention
    )
    # Recorded within 0.2%: as exact as the rates of the card. No step is above the roof.
    assert found.recorded > 0.998 * found.floor
    assert found.intensity == pytest.approx(flops / (2 * WEIGHTS + KV * decodes * context), rel=1e-3)
    assert found.reached <= 1.002 * min(MULTIPLY, READ * found.intensity)
    assert found.share == pytest.approx(flops / found.recorded / MULTIPLY, rel=1e-3)
    assert {len(row) for row in one_step.rows(found)} == {2}
    valid(figures.on_the_roofline(found))


def test_a_recorded_point_is_shown_as_it_was_recorded():
    batches, steps = one_step.points(1_024)
    assert batches.tolist() == sorted(batches.tolist()) and batches[0] == 1 and batches[-1] == 256
    for batch, took in zip(batches.tolist(), steps.tolist(), strict=True):
        assert one_step.one_step(batch, 1_024).recorded == took
    between = one_step.one_step(64, 512).recorded
    assert one_step.one_step(64, 256).recorded < between < one_step.one_step(64, 1_024).recorded


def test_the_bars_are_the_times_and_the_dot_is_on_the_recorded_share():
    found = one_step.one_step(64)
    figure = figures.on_the_roofline(found)
    bars = {bar.name: bar for bar in figure.data if bar.type == "bar"}
    assert bars["weights"].x[0] == pytest.approx(1e3 * found.reading_weights, rel=1e-5)
    assert bars["K and V"].base[0] == bars["weights"].x[0]
    assert bars["the step"].x[0] == pytest.approx(1e3 * found.recorded, rel=1e-5)
    (dot,) = (trace for trace in figure.data if trace.name == "this step, recorded")
    assert (dot.x[0], dot.y[0]) == pytest.approx((found.intensity, found.reached / 1e12), rel=1e-5)


# The curve


@pytest.mark.parametrize(
    ("context", "most", "batch", "price"),
    list(itertools.product((256, 1_024, 4_096), (8, 32, 256), (1, 256), (1.0, 6.0))),
)
def test_a_curve_at_every_corner(context, most, batch, price):
    found = one_curve.one_curve(context, most, batch, price)
    assert found.batches[found.used].max() <= most
    assert found.step == pytest.approx(found.curve.t0 + found.curve.c * batch**found.curve.alpha)
    # Dollars a second over tokens a second, for a million.
    assert found.cost == pytest.approx(1e6 * (price / 3_600) / (batch / found.step))
    table = one_curve.rows(found)
    assert len(table) == 10 and not any("nan" in row[1] or "inf" in row[1] for row in table)
    assert table[5][1] == seconds(found.largest)
    assert (table[6][1] == "not recorded") == (context == 4_096)
    valid(figures.fitted(found))


def test_the_mark_is_on_the_curve_and_the_band_around_it():
    found = one_curve.one_curve(batch=64)
    figure = figures.fitted(found)
    by_name = {trace.name: trace for trace in figure.data}
    assert (by_name["this batch"].x[0], by_name["this batch"].y[0]) == pytest.approx((64, found.cost), rel=1e-5)
    assert len(by_name["recorded, in the fit"].x) == 13 and len(by_name["recorded, left out"].x) == 0
    band, middle = by_name["band"], by_name["curve"]
    half = len(middle.y)
    assert all(np.array(band.y[:half]) >= middle.y) and all(np.array(band.y[half:][::-1]) <= middle.y)


# By hand, and launched here


def test_the_small_machine():
    found = [by_hand.step_of(batch) for batch in by_hand.BATCHES]
    assert [each.step for each in found] == [3, 4, 6] and [each.computing for each in found] == [0.2, 0.4, 0.8]
    assert found[1].kv == found[1].weights == 2  # the knee
    assert by_hand.step_of(20).step == 24  # beyond the ridge: 4 s of multiplying, 20 s of K and V
    valid(lab02.machine_by_hand())


def test_the_text_of_what_is_launched_is_the_recording(monkeypatch):
    monkeypatch.setattr(on_device, "_in_numpy", lambda: pytest.fail("something was measured"))
    text = launch.launch_explorer(gpu.device("numpy")).text()
    assert text == lab02.launched_here().text() and "measured" not in text


@pytest.fixture
def small(monkeypatch):
    """The matrix and the memory of a machine that has a tenth of a second for it."""
    monkeypatch.setattr(on_device, "ROWS", {True: 28_672, False: 64})
    monkeypatch.setattr(on_device, "BATCHES", (1, 4, 16, 256))
    return launch.launch_explorer(gpu.device("numpy"), max_seconds=0)


@pytest.mark.parametrize("context", [256, 1_024])
def test_every_setting_shows_both(small, context):
    found = small.compute(batch=4, context=context)
    assert list(found.here.times) == list(launch.WHAT) == list(found.recorded.times)
    assert all(each[4] > 0 for each in found.here.times.values())
    heads, weights, read, product, times, kv, _ = small.rows(found)
    assert product[1] == "0.0682 ms" and times[1] == "1.1 times"
    assert heads[1] == "NVIDIA H200, recorded" and heads[2].endswith(", NumPy, measured")
    assert weights[1:] == ("235 MB", f"{64 * 4_096 * 4 / 1e6:.3g} MB") and read[1] == "0.0623 ms"
    assert kv[1:] == tuple(one_step.amount(4 * context * 2 * 8 * 128 * size, "B") for size in (2, 4))
    valid(small.figure(found))


@pytest.mark.parametrize("context", [256, 512, 1_024])
def test_what_was_recorded_is_no_faster_than_the_card(context):
    """By its data sheet: 4.8 TB/s and 989 TFLOP/s. Of the 62 us of a read, 8 are the launch."""
    found = launch.recording().at(context)
    assert found.matrix_bytes == 2 * 28_672 * 4_096 and found.kv_bytes == 2 * 2 * 8 * 128 * context
    read, product, attention = (found.times[what] for what in launch.WHAT)
    assert 4.8e12 > found.matrix_bytes / read[1] > 0.75 * 4.8e12
    for batch in (1, 4, 16, 64, 256):
        assert product[batch] > max(found.matrix_bytes / 4.8e12, 2 * 28_672 * 4_096 * batch / 989e12)
        assert attention[batch] > found.kv_bytes * batch / 4.8e12
    # Up to 64 sequences a product takes about as long as to read the matrix; 256 are too much for that.
    assert product[64] < 1.5 * read[1] < product[256]


def test_each_move_launches_again_and_keeps_the_other_batches(small, monkeypatch):
    calls = []
    timed, now = on_device.timed, Timing(2.0, 1.0, 3.0, 5, 0.0, 0.0)
    monkeypatch.setattr(on_device, "timed", lambda *given: calls.append(1) or timed(*given))
    first = small.compute(batch=4, context=256).here
    # This batch, then products and attention of the others; the K and V of 256 are too much for a CPU.
    assert len(calls) == 3 + 3 + 2 and list(first.latest) == list(launch.WHAT)

    def at_once(*_given):
        calls.append(1)
        return now
        yield

    monkeypatch.setattr(on_device, "timed", at_once)
    found = small.compute(batch=16, context=256)
    second = found.here
    assert len(calls) == 8 + 3  # read, product and attention of this batch alone
    for what in launch.WHAT[1:]:
        assert second.times[what][4] == first.times[what][4] and second.times[what][16] == 2.0
    assert small.rows(found)[-1][2] == "2 s (1 s to 3 s, 5 launches)"
    valid(small.figure(found))
    before = second.times["matrix product"][1]
    monkeypatch.setattr(on_device, "_in_numpy", lambda: pytest.fail("the matrix was made again"))
    assert small.compute(batch=16, context=512).here.times["matrix product"][1] == before


def test_a_move_shows_the_recording_first_and_is_measured_in_parts_of_launches(small):
    pieces = list(small.measuring(batch=4, context=256))
    assert math.isnan(pieces[0].here.times["matrix product"][4])
    assert pieces[0].recorded == launch.recording().at(256)
    found = [piece.here for piece in pieces if piece.here.latest]
    assert [list(here.latest) for here in found[:: len(found) - 1]] == [[launch.WHAT[0]], list(launch.WHAT)]
    # One launch that does not count and three that do: of the read, of four products, and of the attention of 1, 4, 16,
    # where 16 come in four parts. Of 64 rows a product with 256 takes two parts.
    assert len(pieces) > 4 * (1 + 4 + 1 + 1 + 1 + 4)
    again = next(iter(small.measuring(batch=16, context=256)))
    # What is known stands there at once.
    assert again.here.times["attention"][4] == found[-1].times["attention"][4] and not again.here.latest


@pytest.mark.parametrize("batch", [1, 16, 256])
def test_a_product_in_parts_is_the_product(batch):
    _, multiply = on_device._in_numpy()
    parts = multiply(batch)
    for part in parts:
        part()
    x, whole = parts[0].args[0], parts[0].args[1].base
    assert whole.shape == (4_096, 4_096) and x.shape == (batch, 4_096)
    assert len(parts) == max(8, batch // 2)
    done = np.concatenate([part.keywords["out"] for part in parts], axis=1)
    np.testing.assert_allclose(done, x @ whole.T, rtol=0, atol=1e-2)  # sums of 4,096 numbers of size 1, in float32


def test_at_least_three_launches_however_long_they_take():
    """By a stopwatch that says a second for each of the two parts of a launch."""
    assert on_device.LEAST >= 3 and on_device.ENOUGH >= 0.2
    seen, device = [], copy(gpu.device("numpy"))
    device.stopwatch = lambda: SimpleNamespace(time=lambda part: (part(), (1.0, 0.0))[1])
    work = queue(device)
    steps = on_device.timed(work, [lambda: seen.append(1)] * 2, 0.0)
    pieces = 0
    with pytest.raises(StopIteration) as done:
        while True:
            next(steps)
            pieces += 1
    assert done.value.value.launches == on_device.LEAST and done.value.value.seconds == 2.0
    assert pieces == len(seen) == 2 * (1 + on_device.LEAST)


def test_what_is_too_much_for_a_cpu_is_left_out_and_said(small, monkeypatch):
    monkeypatch.setattr(on_device, "MOST_HERE", 5e6)
    found = small.compute(batch=4, context=512)
    assert math.isnan(found.here.times["attention"][4]) and found.here.times["attention"][1] > 0
    assert found.warnings == ("The K and V of 4 sequences are too much for this machine.",)
    assert small.rows(found)[-1][2] == "-"
    valid(small.figure(found))


@pytest.mark.gpu
def test_nothing_on_a_gpu_is_faster_than_its_memory_and_its_cores():
    """By a stopwatch of another stream all would take no time. No card reads 20 TB/s or does 5,000 TFLOP/s."""
    found = on_device.Bench(queue_on("cuda").device, 0.05)(16, 1_024)
    read, product, attention = (found.times[what] for what in launch.WHAT)
    for batch in (1, 256):
        assert read[batch] > found.matrix_bytes / 20e12
        assert product[batch] > max(found.matrix_bytes / 20e12, found.matrix_bytes * batch / 5e15)
        assert attention[batch] > found.kv_bytes * batch / 20e12


# Exercises


def test_the_decision_is_read_as_somebody_types_it():
    assert judge(LAB.exercises[-1], {"Max_Num_Seqs": "64"}).status == RIGHT
    assert "Decodes alone" in judge(LAB.exercises[-1], {"--max-num-seqs": 128}).hint


def test_the_lines_of_the_notebook_are_those_of_the_service():
    text = (SOLUTIONS / "02_the_memory_wall.py").read_text(encoding="utf-8")
    assert all(f"# {engine_log.line(running)}\n" in text for running in engine_log.RUNNING)
    for running in engine_log.RUNNING:
        line = engine_log.line(running)
        assert line.running == running and line.waiting > 0
        assert (engine_log.served(running).queue_wait[-2_000:] > 0).all()  # so the slots decide TPOT, and not the rate
        # Ten seconds of ninety.
        assert engine_log.step(running) == pytest.approx(engine_log.mean_tpot(running), rel=0.03)


def test_the_host_comes_on_top_and_changes_no_floor():
    alone, hosted = (one_step.one_step(host_ms=ms) for ms in (0.0, one_step.HOST_MS))
    assert hosted.recorded == alone.recorded and hosted.floor == alone.floor and hosted.host == 1.1e-3
    assert dict(one_step.rows(hosted))["with the host"] == seconds(alone.recorded + 1.1e-3)
    assert {bar.name for bar in figures.on_the_roofline(hosted).data if bar.type == "bar"} >= {"the step", "host"}


# The ticket, and the optional notebook


def test_the_ticket_is_what_two_cards_do():
    old, new = cards.rates(cards.OLD), cards.rates(cards.NEW)
    assert new[0] < old[0] / 2 and new[1] > old[1]
    for batch in cards.BATCHES:
        assert cards.decode(cards.NEW, batch) > 2 * cards.decode(cards.OLD, batch)
    assert cards.prefill(cards.NEW) < cards.prefill(cards.OLD)
    valid(lab02.ticket_graphs())


def test_half_the_bytes_of_weights_are_half_of_reading_them():
    saved = cards.decode(cards.NEW) - cards.eight_bits(cards.NEW)
    bandwidth = cards.rates(cards.NEW)[0] * READ / 3.35e12  # the share of its data sheet that the H100 reached
    assert saved == pytest.approx(WEIGHTS / bandwidth, rel=1e-3)
