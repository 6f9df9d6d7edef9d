"""An event loop that does not wait: where it has nothing to do, its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.helpers.remembered import words_from_memory as words_from_memory


class Clock(asyncio.SelectorEventLoop):
    """What computes takes no time here, so no test that uses it depends on the speed of the machine."""

    now = 100.0

    def __init__(self) -> None:
        loop = self

        class Jump(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                loop.now += timeout or 0.0
                return super().select(0)

        super().__init__(Jump())

    def time(self) -> float:
        return self.now

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.run_until_complete(work)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The loop, whose clock is `time.monotonic` as well."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.time)
    yield clock
    clock.close()
