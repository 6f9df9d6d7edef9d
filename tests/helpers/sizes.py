"""How much the tests try: `make test` a small form of what is slow by nature, `make test-all` the whole.

COURSE_TESTS in the environment says which: nothing for the small form, `all` for the whole, `nightly` for the whole
with fifty times as many random cases, which differ each time. docs/benchmarks.md lists what the small form leaves out.
"""

from __future__ import annotations

import os
from typing import TypeVar

import hypothesis
import pytest

T = TypeVar("T")

PATIENCE = 600
"""Seconds of the clock after which a process that a test has started, or an answer, is given up. Only what hangs takes
so long: no test is about speed."""

ASKED = os.environ.get("COURSE_TESTS", "")
if ASKED not in ("", "all", "nightly"):
    raise ValueError(f"COURSE_TESTS is {ASKED!r}: leave it out, or set it to all or nightly")
WHOLE = ASKED != ""
NIGHTLY = ASKED == "nightly"

# For a test that has no small form: `make test` skips it.
in_test_all = pytest.mark.skipif(not WHOLE, reason="slow by nature: `make test-all` runs it")


def size(small: T, whole: T) -> T:
    """Return the first in `make test`, the second in `make test-all`: numbers of cases, seeds, lists of parameters."""
    return whole if WHOLE else small


def examples(whole: int, small: int | None = None) -> hypothesis.settings:
    """Settings for a test on that many random cases, in `make test` on a quarter of them where `small` does not say.

    The cases are the same in each run, unless it is nightly.
    """
    number = size(max(whole // 4, 5) if small is None else small, whole)
    return hypothesis.settings(
        max_examples=50 * number if NIGHTLY else number,
        derandomize=not NIGHTLY,
        deadline=None,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
