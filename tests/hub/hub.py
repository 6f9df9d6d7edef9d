"""A real JupyterHub on 127.0.0.1, as `make hub-test` has installed it, and learners who talk to it over HTTP."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import requests

from tests.helpers.places import ROOT
from tests.helpers.sizes import PATIENCE

BIN = ROOT / ".hub" / "venv" / "bin"
PROXY = ROOT / ".hub" / "node_modules" / ".bin" / "configurable-http-proxy"


class Hub:
    """One hub with its proxy; `stop` and `start` are a restart that leaves the learners' servers at work."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.homes = folder, folder / "homes"
        self.password, self.culler = secrets.token_hex(8), secrets.token_hex(16)
        ports = _free_ports(3)
        self.url = f"http://127.0.0.1:{ports[0]}"
        own = {
            "HUB_FOLDER": str(folder), "HUB_PROXY": str(PROXY), "HUB_PORTS": " ".join(map(str, ports)),
            "HUB_PASSWORD": self.password, "HUB_CULLER": self.culler, "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex(16),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        alien = ("COURSE_", "JUPYTER", "MY_LABS", "XDG_", "PYTHON", "IPYTHONDIR", "VIRTUAL_ENV")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(alien)} | own
        self.homes.mkdir()

    def start(self) -> None:
        """Start the hub, and the proxy if none runs, and wait until they answer."""
        command = [str(BIN / "jupyterhub"), "--config", str(ROOT / "tests" / "hub" / "jupyterhub_config.py")]
        with (self.folder / "hub.log").open("a") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        wait(lambda: requests.get(f"{self.url}/hub/api/", timeout=10).status_code == 200, self.log)

    def stop(self) -> None:
        """Stop the hub alone."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)

    def end(self) -> None:
        """End the proxy and every learner's server, whatever state they are in: all that runs in this folder."""
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            self.stop()
        numbers = {pid for home in self.homes.iterdir() for pid in processes(home)}
        with suppress(OSError, ValueError):
            numbers.add(int((self.folder / "proxy.pid").read_text().split()[0]))
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def log(self) -> str:
        """The end of what the hub has printed."""
        return (self.folder / "hub.log").read_text()[-3_000:]

    def cull(self, name: str) -> None:
        """Stop a learner's server, by the call that jupyterhub-idle-culler makes."""
        address = f"{self.url}/hub/api/users/{name}/server"
        login = {"Authorization": f"token {self.culler}"}
        assert requests.delete(address, headers=login, timeout=PATIENCE).status_code in (202, 204)
        wait(lambda: not processes(self.homes / name), self.log)


class Learner:
    """Somebody with a browser's cookies, logged in over HTTP."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.hub, self.name, self.home = hub, name, hub.homes / name
        self.http = requests.Session()
        self.url = f"{hub.url}/user/{name}/"
        self.token = ""

    def log_in(self) -> None:
        """Fill in the form of the hub."""
        page = f"{self.hub.url}/hub/login"
        self.http.get(page, timeout=PATIENCE)
        form = {"username": self.name, "password": self.hub.password, "_xsrf": self._xsrf("/hub/")}
        answer = self.http.post(page, data=form, timeout=PATIENCE, allow_redirects=False)
        assert answer.status_code == 302, answer.status_code  # 403 where the password is wrong

    def start_server(self) -> None:
        """Ask the hub for a server, wait until it is ready, and open its page once, which sets its cookie."""
        self.of_hub("POST", "/server")
        wait(lambda: self.of_hub("GET").json()["servers"].get("", {}).get("ready"), self.hub.log)
        self.http.get(f"{self.url}lab", timeout=PATIENCE).raise_for_status()
        self.token = self.token or self.of_hub("POST", "/tokens", json={}).json()["token"]

    def of_hub(self, method: str, path: str = "", **extra: Any) -> requests.Response:
        """Call the hub's API about this learner, with the cookies of the page."""
        headers = {"X-XSRFToken": self._xsrf("/hub/"), "Referer": f"{self.hub.url}/hub/home"}
        address = f"{self.hub.url}/hub/api/users/{self.name}{path}"
        return self.http.request(method, address, headers=headers, timeout=PATIENCE, **extra)

    def asks(self, path: str, by: str = "token", method: str = "GET", **extra: Any) -> requests.Response:
        """Call an API of a server, this learner's or, with a whole address, another's; by cookies or by the token."""
        address = path if path.startswith("http") else self.url + path
        if by == "cookies":
            return self.http.request(method, address, timeout=PATIENCE, allow_redirects=False, **extra)
        login = {"Authorization": f"token {self.token}"}
        return requests.request(method, address, headers=login, timeout=PATIENCE, allow_redirects=False, **extra)

    def _xsrf(self, path: str) -> str:
        return next(
            cookie.value or "" for cookie in self.http.cookies if cookie.name == "_xsrf" and cookie.path == path
        )


@contextmanager
def running(folder: Path) -> Iterator[Hub]:
    """A hub, ended with all that it started."""
    hub = Hub(folder)
    try:
        hub.start()
        yield hub
    finally:
        hub.end()


def processes(home: Path) -> list[int]:
    """The processes whose home folder is this one: a learner's server and kernels."""
    mark, found = f"\0HOME={home}\0".encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in b"\0" + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def pss_mb(pid: int) -> float:
    """The memory of a process in MB, with pages that several share counted in parts; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1e3
    return 0.0


def cpu_s(pid: int) -> float:
    """The CPU time of a process in seconds, user and system."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def wait(until: Callable[[], Any], log: Callable[[], str] = str) -> None:
    """Wait until something is true; AssertionError with the log after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(requests.RequestException):
            if until():
                return
        time.sleep(0.3)
    raise AssertionError(f"it did not happen within {PATIENCE} s:\n{log()}")


def _free_ports(number: int) -> list[int]:
    probes = [socket.socket() for _ in range(number)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
