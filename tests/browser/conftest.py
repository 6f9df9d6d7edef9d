"""The server and the browser, started once for all browser tests, and a picture of the page where a test fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Error as PageGone
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.browser.lab_page import LabPage
from tests.browser.lab_server import Server, chromium, jupyterlab


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab as `make lab` starts it, on fresh copies of the labs."""
    with jupyterlab(tmp_path_factory.mktemp("make-lab")) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium on the PATH; ../conftest.py leaves this folder out where there is none."""
    with chromium() as running:
        yield running


class OneLabOneProcess(LoadScopeScheduling):
    """With several processes all tests of a lab go to the same one, which opens the lab once."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("[")[2] or nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneLabOneProcess:
    """Hand the tests out lab by lab (pytest-xdist's own `--dist loadgroup` does not group with pytest 9)."""
    return OneLabOneProcess(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Say where to look when a browser test fails: the lab, and a picture of the page at that moment."""
    report = yield
    lab = getattr(item, "funcargs", {}).get("lab")
    if report.failed and isinstance(lab, LabPage):
        picture = Path(item.config._tmp_path_factory.getbasetemp()) / f"{item.name.replace('/', '-')}.png"
        lines = [f"lab: {lab.name}"]
        try:
            lab.page.screenshot(path=picture)
            lines.append(f"the page when it failed: {picture}")
        except PageGone as gone:
            lines.append(f"no picture of the page: {gone}")
        lines += [f"console: {text}" for text in lab.complaints]
        report.sections.append(("where to look", "\n".join(lines)))
    return report
