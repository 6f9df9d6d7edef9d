"""`course results` reads what `course sweep` wrote: the same numbers, the knee, and what was refused."""

import json

import pytest
from typer.testing import CliRunner

from course import results
from course.cli import app
from course.sweep import OneProcess, rows_file, sweep
from tests.sweep import designs


@pytest.fixture
def path(tmp_path):
    grid = {"max_num_seqs": [4, 0], "rate": [1.0, 5.0, 20.0, 100.0]}
    sweep(designs.served, grid, executor=OneProcess(), resume=tmp_path / "mine.jsonl")
    return tmp_path / "mine.jsonl"


def test_every_run_that_was_served_is_a_result(path):
    rows = [row for row in rows_file.read(path) if row.refused is None]
    found = results.read_all(path)
    assert [one.name for one in found] == ["mine:0", "mine:1", "mine:2", "mine:3"]
    for one, row in zip(found, rows, strict=True):
        assert one.tool == "course sweep" and one.setup == {**row.settings, "seed": 0} and one.loop == "open"
        assert one.ours["ttft"]["p95"] == row.summary["ttft_p95"] and one.ours["itl"]["max"] == row.summary["itl_max"]
        assert one.totals["requests_per_second"] == row.summary["requests_per_second"]
        assert one.totals["requested_rate"] == row.settings["rate"]
        assert one.notes[0] == "Simulated: nothing of it was measured"
        assert one.notes[1].startswith("4 of 8 runs were refused, the first because 'max_num_seqs must be a whole")


def test_the_command_shows_them_and_names_the_knee(path):
    shown = CliRunner().invoke(app, ["results", str(path)])
    assert shown.exit_code == 0, shown.stderr
    assert "Simulated: nothing of it was measured" in shown.stdout and "The knee is" in shown.stdout


def test_a_last_line_that_was_cut_off_is_left_out(path):
    content = path.read_text()
    lines = content.splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:40]]))
    assert len(results.read_all(path)) == 2


def test_what_is_wrong_is_a_sentence(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines if line["refused"]))
    with pytest.raises(ValueError, match=r"mine\.jsonl holds no run that was not refused: 'max_num_seqs must"):
        results.read_all(path)
    lines[0]["summary"]["ttft_p95"] = -1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ValueError, match=r"row 1.*-1"):
        results.read_all(path)
