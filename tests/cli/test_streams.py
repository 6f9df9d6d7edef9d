"""The `course` command where its output goes wrong: closed, full, nobody reads on, letters that cannot be shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from course import traces
from tests.helpers.sizes import PATIENCE, size

COMMAND = [sys.executable, "-c", "from course.cli import main; main()"]
SMALL = [*COMMAND, "simulate", "--rate", "20", "--num-requests", "60"]
POSIX = pytest.mark.skipif(os.name != "posix", reason="descriptors are closed by a POSIX shell")


def called(command: list[str], **how) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, text=True, timeout=PATIENCE, **{"stderr": subprocess.PIPE, **how})


def with_closed(number: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, started by a shell that closes one of its streams."""
    return called(["sh", "-c", f'exec "$@" {number}>&-', "sh", *arguments], stdout=subprocess.PIPE)


@POSIX
@pytest.mark.parametrize("line", [SMALL, [*COMMAND, "--version"], [*COMMAND, "--help"]], ids=["run", "version", "help"])
def test_a_closed_output_is_a_sentence(line: list[str]) -> None:
    done = with_closed(1, *line)
    assert done.returncode == 2
    assert done.stderr == "course: the standard output is closed: there is nowhere to write to\n"


@POSIX
def test_closed_errors_take_nothing_from_the_output() -> None:
    with_warning = [*SMALL, "--block-size", "8"]
    done = with_closed(2, *with_warning)
    assert done.returncode == 0 and done.stdout == called(with_warning, stdout=subprocess.PIPE).stdout
    assert with_closed(2, *COMMAND, "simulate", "--rate", "nan").returncode == 2


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="this system has no SIGPIPE")
def test_it_ends_quietly_when_nobody_reads_on() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = called(SMALL, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == -signal.SIGPIPE and done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = called(SMALL, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "course: reading or writing failed: No space left on device\n"


def odd_trace(folder: Path, name: bytes) -> Path:
    path = Path(os.fsdecode(os.path.join(os.fsencode(folder), name)))
    try:
        shutil.copy(traces.example(), path)
    except OSError:
        pytest.skip("this file system does not take such a name")
    return path


NO_TEXT, NO_LATIN = b"b\xff.csv", "\N{EURO SIGN}\N{GRINNING FACE}.csv".encode()
NAMES = size(
    small=[(NO_TEXT, "utf-8:strict"), (NO_LATIN, "ascii:strict")],
    whole=[(name, how) for name in (NO_TEXT, NO_LATIN) for how in ("utf-8:strict", "ascii:strict", "latin-1")],
)


@pytest.mark.parametrize(("name", "encoding"), NAMES)
def test_a_name_that_is_no_text_here(tmp_path: Path, name: bytes, encoding: str) -> None:
    path = odd_trace(tmp_path, name)
    line = [*COMMAND, "simulate", "--trace", str(path), "--head", "20"]
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    table = called(line, stdout=subprocess.PIPE, env=env, errors="replace")
    assert table.returncode == 0 and "20 requests" in table.stdout, table.stderr
    found = called([*line, "--json"], stdout=subprocess.PIPE, env=env)
    assert json.loads(found.stdout)["workload"]["name"] == path.stem
    missing = called([*COMMAND, "simulate", "--trace", f"{path}x"], env=env)
    assert missing.returncode == 2 and missing.stderr.startswith("course: cannot read ")


def test_a_name_keeps_to_its_line(tmp_path: Path) -> None:
    path = odd_trace(tmp_path, b"two\nlines\x1b[31m.csv")
    done = called([*COMMAND, "simulate", "--trace", str(path), "--head", "20"], stdout=subprocess.PIPE)
    assert done.stdout.startswith("two\\nlines\\x1b[31m: 20 requests")


@pytest.mark.parametrize("module", ["typer", "course.cli.simulate", "signal"])
def test_ctrl_c_while_it_starts_has_status_130(module: str) -> None:
    """As if the key were pressed while this module is imported."""
    code = f"""
import sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.modules.pop({module!r}, None)
sys.meta_path.insert(0, Pressed())
sys.argv = ["course", "simulate"]
from course.cli import main
main()
"""
    done = called([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (130, "course: stopped by Ctrl-C\n")


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    done = called([*COMMAND, "kvv"])
    assert (done.returncode, done.stderr) == (2, "course: No such command 'kvv'. Did you mean 'kv'?\n")


def test_a_missing_package_is_a_sentence() -> None:
    code = "import sys; sys.modules['typer'] = None; from course.cli import main"
    done = called([sys.executable, "-c", code])
    assert done.returncode == 1
    assert done.stderr.startswith("course: the installation is not complete (") and done.stderr.count("\n") == 1


def test_a_package_that_is_missing_later_is_a_sentence() -> None:
    code = "import sys; sys.modules['numpy'] = None; from course.cli import main; main()"
    done = called([sys.executable, "-c", code, "simulate", "--rate", "5"], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.count("\n") == 1
    assert done.stderr.startswith("course: the installation is not complete (") and "`course doctor`" in done.stderr


def test_it_starts_without_numpy() -> None:
    """Help is there at once, and `course doctor` also where NumPy is broken."""
    code = "import sys; sys.modules['numpy'] = None; from course.cli import main; main()"
    done = called([sys.executable, "-c", code, "--help"], stdout=subprocess.PIPE)
    assert done.returncode == 0 and "simulate" in done.stdout


@pytest.mark.parametrize("columns", [0, 5, 40])
def test_a_narrow_terminal_cuts_no_number(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    from course import KVCache, Workload, policies, serve, steptime
    from course.cli import output, report

    load, timing, cache = Workload.poisson(10, 50, 100, 20), steptime.Roofline("llama-3.1-8b", "H100"), KVCache(900)
    run = serve(load, policies.Continuous(8, 256), timing, cache)
    setup = report.Setup(load, timing, cache, {"ttft": 0.5, "tpot": None, "e2e": None}, {}, ())
    results = [report.Result(name, name, run.summary(ttft_slo=0.5), ()) for name in ("static", "continuous")]
    numbers = [line.split()[-1] for line in report.as_table(setup, results).splitlines() if line and line[-1].isdigit()]
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(output.sys, "stdout", SimpleNamespace(isatty=lambda: True))
    narrow = report.as_table(setup, results)
    assert len(numbers) > 20 and all(number in narrow for number in numbers)
    assert "\N{HORIZONTAL ELLIPSIS}" not in narrow


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("line", [["lab", "--", "--no-browser", "--port=0"], ["serve", "--port", "0"]], ids=" ".join)
def test_a_server_is_not_ended_by_a_client_who_hangs_up(line: list[str], tmp_path: Path) -> None:
    """SIGPIPE is ignored once it answers: with the default a browser that closes a connection would end it."""
    folders = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "COURSE_PROGRESS_DIR", "MY_LABS")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*COMMAND, *line], env=os.environ | {name: str(tmp_path) for name in folders}, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log,
        )  # fmt: skip

    def answers() -> bool:
        found = re.search(r"http://127[.]0[.]0[.]1:[1-9][0-9]*/", (tmp_path / "log").read_text())
        try:
            urllib.request.urlopen(found[0] if found else "http://127.0.0.1:1/", timeout=PATIENCE).close()
        except urllib.error.HTTPError:  # 401 and the like are answers too
            return True
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    try:
        end = time.monotonic() + PATIENCE
        while not answers():
            assert process.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
        ignored = int(Path(f"/proc/{process.pid}/status").read_text().split("SigIgn:")[1].split()[0], 16)
        assert ignored & 1 << (signal.SIGPIPE - 1)
    finally:
        process.kill()
        process.wait()
