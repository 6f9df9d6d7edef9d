"""A cap in the client beside arrivals at times: `Workload.max_concurrency`, as vLLM's benchmark has it.

Its requests take a place of a semaphore before they are sent, in the order in which they are due, and TTFT counts from
sending (vllm/benchmarks/serve.py).
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from course import Workload, policies, serve, steptime
from course.calibration.comparison import stand_in
from course.engine.plain import PlainEngine
from course.engine.serving import Engine
from course.policies.request import Request
from tests.cli.test_cli import call
from tests.cli.test_compare import summary
from tests.engine.test_plain import differences, plainly
from tests.helpers import strategies
from tests.helpers.sizes import size
from tests.helpers.strategies import compare, examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def sent_by_the_rule(due, answered, cap):
    """When each request goes out, from when each was answered: one event after the other."""
    sent, answers = [], sorted(answered)
    for row, when in enumerate(due):
        # With `row` sent before it, it needs row - cap + 1 answers.
        sent.append(when if row < cap else max(when, answers[row - cap]))
    return sent


def test_equal_to_the_oracle_and_to_the_rule_of_the_client():
    seen = {"held": 0, "idle": 0, "preempted": 0, "all": 0}

    @given(strategies.capped())
    @examples(500)
    def agree(case):
        out = compare(case)
        run = case.served()
        assert not differences(run, plainly(case))
        assert run.arrival.tolist() == sent_by_the_rule(case.arrival, run.response.tolist(), case.cap)
        assert np.array_equal(run.client_wait, run.arrival - np.array(case.arrival))
        assert run.number_in_system()[1].max() <= case.cap
        # A client that sends at these times by itself is served the same.
        again = replace(case, arrival=tuple(run.arrival.tolist()), cap=None)
        if (np.diff(run.arrival) >= 0).all() and not case.policy.padded:
            assert not differences(run, again.served())
        seen["all"] += 1
        seen["held"] += bool(run.client_wait.any())
        seen["idle"] += out.idle > 0
        seen["preempted"] += any(out.preempted)

    agree()
    assert all(seen[name] >= size(1, 20) for name in ("held", "idle", "preempted")), seen


def test_by_hand():
    """Steps of 1 s and answers of two tokens: two at a time, due at 0, 0, 0 and 3 s."""
    load = Workload([0, 0, 0, 3], [1] * 4, [2] * 4, max_concurrency=2)
    run = serve(load, policies.Continuous(8, 64), SECOND)
    assert run.arrival.tolist() == [0, 0, 2, 3] and run.client_wait.tolist() == [0, 0, 2, 0]
    assert run.ttft.tolist() == [1, 1, 1, 1] and run.makespan == 5
    assert run.summary()["client_wait_max"] == 2 and "client_wait_max" not in plain_summary(load)
    (warning,) = run.warnings
    assert "1 of 4 requests waited in the client, 2 s on average, because 2 were sent" in warning


def plain_summary(load):
    return serve(replace(load, max_concurrency=None), policies.Continuous(8, 64), SECOND).summary()


def test_a_cap_that_nothing_reaches_changes_nothing():
    load = Workload.poisson(5, 50, 20, 5, seed=3)
    free = serve(load, policies.Continuous(4, 64), SECOND)
    capped = serve(replace(load, max_concurrency=50), policies.Continuous(4, 64), SECOND)
    assert not differences(free, capped) and not capped.client_wait.any()
    assert not [one for one in capped.warnings if "client" in one]


def test_static_does_not_wait_for_those_whom_the_client_holds():
    load = Workload([0.0] * 6, [1] * 6, [1] * 6, max_concurrency=2)
    run = serve(load, policies.Static(4), SECOND)
    assert run.response.tolist() == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("kind", [Engine, PlainEngine])
def test_others_that_are_submitted_take_no_place_in_the_client(kind):
    engine = kind(fresh(policies.Continuous(8, 64)), SECOND)
    engine.follow(Workload([0.0, 0.0], [1, 1], [5, 1], max_concurrency=1))
    engine.submit(Request(arrival=0.0, prompt_tokens=1), output_tokens=1)
    assert engine.run().arrival.tolist() == [0, 5, 0]


def test_a_cap_is_part_of_a_workload():
    load = Workload.poisson(5, 6, 20, 5)
    capped = replace(load, max_concurrency=3)
    assert capped != load and capped == replace(load, max_concurrency=3)
    assert capped.head(2).max_concurrency == 3 and capped.scaled(9).max_concurrency == 3
    assert "at most 3 sent and not answered" in repr(capped)
    with pytest.raises(ValueError, match="cap them then"):
        capped.concat(load)
    with pytest.raises(ValueError, match="cap them then"):
        Workload.mix([load, capped])
    with pytest.raises(ValueError, match="change the number of users"):
        replace(Workload.closed_loop(2, 1.0, 2, 1, 1), max_concurrency=3)
    for wrong in (0, 1.5, "4", True):
        with pytest.raises(ValueError, match="max_concurrency must be"):
            replace(load, max_concurrency=wrong)


WORDS = ("simulate", "--rate", "50", "--num-requests", "40", "--step-time", "power-law:t0=0.05,c=0")


def test_simulate_counts_the_wait_on_a_line_of_its_own():
    text = call(*WORDS, "--max-concurrency", "2")
    assert "client wait mean" in text.stdout and "leave that wait out" in text.stderr
    assert "client wait" not in call(*WORDS).stdout
    content = json.loads(call(*WORDS, "--max-concurrency", "2", "--json").stdout)
    found = content["runs"][0]["summary"]
    assert found["client_wait_mean"] > 1 and found["mean_in_system"] <= 2
    per_class = call("simulate", "--class", "a:rate=50", *WORDS[3:], "--max-concurrency", "2")
    assert "client wait mean" in per_class.stdout


def test_simulate_says_that_nobody_thinks_beside_a_rate():
    assert (
        "--think-time has no effect: requests come at a rate"
        in call(*WORDS, "--max-concurrency", "2", "--think-time", "1").stderr
    )


def test_a_trace_is_replayed_behind_a_cap(tmp_path):
    (tmp_path / "own.csv").write_text("arrival,prompt_tokens,output_tokens\n0,10,3\n0.1,10,3\n0.2,10,3\n")
    words = ("simulate", "--trace", str(tmp_path / "own.csv"), "--max-concurrency", "1", *WORDS[5:], "--json")
    waits = json.loads(call(*words).stdout)["runs"][0]["summary"]
    assert waits["client_wait_mean"] == pytest.approx(0.05)  # due at 0, 0.1 and 0.2, sent at 0, 0.15 and 0.3


def test_a_summary_with_a_rate_and_a_limit_is_replayed_with_both():
    totals = {"requests": 40, "prompt_tokens": 4000, "output_tokens": 2000, "requested_rate": 5.0, "max_concurrency": 8}
    notes = []
    load = stand_in(summary(totals), notes)
    assert load.max_concurrency == 8 and "arrivals at 5/s, of which the client has at most 8" in notes[0]
