"""What `make lab` opens first, and a lab that is opened again without its kernel."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from course.desk import server as saving
from course.desk.pages import START, sealed
from course.lessons import load
from tests.browser.lab_page import LOCAL, SECOND, LabPage, opened
from tests.browser.lab_server import HEIGHT, WIDTH, Server
from tests.helpers.places import ROOT

NAME = next(path.name for path in (ROOT / "labs").glob("04_*continuous.ipynb"))
LAB = load("04")
COPY = "04 opened again.ipynb"
MISSING = "Error displaying widget"


@pytest.fixture(autouse=True)
def nothing_stored(server: Server) -> None:
    shutil.rmtree(server.progress, ignore_errors=True)


@contextmanager
def started(browser: Browser, server: Server) -> Iterator[Page]:
    """The page that a browser shows when `make lab` opens it, in a fresh profile. Nothing is asked of the network."""
    server.forget_layout()
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    context.set_default_timeout(60 * SECOND)
    page = context.new_page()
    outside: list[str] = []
    page.on("request", lambda request: LOCAL.match(request.url) or outside.append(request.url))
    try:
        page.goto(f"{server.url}?token={server.token}")
        expect(page.locator(".jp-RenderedMarkdown h1")).to_be_visible(timeout=60 * SECOND)
        yield page
        assert outside == []
    finally:
        context.close()
        server.stop_kernels()


def tabs(page: Page) -> list[str]:
    labels = page.locator("#jp-main-dock-panel .lm-TabBar-tabLabel").all_text_contents()
    return [label for label in labels if label]


def close(page: Page, name: str) -> None:
    tab = page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text=re.compile(f"^{re.escape(name)}$"))
    tab.locator(".lm-TabBar-tabCloseIcon").click()


def test_the_start_page_opens_beside_the_labs(browser: Browser, server: Server) -> None:
    with started(browser, server) as page:
        assert tabs(page) == ["START.md"]
        start = page.locator(".jp-RenderedMarkdown")
        row = start.locator("tr", has_text=LAB.title)
        expect(row).to_contain_text("not started")
        names = page.locator(".jp-DirListing-item").all_text_contents()
        assert sum(name.startswith(("03", "04", "07", "08", "16")) for name in names) >= 5
        # Every line can be read: the page scrolls down and not to the side.
        assert start.evaluate("(node) => node.scrollWidth <= node.clientWidth + 1")
        start.get_by_role("link", name="glossary").click()
        expect(page.locator(".jp-RenderedMarkdown", has_text="Each term has one meaning")).to_be_visible()
        page.locator(".lm-TabBar-tab", has_text="START.md").click()
        row.get_by_role("link", name=LAB.title).click()
        expect(page.locator(".jp-Notebook .jp-Cell").first).to_contain_text("Lab 04", timeout=60 * SECOND)
        assert tabs(page) == ["START.md", NAME, "glossary.md"]


def test_progress_and_solutions_appear_when_a_lab_is_saved(browser: Browser, server: Server) -> None:
    exercise = LAB.exercises[0]
    with opened(browser, server, NAME) as lab:
        lab.run_cell("lab = Lab(")
        check = lab.find(f'lab.check("{exercise.id}"')
        lab.type_at(check - 1, "answer = None", "End", "Enter", text="answer = 1e9")
        lab.run_cell(check - 1)
        lab.run_cell(check)
        lab.menu("File", "Save Notebook")
        lab.page.wait_for_timeout(2 * SECOND)
    progress = json.loads((server.progress / "progress.json").read_text())
    assert progress["labs"]["04"]["exercises"][exercise.id]["done"] is False
    with started(browser, server) as page:
        row = page.locator(".jp-RenderedMarkdown tr", has_text=LAB.title)
        row.get_by_role("link", name="open").click()
        solution = page.locator(".jp-Notebook")
        expect(solution.locator(".jp-Cell").first).to_contain_text("Solutions of lab 04", timeout=60 * SECOND)
        copied = server.labs / "solutions" / NAME.replace(".ipynb", "_solutions.ipynb")
        assert copied.read_bytes() == (ROOT / "solutions" / NAME).read_bytes()


def test_a_lab_opened_again_without_its_kernel(browser: Browser, server: Server) -> None:
    """Run, saved, closed, its kernel gone, opened: stored tables and a line that says what brings the sliders."""
    shutil.copy(ROOT / "labs" / NAME, server.labs / COPY)
    with opened(browser, server, COPY) as lab:
        lab.run_all()
        live = lab.page.locator(".course-explorer").count()
        assert live > 0
        lab.menu("File", "Save Notebook")
        lab.page.wait_for_timeout(3 * SECOND)
        # What is on the screen stays alive: only the file changes.
        assert lab.page.locator(".course-explorer").count() == live
    stored = (server.labs / COPY).read_text(encoding="utf-8")
    assert saving.WIDGET_VIEW not in stored and stored.count(saving.AGAIN) >= live
    with opened(browser, server, COPY) as lab:
        lab.page.wait_for_timeout(3 * SECOND)
        assert MISSING not in lab.page.locator(".jp-Notebook").inner_text()
        assert lab.page.locator(".jp-Notebook").evaluate("(notebook) => courseProbe.brokenWords(notebook)") == []
        shown = lab.page.locator(".jp-Notebook").get_by_text(saving.AGAIN)
        lab.cell(explorer_cell(lab))
        expect(shown.first).to_be_visible()
        lab.run_all()
        assert lab.page.locator(".course-explorer").count() == live
        assert lab.faults() == lab.complaints == lab.outside == []


def explorer_cell(lab: LabPage) -> int:
    """The position of the first cell whose stored output is an explorer's table."""
    return next(
        index
        for index, cell in enumerate(lab.cells)
        for output in cell.get("outputs", ())
        if saving.AGAIN in "".join(output.get("data", {}).get("text/plain", ""))
    )


def test_an_open_start_page_shows_what_was_written_since(browser: Browser, server: Server) -> None:
    start = server.labs / START
    before = start.read_bytes()
    with started(browser, server) as page:
        try:
            start.write_bytes(sealed("# Written since"))
            page.evaluate("window.dispatchEvent(new Event('focus'))")
            expect(page.locator(".jp-RenderedMarkdown h1")).to_contain_text("Written since", timeout=60 * SECOND)
        finally:
            start.write_bytes(before)


def test_the_names_of_the_labs_have_the_whole_width(browser: Browser, server: Server) -> None:
    with started(browser, server) as page:
        expect(page.locator(".jp-DirListing-itemName").first).to_be_visible(timeout=60 * SECOND)
        assert page.locator(".jp-DirListing-headerItem:visible").all_inner_texts() == ["Name"]
