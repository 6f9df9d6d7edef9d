"""Lab 18: the score, its searches, the learner's own policy, the report and the figures."""

from dataclasses import replace

import numpy as np
import pytest

from course import KVCache, Workload, serve
from course.lessons import lab18
from course.lessons.lab18 import decision, figures, keeping, own, scoring, search, service, tasks
from course.lessons.lab18.design import Design
from course.lessons.lab18.search import REFERENCE, TUNED, ratio, tried, unseen
from tests.bench import capstone
from tests.helpers.figures import valid
from tests.helpers.sizes import size


def test_the_score_counts_what_each_request_felt():
    """By hand, from the times of the requests and the prices."""
    design = replace(REFERENCE, replicas=2)
    load, found = service.day(), scoring.score(design, service.day())
    good, share = 0, {}
    for name, slo in service.PROMISES.items():
        rows = [row for row in range(len(load)) if load.class_[row] == name]
        kept = [
            row for row in rows
            if found.ttft[row] <= slo.ttft and (load.output_tokens[row] == 1 or found.tpot[row] <= slo.tpot)
        ]  # fmt: skip
        good, share[name] = good + len(kept), len(kept) / len(rows)
    assert found.share == pytest.approx(share)
    assert found.dollars == pytest.approx(2 * 2.5 * found.seconds / 3_600)
    assert found.per_dollar == pytest.approx(good / found.dollars) and found.score == found.per_dollar
    assert found.seconds == found.ended.max() >= load.arrival.max()
    assert (found.begun >= load.arrival).all() and (found.ended > found.begun).all()


def test_one_class_below_its_share_is_a_score_of_nothing():
    found = scoring.score(TUNED, service.day(figures.TICKET_DAY))
    assert found.share[service.DOCS] < service.NEED < found.share[service.CHAT]
    assert found.score == 0 < found.per_dollar and not found.passed


def test_a_design_without_drafts_is_served_as_serve_does():
    load = Workload.mix({
        service.CHAT: Workload.poisson(8, 40, 300, 60, seed=1), service.DOCS: Workload.poisson(1, 5, 3_000, 60, seed=2),
    })  # fmt: skip
    design = Design(enable_prefix_caching=False)
    run = serve(load, design.policy, scoring.step_time("H100"), KVCache(scoring.blocks("H100")))
    found = scoring.score(design, load)
    assert np.array_equal(found.ttft, run.ttft) and np.array_equal(found.tpot, run.tpot, equal_nan=True)
    assert found.hit_rate == 0


def test_thought_beats_chance_in_two_searches():
    """All of them: `make capstone-check`."""
    assert sum(tried(REFERENCE, seed) > 0 for seed in service.UNSEEN[:4]) == 4
    days = service.UNSEEN[: size(4, 20)]
    mine = unseen(REFERENCE, days)
    assert ratio(mine, unseen(search.defaults(), days)) >= capstone.DEFAULTS_AT_LEAST
    for seed in (0, 7):
        design, name, seen = capstone.search(seed)
        assert name == "in order" and seen == max(tried(one) for one in search.drawn(seed))
        assert ratio(mine, unseen(design, days)) >= capstone.CHANCE_AT_LEAST
    assert tried(TUNED) > tried(REFERENCE) and 0 in unseen(TUNED, days)


def test_a_run_that_is_refused_scores_nothing():
    tiny = Workload([0.0], [10**6], [5], class_=["chat"])
    with pytest.raises(ValueError, match="never"):
        scoring.score(Design(), tiny)
    with pytest.raises(ValueError, match="needs a Design"):
        scoring.score({"card": "H100"}, service.day())
    assert ratio([1.0], [0.0]) == float("inf") and ratio([3.0, 1.0], [1.0, 1.0]) == 2


def test_runs_are_counted():
    lab18.start_again()
    assert "run 1 of 12" in lab18.scored(Design(replicas=3))._repr_mimebundle_()["text/plain"]
    for _ in range(12):
        decision.scored(Design(replicas=3))
    assert decision.standing().startswith("scored run 13 of 12") and "1 more than advised" in decision.standing()
    lab18.start_again()
    assert decision.runs() == ()
    assert "Nothing was scored" in lab18.scored(None)._repr_mimebundle_()["text/plain"]
    assert decision.runs() == ()


def test_the_report_has_the_command_and_what_held():
    text = decision.report(REFERENCE)
    assert REFERENCE.command in text and f"held on {len(decision.OTHER_DAYS)}" in text
    assert "modelled" in text and "recorded" in text and "assumed" in text
    assert "no design" in lab18.report(None)._repr_mimebundle_()["text/plain"]


def test_the_order_of_the_exercise_admits_who_can_still_make_it():
    """At 0.4 s request 1 is due at 0.3 s: it comes last. The others are due at 0.5, 0.65 and 2.2 s."""
    waiting = [(0.0, 0.5, 1_000), (0.1, 0.2, 2_000), (0.2, 2.0, 1_000), (0.3, 0.35, 2_000)]
    places = keeping.order(waiting, 0.4)
    late = [place for place in places if 0.4 + waiting[place][2] / keeping.SPEED > sum(waiting[place][:2])]
    assert places[-len(late) :] == late == [1]
    assert places == [0, 3, 2, 1]
    assert sorted(places) == [0, 1, 2, 3] and keeping.in_order(waiting, 0.4) == [0, 1, 2, 3]


def test_an_order_of_ones_own_is_served_and_a_broken_one_refused():
    rows = own.compared(keeping.in_order)
    assert rows[1][1:] == rows[2][1:]  # the order of arrival is vLLM's own
    shares = {row[0]: float(row[1].rstrip("%")) for row in own.compared(keeping.order)[1:]}
    assert shares["your order"] > 1.8 * shares["first come, first served"]
    with pytest.raises(ValueError, match="once"):
        own.compared(keeping.dropped)
    assert "nothing yet" in lab18.at_work(lambda waiting, now: None)._repr_mimebundle_()["text/plain"]


EXTREMES = [
    (tasks.fleet, {}), (tasks.fleet, {"card": "L40S", "replicas": 1}), (tasks.fleet, {"card": "H200", "replicas": 8}),
    (tasks.fleet, {"drafts": 4, "kv": "fp8"}), (tasks.flags, {}), (tasks.flags, {"cap": 256, "slots": 16}),
    (tasks.flags, {"cap": 1_024, "cached": False}), (tasks.flags, {"routing": "apart"}),
]  # fmt: skip


@pytest.mark.parametrize(("run", "settings"), EXTREMES)
def test_explorers_draw_at_their_ends(run, settings):
    valid(figures.promises(run(**settings)))


def test_the_other_figures_are_drawn():
    valid(figures.other_days())
    valid(figures.ticket())
    found = scoring.score(TUNED, service.day())
    graphs = figures.graphs(found)
    there = ((found.load.arrival <= graphs.at[5]) & (found.ended > graphs.at[5])).sum()
    assert graphs.chats[5] + graphs.documents[5] == there


def test_flag_by_flag_finds_a_top_that_no_flags_share(monkeypatch):
    top = Design(card="L40S", replicas=4, max_num_seqs=64, routing="apart", num_speculative_tokens=2)
    alike = lambda design: sum(getattr(design, name) == getattr(top, name) for name in search.FLAGS)  # noqa: E731
    monkeypatch.setattr(capstone, "tried", alike)
    found, runs = capstone.flag_by_flag(Design())
    assert found == top and 2 * 20 < runs < 100
