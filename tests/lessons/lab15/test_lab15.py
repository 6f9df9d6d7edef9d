"""Lab 15: its scenario, surprise, exercises and figures against the engine, formulas and cases by hand."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from course import policies
from course.exercises.judge import NOT_ATTEMPTED, RIGHT, WRONG, judge
from course.lessons import lab15, load
from course.lessons.lab15 import by_hand, decision, deeper, figures, live_words, mixed, orders, promises, surprise
from course.lessons.lab15.promises import (
    BOTH,
    BUDGET,
    BURSTS,
    CHAT,
    DEFAULTS,
    DOCUMENT,
    EARLIEST,
    FLAG,
    HOPELESS,
    IN_ORDER,
    MOST,
    NONE,
    ON,
    PERIOD,
    POLICIES,
    RATE,
    SECONDS,
    SLOTS,
    SMALL,
    STEADY,
    TARGET,
    TPOT,
    served,
)
from course.policies.waiting import Waiting
from tests.helpers.figures import valid
from tests.helpers.sizes import size

EXERCISES = {exercise.id: exercise for exercise in load("15").exercises}


def test_the_requests_are_what_the_scenario_says():
    load_ = promises.requests(MOST)
    chat = np.asarray(load_.class_) == CHAT
    assert len(load_) == int(MOST * 0.9 * SECONDS) + int(MOST * 0.1 * SECONDS)
    # Lognormal with a CV of 1 and 0.4, cut: 1,404 and 156 draws, so means good to some 3%.
    assert load_.prompt_tokens[chat].mean() == pytest.approx(512, rel=0.1)
    assert load_.output_tokens[chat].mean() == pytest.approx(192, rel=0.1)
    assert load_.prompt_tokens[~chat].mean() == pytest.approx(6_000, rel=0.1)
    came = load_.arrival[chat]
    assert (came % PERIOD < ON).all() and came.max() > PERIOD  # in bursts alone
    assert {(one.ttft, one.tpot) for one in load_.slo} == {(0.5, 0.02), (5.0, 0.02)}
    fewer = promises.requests(RATE)
    assert len(fewer) == pytest.approx(RATE * SECONDS, rel=0.06)  # 1,200 of 1,560, each drawn: 2.6 standard deviations
    assert np.isin(fewer.arrival, load_.arrival).all()  # the same bursts
    steady = promises.requests(RATE, STEADY)
    chats = [int((np.asarray(one.class_) == CHAT).sum()) for one in (steady, fewer)]
    assert chats[0] == pytest.approx(chats[1], rel=0.05)  # drawn anew: 5% are three standard deviations


def test_each_name_is_the_policy_that_it_says():
    kinds = {DEFAULTS: policies.Continuous, EARLIEST: policies.EarliestDeadline, HOPELESS: policies.HopelessLast,
             FLAG: policies.Continuous, TARGET: policies.StepTarget, BOTH: promises.Both}  # fmt: skip
    assert {name: type(promises.engine(name)) for name in POLICIES} == kinds
    assert promises.engine(FLAG).max_num_batched_tokens == SMALL == promises.engine(FLAG).max_num_seqs
    for target, order, kind in (
        (NONE, IN_ORDER, policies.Continuous), (20, IN_ORDER, policies.StepTarget),
        (NONE, HOPELESS, policies.HopelessLast), (20, HOPELESS, promises.Both),
    ):  # fmt: skip
        assert type(promises.tuned(target, order=order).run.policy) is kind
    assert np.array_equal(promises.tuned(20, order=HOPELESS).run.e2e, served(policy=BOTH).run.e2e)
    assert np.array_equal(promises.tuned(budget=SMALL).run.e2e, served(policy=FLAG).run.e2e)


@pytest.mark.parametrize("seed", range(size(2, 5)))
def test_order_alone_does_nothing_a_short_step_little_and_together_they_hold(seed):
    """At the engine's slots; `python -m course.lessons.lab15.surprise` prints all five, and another card and bursts."""
    found = {name: served(policy=name, seed=seed) for name in POLICIES}
    share = {name: one.share for name, one in found.items()}
    assert share[DEFAULTS] < 0.25 and share[BOTH] > 0.8
    assert abs(share[HOPELESS] - share[DEFAULTS]) < 0.03 > abs(share[EARLIEST] - share[DEFAULTS])
    assert share[DEFAULTS] + 0.04 < share[FLAG] < 0.6 > share[TARGET] > share[DEFAULTS] + 0.05
    few = promises.outcome(promises.requests(seed=seed), policies.Continuous(256, BUDGET))
    last = promises.outcome(promises.requests(seed=seed), policies.HopelessLast(256, BUDGET, tokens_per_second=22_000))
    assert last.share < 0.35 and abs(last.share - few.share) < 0.1  # 256 slots, the default of older cards


