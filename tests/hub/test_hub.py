"""A class on a JupyterHub: everybody has their own labs and progress, nobody another's, and nothing is lost.

The tests build on one another, as a day does: log in, five browsers, a restart, a culled server, thirty at the sliders.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import requests
from playwright.sync_api import Page

from course.desk.server import AGAIN
from tests.browser.explorer_page import ExplorerPage
from tests.browser.lab_page import LabPage, new_page
from tests.browser.lab_server import Server, chromium
from tests.helpers.places import ROOT
from tests.hub.hub import Hub, Learner, cpu_s, processes, pss_mb
from tests.hub.kernel import Kernel, opened, whole_lab

LAB, NUMBER = "04_static_dynamic_continuous.ipynb", "04"
BROWSERS, MOVES = 5, 12
REFUSED = (302, 403, 404)
"""To the login page, forbidden, or as if there were nothing. A page that is let in answers 200."""
FIGURES: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def figures() -> Any:
    """What was measured, written where HUB_FIGURES says and printed; docs/class/README.md has them."""
    yield
    text = json.dumps(FIGURES, indent=1)
    print(f"\n{text}")
    (ROOT / ".hub" / "figures.json").write_text(text)


def progress_of(learner: Learner) -> dict[str, Any]:
    path = learner.home / ".local" / "share" / "llm-batching-course" / "progress.json"
    return json.loads(path.read_text())["labs"] if path.exists() else {}


def test_everybody_finds_their_own_labs_under_their_own_address(learners: list[Learner], labs: list[Path]) -> None:
    names = {lab.name for lab in labs}
    for learner in learners:
        listed = learner.asks("api/contents").json()["content"]
        assert names <= {entry["name"] for entry in listed} and "START.md" in {entry["name"] for entry in listed}
        assert (learner.home / "my-labs" / LAB).read_bytes() == next(
            lab for lab in labs if lab.name == LAB
        ).read_bytes()
        page = learner.http.get(learner.url, timeout=60)
        assert page.url.startswith(f"{learner.url}lab/tree/START.md"), page.url
    servers = [processes(learner.home) for learner in learners]
    FIGURES["people"] = len(learners)
    FIGURES["server_pss_mb"] = round(mean(sum(map(pss_mb, mine)) for mine in servers), 1)


def test_nobody_gets_into_anothers_server(hub: Hub, learners: list[Learner]) -> None:
    ada, bob = learners[:2]
    for path in ("api/contents", "api/kernels", "lab", f"files/{LAB}", f"api/contents/{LAB}"):
        assert ada.asks(path).status_code == ada.asks(path, by="cookies").status_code == 200, path
        for by in ("token", "cookies"):
            assert ada.asks(bob.url + path, by).status_code in REFUSED, (path, by)
        assert requests.get(bob.url + path, timeout=60, allow_redirects=False).status_code in REFUSED
    for method, extra in (("PUT", {"json": {"type": "file", "format": "text", "content": "x"}}), ("DELETE", {})):
        assert ada.asks(f"{bob.url}api/contents/START.md", method=method, **extra).status_code in REFUSED
    assert ada.asks(f"{bob.url}api/kernels", method="POST", json={}).status_code in REFUSED
    assert (bob.home / "my-labs" / "START.md").exists() and bob.asks("api/kernels").json() == []
    # Cookies alone, as a forged request would have them, change nothing in one's own server either.
    assert ada.asks("api/kernels", by="cookies", method="POST", json={}).status_code == 403
    assert ada.asks(f"{hub.url}/hub/api/users/{bob.name}").status_code in REFUSED


def in_a_browser(learner: Learner, option: int) -> dict[str, float]:
    """A Chromium of its own, with a picture of the page at the end, however that comes."""
    with chromium() as browser:
        page = new_page(browser)
        try:
            return at_work(page, learner, option)
        finally:
            page.screenshot(path=learner.home / "page.png")


def at_work(page: Page, learner: Learner, option: int) -> dict[str, float]:
    """Log in with the form, run lab 04, predict, move a slider, save. Raises where the page complains."""
    page.context.set_default_timeout(60_000)
    page.goto(f"{learner.hub.url}/hub/login")
    page.locator("input[name=username]").fill(learner.name)
    page.locator("input[name=password]").fill(learner.hub.password)
    page.locator("input[type=submit]").click()
    page.wait_for_url(f"{learner.url}**")
    page.context.set_default_timeout(300_000)
    server = Server(learner.url, learner.token, learner.home / "my-labs", learner.home)
    lab = LabPage(page, server, LAB)
    begun = time.monotonic()
    lab.open(f"{learner.url}lab?reset")
    seconds = {"lab_open_s": time.monotonic() - begun}
    lab.page.locator(".jp-Notebook").evaluate("(notebook) => courseProbe.watch(notebook)")
    begun = time.monotonic()
    lab.menu("Run", "Run All Cells")
    page.wait_for_selector(".js-plotly-plot svg.main-svg", state="attached")
    seconds["first_figure_s"] = time.monotonic() - begun
    lab._ran(minutes=9)
    seconds["whole_lab_s"] = time.monotonic() - begun
    form = lab.cell(lab.find('lab.predict("gain")')).locator(".jp-OutputArea").first
    form.locator("input[type=radio]").nth(option).click()
    form.get_by_role("button", name="Commit").click()
    form.get_by_text("Stored:").wait_for()
    output = lab.cell(lab.find("lab04.one_trace()")).locator(".jp-OutputArea").first
    explorer = ExplorerPage(lab, output.locator(".course-explorer"))
    explorer.settle()
    assert explorer.moves(explorer.controls()[0]), f"{learner.name}: the slider moves nothing"
    lab.menu("File", "Save Notebook")
    page.wait_for_function("!document.querySelector('.jp-mod-dirty')")
    assert lab.faults() == lab.outside == [], (lab.faults(), lab.outside)
    return seconds


def test_five_browsers_run_a_lab_at_once_and_share_nothing(learners: list[Learner]) -> None:
    five = learners[:BROWSERS]
    options = [number % 3 for number in range(BROWSERS)]
    with ThreadPoolExecutor(BROWSERS) as pool:
        seconds = list(pool.map(in_a_browser, five, options))
    for key in seconds[0]:
        FIGURES[f"five_browsers_{key}"] = sorted(round(one[key], 1) for one in seconds)
    from course.lessons import load

    (gain,) = (one for one in load(NUMBER).predictions if one.id == "gain")
    for learner, option in zip(five, options, strict=True):
        (given,) = progress_of(learner)[NUMBER]["predictions"]["gain"]
        assert given["answer"] == gain.options[option]
        saved = (learner.home / "my-labs" / LAB).read_text()
        assert AGAIN in saved and "widget-view+json" not in saved  # the course's hook was there on saving
        assert "1 of 2 predictions" in (learner.home / "my-labs" / "START.md").read_text()
    for learner in learners[BROWSERS:]:
        assert progress_of(learner) == {} and AGAIN not in (learner.home / "my-labs" / LAB).read_text()
    memory = [sum(map(pss_mb, processes(learner.home))) for learner in five]
    FIGURES["with_lab_04_run_in_a_browser_pss_mb"] = [round(one, 1) for one in sorted(memory)]


def test_a_restart_of_the_hub_loses_nothing(hub: Hub, learners: list[Learner]) -> None:
    ada = learners[0]
    before, running = progress_of(ada), ada.asks("api/kernels").json()
    alive = {learner.name: set(processes(learner.home)) for learner in learners}
    hub.stop()
    # Pages go on while the hub is away: the proxy and the servers are at work, and tokens seen lately are still good.
    assert ada.asks("api/kernels").status_code == 200
    hub.start()
    assert [one["id"] for one in ada.asks("api/kernels").json()] == [one["id"] for one in running] != []
    assert progress_of(ada) == before
    for learner in learners:
        assert set(processes(learner.home)) == alive[learner.name]
        assert learner.asks("api/contents").status_code == learner.asks("lab", by="cookies").status_code == 200
    assert ada.asks(f"{learners[1].url}api/contents").status_code in REFUSED


def test_a_culled_server_comes_back_with_copies_and_progress(hub: Hub, learners: list[Learner]) -> None:
    ada = learners[0]
    before, notebook = progress_of(ada), (ada.home / "my-labs" / LAB).read_bytes()
    hub.cull(ada.name)
    assert ada.asks("api/contents").status_code not in (200,)
    ada.start_server()
    assert progress_of(ada) == before and (ada.home / "my-labs" / LAB).read_bytes() == notebook
    assert ada.asks("api/contents").status_code == 200 and ada.asks("api/kernels").json() == []


def test_thirty_move_sliders_at_once(learners: list[Learner], labs: list[Path]) -> None:
    lab = next(one for one in labs if one.name == LAB)
    for learner in learners:  # what the five browsers have left
        for kernel in learner.asks("api/kernels").json():
            learner.asks(f"api/kernels/{kernel['id']}", method="DELETE")

    few = asyncio.Semaphore(BROWSERS)

    async def one(learner: Learner, gate: asyncio.Barrier, seconds: dict[str, list[float]]) -> Kernel:
        async with few:  # two cores cannot start thirty kernels within the time that a server waits for one
            kernel = await opened(learner)
            seconds["first_widget_s"].append(await whole_lab(kernel, lab))
        await gate.wait()  # everybody moves at the same time
        if learner is learners[0]:
            seconds["cpu_before"] = [sum(cpu_s(pid) for one in learners for pid in processes(one.home))]
        await gate.wait()
        for move in range(MOVES):
            slider, state = list(kernel.sliders.items())[move % len(kernel.sliders)]
            low, high = float(state["min"]), float(state["max"])
            value = low + (high - low) * (move + 1) / (MOVES + 1)
            value = round(value, 2) if state["_model_name"].startswith("Float") else round(value)
            seconds["move_s"].append(await kernel.move(slider, value))
            await asyncio.sleep(1.0)  # a hand is no faster
        await gate.wait()
        return kernel

    async def everybody() -> dict[str, list[float]]:
        gate = asyncio.Barrier(len(learners))
        seconds: dict[str, list[float]] = {"first_widget_s": [], "move_s": []}
        kernels = await asyncio.gather(*(one(learner, gate, seconds) for learner in learners))
        seconds["cpu_after"] = [sum(cpu_s(pid) for one in learners for pid in processes(one.home))]
        for kernel in kernels:
            assert kernel.sliders and kernel.errors == [], (kernel.learner.name, kernel.errors)
        memory = [sum(map(pss_mb, processes(learner.home))) for learner in learners]
        FIGURES["with_lab_04_run_pss_mb"] = {"min": min(memory), "mean": mean(memory), "max": max(memory)}
        return seconds

    seconds = asyncio.run(everybody())
    cpu = seconds["cpu_after"][0] - seconds["cpu_before"][0]
    moves = MOVES * len(learners)
    FIGURES["cores"] = os.cpu_count()
    FIGURES["cpu_s_a_move"] = round(cpu / moves, 3)
    waits = sorted(seconds["move_s"])
    FIGURES["move_s"] = {"median": waits[moves // 2], "p95": waits[int(0.95 * moves)], "max": waits[-1]}
    shown = sorted(seconds["first_widget_s"])
    FIGURES["five_at_a_time_first_widget_s"] = {"median": shown[len(shown) // 2], "max": shown[-1]}
    for learner in learners[BROWSERS:]:  # where its sliders were left is all that the kernel has kept
        assert set(progress_of(learner)) <= {NUMBER} and not progress_of(learner).get(NUMBER, {}).get("exercises")
