"""Lab 16: its exercises with their mistakes, and what its two notebooks state."""

import json

import numpy as np
import pytest

from course import policies, results, serve, steptime
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import load
from course.lessons.lab16 import flaws, load_test, many_tools, replica, steady_window, three_files
from course.models import engine_defaults
from course.models.gpus import gpu
from tests.helpers.places import SOLUTIONS

LAB = load("16")
CORE = (SOLUTIONS / "16_measuring_honestly.py").read_text(encoding="utf-8")
DEEPER = (SOLUTIONS / "16_measuring_honestly_deeper.py").read_text(encoding="utf-8")


def exercise(name):
    return next(e for e in LAB.exercises if e.id == name)


def p99(values):
    return float(np.percentile(values, 99))


# Exercises


def test_hints_do_not_contain_the_answer():
    answers = {"felt": "max(", "ours": "525", "late": "4.25", "decision": str(flaws.enough(flaws.RATE, flaws.E2E))}
    for item in LAB.exercises:
        for hint in (item.hint, item.plain, *(mistake.hint for mistake in item.mistakes)):
            assert answers[item.id] not in hint, hint


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


def test_the_twins_have_answers_of_their_own():
    for item in LAB.exercises:
        assert judge(item.twin, item.twin.solution).status == RIGHT
        assert judge(item.twin, item.solution).status == WRONG
        for mistake in item.twin.mistakes:
            assert judge(item.twin, mistake.answer).hint == mistake.hint


def test_our_tpot_undoes_the_tools_own_division():
    """From tokens at even gaps: what llmperf would say of them, and what guidellm 0.3 would."""
    item = exercise("ours")
    ttft, gap, tokens = 525.0, item.solution, 20
    times = ttft + gap * np.arange(tokens)
    assert times[-1] / tokens == pytest.approx(50)
    ttft, gap = 100.0, item.twin.solution
    times = ttft + gap * np.arange(tokens)
    assert (times[-1] - times[0]) / tokens == pytest.approx(38)


def test_the_fourth_request_by_the_clients_own_rule():
    item = exercise("late")
    for solution, took in ((item.solution, (0.5, 3.25, 0.5, 0.25)), (item.twin.solution, (0.25, 2.5, 0.75, 0.5))):
        answered, free = [], 0.0
        for moment, seconds in zip((0, 1, 2, 3), took, strict=True):
            free = max(free, moment) + seconds
            answered.append(free)
        sent = load_test.sent_times(np.arange(4.0), np.array(answered), 1)
        assert solution == pytest.approx(sent[3] + took[3] - 3)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("nightly", "912 in 80 s are 11.4"),
        ("gateway", "nothing was streamed"),
        ("peak", "40 requests/s were asked for"),
    ],
)
def test_the_reader_of_result_files_finds_the_flaw_and_no_other(name, note):
    result = results.read(three_files.path(name))
    assert note in " ".join(result.notes)
    # Apart from its flaw each file agrees with itself.
    assert sum("cannot be" in text or "one of them is wrong" in text for text in result.notes) == (name == "nightly")


def test_the_three_files_by_hand():
    told = three_files.contents("nightly")
    assert told["completed"] / told["duration"] == 912 / 80 == 11.4
    assert told["completed"] + told["failed"] == told["num_prompts"] == 1_000 == 12.5 * 80
    gateway = three_files.contents("gateway")
    assert gateway["mean_ttft_ms"] == pytest.approx(gateway["mean_e2e_latency_ms"], rel=1e-3)
    assert "tpot" not in results.read(three_files.path("gateway")).summary
    peak = three_files.contents("peak")
    assert peak["num_prompts"] / peak["request_rate"] == 50
    assert peak["duration"] - peak["mean_e2el_ms"] / 1e3 == pytest.approx(123, abs=0.5)
    assert peak["request_throughput"] * peak["mean_e2el_ms"] / 1e3 == pytest.approx(peak["max_concurrency"], rel=0.02)


