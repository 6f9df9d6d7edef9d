"""Lab 16: its exercises by the scenario's own client, its files by hand, and what its optional notebook computes."""

import numpy as np
import pytest

from course import results, serve
from course.exercises.judge import RIGHT, judge
from course.lessons import load
from course.lessons.lab16 import facts, load_test, many_tools, sketch
from course.lessons.lab16.tasks import p99
from tests.helpers.places import SOLUTIONS

LAB = load("16")
CORE = (SOLUTIONS / "16_measuring_honestly.py").read_text(encoding="utf-8")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


# Exercises


def test_from_the_plan_is_a_client_with_one_request_in_flight():
    """The scenario's own client, with a limit of 1, on the same plan: two ways to the same seconds."""
    item = exercise("felt")
    for planned, seconds in item.probes:
        free, answered = 0.0, []
        for moment, took in zip(planned, seconds, strict=True):
            free = max(free, moment) + took
            answered.append(free)
        sent = load_test.sent_times(np.array(planned), np.array(answered), 1)
        assert np.allclose(sent + seconds - planned, item.solution(planned, seconds))

    def with_arrays(planned, seconds):
        planned, seconds = np.asarray(planned), np.asarray(seconds)
        before = np.concatenate([[0], np.cumsum(seconds)[:-1]])
        start = before + np.maximum.accumulate(planned - before)
        return start + seconds - planned

    assert judge(item, with_arrays).status == RIGHT


def test_our_tpot_undoes_the_tools_own_division():
    """From tokens at even gaps: what llmperf would say of them, and what guidellm 0.3 would."""
    item = exercise("ours")
    times = facts.TTFT + item.solution * np.arange(facts.TOKENS)
    assert times[-1] / facts.TOKENS == pytest.approx(facts.TOLD)
    times = facts.TTFT_TWIN + item.twin.solution * np.arange(facts.TOKENS)
    assert (times[-1] - times[0]) / facts.TOKENS == pytest.approx(facts.TOLD_TWIN)


# Files


def test_the_decision_is_about_the_file_peak():
    """The notebook prints what the file says, and asks with the command that made it."""
    peak = facts.PEAK
    assert "40 requests/s were asked for" in " ".join(results.read(many_tools.PEAK).notes)
    for line in (
        f"--request-rate {peak['request_rate']:g} --num-prompts {peak['num_prompts']} "
        f"--max-concurrency {peak['max_concurrency']} --percentile-metrics ttft,e2el`",
        f"Request throughput (req/s):              {peak['request_throughput']:.2f}\n",
        f"P99 TTFT (ms):                           {peak['p99_ttft_ms']:.2f}\n",
        f"Mean E2EL (ms):                          {peak['mean_e2el_ms']:.2f}\n",
    ):
        assert line in CORE


# The scenario


def test_the_stall_is_what_the_engine_takes_for_the_document_alone():
    """Its chunks are those of vLLM's budget, each behind the ones before."""
    alone = serve(load_test.requests(1, 65_536, num_requests=1), load_test.engine(), load_test.STEP)
    assert load_test.stall(65_536) == pytest.approx(alone.ttft[0], rel=1e-12) and len(alone.steps) == 8


def test_the_table_of_limits():
    """Where C / n is below 1% the report cannot see the stall; with 64 it does; from the plan all see it."""
    for limit in load_test.LIMITS:
        test = load_test.run_test(12, limit, 65_536)
        if limit / len(test.run) < 0.01:
            assert p99(test.written) < 0.05
        assert p99(test.run.ttft) > 0.8 * test.stall
    seen, unseen = (p99(load_test.run_test(12, limit, 65_536).written) for limit in (64, 32))
    assert seen > 0.8 * test.stall > 0.05 > unseen


@pytest.mark.parametrize("seed", range(5))
def test_a_short_test_shows_the_stall_in_its_p99_and_a_long_one_hides_it(seed):
    """In five draws of the arrivals: whatever stands in a column of the drawing is no chance."""
    short, long = sketch.MEASURED[:3], sketch.MEASURED[3:]
    assert min(sketch.reported(n, seed) for n in short) > 1_000 > 10 * max(sketch.reported(n, seed) for n in long)