def test_the_table_of_other_bursts_has_a_share_for_each_seed():
    rows = surprise.rows()
    assert [row[0] for row in rows[1:]] == [surprise.NAMES.get(name, name) for name in POLICIES]
    assert rows[-1][1] == f"{served(policy=BOTH).share:.0%}" and len(rows[0]) == 6
    assert set(surprise.engines(256)) > set(POLICIES)
    load_ = surprise.random_bursts(15, 0, 300)
    assert len(load_) == 300 and set(load_.class_) == {CHAT, DOCUMENT}


def test_what_is_read_off_a_run_is_what_its_requests_felt():
    found = served(RATE, BOTH)
    run = found.run
    kept = []
    for row in range(len(run)):
        times, chat = run.token_times(row), run.workload.class_[row] == CHAT
        first = times[0] - run.arrival[row] <= (0.5 if chat else 5.0)
        # A mean over hundreds of gaps may differ in the last bit.
        fast = len(times) == 1 or (times[-1] - times[0]) / (len(times) - 1) <= TPOT + 1e-12
        kept.append(first and fast)
    assert found.kept.tolist() == kept and found.share == np.mean(kept)
    late = sum(not one and run.workload.class_[row] == DOCUMENT for row, one in enumerate(kept))
    assert found.documents_late == late
    at = 10.0
    present = ((run.arrival <= at) & (run.response > at)).sum()
    assert found.running(at) + found.waiting(at) == present and found.waiting(at) > 50
    assert dict(promises.rows(found))["kept, of all"] == f"{np.mean(kept):.0%}"


def test_the_window_of_the_exercise_is_that_of_the_policy():
    for case in (orders.ASKED, orders.TWIN):
        policy = policies.SLODriven(64, 512, slo=case.slo / 1e3, margin=case.margin / 1e3)
        policy.t0, policy.c, policy.rate = case.t0 / 1e3, case.c / 1e3, 1e6
        assert 1e3 * policy.window("interactive", case.batch) == pytest.approx(orders.window(case))
    assert EXERCISES["window"].solution == orders.window(orders.ASKED) == 6


def test_the_mended_loop_is_the_order_of_the_policy():
    """Two queues on four slots, one of which runs; the policy admits whom the function says, in its order."""
    from course import Workload, serve, steptime

    names = ["bulk", "bulk", "interactive", "bulk", "interactive"]
    load_ = Workload([0.0, 1.5, 1.5, 1.5, 1.5], [1] * 5, [9] * 5, class_=names)
    run = serve(load_, policies.SLODriven(4, 64), steptime.PowerLaw(t0=1, c=0, alpha=1))
    first = sorted(np.flatnonzero((run.admitted > 1) & (run.admitted < 3)).tolist())
    assert first == sorted(orders.joins([2, 4], [1, 3], 1, 4))


def test_the_order_of_the_exercise_is_that_of_the_policy():
    """By its own sorting, for those who wait at a time."""
    now, pace = 4.3, 10.0
    waiting = [(9.0, 10), (4.0, 10), (20.0, 10), (12.0, 90), (5.0, 10)]
    start = [due - prompt / pace for due, prompt in waiting]
    hopeful = sorted((at, row) for row, at in enumerate(start) if at >= now)
    hopeless = sorted((at, row) for row, at in enumerate(start) if at < now)
    assert orders.last(waiting, now, pace) == [row for _, row in hopeful + hopeless]
    assert orders.last([(9, 10), (4, 10), (8, 10)], 4, 10) == [2, 0, 1]  # the example of the text

    def in_two_lists(waiting, now, pace):
        places = sorted(range(len(waiting)), key=lambda place: waiting[place][0] - waiting[place][1] / pace)
        late = [place for place in places if waiting[place][0] - waiting[place][1] / pace < now]
        return [place for place in places if place not in late] + late

    assert judge(EXERCISES["last"], in_two_lists).status == RIGHT


def test_the_case_by_hand():
    """4, 4, 2 and 2 steps, due at 4, 7, 8 and 10 s."""
    ends = [by_hand.served(order).response.tolist() for order in by_hand.ORDERS]
    assert ends == [[4, 8, 10, 12], [4, 12, 6, 8]]
    assert [by_hand.late(order) for order in by_hand.ORDERS] == [3, 1]
    valid(lab15.four_by_hand())


