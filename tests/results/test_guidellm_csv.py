"""guidellm's two CSV layouts say what its JSON report says, as far as a table can."""

import csv
import io
import json

import pytest

from course import results
from course.look import look
from tests.cli.test_cli import call
from tests.helpers.result_files import DATA, said

HEADS = {"guidellm_v0.csv": 1, "guidellm_v2.csv": 3}


@pytest.fixture
def table(tmp_path):
    """Reads a table after a change of its rows."""

    def read(name, change):
        rows = list(csv.reader(io.StringIO((DATA / name).read_text())))
        text = io.StringIO()
        csv.writer(text).writerows(change(rows))
        path = tmp_path / "table.csv"
        path.write_text(text.getvalue())
        return results.read_all(path)

    return read


@pytest.mark.parametrize("name", HEADS)
def test_a_table_says_what_the_report_says(name):
    found, report = results.read_all(DATA / name)[-1], results.read_all(DATA / name.replace("csv", "json"))[-1]
    assert (found.tool, found.loop) == (report.tool, report.loop) == ("guidellm", "open")
    assert found.requests is None and found.definitions["tpot"].tool == report.definitions["tpot"].tool
    for metric in ("ttft", "e2e"):
        for statistic in ("mean", "p50", "p90", "p99", "max"):  # rows of the report are differences of clock times
            there = report.summary[metric][statistic]
            assert found.summary[metric][statistic] == pytest.approx(there, abs=1e-9), (metric, statistic)
    names = "requests failed duration requested_rate requests_per_second output_tokens_per_second output_tokens"
    for total in names.split():
        assert found.totals[total] == report.totals[total], total
    assert said(found, "1 of 4 requests failed")


def test_each_row_is_a_run_with_its_rate():
    one, two = results.read_all(DATA / "guidellm_v2.csv")
    assert (one.name, two.name) == ("guidellm_v2:0", "guidellm_v2:1")
    assert [run.totals["requested_rate"] for run in (one, two)] == [1, 2]
    assert [run.totals["failed"] for run in (one, two)] == [0, 1]
    assert one.totals["asked_prompt_tokens"] == 128


@pytest.mark.parametrize(
    ("strategy", "profile", "loop", "totals"),
    [
        ("constant", {"type_": "constant", "rate": [1.5, 2.5]}, "open", {"requested_rate": 2.5}),
        ("constant", {"type_": "sweep", "rate": [9.0]}, "open", {}),
        ("poisson@2.50", {}, "open", {"requested_rate": 2.5}),
        ("concurrent", {"type_": "concurrent", "streams": [4, 8]}, "closed", {"max_concurrency": 8}),
        ("concurrent@8", {}, "closed", {"max_concurrency": 8}),
        ("synchronous", {}, "closed", {"max_concurrency": 1}),
        ("throughput@unlimited", {}, "burst", {}),
        ("throughput", {"type_": "throughput", "max_concurrency": 7}, "closed", {"max_concurrency": 7}),
        ("trace@1.00", {}, "open", {}),
    ],
)
def test_the_strategy_as_each_version_writes_it(table, strategy, profile, loop, totals):
    def change(rows):
        names = rows[1]
        rows[-1][names.index("Strategy")], rows[-1][names.index("Profile")] = strategy, json.dumps(profile)
        return rows

    found = table("guidellm_v2.csv", change)[-1]
    asked = {key: value for key, value in found.totals.items() if key in ("requested_rate", "max_concurrency")}
    assert (found.loop, asked) == (loop, totals)


def test_zeros_of_a_metric_that_counted_nothing_are_missing(table):
    def change(rows):
        for place, name in enumerate(rows[0]):
            if name.startswith("Successful Time to first"):
                rows[1][place] = "[" + ", ".join(["0.0"] * 11) + "]" if "[" in name else "0.0"
        return rows

    (found,) = table("guidellm_v0.csv", change)
    assert "ttft" not in found.summary and found.summary["e2e"]["mean"] == pytest.approx(1.7 / 3)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: [*rows[:-1], rows[-1][:-1]], "cells under"),
        (lambda rows: rows[:3], "no rows"),
        (lambda rows: rows[:2], "lines of column names"),
        (lambda rows: [["" if n == "Timings" else n for n in rows[0]], *rows[1:]], "no column stands under Timings"),
        (lambda rows: [*rows[:-1], ["[1, 2]" if c[:2] == "[0" else c for c in rows[-1]]], "were expected"),
    ],
)
def test_what_is_no_whole_table_is_refused(table, change, why):
    with pytest.raises(ValueError, match=why):
        table("guidellm_v2.csv", change)


def test_the_command_line_and_look_take_it():
    shown = call("results", str(DATA / "guidellm_v2.csv"))
    assert shown.exit_code == 0 and "guidellm_v2:1" in shown.stdout
    answer = look((DATA / "guidellm_v2.csv").read_text().replace("\n", "\r\n"))
    assert answer.lines == (5, 5) and any("client's numbers" in one for one in answer.cannot_tell)