def test_the_decision_is_about_the_file_peak():
    """The notebook prints what the file says, and asks with the command that made it."""
    peak = three_files.contents("peak")
    for line in (
        f"--request-rate {peak['request_rate']:g} --num-prompts {peak['num_prompts']} "
        f"--max-concurrency {peak['max_concurrency']} --percentile-metrics ttft,e2el`",
        f"Maximum request concurrency:             {peak['max_concurrency']}\n",
        f"Request rate configured (RPS):           {peak['request_rate']:.2f}\n",
        f"Request throughput (req/s):              {peak['request_throughput']:.2f}\n",
        f"P99 TTFT (ms):                           {peak['p99_ttft_ms']:.2f}\n",
        f"Mean E2EL (ms):                          {peak['mean_e2el_ms']:.2f}\n",
    ):
        assert line in CORE
    needed = peak["request_rate"] * peak["mean_e2el_ms"] / 1e3
    (right,) = exercise("decision").solution.values()
    assert right / 2 < needed <= right and np.log2(right).is_integer()
    (twin,) = exercise("decision").twin.solution.values()
    assert twin / 2 < 20 * 2.5 <= twin


def test_a_decision_in_any_spelling_and_anything_else_gets_a_sentence():
    item = exercise("decision")
    assert judge(item, {"max_concurrency": 128}).status == RIGHT
    assert judge(item, {"--max-concurrency": None}).status == NOT_ATTEMPTED
    assert "What held the requests back?" in judge(item, {"--request-rate": 16}).hint
    for answer, hint in ((128, "a dictionary"), ({"--a": 1, "--b": 2}, "one flag")):
        assert hint in judge(item, answer).hint


def test_no_other_file_has_a_name():
    with pytest.raises(ValueError, match="choose from nightly, gateway, peak"):
        three_files.path("weekly")


# What the text says in numbers. The tolerance of each is the last digit that the text shows.


def test_the_question_and_the_first_prediction():
    test = load_test.run_test(12, 16, 65_536)
    # The document's chunks are those of vLLM's budget, each behind the ones before: what the engine takes for it alone.
    alone = serve(load_test.requests(1, 65_536, num_requests=1), load_test.engine(), load_test.STEP)
    assert test.stall == pytest.approx(alone.ttft[0], rel=1e-12) and len(alone.steps) == 8
    assert engine_defaults.is_large(gpu("H100")) and engine_defaults.LARGE[1] == load_test.BUDGET
    assert p99(test.free.ttft) > 0.8 * test.stall > 50 * p99(test.written)
    assert p99(load_test.run_test(12, 16, 0).written) == pytest.approx(p99(test.written), rel=0.05)
    document = test.run.workload.prompt_tokens.argmax()
    assert (test.written > 1).sum() == 2 and test.written[document] > 1
    begin = test.free.admitted[document]
    due = (test.run.arrival > begin) & (test.run.arrival <= begin + test.stall)
    assert due.sum() == pytest.approx(12 * test.stall, abs=3 * (12 * test.stall) ** 0.5)  # Poisson


def test_the_table_of_limits():
    """Where C / n is below 1% the report cannot see the stall; with 64 it does; from the plan all see it."""
    for limit in load_test.LIMITS:
        test = load_test.run_test(12, limit, 65_536)
        if limit / len(test.run) < 0.01:
            assert p99(test.written) < 0.05
        assert p99(test.run.ttft) > 0.8 * test.stall
    seen, unseen = (p99(load_test.run_test(12, limit, 65_536).written) for limit in (64, 32))
    assert seen > 0.8 * test.stall > 0.05 > unseen
    # "a limit of 8 is a queue that users would not stand in, even without a document"
    assert p99(load_test.run_test(12, 8, 0).run.ttft) > 10 * p99(load_test.run_test(12, 8, 0).free.ttft)


def test_a_late_client():
    assert pytest.approx(0.45, abs=5e-3) == (1 / 183.5 - 1 / 200) * 1e3


def test_requests_or_tokens():
    burst = many_tools.read_by_all(128, 1.0, 1)
    tpot, gaps = burst.seen.tpot, burst.seen.tokens - 1
    assert burst.run.arrival[-1] == pytest.approx(2.5, abs=0.25)  # "within 2.5 seconds"
    assert np.concatenate(burst.seen.gaps).mean() == pytest.approx(gaps @ tpot / gaps.sum())
    short = gaps < np.median(gaps)
    assert tpot[short].mean() > 1.5 * tpot[~short].mean()
    assert many_tools.read_by_all(64, 1.0, 1).run.arrival[-1] < 5


