"""Lab 17: its scenario, exercises and figures against the engine, formulas and cases by hand."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab17, load
from course.lessons.lab17 import (
    by_hand,
    decision,
    deeper,
    figures,
    gate,
    live_words,
    silence,
    surprise,
    tasks,
    tenants,
    throttled,
    turns,
)
from course.lessons.lab17.tenants import FAIR, IN_ORDER, NONE, ORDERS, PRIORITY, SLOTS, STORM
from tests.helpers.figures import valid
from tests.helpers.sizes import size

EXERCISES = {exercise.id: exercise for exercise in load("17").exercises}


def test_the_requests_are_what_the_scenario_says():
    load_ = tenants.requests()
    counts = {name: int((load_.tenant == name).sum()) for name in "ABCN"}
    assert counts == {"A": 60, "B": 60, "C": 60, "N": 1_800}
    noisy = load_.tenant == "N"
    # Lognormal with a CV of 1 and 0.7, cut: 180 and 1,800 draws, so means good to some 10 and 3%.
    assert load_.prompt_tokens[~noisy].mean() == pytest.approx(512, rel=0.25)
    assert load_.prompt_tokens[noisy].mean() == pytest.approx(1_500, rel=0.06)
    assert load_.output_tokens.mean() == pytest.approx(256, rel=0.1)
    assert {tag["priority"] for tag, name in zip(load_.tags, load_.tenant, strict=True) if name != "N"} == {0}
    assert (load_.prompt_tokens + load_.guess).max() <= tenants.BURST  # a bucket lets everybody through in the end


def test_each_setting_is_the_policy_that_it_names():
    assert type(tenants.engine()) is policies.Continuous and type(tenants.engine(FAIR)) is policies.Fair
    assert tenants.engine(PRIORITY, ageing=3).ageing == 3 and tenants.engine(PRIORITY).ageing == float("inf")
    bucket = tenants.engine(FAIR, 64, gateway=28)
    assert (bucket.max_num_seqs, bucket.tokens_per_second, bucket.burst) == (64, 28_000, 20_000)


SURPRISE = list(itertools.product((256, SLOTS), range(size(1, 5))))


@pytest.mark.parametrize(("slots", "seed"), SURPRISE)
def test_an_order_protects_only_those_who_wait(slots, seed):
    """Over five seeds, with the engine's slots and with those of older cards."""
    calm = [tenants.outcome(tenants.requests(10, seed), tenants.engine(order, slots)) for order in ORDERS]
    assert all(np.array_equal(one.run.ttft, calm[0].run.ttft) for one in calm)
    load_ = tenants.requests(STORM, seed)
    in_order, priority, aged = (
        tenants.outcome(load_, policy)
        for policy in (
            tenants.engine(IN_ORDER, slots),
            tenants.engine(PRIORITY, slots),
            tenants.engine(PRIORITY, slots, 5),
        )
    )
    assert in_order.ttft > 20 and priority.ttft < 0.5
    assert 0.65 * in_order.ttft < aged.ttft < in_order.ttft - 2
    assert priority.tpot == pytest.approx(in_order.tpot, rel=0.1) and priority.tpot > 4 * calm[0].tpot
    assert priority.tokens_per_second == pytest.approx(in_order.tokens_per_second, rel=0.05)


def test_what_is_read_off_a_run_is_what_its_requests_felt():
    found = tenants.served()
    run, at = found.run, 30.0
    quiet = [row for row in range(len(run)) if run.workload.tenant[row] != "N"]
    assert found.ttft == np.percentile([run.token_times(row)[0] - run.arrival[row] for row in quiet], 95)
    times = {row: run.token_times(row) for row in quiet}
    pace = [(t[-1] - t[0]) / (len(t) - 1) for t in times.values() if len(t) > 1]
    assert found.tpot == pytest.approx(np.percentile(pace, 95))
    last = run.arrival.max()
    left = sum(int((run.token_times(row) <= last).sum()) for row in range(len(run)))
    # A step that runs across the last arrival is not counted.
    assert found.tokens_per_second == pytest.approx(left / last, rel=0.01)
    present = ((run.arrival <= at) & (run.response > at)).sum()
    assert found.running(at) + found.waiting(at) == present
    rows = dict(tenants.rows(found))
    assert rows["card busy"] == "100%" and rows["most that ran at once"] == f"{run.steps.running.max():,}"


