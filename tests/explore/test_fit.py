"""How an explorer is laid out: the figure gets what the table, the tasks and the controls leave of one screen."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from course.explore import Explorer, Toggle
from course.explore.fit import BLOCK, LEAST, MOST, ROW, SCREEN, TASKS, beside, blocks, figure_height, lines
from course.figures.theme import HEIGHT
from tests.helpers.toy_tasks import FIND, explorer

FIGURE = go.Figure(layout={"height": 1000})
PANELS = make_subplots(rows=2)
HEADS = ("", "static", "continuous")


def rows(count: int, values: int = 1) -> tuple[tuple[str, ...], ...]:
    return tuple((f"row {number}", *["1"] * values) for number in range(count))


def test_the_table_stands_beside_the_figure_where_both_are_narrow():
    shown = explorer(())
    assert beside(shown, rows(3), FIGURE) and beside(shown, rows(3, 2), FIGURE)
    assert (
        not beside(shown, rows(3, 3), FIGURE) and not beside(shown, rows(3), PANELS) and not beside(shown, (), FIGURE)
    )


@pytest.mark.parametrize("wanted", [True, False])
def test_who_asks_for_a_place_gets_it(wanted):
    shown = explorer((), beside=wanted)
    assert beside(shown, rows(3, 3), PANELS) is wanted and beside(shown, rows(3), FIGURE) is wanted
    shown._repr_mimebundle_()
    (body,) = [box for box in shown.view.root.children if shown.view.plot in getattr(box, "children", ())]
    assert ("course-beside" if wanted else "course-below") in body._dom_classes


def test_a_long_table_below_stands_in_two_blocks():
    assert blocks(rows(BLOCK)) == 1 and blocks(rows(BLOCK + 1)) == 2 and blocks(rows(BLOCK + 1, 2)) == 1
    assert blocks(()) == 1


def test_lines_of_a_table_count_its_head():
    assert lines(rows(4)) == 5 and lines(rows(5)) == lines(rows(6)) == 4 and lines(()) == 0
    assert lines((HEADS, *rows(6, 2))) == 7 == lines(rows(6, 2)), "a head of its own, or one that is written for it"
    assert lines((HEADS[:2], *rows(6))) == 4


def many(controls: int, tasks: Any = (), **other: Any) -> Explorer:
    made = [Toggle(f"t{number}", "T") for number in range(controls)]
    return Explorer(None, made, None, None, tasks=tasks, **other)


def test_two_controls_share_a_line_and_everything_takes_from_the_figure():
    tall = {count: figure_height(many(count, beside=True), rows(3), FIGURE) for count in (7, 8, 9, 12)}
    assert tall[7] == tall[8] > tall[9] > tall[12]
    with_tasks = figure_height(many(12, (FIND,), beside=True), rows(3), FIGURE)
    assert tall[12] - with_tasks == TASKS
    below = figure_height(many(12, beside=False), rows(3, 3), FIGURE)
    assert figure_height(many(12, beside=False), rows(4, 3), FIGURE) == below - ROW


def test_a_figure_is_never_taller_than_it_asks_for_and_keeps_a_least_height():
    assert figure_height(many(2, beside=True), rows(3), FIGURE) == MOST
    assert figure_height(many(2, beside=True), rows(3), go.Figure(layout={"height": 200})) == 200
    assert figure_height(many(2, beside=True), rows(3), go.Figure()) == HEIGHT
    assert figure_height(many(60, (FIND,)), rows(30, 3), FIGURE) == LEAST


def test_what_is_planned_fits_on_the_screen():
    """The parts as they are planned; that they take no more is measured in the browser."""
    height = figure_height(many(4, (FIND,), beside=False), rows(4, 3), FIGURE)
    assert height > LEAST and height + 32 + 2 * 28 + 138 + 5 * ROW + 6 + 22 == SCREEN


def test_a_move_keeps_the_height():
    shown = explorer((), figure=lambda result: go.Figure(layout={"height": 200 + 100 * result["load"]}))
    shown._repr_mimebundle_()
    first = shown.view.plot.drawing.plot_layout["height"]
    shown.set(rate=40)
    assert shown.view.plot.drawing.plot_layout["height"] == first == 250
