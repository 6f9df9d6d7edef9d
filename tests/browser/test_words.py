"""The live view in JupyterLab: it plays, pauses, goes step by step, follows its sliders, and leaves nothing running."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser.lab_page import SECOND, LabPage, opened_next, show
from tests.browser.lab_server import Server
from tests.browser.latency import pictures_a_second

NAME = "words.ipynb"
CELLS = (
    """import threading
from course.explore.words import words_on_the_screen

def threads():
    return [one.name for one in threading.enumerate() if not one.name.startswith("subshell-")]  # JupyterLab's own
before = threads()""",
    "view = words_on_the_screen(max_tokens=20)\nview",
    "view  # shown twice",
    "print('threads more:', len(threads()) - len(before), 'frames:', len(view.view._spoken.watch.frames))",
    "words_on_the_screen([])",
    "from course.lessons import lab08\nlab08.words_again()",
)
LONG = 15 * SECOND


@pytest.fixture
def lab(browser: Browser, server: Server) -> Iterator[LabPage]:
    """A notebook with the view in it."""
    cells = [nbformat.v4.new_code_cell(code) for code in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), server.labs / NAME)
    with opened_next(browser, server, NAME) as page:
        page.run_cell(0)
        yield page


def shown(lab: LabPage, cell: int) -> Locator:
    """The view of a cell that has run, once the browser has drawn it."""
    output = lab.run_cell(cell)
    view = output.locator(".course-words")
    view.locator(".course-stage-bar button").first.wait_for()
    show(view)
    return view


def button(view: Locator, name: str) -> Locator:
    return view.locator(".course-stage-bar").get_by_role("button", name=name)


def at(view: Locator) -> int:
    return int(view.locator(".course-stage").get_attribute("data-step") or 0)


def hide(lab: LabPage, hidden: bool) -> None:
    """Let the page believe that its tab is hidden, or seen again."""
    lab.page.evaluate(
        """(hidden) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


# A browser draws no pictures in a hidden tab. From here on none is drawn, until `courseBack` lets them go on, a minute
# later by their clock: what a page finds whose tab was hidden for a minute.
AWAY = """() => {
  const real = window.requestAnimationFrame;
  const held = [];
  window.requestAnimationFrame = (picture) => held.push(picture) + 1e9;
  window.courseBack = (shown) => new Promise((resolve) => {
    window.requestAnimationFrame = (picture) => real((stamp) => {
      picture(stamp + 60_000);
      resolve(shown()); // what the first picture shows; a later one resolves nothing
    });
    for (const picture of held) window.requestAnimationFrame(picture);
  });
}"""


def to_the_end(view: Locator) -> None:
    view.get_by_label("Speed").select_option("1")
    expect(view.locator(".course-stage-status")).to_contain_text("all answers are complete", timeout=LONG)


def test_it_plays_pauses_and_takes_one_step(lab: LabPage) -> None:
    view = shown(lab, 1)
    assert at(view) == 0
    button(view, "One step").click()
    expect(view.locator(".course-stage")).to_have_attribute("data-step", "1", timeout=LONG)
    button(view, "One step").click()
    expect(view.locator(".course-stage")).to_have_attribute("data-step", "2", timeout=LONG)
    assert view.locator(".course-lane").count() == 4
    expect(view.locator(".course-lane-words").first).not_to_be_empty()
    button(view, "Play").click()
    rate = pictures_a_second(view)
    print(f"{rate:.0f} pictures a second")  # `make bench-browser` judges them
    assert rate > 0
    button(view, "Pause").click()
    expect(view.locator(".course-stage")).to_have_attribute("data-playing", "false")
    here = at(view)
    lab.page.wait_for_timeout(500)
    assert at(view) == here
    button(view, "Play").click()
    to_the_end(view)
    assert view.locator(".course-lane .course-padding-mark").count() > 0
    assert view.evaluate("(e) => courseProbe.cutOff(e.querySelector('.course-stage-side'))") == []
    button(view, "From the start").click()
    expect(view.locator(".course-stage")).to_have_attribute("data-step", "0")
    assert lab.complaints == []


def test_a_policy_is_chosen_the_task_is_judged_and_it_fits_on_the_screen(lab: LabPage) -> None:
    view = shown(lab, 1)
    view.locator("select").first.select_option("continuous")
    expect(view.locator(".course-tasks .course-right")).to_contain_text("padding under continuous", timeout=LONG)
    expect(view.locator(".course-stage-key")).to_contain_text("Each word is sent as it is computed")
    button(view, "Play").click()
    to_the_end(view)
    for handle in view.get_by_role("slider").all():
        handle.focus()
        lab.page.keyboard.press("End")
    expect(view.locator(".course-lane")).to_have_count(8)
    button(view, "Play").click()
    to_the_end(view)
    expect(view.locator(".course-changed")).to_contain_text("Largest change", timeout=LONG)
    assert view.evaluate("(e) => e.getBoundingClientRect().height") <= lab.room()
    assert lab.complaints == []


