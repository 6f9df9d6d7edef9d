"""Marks of a figure move at once, and plotly itself follows when the slider rests."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.explorer_page import explorers
from tests.browser.lab_page import SECOND, opened
from tests.browser.lab_server import Server

CASES = {
    "03_littles_law.ipynb": "One engine under load",
    "04b_static_dynamic_continuous.ipynb": "The chat under load, 32 slots",
}
COUNT_ANIMATIONS = """() => {
  const animate = Plotly.animate;
  window.animations = 0;
  Plotly.animate = (...given) => { window.animations += 1; return animate(...given); };
}"""
# Where plotly believes the marks to be, which is where it shows a number to who points at them.
KNOWN = """(plot) => plot.calcdata.flatMap((points) => points[0].trace.mode === "markers"
  ? points.map((point) => [point.x, point.y]) : [])"""
SENT = """(plot) => plot.data.flatMap((trace) => trace.mode === "markers"
  ? trace.x.map((x, i) => [x, trace.y[i]]) : [])"""


@pytest.mark.parametrize("name", CASES)
def test_marks_move_at_once_and_plotly_learns_of_it_at_rest(browser: Browser, server: Server, name: str) -> None:
    with opened(browser, server, name) as lab:
        lab.run_all()
        explorer = next(found for found in explorers(lab) if found.title == CASES[name])
        slider = explorer.controls()[0]
        assert explorer.press(slider, "ArrowRight")
        lab.page.wait_for_timeout(SECOND)
        plot = explorer.root.locator(".js-plotly-plot")
        plot.evaluate(COUNT_ANIMATIONS)
        before = plot.evaluate(KNOWN)
        picture = explorer.picture()
        slider.target.focus()
        lab.page.keyboard.press("ArrowRight")
        lab.page.wait_for_function("() => window.animations === 1")
        lab.page.wait_for_timeout(SECOND)
        moved = explorer.picture()
        assert moved != picture
        assert plot.evaluate(KNOWN) == plot.evaluate(SENT) != before
        # Drawn afresh from the same numbers it looks the same.
        plot.evaluate("(plot) => Plotly.redraw(plot)")
        assert explorer.picture() == moved
        assert lab.page.evaluate("window.animations") == 1, "one move, one animation: at rest"


def test_the_picture_does_not_jump_when_plotly_follows(browser: Browser, server: Server) -> None:
    with opened(browser, server, "03_littles_law.ipynb") as lab:
        lab.run_all()
        explorer = next(found for found in explorers(lab) if found.title == CASES["03_littles_law.ipynb"])
        slider = explorer.controls()[0]
        assert explorer.press(slider, "ArrowRight")
        lab.page.wait_for_timeout(SECOND)
        plot = explorer.root.locator(".js-plotly-plot")
        # Plotly is kept from following: what is seen are the marks as they were moved alone.
        plot.evaluate("() => { window.animate = Plotly.animate; Plotly.animate = () => Promise.resolve(); }")
        assert explorer.press(slider, "ArrowRight")
        lab.page.wait_for_timeout(SECOND)
        moved = explorer.picture()
        plot.evaluate("() => { Plotly.animate = window.animate; }")
        assert explorer.press(slider, "ArrowLeft")
        assert explorer.press(slider, "ArrowRight")
        lab.page.wait_for_timeout(SECOND)
        assert explorer.picture() == moved


def test_a_panel_in_which_nothing_moves_keeps_its_lines(browser: Browser, server: Server) -> None:
    """The batch moves a mark in the right panel alone."""
    lines = """(root) => [...root.querySelectorAll(".cartesianlayer .scatterlayer")]
      .map((panel) => panel.querySelectorAll("path").length)"""
    with opened(browser, server, "02_the_memory_wall.ipynb") as lab:
        lab.run_all()
        explorer = next(found for found in explorers(lab) if found.title == "A curve and its knee")
        slider = next(control for control in explorer.controls() if control.label.startswith("Batch"))
        before = explorer.root.evaluate(lines)
        assert len(before) == 2 and min(before) > 0
        for _ in range(2):
            assert explorer.press(slider, "ArrowRight")
            lab.page.wait_for_timeout(SECOND)  # past the moment at which plotly follows
            assert explorer.root.evaluate(lines) == before
