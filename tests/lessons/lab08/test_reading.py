"""The explorer that reads K and V here: recorded and measured are two things, and are never mixed up."""

from __future__ import annotations

import pytest

from course import gpu
from course.explore import Explorer
from course.figures import theme
from course.lessons.lab08 import reading
from course.lessons.lab08.reading import BATCH, CONTEXT, KV_HEADS, reading_explorer
from course.steptime import Step, recorded
from tests.gpu.conftest import queue_on
from tests.helpers.figures import valid

CARD = recorded("h100-llama3-8b")
TOKEN = 2 * 32 * 8 * 128 * 2


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """On NumPy, with no time to launch anything twice: what a slow machine shows."""
    return reading_explorer(gpu.device("numpy"), max_seconds=0)


def test_its_text_is_recorded_alone_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_launch", lambda *_: pytest.fail("something was launched"))
    text = reading_explorer(gpu.device("numpy")).text()
    assert text == reading_explorer().text() and "measured" not in text
    assert text.startswith(f"Reading K and V [{CARD.badge}]")


@pytest.mark.parametrize("context", CONTEXT.stops)
def test_the_recorded_step(explorer: Explorer, context: int) -> None:
    found = reading_explorer(gpu.device("numpy")).compute(context=context)
    assert found.step == CARD(Step(BATCH, BATCH * context, ())) > found.without > 0
    assert found.kv_bytes == BATCH * context * TOKEN
    assert 0.5 < found.kv_bytes / (found.step - found.without) / 3.35e12 < 0.95  # a real card, below its data sheet


@pytest.mark.parametrize("context", [CONTEXT.low, CONTEXT.default])
def test_every_setting_shows_both(explorer: Explorer, context: int) -> None:
    found = explorer.compute(context=context)
    heads, where, what, size, *_ = explorer.rows(found)
    assert heads[1:] == ("recorded", "measured here") and where[1] == CARD.card
    assert where[2] == f"{gpu.device('numpy').name}, NumPy"
    assert what[1:] == ("32 sequences, all layers", "1 sequence, one layer, float32")
    assert size[2] == f"{2 * context * 8 * 128 * 4 / 1e6:.1f} MB"
    assert set(found.measured.seconds) == set(KV_HEADS) and min(found.measured.seconds.values()) > 0
    figure = explorer.figure(found)
    valid(figure)
    assert figure.data[-1].marker.color == theme.COLOURS["measured"]
    assert [note.text.split(":")[0] for note in figure.layout.annotations] == ["recorded", "measured here"]


def test_a_context_is_launched_once(explorer: Explorer) -> None:
    first, again = (explorer.compute(context=CONTEXT.default) for _ in range(2))
    assert first.measured is again.measured


def test_a_device_that_fails_leaves_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise gpu.KernelError("the driver is gone")

    monkeypatch.setattr(reading, "_launch", fail)
    explorer = reading_explorer(gpu.device("numpy"), max_seconds=0)
    found = explorer.compute(context=CONTEXT.default)
    assert found.warnings == ("Nothing is measured here: the driver is gone.",)
    assert explorer.rows(found)[1] == ("where", CARD.card, "-")
    valid(explorer.figure(found))


@pytest.mark.gpu
def test_nothing_on_a_gpu_is_read_faster_than_its_memory() -> None:
    """By a stopwatch of another stream all would take no time. No card reads 20 TB/s from its caches and memory."""
    found = reading._Bench(queue_on("cuda").device, 0.05)(4_096)
    assert found.sequences == BATCH and found.element_bytes == 2
    for kv_heads in KV_HEADS:
        assert found.seconds[kv_heads] > found.bytes(kv_heads, 4_096) / 20e12
