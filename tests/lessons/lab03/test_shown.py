"""Lab 03: its tables and figures, and the evening of the ticket."""

from __future__ import annotations

import numpy as np
import pytest

from course.lessons import lab03
from course.lessons.lab03 import evening, one_engine, shown
from tests.helpers.figures import valid


def test_today_has_recorded_numbers():
    text = repr(lab03.today())
    assert "[recorded: " in text
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
