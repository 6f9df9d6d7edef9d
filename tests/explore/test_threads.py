"""Widgets are answered in a thread beside that of the cells: whoever comes second waits, and nothing is lost.

Each test holds one thread in the middle of its work and lets another begin. Where the two are kept apart the second
waits, and the test goes on after `SOON` seconds; where they are not, the second gets through and the views are wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from course.exercises.progress import Progress
from course.explore.tasks import DONE, Memory
from course.lm.threads import one_thread
from tests.helpers.toy_tasks import FIND, explorer, simulate

SOON = 0.3
"""Seconds in which a thread that is not stopped gets through; too short a time only lets a fault pass unseen."""
LONG = 20.0


class Held:
    """Work that stops in the middle, at the first call, until it is let go."""

    def __init__(self, work: Callable[..., Any] = lambda *_: None) -> None:
        self.work, self.began, self.go = work, threading.Event(), threading.Event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.began.is_set():
            self.began.set()
            assert self.go.wait(LONG)
        return self.work(*args, **kwargs)


def meanwhile(held: Held, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """Run `second` while `first` is held in the middle; return what the second returned."""
    found: list[Any] = []
    threads = [threading.Thread(target=first), threading.Thread(target=lambda: found.append(second()))]
    threads[0].start()
    assert held.began.wait(LONG)
    threads[1].start()
    threads[1].join(SOON)
    held.go.set()
    for thread in threads:
        thread.join(LONG)
    assert found, "the second thread raised, or still waits"
    return found[0]


def slide(view: Any, **settings: int) -> None:
    """Move sliders as a message of the browser does."""
    for name, value in settings.items():
        slider = view.controls[name]
        stops = dict(getattr(slider, "options", ()))  # a log slider says at which of its stops it is
        slider.set_state({"index": list(stops.values()).index(value)} if stops else {"value": value})


def agrees(view: Any) -> None:
    """Controls, settings, result, table and figure belong together."""
    shown = {name: control.value for name, control in view.controls.items()}
    expected = simulate(**shown)
    assert view.settings == shown and view.result == expected and view.error is None
    assert f"{expected['load']:.3f}" in view.table.value
    assert view.plot.traces[0]["y"] == [0.0, expected["load"]]


def test_a_cell_that_sets_while_a_slider_is_answered():
    held = Held(simulate)
    shown = explorer((), simulate=lambda rate, slots: held(rate, slots) if rate == 30 else simulate(rate, slots))
    shown._repr_mimebundle_()
    result = meanwhile(held, lambda: slide(shown.view, rate=30), lambda: shown.set(rate=7))
    assert result == simulate(7, 32)
    assert shown.view.controls["rate"].value == 7, "the cell came last"
    agrees(shown.view)


def test_reset_while_a_slider_is_answered():
    held = Held(simulate)
    shown = explorer((), simulate=lambda rate, slots: held(rate, slots) if rate == 30 else simulate(rate, slots))
    shown._repr_mimebundle_()
    meanwhile(held, lambda: slide(shown.view, rate=30), lambda: shown.view.reset.click())
    assert shown.view.settings == shown.defaults and shown.view.changed.value == ""
    assert shown.view.plot.drawing.move == 0, "no ghost"
    agrees(shown.view)


def test_a_task_is_judged_once_at_a_time():
    held = Held(lambda settings, result: False)
    record = Memory()
    shown = explorer((replace(FIND, reached=held),), record=record)
    shown._repr_mimebundle_()
    meanwhile(held, lambda: slide(shown.view, rate=10), lambda: shown.set(rate=11))
    assert shown.view.tasks.way.misses == 2
    assert "28% here" in shown.view.tasks.said.value, "the sentence is that of the last setting"


def test_show_me_while_a_slider_is_answered_is_no_miss_and_no_answer_of_the_slider():
    held = Held(simulate)
    shown = explorer((FIND,), simulate=lambda rate, slots: held(rate, slots) if rate == 40 else simulate(rate, slots))
    shown._repr_mimebundle_()
    slide(shown.view, rate=10), slide(shown.view, rate=11)
    view = shown.view
    meanwhile(held, lambda: slide(view, rate=40), lambda: view.tasks.show.click())
    assert view.tasks.way.states == {"full": DONE}, "the slider came first, and had found it"
    agrees(view)


def test_two_views_take_turns():
    """They may measure: two at a time would each take the cores from the other."""
    order: list[str] = []
    held = Held(lambda rate, slots: (order.append("one ends"), simulate(rate, slots))[1])
    one = explorer((), simulate=lambda rate, slots: held(rate, slots) if rate == 30 else simulate(rate, slots))
    other = explorer((), simulate=lambda rate, slots: (order.append("other"), simulate(rate, slots))[1])
    one._repr_mimebundle_(), other._repr_mimebundle_()
    order.clear()
    meanwhile(held, lambda: slide(one.view, rate=30), lambda: slide(other.view, rate=31))
    assert order == ["one ends", "other"]
    agrees(one.view), agrees(other.view)


# Progress that cannot be written, and is remembered


@pytest.fixture
def progress(tmp_path, monkeypatch):
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("course.base.files.replace", refused)
    progress = Progress(tmp_path)
    progress.change("03", "quiz", "first", lambda entry: [])
    assert not progress.kept()
    return progress


def test_two_answers_at_once_are_both_remembered(progress):
    held = Held()

    def add(name: str, wait: Callable[[], Any] = lambda: None) -> None:
        def edit(entry: Any) -> list[str]:
            wait()
            return [*(entry or []), name]

        progress.change("03", "quiz", "first", edit)

    meanwhile(held, lambda: add("a", held), lambda: add("b"))
    assert progress.lab("03")["quiz"]["first"] == ["a", "b"]


# The threads of the matrix products


def blas() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_the_threads_come_back_when_the_last_one_leaves():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, user_api="blas"):
        if blas() != {2}:
            pytest.skip("the matrix products of this NumPy have one thread")
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas() == {1}, "the second is still inside"
        second.__exit__(None, None, None)
        assert blas() == {2}