@pytest.mark.parametrize("case", gate.PROBES)
def test_the_wait_of_the_exercise_is_that_of_the_policy(case):
    """A request at 0 takes the full bucket down to the level; the two come so many seconds later."""
    level, seconds, rate, burst, first, second = case
    load_ = Workload([0, seconds, seconds], [int(burst - level), int(first), int(second)], [1, 1, 1])
    run = serve(load_, policies.Bucket(8, 4_096, rate, burst), steptime.PowerLaw(t0=1e-6, c=0, alpha=1))
    assert run.queue_wait[2] == pytest.approx(gate.wait(*case), abs=1e-4)  # some steps of a microsecond


def test_the_counter_of_the_exercise_is_that_of_the_policy():
    """One tenant after the other, on one slot, in the order in which it is served least."""
    rows = [(name, prompt, output) for name, (many, prompt, output) in turns.SERVED.items() for _ in range(many)]
    rows += [(name, 1, 1) for name in "ABN"]
    arrival = [0.0] * (len(rows) - 3) + [1e6] * 3
    load_ = Workload(arrival, [row[1] for row in rows], [row[2] for row in rows], tenant=[row[0] for row in rows])
    counters = serve(load_, policies.Fair(1, 4_096, lift=False), steptime.PowerLaw(t0=1, c=0, alpha=1)).policy.counters
    for name, one in turns.SERVED.items():  # the last three may be counted, each 1 + 2
        assert counters[name] == pytest.approx(turns.counter(one), abs=3)
    assert min(turns.counter(one) for one in turns.SERVED.values()) == EXERCISES["next"].solution


def test_fair_takes_other_ways_of_writing_it():
    def with_queues(waiting, counters):
        lines, counters, order = {}, dict(counters), []
        for place, (tenant, prompt) in enumerate(waiting):
            lines.setdefault(tenant, []).append((place, prompt))
        while lines:
            tenant = min(lines, key=lambda name: (counters[name], lines[name][0][0]))
            place, prompt = lines[tenant].pop(0)
            counters[tenant] += prompt
            order.append(place)
            lines = {name: line for name, line in lines.items() if line}
        return order

    def empties(waiting, counters):
        order = turns.fair(waiting, counters)
        counters.clear()
        return order

    assert judge(EXERCISES["fair"], with_queues).status == RIGHT
    assert "work on a copy" in judge(EXERCISES["fair"], empties).hint
    assert turns.fair([("N", 50), ("N", 50), ("A", 20)], {"N": 10, "A": 0}) == [2, 0, 1]  # the example of the text
    assert "places" in judge(EXERCISES["fair"], turns.tenants).hint
    assert "shortest prompt" in judge(EXERCISES["fair"], turns.shortest_prompt_first).hint
    assert turns.one_tenant_at_a_time([("N", 5), ("A", 5), ("A", 5)], {"N": 1, "A": 0}) == [1, 2, 0]


@pytest.mark.parametrize(("ageing", "said"), [(18, False), (19, False), (20, True), (25, True), (NONE, True)])
def test_more_ageing_than_is_needed_is_said(ageing, said):
    """19 s keep a second, and 18 do not."""
    settings = {"noisy": STORM, "order": PRIORITY, "ageing": ageing, "slots": SLOTS}
    words = tasks.who(settings, tenants.served(STORM, PRIORITY, ageing=ageing))
    assert ("a second less" in words["less"]) == said
    assert tasks.who({**settings, "order": FAIR}, tenants.served(STORM, FAIR))["less"] == ""


