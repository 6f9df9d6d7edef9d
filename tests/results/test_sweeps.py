"""Lists and tables of runs, sweeps of each tool, their knee and their collapse."""

import json

import pytest
from typer.testing import CliRunner

from course import results
from course.cli import app
from tests.helpers.result_files import changed


def run(answered, e2e, *, rate="inf", most=None, p99=0.03, tokens=None, **more):
    """A run of vLLM's tool: 400 requests."""
    n, duration = 400, 400 / answered
    doc = changed("vllm_bench_summary.json", request_rate=rate, max_concurrency=most, num_prompts=n, completed=n,
                  failed=0, duration=duration, request_throughput=answered, total_output_tokens=3 * n,
                  output_throughput=tokens or 3 * answered, total_input_tokens=n, total_token_throughput=None,
                  mean_e2el_ms=1000 * e2e, mean_ttft_ms=100.0, mean_itl_ms=20.0, mean_tpot_ms=20.0,
                  p99_itl_ms=1000 * p99)  # fmt: skip
    return doc | more


def read(tmp_path, docs, name="summary.json"):
    path = tmp_path / name
    path.write_text(json.dumps(docs))
    return results.read_all(path)


def test_a_list_of_runs_is_runs(tmp_path):
    found = read(tmp_path, [run(2.0, 0.5, most=1, run_number=0, max_num_seqs=8), run(3.0, 0.6, most=2, run_number=0)])
    assert [one.name for one in found] == ["summary:0", "summary:1"]
    assert found[0].setup["max_num_seqs"] == 8 and found[0].setup["run_number"] == 0
    with pytest.raises(ValueError, match="run 1: duration is -1"):
        read(tmp_path, [run(2.0, 0.5), run(2.0, 0.5) | {"duration": -1}])


def test_a_table_of_runs_is_runs(tmp_path):
    """summary.csv of a sweep, as pandas writes it: an index without a name, and empty cells."""
    docs = [run(2.0, 0.5, most=1, run_number=0, max_num_seqs=8), run(3.5, 0.6, most=2, run_number=1, max_num_seqs=8)]
    names = list(docs[0])
    rows = [",".join(["", *names])]
    for k, doc in enumerate(docs):
        rows.append(",".join([str(k), *("" if doc[name] is None else str(doc[name]) for name in names)]))
    path = tmp_path / "summary.csv"
    path.write_text("\n".join(rows) + "\n")
    found = results.read_all(path)
    assert [one.totals["requests_per_second"] for one in found] == [2.0, 3.5]
    assert found[1].setup["run_number"] == 1 and found[1].loop == "closed"
    path.write_text("\n".join([rows[0], rows[1] + ",1"]))
    with pytest.raises(ValueError, match=r"row 2: \d+ cells under"):
        results.read_all(path)
    path.write_text(rows[0])
    with pytest.raises(ValueError, match="has column names but no rows"):
        results.read_all(path)


def test_the_knee_of_an_open_loop_is_where_it_no_longer_keeps_up(tmp_path):
    """A run of 400 requests ends an answer later, which lowers its rate by as much at every load: no knee there."""
    runs = read(tmp_path, [run(rate * 400 / (400 + rate * 1.0), 1.0, rate=rate) for rate in (40, 10, 20)])
    (sweep,) = results.sweeps(runs)
    assert sweep.axis == "requested_rate" and sweep.loads == (10, 20, 40)
    assert results.sentences(sweep) == [
        "No knee up to 40 requests/s: the engine answered at every rate that was asked for"
    ]
    runs += read(tmp_path, [run(45.0, 3.0, rate=80), run(44.0, 9.0, rate=160)])
    (sweep,) = results.sweeps(runs)
    assert results.sentences(sweep)[0] == (
        "The knee is between 40 and 80 requests/s: at the first it kept up, at the second 45 were answered. The most "
        "it answered is 45 requests/s"
    )


def test_the_knee_of_a_closed_loop_is_where_power_is_largest(tmp_path):
    """Throughput over latency: 4 / 0.25 = 16, 14 / 0.285 = 49, 22 / 0.72 = 31, 23 / 2.8 = 8."""
    runs = read(tmp_path, [run(4, 0.25, most=1), run(14, 0.285, most=4), run(22, 0.72, most=16), run(23, 2.8, most=64)])
    (sweep,) = results.sweeps(runs)
    (knee,) = results.sentences(sweep)
    assert knee.startswith(
        "The knee is at in flight, at most 4, where throughput over latency is largest: 14 requests/s"
    )
    assert knee.endswith("At 64 it is 1.64 times the throughput for 9.82 times the latency")
    growing = read(tmp_path, [run(4, 0.25, most=1), run(8, 0.25, most=2), run(16, 0.25, most=4)])
    assert results.sentences(results.sweeps(growing)[0]) == [
        "No knee up to in flight, at most 4: throughput still grows as fast as latency"
    ]


