"""Each incident's own page names it and nothing else; its page after the repair, and healthy pages, name none."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from course.cli import app
from course.desk.catalogue import CORE, ELECTIVES
from course.incidents import fitting, graphs, page, scenes, table
from course.incidents.signals import signals
from course.look import reading
from tests.helpers.figures import valid
from tests.helpers.sizes import size

SEEDS = range(size(1, 5))
OF_THE_NOTES = {"window", "plateau", "mixed", "gaps", "paging", "bursts", "outside"}


def named(text: str) -> list[str]:
    return [row["incident"] for row in fitting(text)]


def test_the_seven_rows_of_the_notes_are_there_and_those_that_they_lack() -> None:
    assert set(table()) == set(scenes.SCENES) >= OF_THE_NOTES | {"speculation", "ageing", "bucket"}
    for id, one in table().items():
        assert set(one) == {"symptom", "next", "cause", "repair", "lab", "fits"}, id
        assert one["lab"] in (*CORE, *ELECTIVES) and one["fits"], id
        assert set(one["fits"]) <= set(signals("")), id


def test_without_a_metrics_page_nothing_fits_and_the_lines_are_read_once(monkeypatch, tmp_path) -> None:
    """So a log alone is not read for incidents: of each, one signal at least is of a page."""
    lines = "".join(
        f"{line}\n" for line in page.text(scenes.seen("slots", False, 0)).splitlines() if "Running:" in line
    )
    found = signals(lines)
    assert found["running"] > 0 and all(
        any(found[name] != found[name] for name in one["fits"]) for one in table().values()
    )
    log, calls, read = tmp_path / "server.log", [], reading.read
    log.write_text(lines)
    monkeypatch.setattr(reading, "read", lambda *given: calls.append(given) or read(*given))
    assert CliRunner().invoke(app, ["look", str(log)]).exit_code == 0 and len(calls) == 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("id", scenes.SCENES)
def test_its_own_page_names_it_alone_and_the_repair_mends_it(id: str, seed: int) -> None:
    assert named(page.text(scenes.seen(id, False, seed))) == [id]
    assert named(page.text(scenes.seen(id, True, seed))) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", scenes.HEALTHY)
def test_a_healthy_page_names_none(name: str, seed: int) -> None:
    assert named(page.text(scenes.seen(name, False, seed))) == []


def test_a_page_says_what_the_run_did() -> None:
    """Counted again from the run's own arrays, and from the text as an operator would."""
    seen = scenes.seen("an afternoon")
    run, text = seen.run, page.text(seen)
    ended = int((run.response <= seen.end).sum())
    assert f"vllm:e2e_request_latency_seconds_count {ended}.0" in text
    tokens = float(re.search(r"^vllm:generation_tokens_total (\S+)", text, re.MULTILINE)[1])
    assert tokens == run.steps.useful[run.steps.end <= seen.end].sum()
    found = signals(text)
    done = run.response <= seen.end
    assert found["queue_s"] == pytest.approx(run.queue_wait[done].mean()) and found["outside_s"] == pytest.approx(0.03)
    running = [int(number) for number in re.findall(r"Running: (\d+) reqs", text)]
    assert found["running"] == pytest.approx(sum(running) / len(running)) and len(running) == len(seen.at())
    middle = seen.at()[5]
    assert running[5] == ((run.admitted <= middle) & (run.response > middle)).sum()
    assert text.startswith("# written by the simulator")


NO_SIGNALS = ["", "nothing of an engine", "vllm:generation_tokens_total nan\nvllm: 1", "\x1b[31m" * 50,
              'vllm:x{route="a} 1\nDCGM_FI_PROF_GR_ENGINE_ACTIVE 1e999']  # fmt: skip


@pytest.mark.parametrize("text", NO_SIGNALS)
def test_a_text_that_holds_no_signal_fits_nothing(text: str) -> None:
    assert named(text) == []


def test_half_a_page_is_never_worse_than_none() -> None:
    """A page cut after any of its lines names the incident, or nothing: no other one."""
    lines = page.text(scenes.seen("bucket")).splitlines()
    for cut in range(0, len(lines), size(40, 10)):
        assert named("\n".join(lines[:cut])) in ([], ["bucket"])


def test_the_command_prints_the_row_and_says_none() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["look"], input=page.text(scenes.seen("bucket")))
    assert shown.exit_code == 0, shown.output
    one = table()["bucket"]
    assert "Incident: bucket: outside share" in shown.stdout and f"Repair: {one['repair']}. Lab 17" in shown.stdout
    healthy = runner.invoke(app, ["look"], input=page.text(scenes.seen("an afternoon")))
    assert healthy.exit_code == 0 and "Incidents: none of the known ones fits this page." in healthy.stdout
    as_json = json.loads(runner.invoke(app, ["look", "--json"], input=page.text(scenes.seen("gaps"))).stdout)
    assert [row["incident"] for row in as_json["incidents"]] == ["gaps"]


def test_every_incident_has_its_graphs() -> None:
    drawn = graphs.figure("bucket")
    valid(drawn)
    assert len(drawn.data) == 8  # four panels, before and after
    found = graphs.graphs(scenes.seen("slots"))
    assert set(found.running[2:]) == {20} and found.waiting[-1] > 100
