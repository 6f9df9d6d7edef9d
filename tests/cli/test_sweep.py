"""`course sweep`: table, JSON, page, resume, refusals, Ctrl-C, kill -9, schedulers that are not there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from course import Workload, serve, traces
from course.cli import app, sweep_design, sweep_words
from course.figures import sweep as figures
from course.sweep import OneProcess, rows_file
from course.sweep import sweep as run_all
from tests.helpers import figures as checks
from tests.helpers.sizes import PATIENCE

SMALL = ["--set", "rate=20", "--set", "num_requests=40", "--jobs", "1"]
SLOTS = ["--set", "max_num_seqs=4,0,64"]


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def test_the_table_has_the_designs_and_what_was_refused(course, tmp_path):
    found = course(*SMALL, *SLOTS, "--seeds", "2", "--slo", "ttft=0.1,tpot=0.02", "--set", "cards=1..2")
    assert found.exit_code == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("4 designs, means over 2 seeds, by goodput_per_card; * where no other")
    assert lines[2].split()[:3] == ["goodput", "per", "card"] and "within SLO" in lines[2]
    assert sum(line.split()[:1] in (["4"], ["64"]) for line in lines[5:9]) == 4
    assert any(line.endswith("*") for line in lines)
    assert "4 runs refused: --max-num-seqs must be a whole number from 1" in found.stdout
    assert found.stderr == "12 runs to do, 0 done before ...\n"
    assert len(rows_file.read(tmp_path / "sweep.jsonl")) == 12


def test_the_numbers_are_those_of_course_simulate(course):
    found = json.loads(course(*SMALL, "--set", "max_num_seqs=8", "--seeds", "2", "--slo", "ttft=0.05", "--json").stdout)
    line = "simulate --rate 20 --num-requests 40 --max-num-seqs 8 --seed 1 --ttft-slo-ms 50 --json"
    (run,) = json.loads(CliRunner().invoke(app, line.split()).stdout)["runs"]
    row = found["rows"][1]
    assert row["seed"] == 1 and row["settings"] == {"rate": 20.0, "num_requests": 40, "max_num_seqs": 8}
    same = [name for name in row["summary"] if name in run["summary"]]
    assert set(run["summary"]) <= set(same) and all(row["summary"][name] == run["summary"][name] for name in same)
    assert found["designs"][0]["seeds"] == 2 and found["front"]["settings"] == [row["settings"]]


def test_cards_share_the_requests_in_turn(course):
    found = json.loads(
        course(*SMALL, "--set", "cards=2", "--price", "H100=2.5", "--slo", "e2e=1", "--json", "--class", "a:rate=30",
               "--class", "b:rate=10", "--set", "prompt_tokens=300").stdout or "null"
    )  # fmt: skip
    assert found is None, "a rate and classes are refused together"
    found = json.loads(
        course("--set", "num_requests=60", "--jobs", "1", "--set", "cards=2", "--price", "H100=2.5", "--slo", "e2e=0.8",
               "--json", "--class", "a:rate=30", "--class", "b:rate=10").stdout
    )  # fmt: skip
    (row,) = found["rows"]
    asked = {**sweep_design.defaults(), "num_requests": 60, "request_class": ["a:rate=30", "b:rate=10"], "seed": 0}
    load = sweep_design.build.workload(asked, {"request_class", "num_requests"})
    blocks, _ = sweep_design.build.cache(asked, set(), load)
    policy = sweep_design.build.policies(asked)["continuous"]
    runs = []
    for first in (0, 1):
        part = Workload(load.arrival[first::2], load.prompt_tokens[first::2], load.output_tokens[first::2],
                        class_=load.class_[first::2])  # fmt: skip
        runs.append(serve(part, policy, sweep_design.build.step_time(asked), blocks))
    met = [(run.workload.class_, run.e2e <= 0.8) for run in runs]
    seconds = max(run.response.max() for run in runs) - min(run.arrival.min() for run in runs)
    good = sum(int(ok.sum()) for _, ok in met)
    numbers = row["summary"]
    assert numbers["goodput"] == good / seconds and numbers["cards"] == 2
    assert numbers["goodput_per_dollar"] == pytest.approx(good / (seconds / 3600 * 5.0), rel=1e-12)
    for name in "ab":
        share = sum(int((ok & (of == name)).sum()) for of, ok in met) / int((load.class_ == name).sum())
        assert numbers[f"share_within_slo_class_{name}"] == share


def test_slos_of_classes(course):
    found = json.loads(
        course("--class", "a:rate=20", "--class", "b:rate=20", "--set", "num_requests=40", "--jobs", "1", "--slo",
               "a:ttft=1e-9", "--slo", "b:ttft=1e9", "--json").stdout
    )  # fmt: skip
    numbers = found["rows"][0]["summary"]
    assert numbers["share_within_slo_class_a"] == 0 and numbers["share_within_slo_class_b"] == 1


def test_the_same_command_goes_on_from_the_file(course, tmp_path):
    first = course(*SMALL, *SLOTS, "--json")
    path = tmp_path / "sweep.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    again = course(*SMALL, *SLOTS, "--json")
    assert again.stderr == "1 runs to do, 2 done before ...\n"

    def without_seconds(text):
        rows = json.loads(text)["rows"]
        return [{name: value for name, value in row.items() if name != "cpu_seconds"} for row in rows]

    assert without_seconds(again.stdout) == without_seconds(first.stdout)
    assert course(*SMALL, *SLOTS, "--slo", "ttft=1").stderr == "3 runs to do, 0 done before ...\n", "another question"


def test_seeds_of_a_trace_are_other_orders_and_a_changed_trace_is_another_sweep(course, tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text(
        "arrived_at,num_prefill_tokens,num_decode_tokens\n"
        + "".join(f"{i / 9},{50 + i},{3 + i % 5}\n" for i in range(30))
    )
    asked = ("--trace", trace, "--set", "max_num_seqs=4", "--jobs", "1", "--seeds", "3", "--json")
    rows = json.loads(course(*asked).stdout)["rows"]
    assert len({row["summary"]["e2e_mean"] for row in rows}) == 3 and {row["summary"]["requests"] for row in rows} == {
        30
    }
    trace.write_text(trace.read_text() + "9,5,5\n")
    assert course(*asked).stderr.startswith("3 runs to do, 0 done before")
    load = traces.read(trace)
    other = sweep_design.reordered(load, 1)
    assert (other.arrival == load.arrival).all() and sorted(other.prompt_tokens) == sorted(load.prompt_tokens)
    pairs = set(zip(load.prompt_tokens.tolist(), load.output_tokens.tolist(), strict=True))
    assert set(zip(other.prompt_tokens.tolist(), other.output_tokens.tolist(), strict=True)) == pairs


def test_random_designs_of_a_grid(course):
    found = course(*SMALL, "--set", "max_num_seqs=1..50", "--random", "5", "--random-seed", "3", "--json")
    rows = json.loads(found.stdout)["rows"]
    assert len({row["settings"]["max_num_seqs"] for row in rows}) == 5


def test_the_page_has_the_front(course, tmp_path):
    assert course(*SMALL, *SLOTS, "--html", "f.html").exit_code == 0
    assert "plotly" in (tmp_path / "f.html").read_text()
    design = sweep_design.Simulated({}, "", {}, {})
    table = run_all(design, {"rate": [20.0], "num_requests": [40], "max_num_seqs": [2, 8, 64]}, executor=OneProcess())
    figure = figures.front(table, "goodput", "ttft_p95")
    checks.valid(figure)
    assert figure.layout.xaxis.type == "log", "two slots are an overload, far from the others"
    near = run_all(design, {"rate": [2.0], "num_requests": [40], "max_num_seqs": [64, 65]}, executor=OneProcess())
    assert figures.front(near, "goodput", "ttft_p95").layout.xaxis.type is None
    assert "ms" in figure.layout.xaxis.title.text and figure.layout.yaxis.title.text == "goodput [requests/s]"
    assert len(figure.data[1].x) == 3 and "max_num_seqs 2" in figure.data[1].text[0]
    (tmp_path / "mine.html").write_text("mine")
    refused = course(*SMALL, "--html", "mine.html")
    assert refused.exit_code == 2 and "mine.html exists and is something else" in refused.stderr


BAD = {
    "": "there is nothing to vary: give the values of a setting, as in --set max_num_seqs=32,64,128",
    "--set foo=1": "`course simulate` has no setting called 'foo': `course simulate --help` lists them; cards is",
    "--set max_num_seqs": "--set takes a name and values, as in --set max_num_seqs=32,64,128, not 'max_num_seqs'",
    "--set =3": "--set takes a name and values",
    "--set max_num_seqs=": "--set max_num_seqs has an empty value",
    "--set max_num_seqs=1,,2": "--set max_num_seqs has an empty value",
    "--set max_num_seqs=1..x": "--set max_num_seqs: a value must be a whole number, not '1..x'",
    "--set max_num_seqs=9..1": "--set max_num_seqs: 9..1 must rise, by less than 10,000",
    "--set cards=1..999999999999": "must rise, by less than 10,000",
    "--set rate=a": "--set rate: a value must be a number, not 'a'",
    "--set rate=nan": "rate must be a finite number, a word, True, False or None, not nan",
    "--set rate=1 --set rate=2": "--set gives rate twice: put all of its values into one",
    "--set seed=1": "the seeds of a sweep are --seeds",
    "--set trace=x": "--trace says what is served, and has one value in a sweep: 'trace' cannot be --set",
    "--set class=x": "`course simulate` has no setting called 'class'",
    "--set request_class=x": "--class says what is served",
    "--set ttft_slo_ms=3": "the SLOs of a sweep are --slo, in seconds, as in --slo ttft=0.8,tpot=0.03",
    "--set enable_chunked_prefill=maybe": "--set enable_chunked_prefill: a value is true or false, not 'maybe'",
    "--set rate=5 --slo p99=1": "--slo takes ttft, tpot or e2e and seconds, as in",
    "--set rate=5 --slo ttft=0": "ttft of --slo must be a finite number above 0 and at most 1e+10, not 0.0",
    "--set rate=5 --slo ttft=x": "--slo: ttft must be a number, not 'x'",
    "--set rate=5 --slo ttft=1,ttft=2": "--slo gives ttft twice: keep one",
    "--set rate=5 --slo ttft=1 --slo tpot=1": "--slo is given twice: use one",
    "--set rate=5 --slo a:ttft=1 --slo a:tpot=1": "--slo gives a class twice",
    "--set rate=5 --slo :ttft=1": "--slo lacks a class",
    "--set rate=5 --slo chat:ttft=1": "every run was refused: --slo chat: no request has the class 'chat'",
    "--set rate=5 --price T1000=1": "no GPU is called 'T1000'",
    "--set rate=5 --price H100=-1": "H100 of --price must be a finite number above 0",
    "--set rate=5 --seeds 0": "--seeds must be a whole number from 1",
    "--set rate=5 --random 0": "--random must be a whole number from 1",
    "--set rate=5 --random 7": "fewer than the 7 to draw: run all of it",
    "--set rate=5 --jobs 0": "--jobs must be a whole number from 1",
    "--set rate=5 --jobs 1 --scheduler tcp://x:1": "--jobs is of this machine, and --scheduler of others: keep one",
    "--set rate=0 --jobs 1": "every run was refused: --rate must be a finite number",
    "--set max_num_seqs=4 --jobs 1": "every run was refused: there are no requests",
    "--set gpu=H100 --gpu H200 --set rate=5": "--gpu and --set gpu are two values of one setting: keep one",
    "--trace no.csv --set max_num_seqs=4": "cannot read no.csv: No such file or directory",
    "--set rate=5 --set num_requests=5 --jobs 1 --most foo": "no row has a number called 'foo': there are requests, ",
    "--set rate=5 --out .": ". is a folder, not a file",
    "--set rate=5 --out no/x.jsonl": "there is no folder no to write x.jsonl into",
    "--set rate=5 --set tp=2 --set cards=3 --jobs 1": "3 cards are no whole number of replicas of 2",
    "--set max_concurrency=4 --set num_requests=8 --set cards=2 --jobs 1": "users who wait for answers cannot be",
    "--set rate=5 --model . --jobs 1": "every run was refused: cannot read config.json: No such file or directory",
    "--set rate=5 --policy-file no.py --jobs 1": "every run was refused: --policy-file no.py: there is no such file",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_sentence(course, line):
    found = course(*line.split())
    assert found.exit_code == 2 and found.stdout == "" and BAD[line] in found.stderr
    said = [one for one in found.stderr.splitlines() if not one.endswith("done before ...")]
    assert len(said) == 1 and said[0].startswith("course: ")


def test_every_setting_of_course_simulate_can_be_set():
    for name, kind in sweep_design.kinds().items():
        assert kind in (int, float, str, bool), name
    assert {"max_num_seqs", "gpu", "rate", "cards", "policy", "window_ms"} <= sweep_design.kinds().keys()
    assert not {"ctx", "settings", "seed", "as_json", "trace"} & sweep_design.kinds().keys()
    assert sweep_words.grid_of(["--max-num-seqs=2,4..6", "tp=1", "sort_=x"][:2]) == {
        "max_num_seqs": [2, 4, 5, 6],
        "tensor_parallel_size": [1],
    }


# Processes that end, and schedulers that are not there

LONG = ["--set", "rate=20", "--set", "num_requests=20000", "--set", "max_num_seqs=5..1004", "--jobs", "2"]


def started(tmp_path, *more):
    command = [sys.executable, "-m", "course", "sweep", *LONG, *more]
    return subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def until_some_are_done(path, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= 3:
            return
        time.sleep(0.02)
    raise AssertionError(f"no rows came: {process.communicate()}")


def nobody_of(group):
    """Whether a process group comes to its end: whoever is left of it would work for nobody."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    return False


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are of POSIX")
@pytest.mark.parametrize("how", ["Ctrl-C", "kill -9"])
def test_what_is_done_stays_and_nobody_is_left(tmp_path, how):
    path, process = tmp_path / "sweep.jsonl", started(tmp_path)
    until_some_are_done(path, process)
    if how == "Ctrl-C":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all processes hear it
    else:
        process.kill()
    out, err = process.communicate(timeout=PATIENCE)
    assert nobody_of(process.pid)
    rows = rows_file.read(path)
    assert 3 <= len(rows) < 1000 and out == "" and "Traceback" not in err
    if how == "Ctrl-C":
        assert process.returncode == 130
        assert err.splitlines()[1:] == [
            f"{len(rows)} of 1,000 runs are in sweep.jsonl: the same command goes on from there",
            "course: stopped by Ctrl-C",
        ]
    few = [
        one if one != "max_num_seqs=5..1004" else f"max_num_seqs={rows[0].settings['max_num_seqs']},9" for one in LONG
    ]
    again = CliRunner().invoke(app, ["sweep", *few, "--out", str(path)])
    assert again.exit_code == 0, again.stderr
    assert "1 runs to do, 1 done before" in again.stderr or "0 runs to do, 2 done before" in again.stderr


