"""JupyterLab as `make lab` starts it, on copies of the labs in a temporary folder, and a Chromium to look at it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.helpers.places import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1280, 720

# Nothing but 127.0.0.1 has a name in this browser, and it keeps its own requests (updates, sync) to itself.
CHROMIUM = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@dataclass(frozen=True)
class Server:
    """A running JupyterLab: its address (ends in "/"), its token, the learner's copies, and their progress."""

    url: str
    token: str
    labs: Path
    progress: Path

    def api(self, method: str, path: str) -> object:
        """Call the server's REST API and return the JSON it answers, None if it answers nothing."""
        request = urllib.request.Request(
            self.url + path, method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def forget_layout(self) -> None:
        """Open nothing of what was open when the last page was closed."""
        for workspace in self.api("GET", "lab/api/workspaces")["workspaces"]["ids"]:
            self.api("DELETE", f"lab/api/workspaces/{workspace}")

    def stop_kernels(self) -> None:
        """End every kernel, so that the next test has both cores to itself."""
        for session in self.api("GET", "api/sessions"):
            with contextlib.suppress(urllib.error.HTTPError):
                self.api("DELETE", f"api/sessions/{session['id']}")


@contextlib.contextmanager
def jupyterlab(folder: Path) -> Iterator[Server]:
    """Start JupyterLab with the command behind `make lab`; everything it writes stays in `folder`.

    Raises:
        RuntimeError: it ended, or did not answer within two minutes; the message holds what it printed.
    """
    labs, progress, runtime, log = folder / "my-labs", folder / "progress", folder / "runtime", folder / "server.log"
    own = {
        "COURSE_PROGRESS_DIR": progress,
        "IPYTHONDIR": folder / "ipython",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": runtime,
    }
    command = [sys.executable, "-m", "course.desk.workspace", f"--to={labs}", "--no-browser", f"--port={_free_port()}"]
    command.append("--LabApp.expose_app_in_browser=True")  # lab_page.py closes notebooks with it
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {name: str(path) for name, path in own.items()},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        url, token = _answering(process, runtime, log)
        yield Server(url, token, labs, progress)
    finally:
        _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answering(process: subprocess.Popen, runtime: Path, log: Path) -> tuple[str, str]:
    """Return address and token once the server answers."""
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(StopIteration, ValueError, OSError):
            found = json.loads(next(runtime.glob("jpserver-*.json")).read_text())
            urllib.request.urlopen(f"{found['url']}api/status?token={found['token']}", timeout=10).close()
            return found["url"], found["token"]
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")


def _end(process: subprocess.Popen) -> None:
    """Ask the server to stop, which ends its kernels; kill it if it does not. Kernels also end with their parent."""
    for ask in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, ask)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
            return


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium on the PATH; each context it opens is a fresh profile.

    Raises:
        FileNotFoundError: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise FileNotFoundError(f"there is no browser on the PATH: install one of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(CHROMIUM))
        try:
            yield browser
        finally:
            browser.close()
