"""`course compare` on runs of the simulator, written down as a benchmark tool would: table, JSON, page, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from course import KVCache, calibration, results, steptime
from course.calibration import compare, engine_of
from course.calibration.comparison import Row, stand_in
from course.cli import app
from course.figures import compare as figures
from course.models import gpus, model
from course.results import Result
from tests.helpers import figures as checks
from tests.helpers.measured_runs import TRUTH, as_log, as_result, read_log, served, telling_load

LLAMA, CARD = model("llama-3.1-8b"), gpus.gpu("RTX PRO 6000")
ASKED = ("--model", "llama-3.1-8b", "--gpu", "RTX PRO 6000")


@pytest.fixture
def log(tmp_path):
    return as_log(served(telling_load().head(40)), tmp_path)


@pytest.fixture
def constants(tmp_path):
    kept = {name: calibration.Constant(name, seconds, seconds, 0.02, 0.02) for name, seconds in TRUTH.items()}
    fit = calibration.Fit("known", calibration.shape_of(LLAMA), CARD, kept, 0.001, {})
    fit.save(tmp_path / "known.json")
    return tmp_path / "known.json"


def course(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


# What is compared


def test_the_same_engine_compared_with_itself(tmp_path):
    run = served(telling_load(), cache=KVCache(1200))
    kept = calibration.step_time(TRUTH, "known")
    result = read_log(run, tmp_path, kv_cache={"num_gpu_blocks": 1200, "block_size": 16})
    found = compare(result, kept, engine_of(result, LLAMA, CARD))
    for row in found.rows:
        if np.isfinite(row.measured):
            # Times are written down on a clock that reads 1.7e9 s, where floats are 2.4e-7 s apart.
            assert row.modelled == pytest.approx(row.measured, rel=1e-4), row
    assert found.row("preemptions").modelled == run.preempted.sum() > 0
    assert found.row("kv_peak").modelled == run.summary()["kv_peak"]
    assert np.isnan(found.row("itl", "p99").measured) and found.row("itl", "p99").modelled > 0
    assert "ITL: not in the file, modelled only" in found.notes
    assert [row.statistic for row in found.rows[:4]] == ["mean", "p50", "p90", "p99"]
    with pytest.raises(ValueError, match="there is no p17 of ttft to compare"):
        found.row("ttft", "p17")


def test_an_error_is_a_share_of_what_was_measured():
    assert Row("ttft", "mean", "s", 2.0, 2.5).error == 0.25
    for row in (Row("ttft", "mean", "s", 0.0, 1.0), Row("ttft", "mean", "s", float("nan"), 1.0)):
        assert np.isnan(row.error)


def test_gaps_between_tokens_where_the_file_has_them():
    run = served(telling_load().head(30))
    gaps = [np.diff(run.token_times(i)) for i in range(30)]
    result = as_result(run)
    result = replace(result, requests=replace(result.requests, itl=gaps))
    found = compare(result, calibration.step_time(TRUTH, "known"), engine_of(result, LLAMA, CARD))
    assert len(found.measured["itl"]) == run.workload.output_tokens.sum() - 30
    for statistic in ("mean", "p50", "p90", "p99"):
        assert found.row("itl", statistic).error == pytest.approx(0, abs=1e-9)  # sums in another order


def test_answers_in_one_piece_have_no_first_token():
    run = served(telling_load().head(30))
    result = as_result(run, ttft=run.e2e, tpot=np.full(30, np.nan))
    found = compare(result, calibration.step_time(TRUTH, "known"), engine_of(result, LLAMA, CARD))
    assert np.isnan(found.row("ttft", "mean").measured) and found.row("e2e", "mean").error == pytest.approx(0)
    assert any("the time of the first tokens is not known" in note for note in found.notes)


def test_failed_requests_are_named():
    run = served(telling_load().head(30))
    failed = np.arange(30) % 10 == 3
    result = replace(as_result(run, failed=failed), totals={"failed": 3.0})
    found = compare(result, calibration.step_time(TRUTH, "known"), engine_of(result, LLAMA, CARD))
    assert len(found.replay) == 27
    assert any("3 of 30 requests failed and are not replayed" in note for note in found.notes)
    assert any("the 3 failed requests took engine time" in note for note in found.notes)


def summary(totals, setup=(), means=None):
    stats = {name: {"mean": value} for name, value in (means or {"ttft": 0.1, "tpot": 0.02, "e2e": 2.0}).items()}
    definitions = {name: results.Definition("", "", True, value) for name, value in stats.items()}
    return Result("a tool", "summary", None, stats, definitions, totals, dict(setup))


@pytest.mark.parametrize(
    ("totals", "setup", "how"),
    [
        ({"requests": 40, "prompt_tokens": 4000, "output_tokens": 2000, "requested_rate": 5.0}, {}, "arrivals at 5/s"),
        ({"requests": 40, "mean_prompt_tokens": 99.6, "mean_output_tokens": 50}, {}, "all at once"),
        ({"requests": 40, "prompt_tokens": 4000, "output_tokens": 2000}, {"max_concurrency": 8}, "8 users"),
        ({"requests": 40, "prompt_tokens": 4000, "output_tokens": 2000, "requested_rate": float("inf")}, {}, "at once"),
    ],
    ids=["rate", "means", "closed loop", "unlimited rate"],
)
def test_a_summary_is_compared_with_requests_that_stand_for_it(totals, setup, how):
    result = summary(totals, setup)
    notes = []
    load = stand_in(result, notes)
    assert len(load) == 40 and set(load.prompt_tokens) == {100} and set(load.output_tokens) == {50}
    assert how in notes[0] and "compare means, not percentiles" in notes[0]
    found = compare(result, steptime.Roofline(LLAMA, CARD), engine_of(result, LLAMA, CARD))
    assert found.row("ttft", "mean").measured == 0.1 and np.isnan(found.row("ttft", "p99").measured)
    assert found.measured == {} and found.points["tpot"] == {"mean": 0.02}


@pytest.mark.parametrize("totals", [{}, {"requests": 5}, {"requests": 5, "prompt_tokens": 10}, {"requests": 0}])
def test_a_summary_that_says_too_little(totals):
    with pytest.raises(ValueError, match="has no requests, and its summary does not say"):
        stand_in(summary(totals), [])


# The command


def test_many_requests_are_announced(log, monkeypatch):
    assert "in the simulator" not in course(log, *ASKED).stderr
    monkeypatch.setattr("course.cli.compare.MANY", 40)
    assert "serving 40 requests in the simulator ..." in course(log, *ASKED).stderr


def test_table(log):
    ran = course(log, *ASKED, "--kv-tokens", 40_000)
    assert ran.exit_code == 0
    lines = ran.stdout.splitlines()
    assert lines[0] == "run_requests (LLMServingSim request log), 40 requests"
    assert "Continuous(max_num_seqs=64, max_num_batched_tokens=2048), 2,500 KV blocks of 16 tokens" in lines[1]
    assert lines[2] == "Step time: modelled" and "the roofline, not fitted to any engine" in lines[3]
    for word in ("TTFT p90", "TPOT p99", "ITL mean", "E2E p50", "throughput, requests", "KV blocks in use, peak"):
        assert any(line.startswith(word) for line in lines)
    mean = next(line.split() for line in lines if line.startswith("TTFT mean"))
    assert mean[2] == "s" and mean[-1].endswith("%")
    assert "note: ITL: not in the file, modelled only" in ran.stderr


def test_json(log, constants):
    ran = course(log, *ASKED, "--constants", constants, "--json", "--kv-tokens", 100_000)
    found = json.loads(ran.stdout)
    rows = {(row["metric"], row["statistic"]): row for row in found["metrics"]}
    assert len(rows) == 21 and rows["itl", "mean"]["measured"] is None
    for statistic in ("mean", "p50", "p90", "p99"):
        assert abs(rows["ttft", statistic]["error"]) < 1e-4  # the constants that made the run
    assert found["step_time"]["source"].startswith("fitted: known")
    assert found["engine"]["num_gpu_blocks"] == 6250 and found["fit"]["kind"] == "course step-time fit"


def test_constants_of_another_card_are_scaled(log, constants):
    other = ("--model", "llama-3.1-8b", "--gpu", "H200", "--kv-tokens", 100_000)
    ran = course(log, *other, "--constants", constants)
    assert "Step time: predicted: llama-3.1-8b on H200, from known on RTX-PRO-6000" in ran.stdout
    assert "(bandwidth)" in ran.stdout and "halfway, in ratio" in ran.stdout
    given = course(log, *other, "--constants", constants, "--compute", 0.5)
    assert "per_prompt_token = 3e-05" in given.stdout


def test_page_without_network(log, constants, tmp_path):
    page = tmp_path / "both.html"
    assert course(log, *ASKED, "--constants", constants, "--html", page).exit_code == 0
    first = page.read_text("utf-8")
    assert "run_requests: measured (dashed) and modelled (solid)" in first
    assert "<script src" not in first and "<link" not in first
    assert course(log, *ASKED, "--constants", constants, "--html", page).exit_code == 0  # replaces an earlier one
    assert page.read_text("utf-8") == first  # the same bytes


def test_fit_and_save(tmp_path):
    log = as_log(served(telling_load().head(12)), tmp_path)
    ran = course(log, *ASKED, "--fit", "--save-fit", tmp_path / "fit.json", "--json")
    assert ran.exit_code == 0
    assert "fitting: about two thousand replays" in ran.stderr
    saved = calibration.Fit.read(tmp_path / "fit.json")
    assert json.loads(ran.stdout)["fit"]["constants"] == saved.as_dict()["constants"]
    again = course(log, *ASKED, "--constants", tmp_path / "fit.json", "--json")
    assert json.loads(again.stdout)["metrics"] == json.loads(ran.stdout)["metrics"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--gpu", "RTX 4091"), "no GPU is called 'RTX 4091'"),
        (("--model", "nothing-here"), "nothing-here"),
        (("--fit", "--constants", "x.json"), "two sources of the step time"),
        (("--save-fit", "x.json"), "--save-fit needs --fit"),
        (("--compute", "2"), "--compute needs --constants"),
        (("--constants", "missing.json"), "cannot read missing.json"),
        (("--kv-tokens", "0"), "--kv-tokens must be a whole number"),
        (("--kv-tokens", "64"), "can never be served"),
        (("--max-num-seqs", "0"), "--max-num-seqs must be a whole number"),
        (("--max-num-seqs", "4096"), "--max-num-batched-tokens 2048 is smaller than one decode"),
        (("--gpu-memory-utilization", "2"), "--gpu-memory-utilization must be"),
        (("--step-weights-gib", "-1"), "--step-weights-gib must be"),
        (("--run", "7"), "--run must be a whole number"),
        (("--html", "/nowhere/at/all.html"), "there is no folder"),
        (("--kv-tokens", "many"), "--kv-tokens"),
    ],
    ids=range(15),
)
def test_refusals_in_one_sentence(log, options, why):
    ran = course(log, *ASKED, *options)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert why in ran.stderr and ran.stderr.splitlines()[-1].startswith("course: ")
    assert "Traceback" not in ran.stderr


def test_nothing_of_anybodys_is_overwritten(log, constants, tmp_path):
    mine = tmp_path / "notes.html"
    mine.write_text("my notes")
    for target in (mine, log):
        before = target.read_bytes()
        ran = course(log, *ASKED, "--constants", constants, "--html", target)
        assert ran.exit_code == 2 and "exists and is something else" in ran.stderr
        assert target.read_bytes() == before
    assert course(log, *ASKED, "--constants", constants, "--html", tmp_path).exit_code == 2  # a folder


def test_files_that_are_no_results(tmp_path):
    for content in ("", "{}", "a,b\n1,2\n", "\0"):
        (tmp_path / "x.json").write_text(content)
        ran = course(tmp_path / "x.json", *ASKED)
        assert ran.exit_code == 2 and len(ran.stderr.splitlines()) == 1


# The figure


def test_the_figure_draws_both(tmp_path):
    run = served(telling_load())
    result = read_log(run, tmp_path)
    found = compare(result, calibration.step_time(TRUTH, "known"), engine_of(result, LLAMA, CARD))
    figure = figures.distributions(found)
    checks.valid(figure)
    lines = {(trace.xaxis, trace.name): trace for trace in figure.data}
    assert set(lines) == {(axis, name) for axis in ("x", "x2", "x4") for name in ("measured", "modelled")} | {
        ("x3", "modelled")  # ITL is not in the file
    }
    for axis, values, scale in (("x", run.ttft, 1), ("x2", run.tpot, 1e3), ("x4", run.e2e, 1)):
        line = lines[axis, "measured"]
        assert line.x[0] == pytest.approx(values.min() * scale, rel=1e-5) and line.y[0] == 0
        assert line.x[-1] == pytest.approx(values.max() * scale, rel=1e-5) and line.y[-1] == 1
        middle = np.sort(values)[105] * scale  # the first value that half of 210 are below
        assert line.x[100] == pytest.approx(middle, rel=1e-5) and line.y[100] == 0.5
    assert any(note.text == "ITL: not in the file" for note in figure.layout.annotations)


def test_the_figure_of_a_summary_has_marks():
    totals = {"requests": 40, "prompt_tokens": 4000, "output_tokens": 2000, "requested_rate": 5.0}
    result = summary(totals)
    result.definitions["ttft"].value.update({"p50": 0.08, "p99": 0.4})
    found = compare(result, steptime.Roofline(LLAMA, CARD), engine_of(result, LLAMA, CARD))
    figure = figures.distributions(found)
    checks.valid(figure)
    marks = next(trace for trace in figure.data if trace.mode == "markers")
    assert list(marks.x) == [0.08, 0.4] and list(marks.y) == [0.5, 0.99]


def test_recorded_steps_of_another_card_and_of_this_one(log):
    read = results.read(log)
    for card, first in (("RTX PRO 6000", "Step time: modelled"), ("H100", "Step time: recorded")):
        shown = course(log, "--model", "llama-3.1-8b", "--gpu", card, "--recorded", "h100-llama3-8b")
        assert shown.exit_code == 0 and first in shown.output
        assert ("scaled to RTX-PRO-6000: reading x 1.87" in shown.output) == (card != "H100")
        timing = steptime.Scaled(steptime.recorded("h100-llama3-8b"), card)
        found = compare(read, timing, engine_of(read, LLAMA, gpus.gpu(card)))
        row = next(line for line in shown.output.splitlines() if line.startswith("TPOT mean"))
        assert float(row.split()[4]) == pytest.approx(1e3 * found.row("tpot", "mean").modelled, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--recorded", "h100-llama3-8b", "--fit"), "are sources of the step time: give one"),
        (
            ("--recorded", "h100-llama3-1b"),
            "was recorded with llama-3.2-1b on one card: it says nothing about llama-3.1-8b",
        ),
        (("--recorded", "h100-llama3-8b", "--tp", 2), "says nothing about llama-3.1-8b on 2 of them"),
        (("--recorded", "mi300x"), "no recording of llama_step is called 'mi300x'"),
    ],
)
def test_recorded_steps_that_say_nothing_of_this_run(log, options, sentence):
    shown = course(log, *ASKED, *options)
    assert shown.exit_code and sentence in " ".join(shown.output.split())
