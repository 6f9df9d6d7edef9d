"""The explorer that launches a prompt in chunks: recorded and measured are two things, and are never mixed up."""

from __future__ import annotations

import pytest

from course import gpu
from course.explore import Explorer
from course.figures import theme
from course.lessons.lab07 import chunk_explorer as launched
from course.lessons.lab07.chunk_explorer import CHUNK, PROMPT, chunk_explorer
from course.lessons.lab07.prompt_chunks import seconds_of_steps
from course.steptime import files, recorded

CARD = recorded("h200-llama3-8b-flash")
HERE = 4_096  # tokens of the prompt that NumPy computes


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """On NumPy, with no time to launch anything twice: what a slow machine shows."""
    return chunk_explorer(gpu.device("numpy"), max_seconds=0)


def test_its_text_is_recorded_alone_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched, "one_prompt", lambda *_: pytest.fail("something was launched"))
    text = chunk_explorer(gpu.device("numpy")).text()
    assert text == chunk_explorer().text() and "measured" not in text
    assert text.startswith(f"Launched in chunks [{CARD.badge}]")
    steps = seconds_of_steps(PROMPT, CHUNK.default)
    assert f"{1e3 * steps.max():.1f} ms" in text and f"{steps.sum():.2f} s" in text


@pytest.mark.parametrize("chunk", CHUNK.stops)
def test_every_chunk_size_was_recorded(chunk: int) -> None:
    steps = seconds_of_steps(PROMPT, chunk)
    assert len(steps) == PROMPT // chunk and (steps > 0).all() and HERE % chunk == 0


@pytest.mark.parametrize("chunk", [CHUNK.low, CHUNK.default, CHUNK.high])
def test_every_setting_shows_both(explorer: Explorer, chunk: int) -> None:
    found = explorer.compute(chunk=chunk)
    heads, where, what, beside, *rows = explorer.rows(found)
    assert heads[1:] == ("recorded", "measured here")
    assert where[1:] == (CARD.card, f"{gpu.device('numpy').name}, NumPy")
    assert what[1:] == ("32,768 tokens, all layers", "4,096 tokens, a matrix and attention") and beside[1:] == (
        "32 decodes",
        "nothing",
    )
    assert rows[0][1:] == (f"{PROMPT // chunk:,}", f"{HERE // chunk:,}") and not found.warnings
    assert len(found.measured.steps) == HERE // chunk and (found.measured.steps > 0).all()
    figure = explorer.figure(found)
    assert [len(bar.x) for bar in figure.data] == [PROMPT // chunk, HERE // chunk]
    inks = [note.font.color for note in figure.layout.annotations]
    assert inks == [theme.ink("recorded"), theme.ink("measured")]
    assert [note.text[3:11] for note in figure.layout.annotations] == ["recorded", "measured"]


def test_a_chunk_size_is_launched_once(explorer: Explorer) -> None:
    first, again = explorer.compute(chunk=CHUNK.default), explorer.compute(chunk=CHUNK.default)
    assert first.measured is again.measured and first.measured is not explorer.compute(chunk=CHUNK.high).measured


def test_each_chunk_is_launched_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to load, then all of them; the shortest of several launches counts for each."""
    ran: list[int] = []
    clock = iter([9.0, 3.0, 4.0, 5.0, 2.0, 6.0, 1.0])

    class Watch:
        def time(self, launch) -> tuple[float, float]:
            launch()
            return next(clock), 0.0

    class Pretended:
        tokens = 12

        def steps(self, chunk: int) -> list:
            return [lambda at=at: ran.append(at) for at in range(0, 12, chunk)]

        stopwatch = staticmethod(Watch)

    monkeypatch.setattr(launched, "one_prompt", lambda device, tokens: Pretended())
    monkeypatch.setattr(launched, "MOST", 2)
    found = launched._Bench(gpu.device("numpy"), 60.0)(4)
    assert ran == [0, 0, 4, 8, 0, 4, 8] and found.tokens == 12
    assert found.steps.tolist() == [2.0, 4.0, 1.0]


def test_a_kernel_that_fails_leaves_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise gpu.KernelError("decode_step.cu does not compile, line 3: no")

    monkeypatch.setattr(launched, "one_prompt", fail)
    explorer = chunk_explorer(gpu.device("numpy"))
    found = explorer.compute()
    assert found.warnings == ("Nothing is measured here: decode_step.cu does not compile, line 3: no.",)
    assert len(explorer.figure(found).data) == 1
    assert [row[2] for row in explorer.rows(found)[1:]] == ["-"] * 6


def test_an_unknown_recording() -> None:
    known = ", ".join(files.names("llama_step"))
    with pytest.raises(ValueError, match=f"no recording of llama_step is called 'mi300x'; there are {known}"):
        chunk_explorer(recording="mi300x")
