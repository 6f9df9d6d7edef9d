"""Each lab as a learner meets it: opened in JupyterLab, run from top to bottom, every control moved by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from course.exercises import names
from tests.browser.explorer_page import Control, ExplorerPage, explorers
from tests.browser.lab_page import SECOND, LabPage, opened_next, show
from tests.browser.lab_server import HEIGHT, WIDTH, Server
from tests.helpers.lesson_explorers import makers
from tests.helpers.places import ROOT
from tests.helpers.sizes import WHOLE, size

NOTEBOOKS = sorted(path.name for path in (ROOT / "labs").glob("*.ipynb"))
# What goes deeper shows the same kinds of explorers as its lab; `make test` has run its cells and moved its controls.
LABS = size(small=[name for name in NOTEBOOKS if not names.is_deeper(name)], whole=NOTEBOOKS)
LESSONS = "|".join(re.escape(name) for name in makers())
EXPLORER = rf"\b(Explorer|\w+_explorer)\(|\b({LESSONS})\(\)"
FORM = r"\blab\.(predict|earlier|ticket|quiz)\("
SLOW = 20 * SECOND
"""A move of an explorer that measures a busy machine may take several seconds."""
DRESSED = ":is(.course-explorer, .course-form, .jp-RenderedPlotly):visible"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
THEME = "jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab %s' })"
COVERED = """(plot) => {
  const boxes = [...plot.querySelectorAll(".modebar-btn")].map((one) => one.getBoundingClientRect());
  const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return [...plot.querySelectorAll(".main-svg text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width && boxes.some((one) => one.width && over(one, box));
  }).map((text) => text.textContent);
}"""
assert LABS, "labs/ holds no notebook: run `make notebooks` first"


@pytest.fixture(scope="module", params=LABS, ids=[name.removesuffix(".ipynb") for name in LABS])
def lab(request: pytest.FixtureRequest, browser: Browser, server: Server) -> Iterator[LabPage]:
    """The lab, opened and run once for all tests of this file."""
    with opened_next(browser, server, request.param) as page:
        page.run_all()
        yield page


def wholly(lab: LabPage) -> bool:
    """Whether to try everything in this lab: in `make browser` only in lab 04, which has each kind of view."""
    return WHOLE or lab.name.startswith("04_")


def live_views(lab: LabPage) -> Locator:
    """The explorers in which the language model speaks: lanes of words in place of a figure."""
    return lab.page.locator(".course-explorer.course-words")


def is_deeper(lab: LabPage) -> bool:
    """Whether this is the further reading of a lab, which needs neither an explorer nor a question."""
    return names.is_deeper(lab.name)


def test_every_cell_runs_without_an_error(lab: LabPage) -> None:
    assert lab.faults() == []
    prompts = lab.page.locator(".jp-Notebook .jp-CodeCell .jp-InputPrompt").all_text_contents()
    numbered = [prompt for prompt in prompts if prompt.strip("[]: ").isdigit()]
    assert len(numbered) == sum(cell["cell_type"] == "code" for cell in lab.cells), f"cells that did not run: {prompts}"


def test_every_explorer_shows_a_figure_as_wide_as_its_cell(lab: LabPage) -> None:
    found = explorers(lab)
    shown = len(found) + live_views(lab).count()
    assert shown == lab.count(EXPLORER), f"{lab.name} shows {shown} explorers"
    assert found or is_deeper(lab), f"{lab.name} shows no explorer"
    for explorer in found:
        explorer.settle()
        (figure,) = explorer.root.evaluate("(root) => courseProbe.figures(root)")
        assert figure["marks"] > 0, f"the figure of {explorer.title!r} is empty"
        assert figure["height"] > 150, f"the figure of {explorer.title!r} is {figure['height']} pixels high"
        assert abs(figure["width"] - figure["room"]) < 2, f"{explorer.title!r} leaves room unused: {figure}"
        assert not explorer.failed(), f"{explorer.title!r} fails at its default settings: {explorer.notices()}"


def test_the_buttons_of_a_figure_cover_none_of_its_texts(lab: LabPage) -> None:
    for plot in lab.page.locator(".js-plotly-plot:visible").all():
        assert plot.evaluate(COVERED) == []


def test_texts_can_be_read_in_the_dark_theme(lab: LabPage) -> None:
    lab.page.evaluate(THEME % "Dark")
    try:
        lab.page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
        lab.page.wait_for_timeout(SECOND)
        for root in lab.page.locator(DRESSED).all():
            show(root)
            assert root.evaluate(CONTRAST) == []
    finally:
        lab.page.evaluate(THEME % "Light")
        lab.page.wait_for_function("document.body.dataset.jpThemeLight === 'true'")


def test_a_number_that_cannot_be_typed_is_no_field(lab: LabPage) -> None:
    """A slider with stops shows its number, and takes no other one from the keyboard."""
    for number in lab.page.locator(".course-stops .widget-readout").all()[:2]:
        shown = number.text_content()
        number.evaluate("(number) => number.focus()")
        lab.page.keyboard.type("7")
        assert number.text_content() == shown


def test_a_typed_number_moves_its_own_slider_and_no_other(lab: LabPage) -> None:
    """Where a slider of stops, which takes none, stands before one that does."""
    for explorer in explorers(lab):
        fields = explorer.root.locator(".course-stops ~ .widget-slider:not(.course-stops)")
        if not fields.count():
            continue
        explorer.settle()
        controls, handle = explorer.controls(), fields.last.get_by_role("slider")
        name, low = fields.last.locator("label").last.text_content().strip(), handle.get_attribute("aria-valuemin")
        others = {one.label: explorer.value(one) for one in controls if one.label != name}
        fields.last.locator(".widget-readout").click()
        lab.page.keyboard.press("Control+A")
        lab.page.keyboard.type(low)
        lab.page.keyboard.press("Enter")
        expect(handle).to_have_attribute("aria-valuenow", low)
        lab.page.wait_for_timeout(SECOND)  # another slider would move a moment later
        assert {one.label: explorer.value(one) for one in controls if one.label != name} == others
        expect(handle).to_have_attribute("aria-valuenow", low)
        explorer.reset()


def _number(text: str) -> float:
    return float(re.match(r"[-\d.,]+", text)[0].replace(",", ""))


def test_a_typed_number_that_is_no_stop_is_said(lab: LabPage) -> None:
    field = lab.page.locator(".course-explorer .widget-slider:not(.course-stops):visible").first
    if not field.count():
        pytest.skip("no slider here takes a typed number")
    show(field)
    handle, number = field.get_by_role("slider"), field.locator(".widget-readout")
    said = field.locator(".course-snapped")
    # What is read out is the text: `aria-valuenow` and its ends have one decimal, whatever the step is.
    text, seen = handle.get_attribute("aria-valuetext"), []
    handle.focus()
    for key in ("End", "Home", "ArrowRight"):
        lab.page.keyboard.press(key)
        if seen:
            expect(handle).not_to_have_attribute("aria-valuetext", seen[-1])
        else:
            lab.page.wait_for_timeout(SECOND)  # it may stand at its end already
        seen.append(handle.get_attribute("aria-valuetext"))
    (most, least, second), stood = map(_number, seen), _number(text)
    between = (least + second) / 2
    comma = f"{between:g}".replace(".", ",")
    for typed, words in (
        (f"{least - 1:g}", "The least is "), (f"{most + 1:g}", "The most is "), ("x", "That is no number"),
        (f"{between:g}", f"{between:g} is between two stops"), (comma, f"{comma} is between two stops"),
        (f"{stood:g}", ""),
    ):  # fmt: skip
        number.click()
        lab.page.keyboard.press("Control+A")
        lab.page.keyboard.type(typed)
        lab.page.keyboard.press("Enter")
        expect(said).to_have_text(re.compile(rf"^{re.escape(words)}" if words else "^$"))
    expect(handle).to_have_attribute("aria-valuetext", text)


def test_a_slider_of_stops_says_its_number_and_unit(lab: LabPage) -> None:
    """And not only which of its stops it is at."""
    for slider in lab.page.locator(".course-explorer .course-stops").all()[:2]:
        shown = slider.locator(".widget-readout").text_content()
        slider.get_by_role("slider").focus()
        said = slider.get_by_role("slider")
        expect(said).to_have_attribute("aria-valuetext", re.compile(rf"^{re.escape(shown.strip())}( |$)"))
        expect(said).to_have_attribute("aria-label", slider.locator("label").first.text_content())


def test_a_curve_to_draw_is_no_wider_than_its_cell(lab: LabPage) -> None:
    for sketch in lab.page.locator(".course-sketch:visible").all():
        show(sketch)
        assert sketch.evaluate("(sketch) => sketch.scrollWidth - sketch.clientWidth") <= 0


def test_every_explorer_fits_on_one_screen(lab: LabPage) -> None:
    """With its tasks, open, missed twice and answered; the notebook has 599 and 779 pixels beside the side bar."""
    found = explorers(lab)
    for explorer in found:
        explorer.settle()
        heights = {"at the start": explorer.height()}
        if wholly(lab):
            heights |= explorer.tasks_by_show_me()
        explorer.reset()  # before anything is said about the heights: the tests after this one begin at the defaults
        too_high = {when: height for when, height in heights.items() if height > lab.room()}
        assert not too_high, f"{explorer.title!r} is higher than {lab.room()} pixels: {too_high}"
    lab.page.set_viewport_size({"width": 1440, "height": 900})
    try:
        for explorer in found:
            explorer.settle()
            assert explorer.height() <= lab.room(), f"{explorer.title!r} at 1440 x 900"
    finally:
        lab.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})


def test_every_live_view_plays_each_policy_and_fits_on_one_screen(lab: LabPage) -> None:
    for view in live_views(lab).all():
        show(view)
        policies = view.locator(".course-controls select").first
        names = policies.locator("option").all_text_contents() or [""]  # a view may have one policy
        names = names[: size(small=1, whole=None)]  # each plays the words as fast as they are computed, some seconds
        for slots in size(small=("",), whole=("", "End")):
            if slots:
                view.get_by_role("slider").last.focus()
                lab.page.keyboard.press(slots)
            for name in names:
                if name:
                    policies.select_option(name)
                view.get_by_label("Speed").select_option("1")
                view.get_by_role("button", name="Play").click()
                done = view.locator(".course-stage-status")
                expect(done).to_contain_text("all answers are complete", timeout=SLOW)
                assert view.evaluate("(e) => e.getBoundingClientRect().height") <= lab.room(), name
                for part in view.locator(".course-stage-side, .course-stage-bar, .course-below").all():
                    assert part.evaluate("(e) => courseProbe.cutOff(e)") == [], name
        view.locator("button", has_text="Reset").click()


def test_a_ghost_of_the_last_setting_stays(lab: LabPage) -> None:
    if not wholly(lab):
        pytest.skip("slow by nature: `make test-all` runs it, and lab 04 has the same ghosts")
    for explorer in explorers(lab):
        explorer.settle()
        expect(explorer.ghosts()).to_have_count(0, timeout=SLOW)
        control, before = explorer.controls()[0], explorer.said_by_bars()
        assert explorer.moves(control)
        expect(explorer.root.locator(".course-changed")).to_contain_text(control.label.split(" (")[0], timeout=SLOW)
        if explorer.root.locator(".barlayer .bars").count():
            assert explorer.root.locator(".course-ghost .bars").count() == 0, "bars on top of each other"
            held_shows_the_picture_before(explorer, before)
        else:
            assert explorer.ghosts().count() > 0, f"{explorer.title!r} shows nothing of the setting before"
        explorer.reset()
        expect(explorer.ghosts()).to_have_count(0, timeout=SLOW)
        expect(explorer.hold()).to_have_count(0)


def held_shows_the_picture_before(explorer: ExplorerPage, before: list[str]) -> None:
    """By key and by mouse, for as long as the button is held; then the present one is there again."""
    page, button, held = explorer.page, explorer.hold(), explorer.root.locator(".course-held")
    now = explorer.said_by_bars()
    assert now != before
    for press, release in (
        (lambda: page.keyboard.down(" "), lambda: page.keyboard.up(" ")),
        (lambda: page.keyboard.down("Enter"), lambda: page.keyboard.up("Enter")),
        (page.mouse.down, page.mouse.up),
    ):
        button.hover()
        button.focus()
        press()
        expect(held.locator(".main-svg").first).to_be_visible()
        expect(button).to_have_attribute("aria-pressed", "true")
        assert explorer.said_by_bars(".course-held") == before
        release()
        expect(held).to_have_count(0)
        assert explorer.said_by_bars() == now


def test_every_question_shows_its_form(lab: LabPage) -> None:
    forms = lab.page.locator(".course-form")
    assert forms.count() + lab.page.locator(".course-sketch").count() == lab.count(FORM)  # a curve is drawn
    assert forms.count() > 0 or is_deeper(lab), f"{lab.name} asks nothing"
    for form in forms.all():
        assert form.locator("input[type=radio]").count() >= 2


def test_every_control_changes_its_figure_by_keyboard(lab: LabPage) -> None:
    for explorer in explorers(lab):
        explorer.settle()
        start, measures = explorer.picture(), "measured" in explorer.numbers()
        controls = explorer.controls()
        assert controls, f"{explorer.title!r} has no controls"
        for control in controls[: None if wholly(lab) else 1]:
            here, stood = f"{control.kind} {control.label!r} of {explorer.title!r}", explorer.value(control)
            assert explorer.moves(control), f"{here} is dead: the figure stays the same at every key"
            check_both_ends(explorer, control, here)
            explorer.reset()
            # Each move measures again, and no two figures are alike; while it does, the table may have no such column.
            if measures or "measured" in explorer.numbers():
                assert explorer.value(control) == stood, f"Reset does not bring {here} back"
                continue
            assert explorer.becomes(start), f"after {here} was moved, Reset does not bring the first figure back"


def check_both_ends(explorer: ExplorerPage, control: Control, here: str) -> None:
    """The first and the last setting must work too: neither a failure nor text that no longer fits."""
    for key in {"toggle": [" "]}.get(control.kind, ["Home", "End"]):
        explorer.press(control, key)
        assert not explorer.failed(), f"{here} fails after {key}: {explorer.notices()}"
        cut = explorer.root.evaluate("(root) => courseProbe.cutOff(root)")
        assert cut == [], f"{here} after {key}: text that cannot be read in full"


def test_no_text_is_cut_off(lab: LabPage) -> None:
    cut = []
    for cell in lab.page.locator(".jp-Notebook .jp-CodeCell:has(.jp-OutputArea-child)").all():
        show(cell)
        for output in cell.locator(".jp-OutputArea-child").all():
            for _ in range(20):  # on a busy machine an output that has just come into view is laid out later
                found = output.evaluate("(output) => courseProbe.cutOff(output)")
                if not found:
                    break
                lab.page.wait_for_timeout(250)
            cut += found
    assert cut == [], "text that cannot be read in full at 1280 x 720"


def test_the_browser_has_nothing_to_complain_of(lab: LabPage) -> None:
    assert lab.complaints == [], "errors in the browser's console"


def test_no_request_leaves_this_machine(lab: LabPage) -> None:
    assert lab.outside == []