def test_the_case_by_hand():
    """A second for each request in a step. One slot: N's answers take 4 s each; fair, A is second."""
    first = {name: by_hand.served(name, 1).first_computed.tolist() for name in by_hand.ORDERS}
    assert first == {IN_ORDER: [1, 5, 9, 13, 17], FAIR: [1, 9, 13, 17, 5]}
    for name in by_hand.ORDERS:  # four steps of five
        run = by_hand.served(name, 5)
        assert run.token_times(4).tolist() == [5, 10, 15, 20] and run.response.tolist() == [20] * 5
    valid(lab17.five_by_hand())


def test_who_comes_back_without_lift_is_served_alone_over_other_seeds_too():
    for seed in range(size(1, 3)):
        lifted, left = (silence.served(lift, seed) for lift in (True, False))
        assert silence.stall(left) > 10 * silence.stall(lifted) and silence.share(left) > 0.98
        assert 0.4 < silence.share(lifted) < 0.6


def test_the_graphs_of_the_ticket():
    now, before = (throttled.graphs(gateway) for gateway in (throttled.NOW, NONE))
    run = now.found.run
    steps = (run.steps.start + run.steps.end) / 2
    here = (steps >= 10) & (steps < 15)
    assert now.tokens[2] == pytest.approx(run.steps.useful[here].sum() / 5)
    assert now.busy[2] == pytest.approx(min(1, run.steps.seconds[here].sum() / 5)) and now.busy.min() > 0.9
    passed = throttled.passes(now.found)
    assert (passed >= run.arrival).all() and (run.admitted >= passed - 1e-9).all()
    assert throttled.held(now.found, 60) == ((run.arrival <= 60) & (passed > 60)).sum()
    assert now.waiting.max() < 20 and (throttled.passes(before.found) == run.arrival).all()
    assert before.waiting[-1] == before.found.waiting(60)
    figure = valid(lab17.ticket_graphs()) or lab17.ticket_graphs()
    for trace in figure.data:  # no line leaves its panel
        assert max(trace.y) <= figure.layout["yaxis" + trace.yaxis[1:]].range[1], trace.name


@pytest.mark.parametrize(
    "settings",
    [{}, {"noisy": 1}, {"noisy": 40, "order": FAIR}, {"gateway": 4}, {"slots": 16}, {"order": PRIORITY, "ageing": 0}],
)
def test_the_figure_of_an_explorer(settings):
    found = tenants.served(**settings)
    figure = figures.waits(found)
    valid(figure)
    _, quiet, waiting, running = figure.data
    chosen = found.quiet & (found.run.arrival >= 10) & (found.run.arrival < 15)
    assert quiet.y[2] == pytest.approx(found.run.ttft[chosen].mean(), rel=1e-4)
    assert running.y[15] == found.running(30) and waiting.y[15] == found.waiting(30)
    top = figure.layout.yaxis2.range[1]
    assert max(*running.y, *waiting.y) <= top


def test_means_leave_a_gap_where_nobody_came():
    found = figures.means(np.array([1.0, 3.0, 9.0]), np.array([0.0, 4.9, 59.9]))
    assert found[0] == 2 and found[-1] == 9 and np.isnan(found[1:-1]).all()


def test_the_page_of_the_decision_is_that_of_its_run():
    page, run = decision.page(), decision.now().run
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines()[:4])
    present = ((run.arrival <= decision.AT) & (run.response > decision.AT)).sum()
    running, waiting = (int(lines[f"vllm:num_requests_{what}"]) for what in ("running", "waiting"))
    assert running + waiting == present and waiting > 100
    began = run.first_computed <= decision.AT
    quick = int(lines['vllm:time_to_first_token_seconds_bucket{le="0.5"}'])
    assert quick == (began & (run.ttft <= 0.5)).sum()
    assert int(lines['vllm:time_to_first_token_seconds_bucket{le="+Inf"}']) == began.sum()
    asked = ((run.arrival <= decision.AT) & (run.workload.tenant == "N")).sum()
    assert page.endswith(f"key N: {asked:,} requests")


