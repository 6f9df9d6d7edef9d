"""Lab 06, deeper: what the steps hold, draws that tell two orders apart, and orders in which somebody gives way."""

import numpy as np
import pytest
from scipy import stats

from course.lessons import lab06
from course.lessons.lab06 import draws, figures_deeper, give_way, over_time, two_orders
from course.lessons.lab06.two_orders import FIRST, MIXED
from tests.helpers.figures import valid


@pytest.mark.parametrize("order", [MIXED, FIRST])
def test_what_the_steps_hold_is_counted_step_by_step(order):
    one = over_time.Composition(two_orders.served(order, number=200))
    steps = one.found.run.steps
    kinds = []
    for decodes, prompts in zip(steps.decodes, steps.prefill_tokens, strict=True):
        kinds.append("decodes alone" if not prompts else "mixed" if decodes else "prompts alone")
    assert [over_time.KINDS[kind] for kind in one.kinds] == kinds
    assert one.of_steps == pytest.approx([kinds.count(kind) / len(kinds) for kind in over_time.KINDS])
    assert sum(one.of_time) == pytest.approx(1)
    here = [k for k in range(len(kinds)) if 3 <= steps.start[k] < 4]
    assert one.ratio[3] == pytest.approx(steps.decodes[here].sum() / steps.prefill_tokens[here].sum())
    assert one.busy[:, 3].sum() == pytest.approx(steps.seconds[here].sum())
    # The first token of an answer takes no decode.
    load = one.found.run.workload
    assert one.whole_ratio == pytest.approx((load.output_tokens - 1).sum() / load.prompt_tokens.sum())
    figure = figures_deeper.over_time(one)
    valid(figure)
    assert [trace.name for trace in figure.data[:3]] == list(over_time.KINDS)


@pytest.mark.parametrize(("difference", "spread"), [(1.0, 0.1), (-1.0, 1.0), (1.0, 3.0)])
def test_the_draws_that_are_needed_are_those_of_a_t_test(difference, spread):
    n = draws.needed(difference, spread)
    for count, tells in ((n, True), (n - 1, False)):
        if count >= 2:
            low, high = stats.t.interval(0.95, count - 1, difference, spread / np.sqrt(count))
            assert (low > 0 or high < 0) == tells
    assert draws.needed(1e-9, 1.0) == draws.MOST


def test_pairs_share_their_draw_and_draws_apart_count_both_spreads():
    one = draws.Compared(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 2.6, 3.4, 4.5]))
    assert one.by_draw == pytest.approx([0.5, 0.6, 0.4, 0.5]) and one.difference == pytest.approx(0.5)
    assert one.paired == draws.needed(0.5, np.std([0.5, 0.6, 0.4, 0.5], ddof=1)) == 3  # t(1) is 12.7, t(2) 4.3
    assert one.apart == draws.needed(0.5, np.hypot(np.std([1, 2, 3, 4], ddof=1), np.std([1.5, 2.6, 3.4, 4.5], ddof=1)))


def test_the_policies_are_those_that_the_tables_name():
    load = give_way.with_documents()
    assert (load.class_ == "long").sum() == give_way.LASTS / give_way.BETWEEN
    runs = {name: give_way.yielding(name) for name in give_way.YIELDING}
    assert {name: bool(run.preempted.any()) for name, run in runs.items()} == {
        give_way.IN_ORDER: False, give_way.YIELDS: True, give_way.CAPPED: False,
    }  # fmt: skip
    assert set(np.flatnonzero(runs[give_way.YIELDS].preempted)) <= set(np.flatnonzero(load.class_ == "long"))
    lost = {name: give_way.giving_way(name).steps.dropped.sum() for name in give_way.GIVING_WAY}
    assert [bool(tokens) for tokens in lost.values()] == [False, False, True, True]
    one = give_way.every(1)
    assert one.ttft == pytest.approx(two_orders.served(MIXED).ttft)  # every step is mixed batches
    gaps = np.concatenate([np.diff(one.run.token_times(row)) for row in range(len(one.run))])
    assert give_way.gap_at(one.run, 90) == pytest.approx(np.percentile(gaps, 90), rel=0.01)  # between two, or the next
    table = str(lab06.long_prompts_yield())
    assert f"{runs[give_way.YIELDS].steps.dropped.sum():,}" in table
