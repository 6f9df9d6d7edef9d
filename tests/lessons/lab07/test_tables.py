"""Lab 07: what the tables beside the figures say, from the runs themselves."""

import numpy as np

from course.engine.metrics import percentiles
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import EVERY, PROMPT, WHOLE
from tests.lessons.lab07.test_explorers import by_hand


def test_the_columns_of_an_outcome():
    found = long_prompt.outcome(long_prompt.requests(num_chats=400), long_prompt.engine(2_048))
    run, chats = found.run, found.run.workload.class_ == "chat"
    gaps = by_hand(run)
    cells = dict(zip(long_prompt.HEADS, long_prompt.row(found), strict=True))
    assert cells == {
        "long TTFT": f"{1e3 * np.median(run.ttft[~chats]):,.0f} ms",
        "chat p99 TTFT": f"{1e3 * np.percentile(run.ttft[chats], 99):,.0f} ms",
        "ITL p99": f"{1e3 * np.percentile(run.itl, 99):,.1f} ms",
        "longest gap": f"{1e3 * run.itl.max():,.1f} ms",
        "chats stalled": f"{(gaps[chats & ~np.isnan(gaps)] > 0.1).mean():.1%}",
    }


def test_the_same_gaps_counted_twice():
    result = long_prompt.hidden(WHOLE, 0, 20, 100)
    rows = dict(long_prompt.hidden_rows(result))
    run = result.outcome.run
    chats = run.workload.class_ == "chat"
    longest = by_hand(run)[chats]
    longest = longest[~np.isnan(longest)]
    assert rows["p99 over all tokens"] == long_prompt.seconds(percentiles(run.itl)["p99"])
    assert rows["p99 over chats, of each one's longest gap"] == long_prompt.seconds(np.percentile(longest, 99))
    assert rows["tokens after a gap above 100 ms"] == f"{(run.itl > 0.1).mean():.3%}"
    assert rows["chats with a gap above 100 ms"] == f"{(longest > 0.1).mean():.1%}"


def test_the_long_prompts_come_in_the_middle_of_their_turns():
    load = long_prompt.requests(num_chats=400)
    times = load.arrival[load.class_ == "long"]
    assert times[0] == EVERY / 2 and (np.diff(times) == EVERY).all()
    assert (load.prompt_tokens[load.class_ == "long"] == PROMPT).all()
