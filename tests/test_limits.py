"""A test has a limit of CPU time; one that waits for ever, or hangs outside of Python, ends too."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.helpers.places import ROOT
from tests.helpers.sizes import PATIENCE

TESTS = """
import ctypes, time, pytest

@pytest.mark.cpu_limit(0.2)
def test_computes():
    while True:
        pass

@pytest.mark.cpu_limit(0.2)
def test_waits():
    time.sleep(0.5)

@pytest.mark.timeout(1)
def test_waits_for_ever():
    while True:
        time.sleep(60)

def test_hangs_in_c():
    ctypes.PyDLL(None).sleep(600)  # no other thread of Python runs meanwhile, and no handler of a signal
"""


def test_each_kind_of_hanging_ends(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    line = [sys.executable, "-m", "pytest", "-v", "-c", str(ROOT / "pyproject.toml"), "--confcutdir", str(ROOT)]
    own = ["-p", "conftest", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "faulthandler_timeout=10"]
    done = subprocess.run(
        [*line, *own, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    ends = dict(re.findall(r"::(\w+) +(PASSED|FAILED)", done.stdout))
    assert ends == {"test_computes": "FAILED", "test_waits": "PASSED", "test_waits_for_ever": "FAILED"}
    assert "::test_hangs_in_c" in done.stdout and "Timeout" in done.stderr and "in test_hangs_in_c" in done.stderr
    assert "passed" not in done.stdout, "the process ended with the last test"


def test_whatever_make_test_leaves_to_test_all_is_listed() -> None:
    """Each file of tests that has a small form stands in the table of docs/benchmarks.md."""
    text = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    table = text.partition("### What `make test` leaves to `make test-all`")[2].partition("\n## ")[0]
    small = re.compile(r"^from tests\.helpers\.sizes import .*\b(size|in_test_all|WHOLE)\b", re.MULTILINE)
    files = [path for path in (ROOT / "tests").rglob("*.py") if small.search(path.read_text(encoding="utf-8"))]
    assert len(files) > 30
    assert [path.name for path in files if path.name not in table] == []