def test_pieces_are_not_tokens():
    calm, by_four = many_tools.read_by_all(4, 1.0, 1).seen, many_tools.read_by_all(4, 1.0, 4).seen
    assert np.concatenate(by_four.gaps).mean() / np.nanmean(calm.tpot) == pytest.approx(4, abs=0.2)
    assert np.array_equal(by_four.tpot, calm.tpot)
    assert (calm.ttft - 0.002).mean() > 1.5 * np.mean([gap[0] for gap in calm.gaps])  # the first gap by pieces
    total = sum(k.sum() for k in by_four.piece_tokens)
    assert total == (calm.tokens - 1).sum()


def test_what_a_p99_hides():
    run = serve(load_test.requests(12, 16_384, documents=40), load_test.engine(), load_test.STEP)
    gaps = [np.diff(run.token_times(i)) for i in range(len(run))]
    longest, every = np.array([gap.max(initial=0) for gap in gaps]), np.concatenate(gaps)
    assert (run.workload.prompt_tokens == 16_384).sum() / len(run) == 1 / 50
    assert len(load_test.chunks(16_384)) == 2 and min(load_test.chunks(16_384)) > 0.2 > 10 * p99(every)
    assert 0.15 < (longest > 0.2).mean() < 0.22  # "nearly one in five"
    assert len(every) == pytest.approx(250_000, rel=0.01)
    assert np.percentile(run.itl, 99) == pytest.approx(p99(every), rel=1e-9)


def test_percentiles_cannot_be_averaged():
    busy, idle = (
        replica.under_load(rate, num_requests=300 * rate, seed=seed).ttft for seed, rate in enumerate((15, 4))
    )
    together = p99(np.concatenate([busy, idle]))
    assert (p99(busy) + p99(idle)) / 2 < 0.6 * together


def test_independent_values_are_another_matter():
    long = replica.under_load(14, num_requests=100_000).ttft
    held = []
    for values in (long, np.random.default_rng(0).permutation(long)):
        bands = [steady_window.percentile_interval(part, 99) for part in values.reshape(100, 1_000)]
        held.append(sum(band.low <= p99(long) <= band.high for band in bands))
    # 95 of 100 expected, with a standard deviation of at most 2.2; the queue's own come nowhere near.
    assert held[0] < 40 and held[1] >= 88


def test_rates_from_gaps():
    arrival = load_test.requests(12).arrival
    single, counted = 1 / np.diff(arrival), np.histogram(arrival, np.arange(0, 166))[0]
    assert single.std() > 100 * 12 and counted.mean() == pytest.approx(12, abs=0.3)
    assert counted.std() == pytest.approx(12**0.5, rel=0.15)  # Poisson; 165 windows give it to 6% or so


def test_a_report_that_gets_better():
    found = {rate: load_test.run_test(rate, 16, 0) for rate in (12, 20, 40)}
    tails = [p99(test.written) for test in found.values()]
    assert tails[0] > tails[1] and tails[2] == pytest.approx(tails[1], rel=1e-2)
    assert found[40].in_flight > 15.5 and found[40].sent[-1] - found[40].run.arrival[-1] > 45


def test_null_read_as_zero():
    values = [210, None, 190, None, 230, None, None, 220]
    assert json.dumps(values).replace("[", "").replace("]", "") in DEEPER
    assert np.mean([v or 0 for v in values]) == 106.25 and np.mean([v for v in values if v is not None]) == 212.5


def test_a_p99_that_is_the_start():
    run = steady_window.closed_loop(64)
    assert (run.arrival == 0).sum() == 64 and 64 / len(run) == pytest.approx(0.02, abs=5e-3)
    assert p99(run.ttft) / p99(steady_window.window(64, 5, 40).ttft) == pytest.approx(9, abs=0.5)
    assert p99(run.ttft) < run.ttft[:64].max()


def test_a_closed_loop_slows_down_with_its_engine():
    run = serve(steady_window.closed_loop(16).workload, policies.Continuous(256, 2_048), steptime.PowerLaw(10e-3, 0, 1))
    slow = serve(run.workload, run.policy, steptime.PowerLaw(20e-3, 0, 1))
    assert slow.makespan == pytest.approx(2 * run.makespan)  # half as many requests a second