@pytest.mark.parametrize("kind", ["closed", "silent", "stranger"])
def test_a_scheduler_that_is_not_there_is_a_sentence(course, monkeypatch, kind):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    from course.sweep import executors

    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.5)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        if kind == "stranger":
            listening.listen()
            import threading

            def answer():
                there, _ = listening.accept()
                there.sendall(b"HTTP/1.1 400 Bad Request\r\n")
                there.close()

            threading.Thread(target=answer, daemon=True).start()
        elif kind == "silent":
            listening.listen()
        found = course(*SMALL[:-2], "--scheduler", address)
    assert found.exit_code == 2 and f"no Dask scheduler answers at {address} (" in found.stderr
    assert "Start one with `dask scheduler`" in found.stderr and len(found.stderr.splitlines()) == 1


def test_what_is_no_address_is_a_sentence(course):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    for address in ("x", "tcp://", "tcp://a", "tcp://a:b", "tcp://a:99999"):
        found = course(*SMALL[:-2], "--scheduler", address)
        assert found.exit_code == 2 and "the address of a Dask scheduler is such as tcp://10.0.0.5:8786" in found.stderr


def test_without_dask_or_ray_a_sentence_says_how_to_get_them(course, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "ray", None)
    for address, extra in (("tcp://127.0.0.1:1", "dask"), ("ray", "ray")):
        found = course(*SMALL[:-2], "--scheduler", address)
        assert found.exit_code == 2 and f"{extra} is not installed" in found.stderr
        assert f'pip install -e ".[{extra}]"' in found.stderr


def test_the_command_runs_on_a_dask_cluster(course, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    here = json.loads(course(*SMALL, *SLOTS, "--json").stdout)["rows"]
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        protocol="tcp",
        local_directory=str(tmp_path),
    ) as cluster:
        found = course(*SMALL[:-2], *SLOTS, "--json", "--out", "other.jsonl", "--scheduler", cluster.scheduler_address)
    rows = json.loads(found.stdout)["rows"]
    assert [row | {"cpu_seconds": 0} for row in rows] == [row | {"cpu_seconds": 0} for row in here]
