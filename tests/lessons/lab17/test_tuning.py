"""Lab 17's decision, ticket and tasks at rates and seeds around the lab's: what is accepted holds, the rest breaks."""

import itertools

import pytest

from course.exercises.judge import RIGHT, judge
from course.lessons import load
from course.lessons.lab17 import decision, tasks, tenants, throttled
from course.lessons.lab17.tenants import FAIR, IN_ORDER, PRIORITY, SLOTS, STORM
from tests.helpers.sizes import size

OTHERS = [(0.9, 0), (1.0, 1), (1.1, 0)] if size(1, 0) else list(itertools.product((0.9, 1.0, 1.1), (0, 1)))
"""Of the noisy tenant's rate, and seeds."""
DECISION = next(exercise for exercise in load("17").exercises if exercise.id == "decision")
SEQS, POLICY, GATEWAY = decision.SEQS, decision.POLICY, "gateway"
KEPT = [{GATEWAY: 24_000}, {GATEWAY: 28_000}, {SEQS: 128, POLICY: "priority"}, {SEQS: 64, POLICY: "priority"},
        {GATEWAY: 28_000, SEQS: 256}]  # fmt: skip
BROKEN = [
    {POLICY: "priority"},
    {SEQS: 128},
    {SEQS: 32},
    {GATEWAY: 4_000},
    {GATEWAY: 40_000},
    {SEQS: 16, POLICY: "priority"},
]


def served(times, seed, **settings):
    return tenants.outcome(tenants.requests(times * STORM, seed), tenants.engine(**settings))


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_what_the_decision_accepts_holds_around_the_storm_and_what_it_rejects_breaks(times, seed):
    before = served(times, seed)
    for answer in (*KEPT, *BROKEN):
        found = served(times, seed, **decision.settings_of(answer))
        kept = decision.words(decision.holds(found, before)) == decision.ALL
        assert kept == (answer in KEPT) == (judge(DECISION, answer).status == RIGHT), (answer, found.ttft, found.tpot)


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_twin_holds_as_well(times, seed):
    before = served(times, seed)
    for answer, kept in (({GATEWAY: 24_000}, True), ({SEQS: 64, POLICY: "priority"}, True), ({GATEWAY: 28_000}, False)):
        found = served(times, seed, **decision.settings_of(answer))
        assert (decision.words(decision.holds(found, before, decision.TPOT_TWIN)) == decision.ALL) == kept, answer


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_the_tickets_repair_works_and_the_others_do_not(times, seed):
    before = served(times, seed)
    low, repaired, slots = (
        served(times, seed, gateway=gateway, slots=slots)
        for gateway, slots in ((throttled.NOW, SLOTS), (throttled.REPAIR, SLOTS), (throttled.NOW, 2 * SLOTS))
    )
    assert low.tokens_per_second < 0.4 * before.tokens_per_second and low.busy > 0.95
    assert slots.tokens_per_second == pytest.approx(low.tokens_per_second)
    assert repaired.tokens_per_second > 0.95 * before.tokens_per_second and repaired.ttft < 0.5


@pytest.mark.parametrize(("times", "seed"), OTHERS)
def test_what_the_second_explorer_shows_holds(times, seed):
    start = served(times, seed, order=FAIR)
    few, gate = served(times, seed, order=FAIR, slots=128), served(times, seed, gateway=28)
    assert few.tpot <= 1.05 * tasks.STREAM < start.tpot and few.ttft <= tasks.FIRST >= gate.ttft
    assert min(few.tokens_per_second, gate.tokens_per_second) > tasks.NEARLY * start.tokens_per_second
    assert served(times, seed, order=IN_ORDER, slots=128).ttft > 1.2 * served(times, seed).ttft


WHO = {"noisy": 10.0, "order": IN_ORDER, "ageing": 60, "slots": SLOTS}
LIMITS = {"slots": SLOTS, "order": FAIR, "gateway": 60}
CASES = [
    ("wait", {"noisy": 30}, True),
    ("wait", {"noisy": 25, "slots": 256}, False),  # not the rate alone
    ("wait", {"noisy": 20}, False),
    ("wait", {"noisy": 30, "order": FAIR}, False),
    ("ageing", {"noisy": 30, "order": PRIORITY, "ageing": 19}, True),
    ("ageing", {"noisy": 30, "order": PRIORITY, "ageing": 20}, False),  # more than is needed
    ("ageing", {"noisy": 30, "order": PRIORITY, "ageing": 18}, False),
    ("ageing", {"noisy": 30, "order": PRIORITY, "ageing": 60}, False),
    ("ageing", {"noisy": 10, "order": PRIORITY, "ageing": 1}, False),  # a calm day needs none
    ("streams", {"slots": 128}, True),
    ("streams", {"slots": 64}, True),
    ("streams", {"slots": 32}, False),  # too few tokens/s
    ("streams", {"slots": 256}, False),
    ("streams", {"slots": 128, "order": IN_ORDER}, False),
    ("streams", {"slots": 128, "gateway": 28}, False),
    ("gateway", {"gateway": 28}, True),
    ("gateway", {"gateway": 16}, False),
    ("gateway", {"gateway": 40}, False),
    ("gateway", {"gateway": 28, "slots": 256}, False),
]


@pytest.mark.parametrize(("name", "changed", "done"), CASES)
def test_where_a_task_is_done(name, changed, done):
    task = next(one for one in load("17").tasks if one.id == name)
    settings = (WHO if name in ("wait", "ageing") else LIMITS) | changed
    assert task.reached(settings, tenants.served(**settings)) == done
