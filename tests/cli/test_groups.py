"""`--group-by` and `--max-concurrency`: times of groups of requests, and a closed loop."""

import json

import numpy as np
import pytest

from course.cli import groups
from tests.cli.test_cli import call

STEP = ("--step-time", "power-law:t0=0.01,c=0")


def test_groups_are_closed_above_and_share_all_requests():
    times = {metric: np.array([1.0, 2.0, 3.0, 4.0]) for metric in groups.METRICS}
    made = groups.of("prompt:100,200", np.array([100, 101, 200, 201]), None, times)
    assert list(made) == ["prompt up to 100", "prompt up to 200", "prompt above 200"]
    assert [one["share"] for one in made.values()] == [0.25, 0.5, 0.25]
    assert [one["ttft_p50"] for one in made.values()] == [1.0, 2.5, 4.0]


@pytest.mark.parametrize("by", ["", "prompt", "prompt:", "prompt:0", "prompt:9,8", "prompt:5,5", "length:5", "classes"])
def test_what_is_no_group_is_refused(by):
    with pytest.raises(ValueError, match="--group-by takes"):
        groups.edges(by)


def test_class_needs_classes():
    with pytest.raises(ValueError, match="needs requests with classes"):
        groups.masks("class", np.array([1]), None)


def test_a_group_without_requests_has_no_times():
    times = {metric: np.array([1.0]) for metric in groups.METRICS}
    empty = groups.of("prompt:5", np.array([3]), None, times)["prompt above 5"]
    assert empty["requests"] == 0 and np.isnan(empty["ttft_p50"])


def test_simulate_prints_groups_in_both_forms():
    words = ("simulate", "--class", "a:rate=5", "--class", "b:rate=2", "--num-requests", "70", *STEP)
    content = json.loads(call(*words, "--group-by", "class", "--json").stdout)
    parts = content["runs"][0]["groups"]
    assert {name: one["requests"] for name, one in parts.items()} == {"a": 50, "b": 20}
    assert "71.4%" in call(*words, "--group-by", "class").stdout


def test_users_of_a_closed_loop_have_one_request_each():
    """Answers of one token, steps of 10 ms, nobody thinks: four requests every step, 100 steps a second."""
    words = ("simulate", "--max-concurrency", "4", "--num-requests", "40", "--prompt-tokens", "100", "--prompt-cv", "0")
    one = ("--output-tokens", "1", "--output-cv", "0")
    content = json.loads(call(*words, *one, *STEP, "--json").stdout)
    assert content["runs"][0]["summary"]["makespan"] == pytest.approx(0.1)  # sums of 0.01
    assert content["runs"][0]["summary"]["mean_in_system"] == pytest.approx(4)


def test_results_group_the_requests_that_a_file_lists():
    listed = call("results", "tests/data/results/vllm_bench_detailed.json", "--group-by", "prompt:100")
    assert "75.0%" in listed.stdout
    summary = call("results", "tests/data/results/vllm_bench_summary.json", "--group-by", "prompt:100")
    assert "lists no requests" in summary.stderr
