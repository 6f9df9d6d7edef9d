"""Lab 01's decision and ticket, served at rates around the lab's: what is accepted keeps the promise, the rest not."""

import numpy as np
import pytest

from course.calibration import vllm_pages
from course.lessons.lab01 import chat, facts, replicas, result_file

AROUND = [(0.9, 1), (1.0, 2), (1.1, 3)]


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_the_window_of_the_decision_is_the_largest_that_keeps_the_promise(more, seed):
    """VLLM's own requests behind the gateway, at their moments and at others; a longer window breaks the promise."""
    right, above = 20_000, 50_000
    assert facts.facts()["decision_us"] == right
    found = vllm_pages.bench()
    drawn = [chat.requests(more * result_file.rate(), found["completed"], seed=seed + k).arrival for k in range(20)]
    for sent in (None, np.sort(found["start_times"]) / more, *drawn):
        assert result_file.replayed(right, sent) <= result_file.GOAL < result_file.replayed(above, sent)


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_the_repairs_of_the_ticket_repair_it(more, seed):
    """The same rate for all, or more slots: nobody waits longer than was promised; as it was, A is late at its rate."""
    rates = tuple(more * rate for rate in replicas.RATES)
    even, slots = (replicas.service((sum(rates) / 3,) * 3, seed=seed), replicas.service(rates, facts.MORE_SLOTS, seed))
    assert even.late == slots.late == 0
    if more >= 1:  # at nine tenths of the rate A keeps the promise: the ticket is about the rate that it has
        assert np.percentile(replicas.service(rates, seed=seed).runs[0].ttft, 99) > replicas.PROMISE
