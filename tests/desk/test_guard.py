"""The course's server under a configuration that opens it to anybody stays closed, unless the command line says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.places import ROOT
from tests.helpers.sizes import PATIENCE

HOSTILE = """
c.ServerApp.ip = "0.0.0.0"
c.ServerApp.token = ""
c.IdentityProvider.token = ""
c.ServerApp.password = ""
c.ServerApp.disable_check_xsrf = True
c.ServerApp.allow_origin = "*"
c.ServerApp.allow_credentials = True
c.ServerApp.tornado_settings = {"disable_check_xsrf": True}
"""


@contextmanager
def started(folder: Path, *options: str) -> Iterator[dict]:
    """The server as `make lab` starts it; yields what it writes down about itself, and its log."""
    config, runtime, log = folder / "config", folder / "runtime", folder / "log"
    config.mkdir()
    (config / "jupyter_server_config.py").write_text(HOSTILE)
    own = {"JUPYTER_CONFIG_DIR": config, "JUPYTER_RUNTIME_DIR": runtime, "JUPYTER_DATA_DIR": folder / "data",
           "COURSE_PROGRESS_DIR": folder / "progress", "IPYTHONDIR": folder / "ipython"}  # fmt: skip
    command = [sys.executable, "-m", "course.desk.workspace", f"--to={folder / 'labs'}", "--no-browser", *options]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {k: str(v) for k, v in own.items()},
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
    try:
        deadline = time.monotonic() + PATIENCE
        while not (written := list(runtime.glob("jpserver-*.json"))):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        time.sleep(0.5)  # the file is there a moment before it is whole
        yield json.loads(written[0].read_text()) | {"log": log}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def asked(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer."""
    request = urllib.request.Request(url, method=method, headers=headers, data=b"{}" if method == "POST" else None)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers)


@pytest.mark.skipif(os.name != "posix", reason="ends a group of processes")
def test_a_hostile_configuration_opens_nothing(tmp_path: Path) -> None:
    with started(tmp_path, "--port=0") as server:
        assert server["hostname"] == "127.0.0.1" and len(server["token"]) >= 32
        url, foreign = server["url"], {"Origin": "http://evil.example", "Referer": "http://evil.example/"}
        assert asked(f"{url}api/contents")[0] == asked(f"{url}api/kernels", "POST")[0] == 403
        login = {"Authorization": f"token {server['token']}"}
        assert asked(f"{url}api/contents", **login)[0] == 200
        status, headers = asked(f"{url}api/kernels", "POST", **foreign)
        assert status in (403, 404) and "Access-Control-Allow-Origin" not in headers  # 404: hidden from foreign pages
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(f"{url}lab?token={server['token']}", timeout=PATIENCE).close()  # it has the cookie from now on
        with pytest.raises(urllib.error.HTTPError, match="403"):  # which a forged request sends along, without _xsrf
            browser.open(urllib.request.Request(f"{url}api/kernels", method="POST", data=b"{}"), timeout=PATIENCE)
        said = server["log"].read_text()
        for word in ("asks for a token", "forgery (XSRF)", "its own pages alone", f"token={server['token']}"):
            assert word in said


@pytest.mark.skipif(os.name != "posix", reason="ends a group of processes")
def test_the_command_line_may_open_it(tmp_path: Path) -> None:
    with started(tmp_path, "--port=0", "--IdentityProvider.token=", "--ServerApp.allow_origin=*") as server:
        assert server["token"] == ""
        status, headers = asked(f"{server['url']}api/contents", Origin="http://there.example")
        assert status == 200 and headers["Access-Control-Allow-Origin"] == "*"