def test_the_graphs_of_the_ticket():
    now, before = mixed.graphs(mixed.DOCUMENTS), mixed.graphs(0)
    run = now.run
    chosen = (run.arrival >= 10) & (run.arrival < 15) & (np.asarray(run.workload.class_) == CHAT)
    assert now.ttft[2] == pytest.approx(run.ttft[chosen].mean())
    assert now.running[3] + now.waiting[3] == ((run.arrival <= 20) & (run.response > 20)).sum()
    middle = (run.steps.start + run.steps.end) / 2
    assert now.prompts[2] == pytest.approx(run.steps.prefill_tokens[(middle >= 10) & (middle < 15)].sum() / 5)
    assert now.prompts.mean() > 2 * before.prompts.mean()
    figure = valid(lab15.ticket_graphs()) or lab15.ticket_graphs()
    for trace in figure.data:  # no line leaves its panel
        assert max(trace.y) <= figure.layout["yaxis" + trace.yaxis[1:]].range[1], trace.name


@pytest.mark.parametrize("seed", range(size(2, 5)))
def test_the_tickets_repair_works_and_the_others_do_not(seed):
    now, before, repaired, slots = (
        mixed.ttft(run)
        for run in (mixed.served(seed=seed), mixed.served(0, seed), mixed.served(seed=seed, cap=mixed.CAP),
                    mixed.served(seed=seed, slots=2 * SLOTS))
    )  # fmt: skip
    assert before < 0.1 and now > 0.5 > repaired and slots > 0.5


@pytest.mark.parametrize(
    ("rate", "policy", "arrivals"),
    [(4, DEFAULTS, BURSTS), (26, BOTH, BURSTS), (20, FLAG, STEADY), (26, DEFAULTS, BURSTS)],
)
def test_the_figure_of_an_explorer(rate, policy, arrivals):
    found = served(rate, policy, arrivals)
    figure = figures.promises(found)
    valid(figure)
    marks = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    assert sum(len(trace.x) for trace in marks.values()) == min(figures.SHOWN, len(found.run))
    low, high = figures.LEAST, figures.MOST
    for trace in marks.values():
        assert all(low[0] < x < high[0] for x in trace.x) and all(low[1] < y < high[1] for y in trace.y)
    assert all(x <= 1.0001 and y <= 20.001 for x, y in zip(marks["kept"].x, marks["kept"].y, strict=True))
    assert all(x > 0.999 for x in marks["late"].x) and all(y > 19.99 for y in marks["slow"].y)
    running = next(trace for trace in figure.data if trace.name == "with a slot")
    assert running.y[5] == found.running(10) and max(running.y) <= figure.layout.yaxis2.range[1]


def test_the_page_of_the_decision_is_that_of_its_run():
    run, lines = decision.served().run, decision.page().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines[:4])
    present = ((run.arrival <= decision.AT) & (run.response > decision.AT)).sum()
    running, waiting = (int(values[f"vllm:num_requests_{what}"]) for what in ("running", "waiting"))
    assert running + waiting == present and running == decision.SLOTS and waiting > 0
    began = run.first_computed <= decision.AT
    assert int(values['vllm:time_to_first_token_seconds_bucket{le="0.5"}']) == (began & (run.ttft <= 0.5)).sum()
    steps = [float(line.split(":")[1].split()[0]) for line in lines[5:]]
    assert steps == sorted(steps) and len(steps) == len(decision.BESIDE) and steps[0] < 20 < steps[1]


AROUND = [(0.95, 0), (1.1, 0), (1.0, 1)] if size(1, 0) else list(itertools.product((0.95, 1.0, 1.1), (0, 1)))
"""Of the decision's rate, and seeds. At 0.9 of it, one seed of three lets all that is rejected keep its promise."""
KEPT = [
    {decision.TOKENS: 512},
    {decision.TOKENS: 448},
    {decision.TOKENS: 384},
    {decision.TOKENS: 512, decision.SEQS: 128},
]
STREAMS_BREAK = [{decision.TOKENS: 1_024}, {decision.TOKENS: 2_048}, {decision.SEQS: 128}, {decision.CAP: 512},
                 {decision.TOKENS: 2_048, decision.CAP: 256}]  # fmt: skip


@pytest.mark.parametrize(("times", "seed"), AROUND)
def test_what_the_decision_accepts_holds_around_its_load_and_what_it_rejects_breaks(times, seed):
    for answer in (*KEPT, *STREAMS_BREAK):
        found = decision.served(**decision.settings_of(answer), rate=times * decision.RATE, seed=seed)
        holds = decision.words(decision.holds(found)) == decision.BOTH_HOLD
        right = judge(EXERCISES["decision"], answer).status == RIGHT
        assert holds == right == (answer in KEPT), (answer, found.tpot, found.in_time[~found.chat].mean())
    for tokens, seqs in ((128, 128), (64, 64)):  # streams are fast, documents late
        found = decision.served(tokens, seqs, rate=times * decision.RATE, seed=seed)
        assert found.tpot < TPOT and found.in_time[~found.chat].mean() < decision.DOCUMENTS
        assert judge(EXERCISES["decision"], {decision.TOKENS: tokens, decision.SEQS: seqs}).status == WRONG


