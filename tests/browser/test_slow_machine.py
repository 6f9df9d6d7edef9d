"""Explorers on a machine that is too busy to load them in time."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.browser.explorer_page import explorers
from tests.browser.lab_page import opened
from tests.browser.lab_server import Server

# anywidget gives up on a widget after two seconds; here its time is over at once.
TOO_LATE = """AbortSignal.timeout = () => {
  const control = new AbortController();
  setTimeout(() => control.abort(), 0);
  return control.signal;
}"""


def test_an_explorer_that_loads_late_still_follows_its_controls(browser: Browser, server: Server) -> None:
    with opened(browser, server, "03_littles_law.ipynb", script=TOO_LATE) as lab:
        lab.run_cell("lab = Lab(")
        lab.run_cell("lab03.law_in_a_window()")
        (explorer,) = explorers(lab)
        explorer.settle()
        for control in explorer.controls():
            assert explorer.moves(control), f"{control.kind} {control.label!r} is dead"
