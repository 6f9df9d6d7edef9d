"""`course results`: columns a run, one definition a row, and one sentence for bad input."""

import json

import pytest
from typer.testing import CliRunner

from course import results
from course.cli import app
from tests.helpers.places import REAL
from tests.helpers.result_files import DATA


def call(*arguments):
    return CliRunner().invoke(app, ["results", *map(str, arguments)])


def rows(text):
    """Label -> its cells, of the lines of a table."""
    return {line[: line.find("  ")]: line.split() for line in text.splitlines() if "  " in line}


def test_files_side_by_side():
    found = call(DATA / "vllm_bench_detailed.json", DATA / "guidellm_v2.json", DATA / "sglang_bench.jsonl")
    assert found.exit_code == 0 and found.stderr == ""
    lines = found.stdout.splitlines()
    # A column for each run of each file: one, two and two.
    assert lines[1].split() == ["unit", "vllm_bench_detailed", "guidellm_v2:0", "guidellm_v2:1", "sglang_bench:0",
                                "sglang_bench:1"]  # fmt: skip
    table = rows(found.stdout)
    assert table["TPOT mean"][2:] == ["ms", "150", "-", "150", "-", "150"]
    assert table["TPOT as the tool has it, mean"][-5:] == ["-", "188.9", "188.9", "-", "-"]
    assert table["ITL mean"][2:] == ["ms", "133.3", "133.3", "133.3", "-", "133.3"]
    assert "- guidellm, TPOT: (last token - request sent) / tokens" in found.stdout
    assert "- 1 of 4 requests failed (25.0%); no average counts them" in found.stdout
    assert not any(line.rstrip() != line for line in lines)


def test_one_unit_a_metric(tmp_path):
    """Milliseconds, until the longest time of a metric in any file has ten seconds."""
    slow = tmp_path / "requests.jsonl"
    row = {"input_toks": 9, "output_toks": 3, "arrival_time": 0.0, "queued_ts": 0.0, "scheduled_ts": 0.5}
    slow.write_text(json.dumps(row | {"first_token_ts": 12.5, "last_token_ts": 13.5}))
    table = rows(call(slow, DATA / "llmservingsim_requests.jsonl").stdout)
    assert table["TTFT mean"][2:] == ["s", "12.5", "0.5"]
    assert table["TPOT mean"][2:] == ["ms", "500", "150"]
    assert table["queue wait max"][3:] == ["ms", "500", "250"]


def test_json_says_the_same():
    found = call(DATA / "llmperf_individual_responses.json", DATA / "genai_perf.json", "--json")
    assert found.exit_code == 0
    said = json.loads(found.stdout)  # strict: no NaN
    expected = results.read(DATA / "llmperf_individual_responses.json")
    assert said[0]["tool"] == "llmperf" and said[0]["per_request"] and not said[1]["per_request"]
    assert said[0]["ours"]["tpot"]["mean"] == expected.ours["tpot"]["mean"]
    assert said[0]["summary"]["itl"]["mean"] == expected.summary["itl"]["mean"]
    assert said[0]["definitions"]["itl"]["same"] is False and "TTFT" in said[0]["definitions"]["itl"]["tool"]
    assert said[0]["notes"] == list(expected.notes) and said[0]["totals"]["failed"] == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            [DATA / "genai_perf.json", DATA / "llmservingsim_meta.json"],
            "llmservingsim_meta.json was not written by a tool that the course knows",
        ),
        (
            [DATA / "genai_perf.json", "--format", "excel"],
            "--format must be one of course-sweep, llmservingsim, sglang",
        ),
        ([DATA / "genai_perf.json", "--format", "llmservingsim"], "no input_toks"),
        ([DATA / "missing.json"], "cannot read"),
        ([DATA], "is a folder"),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence(arguments, why):
    found = call(*arguments)
    assert found.exit_code == 2 and found.stdout == ""
    assert found.stderr.startswith("course: ") and why in found.stderr and found.stderr.count("\n") == 1


def test_names_that_no_terminal_should_print(tmp_path):
    path = tmp_path / "a\x1b[31m[bold]b.json"
    path.write_bytes((DATA / "genai_perf.json").read_bytes())
    found = call(path)
    assert found.exit_code == 0 and "\x1b" not in found.stdout and "a\\x1b[31m[bold]b" in found.stdout


def test_every_real_file_at_once():
    if not REAL.is_dir():
        pytest.skip("the folder of real result files is not here")
    files = [path for path in sorted((REAL / "bench").glob("*.json*")) if "meta" not in path.name]
    found = call(*files)
    assert found.exit_code == 0 and "65.46" in found.stdout  # mean TTFT of the RTX 4090 run
    assert len(json.loads(call(*files, "--json").stdout)) > len(files)