def test_a_collapse_of_throughput_and_one_of_gaps(tmp_path):
    runs = [run(10, 0.8, most=8), run(14, 1.1, most=16), run(14.2, 2.2, most=32, p99=0.9), run(9, 7, most=64, p99=1.0)]
    (sweep,) = results.sweeps(read(tmp_path, runs))
    said = results.sentences(sweep)
    assert any(
        s.startswith("It collapses at in flight, at most 64: 27 output tokens/s, 63% of the 42.6 at 32") for s in said
    )
    assert any(s.startswith("Gaps collapse at in flight, at most 32: the p99 of ITL is 900 ms where it was 30 ms at 16")
               for s in said)  # fmt: skip


def test_other_settings_make_sweeps_of_their_own(tmp_path):
    docs = [run(4 * k, 0.25 * k, most=k, run_number=n, max_num_seqs=slots)
            for slots in (16, 32) for k in (1, 2, 4) for n in (0, 1)]  # fmt: skip
    found = results.sweeps(read(tmp_path, docs))
    assert [sweep.fixed for sweep in found] == ["max_num_seqs=16", "max_num_seqs=32"]
    assert all(sweep.loads == (1, 2, 4) and len(sweep.runs) == 6 for sweep in found)
    assert results.sweeps(read(tmp_path, docs[:4])) == []  # two loads have no shape
    slots = results.sweeps(read(tmp_path, [run(4, 0.5, most=64, run_number=0, max_num_seqs=s) for s in (8, 16, 32)]))
    assert slots[0].axis == "max_num_seqs"


def test_aiperf_sweeps_of_one_trial_and_of_several(tmp_path):
    def block(mean, **more):
        return {"mean": mean, "std": 0.0, "unit": "ms", **more}

    single = {"request_throughput": {"mean": 5.0, "unit": "requests/sec"}, "request_latency": block(400, p99=600),
              "time_to_first_token": block(90, p50=80, p99=120), "inter_token_latency": block(10)}  # fmt: skip
    several = {"request_throughput_avg": {"mean": 9.0, "unit": "requests/sec"}, "request_latency_avg": block(800),
               "time_to_first_token_p99": block(300), "output_token_throughput_avg": {"mean": 70.0}}  # fmt: skip
    doc = {
        "aggregation_type": "sweep", "num_profile_runs": 3, "failed_runs": [{"label": "c", "error": "x"}],
        "metadata": {"sweep_parameters": [{"name": "concurrency", "values": [2, 8]}]},
        "per_combination_metrics": [
            {"parameters": {"concurrency": 2}, "metrics": single},
            {"parameters": {"phases.profiling.concurrency": 8}, "metrics": several},
        ],
    }  # fmt: skip
    two, eight = read(tmp_path, doc, "profile_export_aiperf_sweep.json")
    assert two.totals["max_concurrency"] == 2 and two.loop == "closed"
    assert two.ours["ttft"] == pytest.approx({"mean": 0.09, "p50": 0.08, "p99": 0.12})
    assert two.ours["e2e"]["p99"] == pytest.approx(0.6) and two.totals["in_flight"] == pytest.approx(2.0)
    assert eight.totals["max_concurrency"] == 8 and eight.ours["ttft"] == pytest.approx({"p99": 0.3})
    assert eight.totals["output_tokens_per_second"] == 70.0
    assert any("1 runs of the sweep failed" in note for note in two.notes)


def test_many_runs_are_rows_and_a_note_is_said_once(tmp_path):
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps([run(4 * k, 0.25 * k, most=k, run_number=0) for k in (1, 2, 4, 8)]))
    shown = CliRunner().invoke(app, ["results", str(path)])
    assert shown.exit_code == 0
    rows = [line.split() for line in shown.stdout.splitlines() if line.startswith("sweep:")]
    assert [row[0] for row in rows] == ["sweep:0", "sweep:1", "sweep:2", "sweep:3"]
    assert rows[2][1:3] == ["closed", "loop"] and "Over in flight, at most from 1 to 8" in shown.stdout
    alike = [line for line in shown.stdout.splitlines() if "A closed loop" in line]
    assert len(alike) == 1 and alike[0].startswith("- sweep:0, and 3 more alike: ")
