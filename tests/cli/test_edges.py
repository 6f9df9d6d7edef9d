"""The `course` command at its edges: nobody writes, much to do, names with escapes, files without numbers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from course import traces
from course.base import textfiles
from course.base.streams import printable, shortened
from course.cli import app, bench, output, progress_bar
from course.gpu.bench import LiveRun
from course.models.quantisation import DTYPES
from tests.helpers.odd_files import pipe
from tests.helpers.places import ROOT
from tests.helpers.result_files import DATA
from tests.helpers.sizes import PATIENCE

CONFIG = json.loads((ROOT / "course/data/configs/llama-3.1-8b.json").read_text())
HOSTILE = "a\x1b[31mred\x1b]0;title\x07\x9b2J\r\x08\u202eb"
ESCAPED = r"a\x1b[31mred\x1b]0;title\x07\x9b2J\r\x08\u202eb"


def call(*args: object):
    return CliRunner().invoke(app, [str(arg) for arg in args])


# Nobody writes


@pytest.mark.parametrize("line", ["results", "kv", "simulate --trace", "compare --model llama-3.1-8b --gpu H100"])
def test_a_pipe_into_which_nobody_writes_is_a_sentence(tmp_path, monkeypatch, line):
    monkeypatch.setattr(textfiles, "PIPE_SECONDS", 0.1)
    pipe(tmp_path / "p.json")
    result = call(*line.split(), tmp_path / "p.json")
    assert result.exit_code == 2 and result.stdout == ""
    assert "p.json is a pipe that nobody writes to: first start the program that writes" in result.stderr


@pytest.mark.parametrize("early", [True, False])
def test_a_pipe_is_read_to_its_end(tmp_path, monkeypatch, early):
    """Also where its writer thinks for longer than anybody waits for one to appear."""
    monkeypatch.setattr(textfiles, "PIPE_SECONDS", 0.5 if early else 60)
    path, content = tmp_path / "p.csv", Path(traces.example()).read_bytes()
    pipe(path)
    open_, read = threading.Event(), threading.Event()

    def write() -> None:
        if not early:
            read.wait(0.3)
        with path.open("wb") as file:
            open_.set()
            if early:
                read.wait(1.0)  # twice as long as the reader would have waited for somebody to come
            for start in range(0, len(content), 50_000):
                file.write(content[start : start + 50_000])
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert textfiles.text(path, "trace").encode() == content
    finally:
        writer.join()


def test_a_pipe_longer_than_the_limit_is_refused(tmp_path):
    pipe(tmp_path / "p.csv")
    writer = subprocess.Popen(["sh", "-c", 'yes > "$1"', "sh", str(tmp_path / "p.csv")], stderr=subprocess.DEVNULL)
    with pytest.raises(ValueError, match="is larger than 1 MiB"):
        textfiles.text(tmp_path / "p.csv", "trace", limit=2**20)
    writer.wait(timeout=PATIENCE)


# Much to do


def test_a_large_batch_on_the_cpu_says_that_it_takes_a_while(monkeypatch):
    monkeypatch.setattr(LiveRun, "fixed", lambda self, batches: [])
    monkeypatch.setattr(bench, "_sweep", lambda live, batches: ("", {}))
    said = call("bench", "--device", "numpy", "--fixed-batch", 65_536).stderr
    assert "measuring 65536 on the CPU, each several times: this takes a while ..." in said
    assert "takes a while" not in call("bench", "--device", "numpy", "--fixed-batch", "1,2,4").stderr


def test_a_service_on_the_cpu_says_that_it_is_measured(monkeypatch):
    monkeypatch.setattr(bench, "_loop", lambda live: ("", {}))
    said = call("bench", "--device", "numpy", "--nreq", 3).stderr
    assert "measuring the steps of 3 requests on the CPU: this takes a while ..." in said


def test_a_large_trace_and_a_long_run_say_what_they_do(monkeypatch):
    monkeypatch.setattr(progress_bar, "LONG", 150)
    monkeypatch.setattr(progress_bar, "LARGE", 1_000)
    result = call(
        "simulate",
        "--trace",
        traces.example(),
        "--head",
        200,
        "--policy",
        "dynamic,continuous",
        "--json",
        "--unlimited-kv",
    )
    first, *rest = result.stderr.splitlines()
    assert re.fullmatch(r"reading \d+ MB \.\.\.", first)
    assert rest[:2] == ["serving 200 requests, dynamic ...", "serving 200 requests, continuous ..."]
    assert [run["name"] for run in json.loads(result.stdout)["runs"]] == ["dynamic", "continuous"]
    assert "serving" not in call("simulate", "--trace", traces.example(), "--head", 100).stderr


# Names that command a terminal


def test_control_letters_are_shown_as_python_writes_them():
    assert printable(HOSTILE) == ESCAPED
    assert printable("two\nlines\tand \u20ac, \u00e9") == "two\nlines\tand \u20ac, \u00e9"
    table = "\x1b[1munit\x1b[0m \x1b[1;2mdim\x1b[0m"
    assert printable(table, styles=True) == table and "\x1b" not in printable(table)
    assert printable("\x1b[31m\x1b[8m\x1b[2J", styles=True) == r"\x1b[31m\x1b[8m\x1b[2J"


@pytest.mark.parametrize(
    "line",
    [["results"], ["kv"], ["class"], ["simulate", "--trace"], ["compare"], ["labs", "--to"], ["labs", "--labs"],
     ["reset"], ["flags", "--from"], ["doctor", "--explain"], ["bench", "--device"],
     ["simulate", "--rate", "5", "--policy"], ["kv", "llama-3.1-8b", "--gpu"], ["simulate", "--step-time"], []],
    ids=" ".join,
)  # fmt: skip
def test_a_name_does_not_reach_the_terminal_as_it_is(line):
    result = call(*line, HOSTILE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.output)


def test_nor_does_what_a_file_holds(tmp_path):
    stored = json.loads((DATA / "vllm_bench_summary.json").read_text())
    stored |= {key: HOSTILE for key, value in stored.items() if isinstance(value, str) and key != "backend"}
    stored["date"] = "20300101-000000"
    path = tmp_path / "hostile\x1b[5m.json"
    path.write_text(json.dumps(stored))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"model_type": HOSTILE, HOSTILE: 1}))
    for line in (
        ["results", path],
        ["results", path, path],
        ["kv", tmp_path / "config.json"],
        ["results", path, "--json"],
    ):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", call(*line).output)


def test_on_a_terminal_only_bold_and_dim_are_left(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(output.typer, "echo", lambda text, err: print(text, file=sys.stderr if err else sys.stdout))
    output.echo("\x1b[1mbold\x1b[0m \x1b[31mred\x1b]0;t\x07")
    output.echo("\x1b[1m", err=True)
    assert capsys.readouterr() == ("\x1b[1mbold\x1b[0m \\x1b[31mred\\x1b]0;t\\x07\n", "\\x1b[1m\n")


@pytest.mark.parametrize("line", [["results"], ["kv"], ["simulate", "--trace"], ["labs", "--labs"], [], ["kv", "--"]])
def test_a_name_of_thousands_of_letters_is_cut(line):
    long = "y" * 5_000
    words = [*line[:-1], f"--{long}"] if line[-1:] == ["--"] else [*line, long]
    result = call(*words)
    assert result.exit_code == 2 and len(result.stderr) < 700
    assert re.search(r"y{30}\.\.\.y{30}", result.stderr)


def test_a_path_that_somebody_types_is_shown_whole(tmp_path):
    path = f"/{'folder/' * 30}trace.csv"
    assert shortened(f"cannot read {path}: x") == f"cannot read {path}: x"


# Files without a number, and a type that is none


def test_a_result_of_nothing_but_nulls_is_refused(tmp_path):
    stored = json.loads((DATA / "vllm_bench_summary.json").read_text())
    empty = tmp_path / "nulls.json"
    empty.write_text(json.dumps({key: value if key == "backend" else None for key, value in stored.items()}))
    for line in (["results", empty], ["results", DATA / "vllm_bench_summary.json", empty]):
        result = call(*line)
        assert result.exit_code == 2 and result.stdout == ""
        assert result.stderr == "course: nulls.json holds no measured number. Check that the benchmark ran to its end\n"


@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
@pytest.mark.parametrize("inner", [False, True])
def test_a_dtype_that_is_none_is_refused(tmp_path, key, inner):
    def with_dtype(value: str) -> Path:
        path = tmp_path / "config.json"
        config = {"model_type": "llava", "text_config": CONFIG | {key: value}} if inner else CONFIG | {key: value}
        path.write_text(json.dumps(config))
        return path

    result = call("kv", with_dtype("float13"))
    assert result.exit_code == 2 and f"{key} is 'float13', which is no type of weights" in result.stderr
    for dtype in (*DTYPES, "torch.bfloat16"):
        assert call("kv", with_dtype(dtype)).exit_code == 0


# Words


@pytest.mark.parametrize(
    ("line", "said", "unsaid"),
    [
        ("results {readme}", "name one with `--format`", "`format`"),
        ("simulate --rate 5 --max-num-seqs 4096", "--max-num-batched-tokens 2048 is", "max_num_batched_tokens="),
        ("simulate --rate 5 --no-enable-chunked-prefill", "--no-enable-chunked-prefill", "enable_chunked_prefill="),
        ("simulate --trace {readme}", "course: ", "format="),
        ("simulate --trace {backwards}", "read it with --sort", "sort=True"),
        ("simulate --trace {broken}", "--on-error skip", "on_error="),
    ],
)
def test_messages_name_options_as_they_are_typed(tmp_path, line, said, unsaid):
    (tmp_path / "readme.json").write_text('{"name": "x"}')
    (tmp_path / "backwards.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n5,1,1\n1,1,1\n")
    (tmp_path / "broken.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n5,1,x\n")
    places = {path.stem: path for path in tmp_path.iterdir()}
    result = call(*line.format(**places).split())
    assert result.exit_code == 2 and said in result.stderr and unsaid not in result.stderr


def test_every_command_prints_through_one_function():
    """Else a new one would print what it is given, escape sequences included."""
    for path in (ROOT / "course" / "cli").glob("*.py"):
        if path.name in ("__init__.py", "output.py"):
            continue
        source = path.read_text()
        assert "typer.echo(" not in source and not re.search(r"^\s*print\(", source, re.MULTILINE), path.name
    assert os.path.exists(ROOT / "course/cli/output.py")
