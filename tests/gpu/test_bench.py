"""The benchmark's two loops against a plain oracle and against theory, and `course bench` on a terminal."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from course import gpu
from course.cli import app
from course.gpu import bench
from course.gpu.bench import Outcome, Settings, run, summary

FAST = 10e-6  # seconds of a step that is all launch, at any batch
MODES = ("window", "note")


def constant(seconds: float):
    return lambda batch: seconds


def power_law(batch: int) -> float:
    return 0.57e-3 + 0.083e-3 * batch


def call(*args: object):
    return CliRunner().invoke(app, ["bench", *(str(arg) for arg in args)])


def oracle(asked: Settings, step) -> list[tuple[float, float]]:
    """(first token, end) of each request: one list of tuples, one loop, in the words of the two rules."""
    arrivals = list(asked.arrivals())
    waiting = list(enumerate(arrivals))
    running: list[list] = []  # [request, tokens to go]
    answers: list[list[float]] = [[] for _ in arrivals]
    window, now = asked.window_ms / 1_000, 0.0
    while waiting or running:
        if asked.loop == "note":
            now = now + window / 4 if running else max(now, waiting[0][1]) + window
        elif not running and waiting[0][1] > now:
            opened = waiting[0][1]
            company = [at for _, at in waiting if at <= opened + window]
            now = company[asked.bmax - 1] if len(company) >= asked.bmax else opened + window
        while waiting and waiting[0][1] <= now and len(running) < asked.bmax:
            running.append([waiting.pop(0)[0], asked.tokens])
        now += step(len(running))
        for one in running:
            answers[one[0]].append(now)
            one[1] -= 1
        running = [one for one in running if one[1] > 0]
    return [(answer[0], answer[-1]) for answer in answers]


@pytest.mark.parametrize("loop", MODES)
@pytest.mark.parametrize("bmax", [1, 2, 16])
@pytest.mark.parametrize("window_ms", [0, 2, 40])
@pytest.mark.parametrize("tokens", [1, 7])
def test_the_loops_are_the_oracle_to_the_bit(loop: str, bmax: int, window_ms: float, tokens: int) -> None:
    for seed, rate in ((0, 40.0), (1, 400.0)):
        asked = Settings(nreq=60, rate=rate, tokens=tokens, bmax=bmax, window_ms=window_ms, seed=seed, loop=loop)
        outcome, expected = run(asked, power_law), np.array(oracle(asked, power_law))
        np.testing.assert_array_equal(outcome.ttft, expected[:, 0] - asked.arrivals())
        np.testing.assert_array_equal(outcome.e2e, expected[:, 1] - asked.arrivals())


@pytest.mark.parametrize("loop", MODES)
def test_every_token_is_made_once_and_nobody_is_served_before_arriving(loop: str) -> None:
    for seed in range(20):
        asked = Settings(nreq=100, rate=500, tokens=1 + seed % 5, bmax=1 + seed, window_ms=seed, seed=seed, loop=loop)
        outcome = run(asked, power_law)
        assert outcome.tokens == asked.nreq * asked.tokens == outcome.batch.sum()
        assert outcome.batch.min() >= 1 and outcome.batch.max() <= asked.bmax
        assert (outcome.ttft > 0).all() and (outcome.e2e >= outcome.ttft).all()


def mean(loop: str, key: str, step, **settings) -> float:
    """Of five seeds, in ms: a single run of 200 requests moves p95 by half a millisecond."""
    return 1e3 * np.mean([summary(run(Settings(loop=loop, seed=s, **settings), step))[key] for s in range(5)])


def test_a_smaller_window_helps_the_one_that_opens_for_somebody() -> None:
    """p95 is the window and a step: at light load a window buys nothing but waiting. With a slower step less so."""
    fast = [mean("window", "ttft_p95", constant(FAST), window_ms=w) for w in (6, 2, 0)]
    np.testing.assert_allclose(fast, [6.01, 2.01, 0.01], atol=0.02)  # some see a window already open
    slow = [mean("window", "ttft_p95", power_law, window_ms=w) for w in (6, 2)]
    np.testing.assert_allclose(slow, [6.7, 2.7], atol=0.3)  # five seeds
    assert slow[1] < 0.85 * slow[0]


def test_the_mean_wait_of_a_window_that_the_first_arrival_opens() -> None:
    """D (1 + lambda D / 2) / (1 + lambda D): the opener waits all of it, the others half on average."""
    d, rate = 6e-3, 80.0
    expected = d * (1 + rate * d / 2) / (1 + rate * d)
    found = summary(run(Settings(nreq=20_000, rate=rate, tokens=1, bmax=64), constant(FAST)))
    assert math.isclose(found["ttft_mean"] - FAST, expected, rel_tol=0.01)  # 20,000 arrivals: 0.4% standard error


def test_the_notes_loop_waits_before_every_step() -> None:
    """So its E2E is a quarter window a token; and a smaller window lowers the mean of TTFT, but hardly its p95."""
    e2e = [mean("note", "e2e_mean", constant(FAST), window_ms=w) for w in (6, 2)]
    np.testing.assert_allclose(e2e, [31 * 1.51 + 1.0, 31 * 0.51 + 0.8], rtol=0.02)
    p95 = [mean("note", "ttft_p95", constant(FAST), window_ms=w) for w in (6, 2)]
    average = [mean("note", "ttft_mean", constant(FAST), window_ms=w) for w in (6, 2)]
    assert average[1] < 0.95 * average[0] and p95[1] > 0.85 * p95[0]


def test_a_small_bmax_overloads_and_a_larger_one_repairs_it() -> None:
    """TTFT falls steeply with Bmax before it does anything else: 1 and 2 cannot keep up."""
    p95 = {b: mean("note", "ttft_p95", constant(FAST), bmax=b) for b in (1, 2, 16)}
    assert p95[1] > 5_000 and p95[2] > 1_000 and p95[16] < 3


def test_a_full_batch_does_not_wait_for_its_window() -> None:
    asked = Settings(nreq=4, rate=1e6, tokens=1, bmax=4, window_ms=1_000)
    assert run(asked, constant(FAST)).e2e.max() < 1e-3


def test_the_summary_counts_tokens_over_step_time() -> None:
    outcome = Outcome(np.array([0.1, 0.3]), np.array([0.2, 0.4]), np.array([1, 2, 1]), np.array([0.01, 0.02, 0.01]))
    found = summary(outcome)
    assert found["tokens"] == 4 and math.isclose(found["tokens_per_second"], 100)
    assert math.isclose(found["ttft_mean"], 0.2) and math.isclose(found["e2e_p95"], 0.39)
    assert math.isclose(found["mean_batch"], 4 / 3)


def test_the_report_and_its_json() -> None:
    settings = ("--device", "numpy", "--nreq", 12, "--tokens", 3, "--lambda", 300, "--work", 256, "--window_ms", 1)
    result = call(*settings, "--seed", 5)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (
        lines[0] == "CONFIG nreq=12 lambda=300/s tokens=3 Bmax=16 window_ms=1 work=256 threads=256 loop=window seed=5"
    )
    assert lines[1].startswith("CPU time: ") and "| tokens: 36  | tokens/sec (CPU): " in lines[1]  # no GPU, no GPU time
    assert lines[2].startswith("TTFT mean=") and lines[3].startswith("E2E  mean=") and " p95=" in lines[2]
    assert lines[-1].startswith("DEVICE numpy: ") and "Step times measured now" in lines[-1]
    found = json.loads(call(*settings, "--json", "--loop", "note").stdout)
    assert found["source"] == "measured" and found["device"]["kind"] == "numpy" and found["loop"] == "note"
    assert found["summary"]["tokens"] == 36 and found["summary"]["ttft_mean"] > 0
    assert found["settings"]["seed"] == 0 and found["gap_seconds"]["longest"] > 0


def test_one_request_of_one_token_has_no_gap() -> None:
    found = json.loads(call("--device", "numpy", "--nreq", 1, "--tokens", 1, "--work", 64, "--json").stdout)
    assert found["gap_seconds"] == {"median": None, "longest": None}


def test_fixed_batches() -> None:
    settings = ("--device", "numpy", "--work", 256, "--fixed-batch", "4,1, 2", "--nreq", 5)
    result = call(*settings)
    assert result.exit_code == 0 and [line[:4] for line in result.stdout.splitlines()[1:4]] == ["b=4 ", "b=1 ", "b=2 "]
    assert "GAIN b=1 to b=4: " in result.stdout
    assert "warning: --nreq has no effect: --fixed-batch has no arrivals" in result.stderr
    found = json.loads(call(*settings, "--json").stdout)
    assert [row["batch"] for row in found["fixed_batch"]] == [4, 1, 2]
    for row in found["fixed_batch"]:
        assert math.isclose(row["tokens_per_second"], row["batch"] / row["step_seconds"])


def test_more_load_than_the_device_can_take_is_said() -> None:
    result = call("--device", "numpy", "--nreq", 300, "--tokens", 3, "--lambda", 1e6, "--work", 64, "--bmax", 2)
    assert "the queue grows as long as requests come" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--nreq 0", "--nreq must be a whole number from 1 to 1,000,000, not 0"),
        ("--nreq -5", "--nreq must be"),
        ("--lambda 0", "--lambda must be a finite number from 0.001 to 1e+06, not 0"),
        ("--lambda nan", "--lambda must be a finite number"),
        ("--lambda inf", "--lambda must be a finite number"),
        ("--tokens 0", "--tokens must be"),
        ("--bmax 0", "--bmax must be a whole number from 1 to 65,536, not 0"),
        ("--bmax 1000000000", "--bmax must be"),
        ("--window-ms -1", "--window-ms must be a finite number from 0 to 60,000, not -1"),
        ("--window-ms nan", "--window-ms must be"),
        ("--work 0", "--work must be a whole number from 1 to 16,777,216, not 0"),
        ("--work 99999999999999999999", "--work must be"),
        ("--threads 48", "--threads must be a power of two from 1 to 1,024, not 48"),
        ("--threads 2048", "--threads must be a whole number from 1 to 1,024, not 2048"),
        ("--threads 0", "--threads must be"),
        ("--seed -1", "--seed must be"),
        ("--loop other", "--loop must be window or note, not 'other'"),
        ("--device tpu", "no device is called 'tpu'"),
        ("--fixed-batch 1,0", "--fixed-batch must be a whole number from 1 to 65,536, not 0"),
        ("--fixed-batch 1,x", "--fixed-batch must be whole numbers such as 1,2,4,8, not '1,x'"),
        ("--fixed-batch ,", "--fixed-batch must be whole numbers"),
        ("--nreq 1000000 --tokens 1000000", "--nreq x --tokens is 1,000,000,000,000"),
        ("--nreq many", "Invalid value for '--nreq'"),
    ],
)
def test_bad_values_are_refused_before_anything_runs(options: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--device" not in options:
        monkeypatch.setattr(gpu, "device", lambda kind: pytest.fail("a device was looked for"))
    result = call(*options.split())
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and len(result.stderr.splitlines()) == 1


def test_what_would_take_all_day_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "MAX_SECONDS", 0.0)
    for options in ((), ("--fixed-batch", "1,2")):
        result = call("--device", "numpy", "--work", 64, *options)
        assert result.exit_code == 2 and "this would take at least" in result.stderr and "ask for" in result.stderr


def test_a_device_that_is_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str) -> None:
        raise gpu.KernelError("no driver for an NVIDIA GPU is installed")

    monkeypatch.setattr(gpu, "device", refuse)
    result = call("--device", "cuda")
    assert result.exit_code == 2 and result.stderr == "course: no driver for an NVIDIA GPU is installed\n"
