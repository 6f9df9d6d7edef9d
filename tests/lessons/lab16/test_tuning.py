"""Lab 16's decision and ticket, served: what is accepted reaches the rate, what is rejected does not or holds back."""

from heapq import heappush, heapreplace

import numpy as np
import pytest

from course.engine.serving import serve
from course.lessons import load
from course.lessons.lab16 import facts, load_test
from course.lessons.lab16.tasks import p99

AROUND = [(0.9, 0), (1.0, 1), (1.1, 2)]
REQUESTS = 2_000


def reached(rate: float, e2e: float, limit: int, seed: int) -> tuple[float, float]:
    """Requests/s that a client with this limit sends, and how late its last one is [s], where each takes `e2e`."""
    planned = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, REQUESTS))
    flying: list[float] = []
    for moment in planned:
        full = len(flying) >= limit
        sent = max(moment, flying[0]) if full else moment
        (heapreplace if full else heappush)(flying, sent + e2e)
    return (REQUESTS - 1) / (sent - planned[0]), sent - planned[-1]


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_the_limit_of_the_decision_reaches_the_rate_and_half_of_it_does_not(more, seed):
    decision = next(item for item in load("16").exercises if item.id == "decision")
    for rate, e2e, exercise in (
        (facts.PEAK["request_rate"], facts.PEAK["mean_e2el_ms"] / 1e3, decision),
        (facts.RATE_TWIN, facts.E2E_TWIN, decision.twin),
    ):
        (limit,) = exercise.solution.values()
        _, late = reached(more * rate, e2e, limit, seed)
        sent, behind = reached(more * rate, e2e, limit // 2, seed)
        # A limit that is never reached for long holds nobody back by more than one answer.
        assert late < e2e and behind > 2 * e2e and sent < 0.95 * more * rate


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_without_a_limit_users_wait_as_the_ticket_says_and_with_one_for_longer(more, seed):
    plan = load_test.requests(more * facts.ASKED, seed=seed)
    free, held, half = (serve(plan, load_test.engine(slots), load_test.STEP) for slots in (load_test.SLOTS, 16, 8))
    assert p99(free.ttft) < 0.2 < 10 < p99(held.ttft) < p99(half.ttft)
    assert p99(free.ttft) > facts.PROMISE_MS / 1e3  # so that 30 ms cannot be promised, by an honest test either


@pytest.mark.parametrize(("more", "seed"), AROUND)
def test_more_requests_are_held_back_longer(more, seed):
    last = []
    for count in (REQUESTS, 2 * REQUESTS):
        run = serve(load_test.requests(more * facts.ASKED, num_requests=count, seed=seed), load_test.engine(16),
                    load_test.STEP)  # fmt: skip
        last.append(load_test.sent_times(run.arrival, run.response, 16)[-1] - run.arrival[-1])
    assert last[1] > 1.5 * last[0]