def test_a_decision_is_read_as_it_is_typed():
    one = EXERCISES["decision"]
    for right in ({"max_num_batched_tokens": "512"}, {"Max-Num-Batched-Tokens": 512.0, decision.SEQS: 512}):
        assert judge(one, right).status == RIGHT, right
    assert judge(one, {}).status == judge(one, {decision.TOKENS: None}).status == NOT_ATTEMPTED
    for wrong, said in (
        ({decision.TOKENS: 128}, "vLLM does not start"),
        ({decision.TOKENS: 0}, "1 or more"),
        ({decision.TOKENS: "few"}, "whole number"),
        ({"--port": 1}, "none of the three"),
        (512, "dictionary"),
    ):
        verdict = judge(one, wrong)
        assert verdict.status == WRONG and said in verdict.hint, verdict.hint


def test_the_model_answers_urgent_questions_sooner_only_where_they_wait():
    urgent = np.array(live_words.WHAT) == live_words.URGENT
    in_order, first = (live_words.on_the_card(name, live_words.FEW).ttft[urgent] for name in live_words.NAMES)
    assert first.max() < 0.7 * in_order.min()
    wide = [live_words.on_the_card(name, live_words.MANY).ttft for name in live_words.NAMES]
    assert np.array_equal(*wide)
    rows = live_words.compare({"slots": live_words.FEW}, {})
    assert rows[0] == ("", *live_words.NAMES) and rows[1][1:] == ("-", "-") and "ms" in rows[2][1]


@pytest.mark.parametrize("slots", [live_words.FEW, live_words.MANY])
def test_both_orders_run_and_stand_in_the_table(slots: int):
    """A policy without a registered name, `urgent first`, is known by the name of its choice."""
    explorer = live_words.explorer()
    runs = [explorer.compute(policy=name, slots=slots) for name in live_words.NAMES]
    assert [one.described["policy"] for one in runs] == list(live_words.NAMES)
    for one in runs:
        explorer.remember(one.settings, one)
    head, here, _, words = explorer.compared({"policy": live_words.NAMES[0], "slots": slots})
    assert list(head[1:]) == list(live_words.NAMES) and "-" not in here[1:]
    assert list(words[1:]) == ["6 of 6"] * 2


def test_a_figure_says_how_many_marks_it_has():
    for rate in (4, 20):
        found = promises.served(rate)
        drawn = sum(len(trace.x) for trace in figures.promises(found).data if trace.mode == "markers")
        assert f"   {drawn} of {len(found.run):,}" in figures.promises(found).layout.annotations[0].text


def test_a_learners_step_target_is_the_packages():
    """Step times grow with the tokens, so counting up finds what halving finds: the same times, to the last bit."""
    yours, ours = deeper.with_yours(deeper.largest), deeper.served(TARGET)
    assert np.array_equal(yours.run.e2e, ours.run.e2e)
    assert deeper.largest(lambda tokens: tokens / 1_000, 0.2, 1_024) == 192
    assert deeper.largest(lambda tokens: tokens / 1_000, 0.2, 128) == 128
    assert deeper.largest(lambda tokens: 1.0, 0.2, 128) == 64
    assert "the storm" in repr(lab15.your_step_target(deeper.largest))
    for function, sentence in (
        (lambda seconds, target, most: None, "Your function returns nothing yet."),
        (lambda seconds, target, most: most + 1, "must return whole tokens from 1 to"),
        (lambda seconds, target, most: 0.5, "must return whole tokens from 1 to"),
    ):
        assert sentence in repr(lab15.your_step_target(function))


@pytest.mark.parametrize("name", deeper.ORDERS)
def test_a_policy_that_goes_deeper_is_what_its_name_says(name):
    policy = deeper.engine(name, SLOTS)
    small = name.startswith(f"budget {SMALL}")
    assert policy.max_num_batched_tokens == (SMALL if small else BUDGET)
    assert isinstance(policy, policies.StepTarget) != small
    assert isinstance(policy, policies.HopelessLast) == name.endswith("hopeless last")
    due = [policies.Request(0.0, 100, deadline=second, index=row) for row, second in enumerate((3.0, 1.0, 2.0))]
    order = list(policy.queue(SimpleNamespace(now=0.0), Waiting(dict.fromkeys(due), [])).requests)
    in_order = name in (TARGET, FLAG)
    assert order == (due if in_order else [due[1], due[2], due[0]])