def test_a_decision_is_read_as_it_is_typed():
    one = EXERCISES["decision"]
    for right in ({"gateway": "28,000"}, {"Gateway": 24_000}, {"max_num_seqs": 128, "scheduling-policy": " Priority"}):
        assert judge(one, right).status == RIGHT, right
    assert judge(one, {}).status == judge(one, {"gateway": None}).status == NOT_ATTEMPTED
    for wrong, said in (
        ({"gateway": 0}, "1,000 or more"),
        ({"gateway": 28}, "1,000 or more"),
        ({"--max-num-seqs": "many"}, "whole number"),
        ({"--scheduling-policy": "fair"}, "fcfs and priority"),
        ({"gateway": 28_000, "--scheduling-policy": "priority"}, "one of the two"),
        ({"--port": 1}, "none of the three"),
        (28_000, "dictionary"),
    ):
        verdict = judge(one, wrong)
        assert verdict.status == WRONG and said in verdict.hint, verdict.hint


def test_the_model_serves_the_short_questions_sooner_in_the_order_of_fair():
    in_order, fair = (live_words.on_the_card(name) for name in live_words.NAMES)
    quiet = np.array([name != "N" for name in live_words.WHOSE])
    assert fair.ttft[quiet].max() < 0.7 * in_order.ttft[quiet].min()
    rows = live_words.compare({}, {})
    assert rows[0] == ("", "continuous", "fair") and rows[1][1:] == ("-", "-") and rows[-1][1:] == ("-", "-")
    assert "ms" in rows[3][1] and rows[3][0].startswith("A and B")


def test_the_surprise_holds_over_five_seeds():
    """`python -m course.lessons.lab17.surprise` prints it, with fewer slots and buckets of other sizes too."""
    names = [name for name in surprise.ENGINES if "gateway" not in surprise.ENGINES[name]]
    calm = [surprise.found(name, tenants.CALM, tenants.SLOTS) for name in names]
    assert all(
        np.array_equal(one.run.e2e, first.run.e2e) for each in calm for one, first in zip(each, calm[0], strict=True)
    )
    in_order, first, aged, fair = (surprise.found(name, tenants.STORM, tenants.SLOTS) for name in names)
    for seed in surprise.SEEDS:
        slow, quick, late, shared = (each[seed] for each in (in_order, first, aged, fair))
        assert slow.ttft > 20 and max(quick.ttft, shared.ttft) < 0.5 and late.ttft > 0.6 * slow.ttft
        assert all(abs(one.tpot / slow.tpot - 1) < 0.05 for one in (quick, late, shared))
        assert all(abs(one.tokens_per_second / slow.tokens_per_second - 1) < 0.05 for one in (quick, late, shared))


def test_a_door_that_predicts_the_wait_keeps_the_promise_of_most():
    found, nobody = deeper.with_prediction(deeper.predicted).run, deeper.with_prediction(None).run
    waits = found.ttft[found.answered]
    assert np.percentile(waits, 95) < 1.1 * deeper.PROMISE_S  # the speed is that of the storm, not of each moment
    assert nobody.answered.all() and np.percentile(nobody.ttft, 95) > 10 * deeper.PROMISE_S
    assert 0.1 < 1 - found.answered.mean() < 0.3


@pytest.mark.parametrize(("function", "said"), [
    (lambda *given: None, "Your function returns nothing yet."),
    (lambda *given: -1.0, "must return seconds, 0 or more, not -1.0"),
    (lambda *given: True, "must return seconds, 0 or more, not True"),
    (lambda *given: "soon", "must return seconds, 0 or more, not 'soon'"),
    (lambda *given: 10.0, "all 1,980 requests were rejected"),
    (deeper.predicted, "nobody rejected"),
])  # fmt: skip
def test_a_prediction_of_ones_own_is_shown_or_told(function, said):
    assert said in repr(lab17.your_prediction(function))


def test_predictions_that_are_wrong_are_seen():
    right = deeper.with_prediction(deeper.predicted).run
    slow, blind = (
        deeper.with_prediction(one).run
        for one in (lambda ahead, prompt, speed: ahead / speed / 10, lambda ahead, prompt, speed: prompt / speed)
    )
    for wrong in (slow, blind):
        assert np.nanpercentile(wrong.ttft, 95) > 2 * np.nanpercentile(right.ttft, 95)