def test_shown_twice_run_again_cleared_and_hidden(lab: LabPage) -> None:
    one, two = shown(lab, 1), shown(lab, 2)
    button(two, "Play").click()
    expect(two.locator(".course-stage")).not_to_have_attribute("data-step", "0", timeout=LONG)
    assert at(one) == 0
    show(one)
    button(one, "One step").click()
    expect(one.locator(".course-stage")).to_have_attribute("data-step", "1", timeout=LONG)
    button(one, "Play").click()
    again = shown(lab, 1)  # while words appear
    assert at(again) == 0
    button(again, "Play").click()
    to_the_end(again)
    expect(lab.run_cell(3)).to_contain_text("threads more: 0")
    again = shown(lab, 1)
    hide(lab, True)
    button(again, "Play").click()
    lab.page.wait_for_timeout(1000)
    expect(lab.run_cell(3)).to_contain_text("frames: 0")  # a hidden tab asks for nothing
    hide(lab, False)
    expect(again.locator(".course-stage")).not_to_have_attribute("data-step", "0", timeout=LONG)
    again = shown(lab, 1)
    hide(lab, True)
    button(again, "Play").click()
    lab.menu("Edit", "Clear Cell Output")
    expect(again).to_have_count(0)
    hide(lab, False)
    lab.page.wait_for_timeout(1000)
    expect(lab.run_cell(3)).to_contain_text("threads more: 0 frames: 0")  # nor does a view that is gone
    assert lab.complaints == []


def test_a_tab_that_was_hidden_for_a_minute_goes_on_where_it_was(lab: LabPage) -> None:
    view = shown(lab, 1)
    button(view, "Play").click()
    expect(view.locator(".course-stage")).not_to_have_attribute("data-step", "0", timeout=LONG)
    lab.page.evaluate(AWAY)
    hide(lab, True)
    lab.page.wait_for_timeout(500)  # what was under way in the kernel has ended
    here = at(view)
    lab.page.wait_for_timeout(1000)
    assert at(view) == here and button(view, "Pause").is_visible()
    # The first picture after the minute: at the usual speed of 1/10 it may go on by 10 ms of the run, not by 6 s.
    first = view.evaluate(
        """async (view) => {
          const status = view.querySelector(".course-stage-status");
          const shown = () => {
            const [, value, milli] = status.textContent.match(/, ([\\d.]+) (m?)s/);
            return Number(value) * (milli ? 1 : 1000);
          };
          const before = shown();
          return (await courseBack(shown)) - before;
        }"""
    )
    assert first <= 11  # LONGEST_JUMP at that speed, and the rounding of what is shown
    hide(lab, False)
    button(view, "Pause").click()
    expect(view.locator(".course-stage")).to_have_attribute("data-playing", "false")
    button(view, "Play").click()
    to_the_end(view)
    expect(lab.run_cell(3)).to_contain_text("threads more: 0")
    assert lab.complaints == []


def test_a_kernel_that_restarts_and_zero_requests(lab: LabPage) -> None:
    view = shown(lab, 1)
    button(view, "Play").click()
    expect(view.locator(".course-stage")).not_to_have_attribute("data-step", "0", timeout=LONG)
    lab.restart_kernel()
    expect(view.locator(".course-dead")).to_contain_text("Run > Run All Above Selected Cell")
    expect(view.locator(".course-stage")).to_be_hidden()
    lab.run_cell(0)
    nothing = lab.run_cell(4).locator(".course-words")
    expect(nothing).to_contain_text("There is no prompt, so there is nothing to answer.")
    expect(nothing.locator(".course-stage")).to_be_hidden()
    again = shown(lab, 1)
    button(again, "One step").click()
    expect(again.locator(".course-stage")).to_have_attribute("data-step", "1", timeout=LONG)
    assert lab.complaints == []


def test_a_request_that_was_preempted_brings_its_words_again(lab: LabPage) -> None:
    """In the pool of lab 08 the last story is preempted three times; no lane shows half of it at the end."""
    view = shown(lab, 5)
    button(view, "Play").click()
    to_the_end(view)
    for row, lane in enumerate(view.locator(".course-lane").all()):
        expect(lane.locator(".course-lane-who")).to_contain_text(f"#{row} ")
        expect(lane.locator(".course-lane-note")).to_have_text("complete")
    said = lane.locator(".course-lane-words").text_content()
    assert said.startswith("Once upon a time") and said.endswith("all night.")
    assert lab.complaints == []
