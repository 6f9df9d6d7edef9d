"""The explorer over the live kernel: recorded numbers beside measured ones, never one in place of the other."""

from __future__ import annotations

import re

import numpy as np
import pytest

from course import gpu
from course.explore import Explorer
from course.explore.kernel import CONTROLS, kernel_explorer
from course.figures import kernel, theme
from course.gpu.recordings import decode_step

SETTINGS = [{c.name: c.stops[i] for c in CONTROLS} for i in (0, -1)] + [{"work": 1_024, "threads": 1_024, "batch": 2}]


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """On NumPy, with little time: what a slow machine shows."""
    return kernel_explorer(gpu.device("numpy"), max_seconds=0.02)


def test_its_text_is_recorded_alone_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DecodeStep", lambda *_: pytest.fail("a kernel was launched"))
    text = kernel_explorer(gpu.device("numpy")).text()
    assert text == kernel_explorer().text()
    assert text.startswith(f"A decode step over the batch [{decode_step().badge}]")
    assert "measured" not in text and "recorded: H100" in text
    curve = decode_step().at(16_384, 256)
    (shown,) = re.findall(r"step time +([\d.]+) us", text)
    assert abs(float(shown) - 1e6 * curve.seconds[curve.batch == 16][0]) <= 0.05


@pytest.mark.parametrize("settings", [{}, *SETTINGS])
def test_every_setting_shows_both(explorer: Explorer, settings: dict[str, int]) -> None:
    found = explorer.compute(**settings)
    rows = explorer.rows(found)
    assert rows[0][1:] == ("recorded: H100", f"measured here: {gpu.device('numpy').name}, NumPy on one CPU core")
    assert all(row[1] != "-" for row in rows[1:])
    assert min(found.measured.seconds) == 1 and all(seconds > 0 for seconds in found.measured.seconds.values())
    unmeasured = found.batch not in found.measured.seconds
    assert (rows[1][2] == "-") == unmeasured == bool(found.warnings)
    lines = {line.name: line for line in explorer.figure(found).data}
    assert lines["H100"].line.color == theme.COLOURS["recorded"]
    assert lines["this machine"].line.color == theme.COLOURS["measured"]


def test_moving_the_batch_measures_nothing_again(explorer: Explorer) -> None:
    first, second = explorer.compute(batch=1), explorer.compute(batch=2)
    assert first.measured is second.measured and first.measured is not explorer.compute(threads=64).measured


def test_a_kernel_that_fails_leaves_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise gpu.KernelError("decode_step.cu does not compile, line 3: no")

    monkeypatch.setattr(gpu, "DecodeStep", fail)
    explorer = kernel_explorer(gpu.device("numpy"))
    found = explorer.compute()
    assert found.warnings == ("Nothing is measured here: decode_step.cu does not compile, line 3: no.",)
    assert {line.name for line in explorer.figure(found).data} == {"H100", "kernel alone", "empty launch"}
    assert explorer.rows(found)[1][1] != "-" and explorer.rows(found)[1][2] == "-"


def test_the_figure_without_a_measurement_is_the_same_everywhere() -> None:
    profile = decode_step()
    figure = kernel.steps(profile.at(4_096, 64), profile.empty_seconds, "H100", 8)
    assert len(figure.data) == 4 and figure.layout.yaxis.title.text == "step time [ms]"
    for line in figure.data:
        assert list(line.y) == theme.round_digits(np.array(line.y, dtype=float))
    heights = sorted(note.y for note in figure.layout.annotations if note.xref == "x domain")
    assert (np.diff(heights) > 0.4).all()  # names that do not lie on each other


def test_an_unknown_recording() -> None:
    with pytest.raises(ValueError, match="no recording of decode_step is called 'mi300x'; there are h100_decode_step"):
        kernel_explorer(recording="mi300x")
