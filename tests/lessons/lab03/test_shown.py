"""Lab 03: its tables and figures, the evening of the ticket, and the explorer that serves requests here."""

from __future__ import annotations

import numpy as np
import pytest

from course import gpu
from course.lessons import lab03
from course.lessons.lab03 import evening, launched, one_engine, shown, shown_figures
from tests.helpers.figures import valid


def test_today_has_recorded_numbers_and_the_roofline_beside_them():
    text = repr(lab03.today())
    assert "[recorded: " in text and "roofline [theory]" in text
    assert f"{one_engine.capacity():.1f} requests/s" in text
    assert "<table" in lab03.today()._repr_mimebundle_()["text/html"]


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lab03.nothing


def test_the_figures_are_valid():
    figure = lab03.by_hand()
    valid(figure)
    assert len([trace for trace in figure.data if trace.line.width == 14]) == len(shown.FOUR)
    valid(lab03.ticket_graphs())


def test_the_count_by_hand_is_the_mean_of_its_line():
    (line,) = [trace for trace in lab03.by_hand().data if trace.name == "in the system"]
    held = np.diff(line.x) @ np.array(line.y)[:-1]
    assert held == sum(end - begin for begin, end in shown.FOUR) == 12


def test_the_evening_has_a_queue_from_the_campaign_that_drains_when_it_is_over():
    found = evening.evening()
    quiet, campaign, after = found.waiting[5], found.waiting[evening.BEGIN : evening.END + 1], found.waiting[31:47]
    assert quiet < 10 and (np.diff(campaign) > 0).all() and (np.diff(after) < 0).all()
    assert found.waiting[-1] < 50
    inside = slice(*evening.SHOWN)
    assert found.arrived[inside].mean() == pytest.approx(evening.USUAL, rel=0.05)
    assert found.finished[inside].mean() == pytest.approx(one_engine.capacity(), rel=0.03)


def test_the_recorded_part_is_at_the_load_that_it_says():
    """Little's law on 80 requests, more of them in the system where the load is higher."""
    numbers = [launched.recorded(load, 8).recorded.little() for load in (0.2, 0.5, 0.9)]
    for law in numbers:
        assert law.arrival_rate * law.W == pytest.approx(law.L, rel=1e-9)
    assert numbers[0].L < numbers[1].L < numbers[2].L


def test_the_text_has_the_recording_alone_and_the_display_both():
    shown_here = launched.launch_explorer(gpu.device("numpy"))
    assert "measured here" not in shown_here.text() and "recorded" in shown_here.text()
    result = shown_here.compute(load=0.5, max_num_seqs=4)
    rows = shown_here.rows(result)
    assert rows[0][2].startswith("measured here: ")
    assert rows[-1][1:] == rows[-2][1:]  # λ W and L, on both machines
    valid(shown_here.drawn(result))
    assert shown_here.compute(load=0.5, max_num_seqs=4).measured is result.measured


def test_a_device_that_fails_leaves_the_recording_and_a_sentence():
    class Broken:
        is_gpu = True
        name = "broken"

    def refuse(_device):
        raise gpu.KernelError("it has no memory left")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launched, "layer", refuse)
        result = launched.launch_explorer(Broken()).compute()
    assert result.measured is None and result.warnings == ("Nothing is measured here: it has no memory left.",)
    assert {len(row) for row in launched.rows(result)} == {2}
    valid(shown_figures.numbers_in_system(result.runs))


def test_each_size_is_computed_several_times_and_the_shortest_counts():
    times = iter(range(100, 0, -1))
    asked = []

    def compute(rows):
        asked.append(rows)
        return float(next(times))

    timed = launched.by_size(compute)
    assert timed(4) == 100 - launched.TIMES + 1 == timed(4)
    assert asked == [4] * launched.TIMES
