"""Lab 07: what the tables beside the figures say, from the runs themselves."""

import numpy as np
import pytest

from course.engine.metrics import percentiles
from course.lessons import lab07
from course.lessons.lab07 import by_hand, long_prompt, rush
from course.lessons.lab07.long_prompt import DEFAULT, EVERY, PROMPT, WHOLE
from tests.lessons.lab07.test_explorers import by_hand as gaps_by_hand


def test_the_columns_of_an_outcome():
    found = long_prompt.outcome(long_prompt.requests(num_chats=400), long_prompt.engine(2_048))
    run, chats = found.run, found.run.workload.class_ != "long"
    gaps = gaps_by_hand(run)
    cells = dict(zip(long_prompt.HEADS, long_prompt.row(found), strict=True))
    assert cells == {
        "long TTFT": f"{1e3 * np.median(run.ttft[~chats]):,.0f} ms",
        "chat p99 TTFT": f"{1e3 * np.percentile(run.ttft[chats], 99):,.0f} ms",
        "ITL p99": f"{1e3 * np.percentile(run.itl, 99):,.1f} ms",
        "longest gap": f"{1e3 * run.itl.max():,.1f} ms",
        "chats stalled": f"{(gaps[chats & ~np.isnan(gaps)] > 0.1).mean():.1%}",
    }


@pytest.mark.parametrize("every", [20, 60])  # a long prompt a minute: fewer than one chat in twenty stalls
def test_the_same_gaps_counted_twice(every):
    result = long_prompt.hidden(WHOLE, 0, every, 100)
    rows = dict(long_prompt.hidden_rows(result))
    run = result.outcome.run
    chats = run.workload.class_ != "long"
    longest = gaps_by_hand(run)[chats]
    longest = longest[~np.isnan(longest)]
    assert rows["p99 over all tokens"] == long_prompt.seconds(percentiles(run.itl)["p99"])
    assert rows["p99 over chats, of each one's longest gap"] == long_prompt.seconds(np.percentile(longest, 99))
    assert rows["tokens after a gap above 100 ms"] == f"{(run.itl > 0.1).mean():.3%}"
    assert rows["chats with a gap above 100 ms"] == f"{(longest > 0.1).mean():.1%}"


def test_the_long_prompts_come_in_the_middle_of_their_turns():
    load = long_prompt.requests(num_chats=400)
    times = np.unique(load.arrival[load.class_ == "long"])
    assert times[0] == EVERY / 2 and (np.diff(times) == EVERY).all()
    assert (load.prompt_tokens[load.class_ == "long"] == PROMPT).all()


def test_the_case_by_hand_step_by_step():
    """Times in ms: a step takes its tokens, and 4 at least; the new chat comes 1 ms after the long prompt."""
    whole, budget, cap = by_hand.cases().values()
    assert whole.steps.tolist() == [[0, 14]]
    assert budget.steps.tolist() == [[0, 6], [6, 12], [12, 18]]
    assert cap.steps.tolist() == [[0, 4], [4, 10], [10, 15], [15, 20], [20, 25], [25, 30]]
    for case, longest, new, long in ((whole, 14, 18, 14), (budget, 6, 22, 18), (cap, 6, 9, 30)):
        assert (case.longest_gap, case.new_ttft, case.long_ttft) == (longest, new, long)
    figure = lab07.four_by_hand()
    assert [note.text.split("</b>")[0] for note in figure.layout.annotations] == [f"<b>{n}" for n in by_hand.SETTINGS]


def test_the_graphs_of_the_ticket():
    now = rush.graphs(rush.NOW)
    run = now.run
    assert len(run) == rush.RATE * rush.SECONDS and len(now.at) == rush.SECONDS / rush.EVERY == len(now.gap)
    late = (run.arrival >= 20) & (run.arrival < 30)
    assert now.ttft[2] == pytest.approx(np.percentile(run.ttft[late], 95))
    there = (run.arrival <= 30) & (run.response > 30)
    assert now.running[2] + now.waiting[2] == there.sum()
    times = [np.column_stack((tokens[1:], np.diff(tokens))) for tokens in map(run.token_times, range(len(run)))]
    at, gaps = np.concatenate(times).T
    assert now.gap[2] == pytest.approx(np.percentile(gaps[(at >= 20) & (at < 30)], 99))
    assert len(lab07.ticket_graphs().data) == 8


def test_the_table_of_the_story():
    rows = {label: values for label, *values in lab07.people_and_dashboard().rows}
    for column, budget in enumerate((DEFAULT, WHOLE)):
        found = long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget))
        assert rows["longest gap"][column] == long_prompt.seconds(found.itl["max"])


def test_both_sides_are_drawn_over_all_budgets():
    assert len(lab07.both_sides().data) >= 4


def test_the_share_of_attention_is_that_of_the_formula():
    theory = long_prompt.THEORY
    for tokens, products, attention, share in lab07.attention_share().rows[-4:]:
        n = int(tokens.replace(",", ""))
        pairs = sum(range(1, n + 1))
        assert products == long_prompt.seconds(n * theory.per_token)
        assert attention == long_prompt.seconds(pairs * theory.per_pair)
        assert share == f"{pairs * theory.per_pair / (n * theory.per_token):.0%}"


def test_chunks_off_is_refused():
    assert "max_num_batched_tokens is 8192" in lab07.chunking_off().text()
