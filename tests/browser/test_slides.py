"""The slides in Chromium, as on a projector of 1280 x 720: nothing is cut off or fetched, and figures are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from course.exercises.lesson import available
from course.notebooks import drill, slides
from tests.helpers.places import ROOT
from tests.helpers.sizes import size

LEAST = 18  # px: letters of a full slide that the last row still reads

LOOK = """() => {
  const slide = Reveal.getCurrentSlide(), outside = [];
  for (const text of slide.querySelectorAll("svg text, p, li, td, th, pre, h2, h3, math")) {
    const box = text.getBoundingClientRect();
    if (box.width && (box.left < 0 || box.top < 0 || box.right > 1280.5 || box.bottom > 720.5))
      outside.push(text.textContent.slice(0, 40));
  }
  const figures = [...slide.querySelectorAll(".figure")];
  return {
    head: slide.innerText.slice(0, 60), size: parseFloat(slide.style.fontSize), outside,
    empty: figures.filter((figure) => !figure.querySelector("svg.main-svg")).length, figures: figures.length,
  };
}"""


def looked_at(browser: Browser, path: Path) -> list[dict[str, Any]]:
    """What LOOK says of every slide of a file; the page may fetch nothing and complain of nothing."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("Reveal.isReady()")
    found = []
    for _ in range(page.evaluate("Reveal.getTotalSlides()")):
        found.append(page.evaluate(LOOK))
        page.keyboard.press("Space")
    page.close()
    assert [one for one in asked if not one.startswith(("data:", "blob:", path.as_uri()))] == []
    return found


def assert_whole(found: list[dict[str, Any]]) -> None:
    assert [one for one in found if one["outside"] or one["empty"] or one["size"] < LEAST] == []
    assert len({one["head"] for one in found}) > len(found) // 2  # the blank went on to the next slide each time


@pytest.mark.parametrize("number", size(("04",), available()))
def test_every_slide_of_a_lab_fits_on_a_projector(number: str, browser: Browser, tmp_path: Path) -> None:
    found = looked_at(browser, slides.write(ROOT, number, tmp_path))
    assert_whole(found)
    assert sum(one["figures"] for one in found) >= 3


def test_no_graph_of_an_incident_is_cut_off(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = drill.numbered()[: size(2, 100)]
    monkeypatch.setattr(drill, "numbered", lambda: some)
    found = looked_at(browser, drill.write(tmp_path)[-1])
    assert_whole(found)
    assert sum(one["figures"] for one in found) == len(some)
