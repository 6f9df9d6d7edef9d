"""`make bundle-check`: what `make bundle` made is unpacked elsewhere, installed and opened without any index.

    python -m tests.bench.offline [BUNDLE]

The index is a closed port of this machine and, where the system allows it, the whole process tree has no network at all
but its own loopback (`unshare`). JupyterLab must answer with the start page, and a kernel must import the course.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

CLOSED = "http://127.0.0.1:9/simple"
CODE = "from course import serve; from course.exercises import Lab; print('the course is here')"


def main() -> int:
    """Check a bundle, by default the newest in dist/. The exit status is 0 where all of it works."""
    named = sys.argv[1:] or sorted(map(str, Path("dist").glob("*.tar")), key=os.path.getmtime)[-1:]
    if not named:
        print("There is no bundle in dist/: run `make bundle`.", file=sys.stderr)
        return 1
    if "COURSE_OFFLINE" not in os.environ:
        return _without_network([sys.executable, "-m", "tests.bench.offline", str(Path(named[0]).resolve())])
    with tempfile.TemporaryDirectory() as place:
        return _check(Path(named[0]), Path(place))


def _without_network(command: list[str]) -> int:
    """Run a command with an index that does not answer, in a network of its own where that may be made."""
    environment = {**os.environ, "PIP_INDEX_URL": CLOSED, "PIP_NO_CACHE_DIR": "1", "COURSE_OFFLINE": "index"}
    environment["PIP_CONFIG_FILE"] = os.devnull
    alone = ["unshare", "--net", "sh", "-c", 'ip link set lo up 2>/dev/null; exec "$@"', "sh"]
    allowed = shutil.which("unshare") and not subprocess.run([*alone, "ip", "addr"], capture_output=True).returncode
    if allowed:
        environment["COURSE_OFFLINE"] = "network"
    return subprocess.run([*(alone if allowed else []), *command], env=environment).returncode


def _check(bundle: Path, place: Path) -> int:
    kind = "no network" if os.environ["COURSE_OFFLINE"] == "network" else "an index that does not answer"
    print(f"{bundle.name}: {bundle.stat().st_size / 1e6:,.0f} MB, with {kind}")
    with tarfile.open(bundle) as archive:
        archive.extractall(place, filter="data")
    (folder,) = place.iterdir()
    environment = {**os.environ, "COURSE_PROGRESS_DIR": str(place / "progress"), "HOME": str(place / "home")}
    environment |= {"JUPYTER_RUNTIME_DIR": str(place / "runtime"), "PYTHONPATH": ""}
    began = time.perf_counter()
    subprocess.run(["make", "lab", "ARGS=--copy-only"], cwd=folder, env=environment, check=True)
    print(f"installed in {time.perf_counter() - began:.0f} s")
    line = ["make", "lab", "ARGS=--no-browser --port=0"]
    with subprocess.Popen(line, cwd=folder, env=environment, start_new_session=True) as server:
        try:
            page = _answer(place / "runtime", "api/contents/START.md")["content"]
        finally:
            os.killpg(server.pid, signal.SIGTERM)
    code = [str(folder / ".venv/bin/python"), "-c", CODE]
    said = subprocess.run(
        code, cwd=folder / "my-labs", env=environment, capture_output=True, text=True, check=True
    ).stdout
    good = bool(re.search(r"\]\(\d\d_\w+\.ipynb\)", page)) and "the course is here" in said
    print("JupyterLab answers with the start page, and the course can be imported." if good else page)
    return 0 if good else 1


def _answer(runtime: Path, path: str) -> dict:
    """What the server answers, once it does."""
    for _ in range(240):
        for found in runtime.glob("jpserver-*.json"):
            try:
                about = json.loads(found.read_text())
                url = f"{about['url']}{path}?token={about['token']}"
                with urllib.request.urlopen(url, timeout=20) as answer:
                    return json.loads(answer.read())
            except (OSError, ValueError):
                pass
        time.sleep(0.5)
    raise RuntimeError("JupyterLab does not answer")


if __name__ == "__main__":
    sys.exit(main())
