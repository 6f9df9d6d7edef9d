"""Every metric on runs small enough to compute by hand, and percentiles against NumPy and SciPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mstats

from course import KVCache, Workload, policies, serve, steptime
from course.engine import metrics
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second
NAN = pytest.approx(math.nan, nan_ok=True)


@pytest.fixture(scope="module")
def run():
    """Three requests in two slots. A step takes 1 s and another half second for each prompt token; blocks of 2 tokens.

    request  arrives  prompt  output
       0       0        4       3
       1       0.5      2       2
       2       1        2       1

    step  from  to   what                                          tokens leave  blocks of 0, 1, 2   waits
     0     0    3    prompt of 0: 1 + 4/2 s                        0             2                   nobody yet
     1     3    5    0 decodes over 5 tokens, prompt of 1: 1 + 2/2 0, 1          3 + 1               2
     2     5    6    0 decodes over 6 tokens, 1 over 3             0, 1: the end 3 + 2               2
     3     6    8    prompt of 2: 1 + 2/2 s                        2: the end            1
    """
    load = Workload([0.0, 0.5, 1.0], [4, 2, 2], [3, 2, 1])
    step_time = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=0.5)
    return serve(load, policies.Continuous(max_num_seqs=2, max_num_batched_tokens=64), step_time, KVCache(10, 2))


def test_times_of_each_request(run):
    assert [run.token_times(i).tolist() for i in range(3)] == [[3, 5, 6], [5, 6], [8]]
    assert run.ttft.tolist() == [3, 4.5, 7]
    assert run.e2e.tolist() == [6, 5.5, 7]
    assert run.queue_wait.tolist() == [0, 2.5, 5]
    assert run.admitted.tolist() == [0, 3, 6]
    assert run.response.tolist() == run.last_computed.tolist() == [6, 6, 8]
    # (6 - 3) / 2 and (5.5 - 4.5) / 1; one token has no time between tokens.
    assert run.tpot[:2].tolist() == [1.5, 1] and math.isnan(run.tpot[2])
    assert sorted(run.itl) == [1, 1, 2]
    assert run.makespan == 8
    assert repr(run).startswith("Run(3 requests, 4 steps, Continuous(")


def test_columns_of_the_steps(run):
    steps = run.steps
    assert len(steps) == 4
    assert steps.start.tolist() == [0, 3, 5, 6]
    assert steps.end.tolist() == [3, 5, 6, 8]
    assert steps.seconds.tolist() == [3, 2, 1, 2]
    assert steps.running.tolist() == steps.useful.tolist() == [1, 2, 2, 1]
    assert steps.wasted.tolist() == steps.preemptions.tolist() == steps.dropped.tolist() == [0, 0, 0, 0]
    assert steps.decodes.tolist() == [0, 1, 2, 0]
    assert steps.decode_context.tolist() == [0, 5, 9, 0]
    assert steps.prefill_tokens.tolist() == [4, 2, 0, 2]
    assert steps.queue.tolist() == [0, 1, 1, 0]
    assert steps.blocks.tolist() == [2, 4, 5, 1]


def test_summary_by_hand(run):
    got = run.summary()
    want = {
        "requests": 3,
        "makespan": 8,
        "offered_rate": 2 / 1,  # two gaps in one second
        "requests_per_second": 3 / 8,
        "output_tokens_per_second": 6 / 8,
        "total_tokens_per_second": (6 + 8) / 8,
        "steady_output_tokens_per_second": 0,  # no token leaves before the last arrival, at 1 s
        "goodput": 3 / 8,
        "ttft_mean": 14.5 / 3,
        "ttft_p50": 4.5,
        "ttft_p90": 4.5 + 0.8 * 2.5,  # place 0.9 x 2 of 0 to 2
        "ttft_max": 7,
        "tpot_mean": 1.25,
        "tpot_p50": 1.25,
        "tpot_max": 1.5,
        "itl_mean": 4 / 3,
        "itl_p50": 1,
        "itl_p90": 1 + 0.8 * 1,
        "e2e_mean": 18.5 / 3,
        "e2e_p50": 6,
        "queue_wait_mean": 2.5,
        "queue_wait_p99": 2.5 + 0.98 * 2.5,
        "steps": 4,
        "slot_utilisation": (1 * 3 + 2 * 2 + 2 * 1 + 1 * 2) / (2 * 8),
        "token_utilisation": (4 + 3 + 2 + 2) / (64 * 4),
        "useful_slot_steps": 6,
        "wasted_slot_steps": 0,
        "computed_tokens": 11,
        "padding_tokens": 0,
        "recomputed_tokens": 0,
        "elsewhere_tokens": 0,
        "preemptions": 0,
        "drafted_tokens": 0,
        "accepted_tokens": 0,
        "rejected": 0,
        "gave_up": 0,
        "abandoned_tokens": 0,
        "kv_peak": 5 / 10,
        "kv_mean": (2 * 3 + 4 * 2 + 5 * 1 + 1 * 2) / (10 * 8),
        "mean_in_system": 18.5 / 8,
        "little_residual": 0,
    }
    assert {name: got[name] for name in want} == pytest.approx(want, rel=1e-15, abs=1e-15)
    assert set(got) - set(want) == {
        f"{name}_{key}"
        for name in ("ttft", "tpot", "itl", "e2e", "queue_wait")
        for key in ("mean", "p50", "p90", "p95", "p99", "max")
        if f"{name}_{key}" not in want
    }


@pytest.mark.parametrize(
    ("slos", "who"),
    [
        ({"ttft_slo": 4.5}, {0, 1}),  # exactly at the limit is within it
        ({"tpot_slo": 1.0}, {1, 2}),  # 2 has no TPOT, so it meets any
        ({"e2e_slo": 6.0}, {0, 1}),
        ({"ttft_slo": 4.5, "tpot_slo": 1.0}, {1}),
        ({"ttft_slo": 4.5, "tpot_slo": 1.0, "e2e_slo": 5.0}, set()),
        ({}, {0, 1, 2}),
    ],
)
def test_goodput(run, slos, who):
    met = metrics.meets_slos(run, slos.get("ttft_slo"), slos.get("tpot_slo"), slos.get("e2e_slo"))
    assert set(np.flatnonzero(met)) == who
    assert run.summary(**slos)["goodput"] == len(who) / 8


def test_warmup_leaves_out_who_came_before_its_end(run):
    summary = run.summary(warmup=0.5)
    assert summary["ttft_mean"] == (4.5 + 7) / 2
    assert summary["tpot_mean"] == 1  # of request 1 alone
    assert summary["queue_wait_max"] == 5
    assert summary["requests"] == 3 and summary["itl_mean"] == pytest.approx(4 / 3)  # of the whole run


def test_steady_throughput_is_that_between_warmup_and_last_arrival():
    # One slot: tokens leave at 1, 2, 3, then 7, 8, 9, then 11, 12, 13 s. The last request arrives at 10 s.
    run = serve(Workload([0.0, 6.0, 10.0], [1] * 3, [3] * 3), policies.Continuous(1, 8), SECOND)
    assert run.summary()["steady_output_tokens_per_second"] == 6 / 10
    assert run.summary(warmup=2)["steady_output_tokens_per_second"] == 4 / 8  # those at 3, 7, 8 and 9 s
    assert run.summary(warmup=10)["steady_output_tokens_per_second"] == NAN


def test_number_in_system(run):
    times, counts = run.number_in_system()
    assert times.tolist() == [0, 0.5, 1, 6, 8]  # two leave at 6 s
    assert counts.tolist() == [1, 2, 3, 1, 0]


def test_littles_law_over_the_whole_run(run):
    law = run.little()
    assert (law.seconds, law.L, law.arrival_rate, law.W) == (8, 18.5 / 8, 3 / 8, pytest.approx(18.5 / 3))
    assert law.carried_in == law.carried_out == 0
    assert law.residual == pytest.approx(0, abs=1e-15)


def test_littles_law_over_windows(run):
    # From 0.5 to 5 s: 0 is carried in, 1 and 2 arrive (the edge counts), both stay on for 1 and 3 s after the end.
    law = run.little(0.5, 5)
    assert law.L * law.seconds == pytest.approx(4.5 + 4.5 + 4)
    assert law.arrival_rate == pytest.approx(2 / 4.5)
    assert law.W == (5.5 + 7) / 2
    assert law.carried_in == 4.5 / 4.5
    assert law.carried_out == pytest.approx((1 + 3) / 4.5)
    assert law.residual == pytest.approx(0, abs=1e-15)
    # From 2 to 7 s nobody arrives: all of L is carried in, until 6, 6 and 7 s.
    law = run.little(2, 7)
    assert (law.L, law.arrival_rate, law.W, law.carried_in, law.carried_out) == (13 / 5, 0, 0, 13 / 5, 0)
    # Before and after everything.
    law = run.little(-3, -1)
    assert (law.L, law.arrival_rate, law.W, law.carried_in, law.carried_out, law.residual) == (0,) * 6
    # To the end of time: the arrivals' rate alone goes down with the length of the window.
    assert run.little(0, 80).L == 18.5 / 80
    # Without the edge terms the law is wrong in a window.
    law = run.little(0, 1)
    assert law.L == 1.5 and law.arrival_rate * law.W == pytest.approx(2 * (6 + 5.5) / 2)


def test_static_batch_of_100_20_and_80_tokens():
    """100 steps of three slots; 80 of the second and 20 of the third are padding."""
    run = serve(Workload([0.0, 0.0, 0.0], [10, 4, 7], [100, 20, 80]), policies.Static(3), SECOND, KVCache(21, 16))
    summary = run.summary()
    assert summary["wasted_slot_steps"] == 100 and summary["useful_slot_steps"] == 200
    assert summary["slot_utilisation"] == 200 / 300
    # 3 x (10 + 99) tokens for the needs of 10 + 99, 4 + 19 and 7 + 79: padded prompts and padded answers.
    assert summary["computed_tokens"] == 327 and summary["padding_tokens"] == 327 - (109 + 23 + 86)
    assert run.ttft.tolist() == run.e2e.tolist() == [100, 100, 100]
    assert run.first_computed.tolist() == [1, 1, 1] and run.last_computed.tolist() == [100, 20, 80]
    assert np.isnan(run.tpot).all() and len(run.itl) == 0
    assert summary["tpot_mean"] == NAN and summary["itl_p99"] == NAN and summary["token_utilisation"] == NAN
    assert summary["kv_peak"] == summary["kv_mean"] == 1  # 3 slots x 109 tokens: 3 x 7 blocks from beginning to end
    assert run.steps.wasted.tolist() == [0] * 20 + [1] * 60 + [2] * 20
    assert run.steps.decode_context.tolist() == [0, *(3 * (10 + k) for k in range(1, 100))]


def test_dynamic_batches():
    # 0 and 1 fill a batch at 1 s; 2 waits alone for its 2 s.
    run = serve(Workload([0.0, 1.0, 10.0], [5, 3, 4], [2, 1, 1]), policies.Dynamic(2, max_queue_delay=2), SECOND)
    assert run.admitted.tolist() == [1, 1, 12] and run.response.tolist() == [3, 3, 13]
    assert run.queue_wait.tolist() == [1, 0, 2]
    assert run.e2e.tolist() == [3, 2, 3]
    assert run.steps.start.tolist() == [1, 2, 12]
    assert run.steps.wasted.tolist() == [0, 1, 0]
    assert run.steps.prefill_tokens.tolist() == [10, 0, 4]
    # In the system: 3 + 2 + 3 request-seconds in 13 s; working: slots 2 + 1 + 1 of 2 x 13.
    assert run.summary()["mean_in_system"] == 8 / 13
    assert run.summary()["slot_utilisation"] == 4 / 26


def test_preemption_by_hand():
    """Two prompts of 2 tokens, answers of 3, six blocks of one token.

    Steps 0 and 1: both, 4 and 6 blocks. Step 2: 0 needs a seventh, so 1 gives back its 3; nobody is admitted. Step 3: 1
    computes its prompt and its two tokens again, 4 tokens, and emits the third.
    """
    run = serve(Workload([0.0, 0.0], [2, 2], [3, 3]), policies.Continuous(2, 64), SECOND, KVCache(6, 1))
    assert run.token_times(0).tolist() == [1, 2, 3] and run.token_times(1).tolist() == [1, 2, 4]
    assert run.preempted.tolist() == [0, 1]
    assert run.steps.running.tolist() == [2, 2, 1, 1]
    assert run.steps.queue.tolist() == [0, 0, 1, 0]
    assert run.steps.blocks.tolist() == [4, 6, 4, 4]
    assert run.steps.preemptions.tolist() == [0, 0, 1, 0] and run.steps.dropped.tolist() == [0, 0, 3, 0]
    assert run.steps.prefill_tokens.tolist() == [4, 0, 0, 4]
    assert sorted(run.itl) == [1, 1, 1, 2]
    summary = run.summary()
    assert (summary["preemptions"], summary["recomputed_tokens"], summary["computed_tokens"]) == (1, 3, 4 + 2 + 1 + 4)
    assert (summary["kv_peak"], summary["kv_mean"]) == (1, 18 / (6 * 4))
    assert run.queue_wait.tolist() == [0, 0]  # from arrival to the first admission


def test_itl_in_the_summary_is_that_of_every_gap():
    load = Workload.poisson(rate=300, num_requests=200, prompt_tokens=60, output_tokens=20, seed=4)
    run = serve(load, policies.Continuous(8, 64), steptime.Roofline("llama-3.1-8b", "H100"), KVCache(30))
    gaps = np.concatenate([np.diff(run.token_times(i)) for i in range(200)])
    assert np.array_equal(np.sort(gaps), np.sort(run.itl))
    assert run.preempted.any()
    summary = run.summary()
    for q in metrics.PERCENTILES:
        assert summary[f"itl_p{q}"] == np.percentile(gaps, q)
    assert summary["itl_mean"] == pytest.approx(gaps.mean(), rel=1e-12)  # added up in another order
    assert summary["itl_max"] == gaps.max()


# Percentiles


def test_percentiles_interpolate_linearly():
    got = metrics.percentiles(np.array([4.0, 1.0, 3.0, 2.0]))
    # Place q x 3 among 1, 2, 3, 4.
    want = {"mean": 2.5, "p50": 2.5, "p90": 3.7, "p95": 3.85, "p99": 3.97, "max": 4}
    assert got == pytest.approx(want, rel=1e-15)
    assert metrics.percentiles(np.array([1.0, math.nan, 3.0]))["p50"] == 2
    assert set(metrics.percentiles(np.array([7.0])).values()) == {7.0}
    for nothing in (np.array([]), np.array([math.nan])):
        assert all(math.isnan(value) for value in metrics.percentiles(nothing).values())


VALUES = st.lists(st.floats(0, 1e3, allow_subnormal=False), min_size=1, max_size=40)


@given(VALUES)
@examples(100)
def test_percentiles_are_those_of_numpy_and_scipy(values):
    got = metrics.percentiles(np.array(values))
    assert [got[f"p{q}"] for q in metrics.PERCENTILES] == np.percentile(values, metrics.PERCENTILES).tolist()
    theirs = mstats.mquantiles(values, np.array(metrics.PERCENTILES) / 100, alphap=1, betap=1)
    # SciPy interpolates by another formula: equal but for rounding of numbers up to 1000.
    assert [got[f"p{q}"] for q in metrics.PERCENTILES] == pytest.approx(theirs, rel=1e-9, abs=1e-9)
    assert got["mean"] == np.mean(values) and got["max"] == max(values)


def test_weighted_percentiles_are_those_of_repeated_values():
    """To the last bit. Two thousand draws, since the formulas round alike nearly always."""
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        n = rng.integers(1, 40)
        values, weights = rng.exponential(1, n), rng.integers(1, 50, n)
        values[rng.random(n) < 0.1] = math.nan
        got, want = metrics.percentiles(values, weights), metrics.percentiles(np.repeat(values, weights))
        if np.isnan(values).all():
            assert np.isnan(list(got.values())).all()
            continue
        assert [got[f"p{q}"] for q in metrics.PERCENTILES] == [want[f"p{q}"] for q in metrics.PERCENTILES]
        assert got["max"] == want["max"]
        assert got["mean"] == pytest.approx(want["mean"], rel=1e-12)  # added up in another order
