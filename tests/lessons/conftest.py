"""What the tests of all lessons share."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from tests.helpers.remembered import words_from_memory as words_from_memory

LAB = re.compile(r"\blab(\d\d)\b|\[(\d\d)\b")
"""The lab of a test, in its name: test_x[lab04.one_trace], test_x[04-3]."""


def lab_of(item: pytest.Item) -> str:
    """The lab that a test of all lessons is about, or nothing."""
    found = LAB.search(item.name)
    return (found[1] or found[2]) if found else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file that go over all lessons take one lab after the other, so its runs can be forgotten."""
    files = [item.path for item in items]
    first = {path: files.index(path) for path in set(files)}
    items.sort(key=lambda item: (first[item.path], lab_of(item) if item.path.parent.name == "lessons" else ""))


class Kept:
    """The lab whose runs are remembered."""

    lab = ""


@pytest.fixture(autouse=True)
def one_lab_is_remembered(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lessons remember the runs that they have shown: those of nineteen labs at once are more than 1 GB."""
    lab = lab_of(request.node)
    if lab and lab != Kept.lab:
        Kept.lab = lab
        for name, module in list(sys.modules.items()):
            if name.startswith(("course.lessons.", request.module.__name__)):
                for value in list(vars(module).values()):
                    if callable(getattr(value, "cache_clear", None)):
                        value.cache_clear()
    yield
