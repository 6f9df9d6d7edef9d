"""The explorer that launches both policies: recorded and measured are two things, and are never mixed up."""

from __future__ import annotations

import numpy as np
import pytest

from course import gpu
from course.explore import Explorer
from course.figures import theme
from course.lessons.lab04 import launched
from course.lessons.lab04.launched import CONTROLS, MOST_ROWS, launch_explorer, recorded
from course.lessons.lab04.three_batchers import STEP
from tests.helpers.figures import valid

SETTINGS = [{}, *({c.name: c.stops[i] for c in CONTROLS} for i in (0, -1))]


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    """On NumPy."""
    return launch_explorer(gpu.device("numpy"))


def test_its_text_is_recorded_alone_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launched, "layer", lambda _: pytest.fail("a step was computed"))
    text = launch_explorer(gpu.device("numpy")).text()
    assert text == launch_explorer().text() and "measured" not in text
    assert text.startswith(f"24 requests, launched [{STEP.badge}]")


@pytest.mark.parametrize("settings", SETTINGS)
def test_every_setting_shows_both(explorer: Explorer, settings: dict[str, float]) -> None:
    found = explorer.compute(**settings)
    head, steps, padding, card, here = explorer.rows(found)
    assert head == ("", "static", "continuous", "gain") and padding[2] == "0%"
    assert card[0] == f"recorded: {STEP.card}" and here[0] == f"measured here: {gpu.device('numpy').name}"
    for column, (name, run) in enumerate(found.runs.items(), start=1):
        assert steps[column] == f"{len(run.steps):,}" and len(found.measured.steps[name]) == len(run.steps)
        assert (found.measured.steps[name] > 0).all() and run.steps.useful.sum() == run.workload.output_tokens.sum()
        assert (run.steps.decodes + run.steps.prefill_tokens).max() <= MOST_ROWS
    figure = explorer.figure(found)
    valid(figure)
    assert [note.text for note in figure.layout.annotations] == ["<b>recorded</b>", "<b>measured here</b>"]
    lines = [line for line in figure.data if line.name in found.runs]
    assert len(lines) == 4 and {line.line.color for line in lines} == {theme.COLOURS[n] for n in found.runs}
    for line in lines:  # both policies deliver the same tokens
        assert line.y[-1] == found.runs["static"].workload.output_tokens.sum()


def test_a_setting_is_computed_once(explorer: Explorer) -> None:
    first, again = explorer.compute(), explorer.compute()
    assert first.measured is again.measured and first.measured is not explorer.compute(max_num_seqs=4).measured


def test_one_slow_step_does_not_count() -> None:
    """Of steps with as many rows the shortest counts, and each number of rows is computed several times."""
    asked: list[int] = []

    def compute(rows: int) -> float:
        asked.append(rows)
        return 100.0 if asked.count(rows) == 1 else 1e-3

    bench = launched._Bench(gpu.device("numpy"))
    bench._layer = compute
    found = bench(8, recorded(8, 1.0).runs)
    assert all((steps == 1e-3).all() for steps in found.steps.values())
    assert min(asked.count(rows) for rows in set(asked[1:])) >= launched.TIMES


def test_a_kernel_that_fails_leaves_the_recording_and_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: gpu.Device) -> None:
        raise gpu.KernelError("decode_step.cu does not compile, line 3: no")

    monkeypatch.setattr(launched, "layer", fail)
    explorer = launch_explorer(gpu.device("numpy"))
    found = explorer.compute()
    assert found.warnings == ("Nothing is measured here: decode_step.cu does not compile, line 3: no.",)
    assert explorer.rows(found)[-1] == ("measured here", "-", "-", "-")
    assert len(explorer.figure(found).layout.annotations) == 1


def test_a_layer_computes_a_step() -> None:
    compute = launched.layer(gpu.device("numpy"))
    assert compute(1) > 0 and compute(MOST_ROWS) > 0


def test_padding_costs_seconds_on_the_card() -> None:
    """Wasted slot-steps are wasted seconds: nearly the ratio of the steps."""
    runs = recorded(8, 1.0).runs
    static, continuous = (run.steps.seconds.sum() for run in runs.values())
    steps = len(runs["static"].steps) / len(runs["continuous"].steps)
    assert static / continuous == pytest.approx(steps, rel=0.1) and np.isfinite(static)
