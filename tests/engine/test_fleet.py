"""Several engines behind a router: each does what it would do alone, and the merged Run shows all of them."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import SLO, KVCache, Workload, metrics, policies, serve, steptime
from course.engine.fleet import Fleet, part
from course.engine.routes import ByClass, ByPrefix, LeastLoaded, RoundRobin
from course.engine.serving import Engine
from course.policies.base import fresh
from tests.helpers import strategies
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
CARD = steptime.Roofline("llama-3.1-8b", "H100")
TIMES = ("arrival", "admitted", "first_computed", "response", "e2e", "ttft", "tpot", "queue_wait", "preempted")
COLUMNS = (
    "start", "end", "running", "useful", "wasted", "decodes", "decode_context", "prefill_tokens", "preemptions",
    "dropped", "blocks", "queue", "budget",
)  # fmt: skip
ANY = st.one_of(
    strategies.continuous(most=12), strategies.storms(), strategies.sharing(), strategies.batches(),
    strategies.windows(), strategies.prefill_first(),
).filter(lambda case: not any(before is not None for before in case.after))  # fmt: skip


def fleet_for(case, number, route):
    return Fleet([Engine(fresh(case.policy), case.step_time, case.cache) for _ in range(number)], route)


def same(got, want):
    return np.array_equal(got, want, equal_nan=True)


@given(ANY, st.sampled_from([RoundRobin, LeastLoaded, ByPrefix]))
@examples(40)
def test_a_fleet_of_one_is_that_engine(case, route):
    run, want = fleet_for(case, 1, route()).serve(case.load), case.served()
    assert all(same(getattr(run, name), getattr(want, name)) for name in TIMES)
    assert all(same(getattr(run.steps, name), getattr(want.steps, name)) for name in COLUMNS)
    got, told = run.summary(), want.summary()
    assert got.keys() == told.keys()
    # token_utilisation needs a budget, which the slots of a fleet have not.
    assert all(got[key] == value or math.isnan(value) for key, value in told.items())


@given(ANY, st.integers(2, 4), st.sampled_from([RoundRobin, LeastLoaded]))
@examples(60)
def test_each_engine_does_what_it_would_alone(case, number, route):
    fleet = fleet_for(case, number, route())
    run = fleet.serve(case.load)
    assert len(run) == len(fleet.routed) == len(case.prompt)
    steps = preemptions = 0
    for engine, own in enumerate(fleet.runs):
        rows = np.flatnonzero(fleet.routed == engine)
        if not len(rows):
            assert own is None
            continue
        alone = serve(part(case.load, rows), fresh(case.policy), case.step_time, case.cache)
        assert all(same(getattr(run, name)[rows], getattr(alone, name)) for name in TIMES)
        assert all(same(run.token_times(row), alone.token_times(place)) for place, row in enumerate(rows.tolist()))
        mine = run.steps.engine == [other for other in fleet.runs if other].index(own)
        assert all(same(getattr(run.steps, name)[mine], getattr(alone.steps, name)) for name in COLUMNS)
        steps, preemptions = steps + len(alone.steps), preemptions + alone.preempted.sum()
    assert (len(run.steps), run.preempted.sum()) == (steps, preemptions)
    assert np.array_equal(np.sort(run.itl), np.sort(np.concatenate([own.itl for own in fleet.runs if own])))
    little = run.little()
    assert little.residual == pytest.approx(0, abs=1e-9 * max(1, little.L))  # sums of as many floats


@given(ANY, st.integers(2, 4))
@examples(60)
def test_least_loaded_is_seen_from_the_answers_that_came_later(case, number):
    """The route knew, to the step, who had no answer yet; said again here from the end of the run."""
    if isinstance(case.policy, policies.Static):
        return  # it waits for a full batch until it hears that nobody comes
    fleet = fleet_for(case, number, LeastLoaded())
    run = fleet.serve(case.load)
    for row, arrival in enumerate(case.load.arrival):
        here = (run.response[:row] > arrival) & (np.arange(len(run))[:row] < row)
        open_ = [int((here & (fleet.routed[:row] == engine)).sum()) for engine in range(number)]
        assert fleet.routed[row] == int(np.argmin(open_)), (row, open_)


def test_one_run_adds_up():
    load = Workload.poisson(60, 400, 500, 60, seed=1)
    load = replace(load, tenant=np.arange(400) % 3, slo=SLO(ttft=0.05))
    fleet = Fleet([Engine(policies.Continuous(4, 2 * blocks), CARD, KVCache(blocks)) for blocks in (200, 300)])
    run = fleet.serve(load)
    one, other = (own.summary() for own in fleet.runs)
    got = run.summary()
    for key in ("steps", "computed_tokens", "recomputed_tokens", "preemptions", "useful_slot_steps"):
        assert got[key] == one[key] + other[key]
    assert (
        got["goodput"] * run.makespan
        == metrics.meets_slos(run).sum()
        == sum(metrics.meets_slos(own).sum() for own in fleet.runs)
    )
    assert set(metrics.goodput(run, "tenant")) == {0, 1, 2}
    assert got["kv_peak"] == max(one["kv_peak"], other["kv_peak"])
    held = sum(float(own.steps.blocks @ own.steps.seconds) for own in fleet.runs)
    assert got["kv_mean"] == pytest.approx(held / (500 * run.makespan))
    assert set(run.steps.budget[run.steps.engine == 0]) == {400} and set(run.steps.budget[run.steps.engine == 1]) == {
        600
    }
    assert run.limits.max_num_seqs == 8 and run.steptime == serve(load, policies.Continuous(4, 512), CARD).steptime


# Routes


def test_round_robin_and_engines_that_differ():
    load = Workload([0.0, 0.0, 0.0, 0.0], [3] * 4, [2] * 4)
    slow = steptime.PowerLaw(t0=3, c=0, alpha=1)
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND), Engine(policies.Continuous(4, 64), slow)])
    assert fleet.serve(load).response.tolist() == [2, 6, 2, 6]
    assert fleet.routed.tolist() == [0, 1, 0, 1]


def test_an_answer_counts_when_its_step_has_ended():
    """Both have one request from 0 to 2 s and to 3 s. At 1.5 s the last step of the first is under way."""
    load = Workload([0.0, 0.0, 1.5, 2.0, 2.5], [3] * 5, [2, 3, 1, 1, 1])
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND) for _ in range(2)], LeastLoaded())
    fleet.serve(load)
    # 1.5 s: one each, so the first; 2 s: 0 is answered, one each again; 2.5 s: two against one.
    assert fleet.routed.tolist() == [0, 1, 0, 0, 1]


def test_by_class():
    load = Workload([0.0, 0.1, 0.2, 0.3], [3] * 4, [9] * 4, class_=["chat", "chat", "docs", "chat"])
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND) for _ in range(3)], ByClass({"docs": 0, "chat": [1, 2]}))
    fleet.serve(load)
    assert fleet.routed.tolist() == [1, 2, 0, 1]


def prefixed(prefixes, gap=0.25, output=9):
    n = len(prefixes)
    return Workload(np.arange(n) * gap, [40] * n, [output] * n, prefix=prefixes, prefix_block_size=16)


def test_by_prefix_goes_where_most_of_it_was_sent_and_the_cache_has_it():
    load = prefixed([(1, 2), (5,), (5, 6), (1, 2), (1, 3), (7,)], gap=20)
    fleet = Fleet(
        [Engine(policies.Continuous(4, 64), SECOND, KVCache(20, 16, prefix_caching=True)) for _ in range(2)], ByPrefix()
    )
    run = fleet.serve(load)
    # Nobody is there any more when the next one comes, so a stranger goes to the first.
    assert fleet.routed.tolist() == [0, 0, 0, 0, 0, 0]
    load = prefixed([(1, 2), (5,), (5, 6), (1, 2), (1, 3), (7,)])
    fleet = Fleet(
        [Engine(policies.Continuous(9, 640), SECOND, KVCache(60, 16, prefix_caching=True)) for _ in range(2)],
        ByPrefix(),
    )
    run = fleet.serve(load)
    assert fleet.routed.tolist() == [0, 1, 1, 0, 0, 1]
    assert run.summary()["prefix_cache_hits"] == 32 + 16 + 16  # (1, 2) whole, (5,) and (1,) of the others
    mixed = Fleet([Engine(policies.Continuous(9, 640), SECOND, KVCache(60, 16, prefix_caching=True)) for _ in range(2)])
    assert mixed.serve(load).summary()["prefix_cache_hits"] == 16  # (1, 3) finds 1


def test_by_prefix_counts_each_block_that_was_sent():
    """Three blocks of five to one, four to the other: the fifth goes where four are."""
    route = ByPrefix(within=0)

    def sent(blocks, *outstanding):
        request = SimpleNamespace(prefix=tuple(range(blocks)))
        return route(request, [SimpleNamespace(outstanding=number) for number in outstanding])

    assert [sent(3, 0, 0), sent(4, 5, 0), sent(5, 0, 0)] == [0, 1, 1]


def test_one_prefix_for_all_does_not_fill_one_replica_alone():
    load = prefixed([(1,)] * 9)
    for within, want in ((1, {4, 5}), (32, {0, 9})):
        fleet = Fleet([Engine(policies.Continuous(9, 640), SECOND) for _ in range(2)], ByPrefix(within))
        fleet.serve(load)
        assert set(np.bincount(fleet.routed, minlength=2).tolist()) == want


def test_a_route_of_ones_own_sees_the_request_and_the_replicas():
    seen = []

    def longest_apart(request, replicas):
        seen.append((request.prompt_tokens, request.class_, [r.outstanding for r in replicas], replicas[1].sent))
        return int(request.prompt_tokens > 10)

    load = Workload([0.0, 0.5, 0.6], [3, 30, 3], [4] * 3, class_=[7, 8, 9])
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND) for _ in range(2)], longest_apart)
    fleet.serve(load)
    assert seen == [(3, 7, [0, 0], 0), (30, 8, [1, 0], 0), (3, 9, [1, 1], 1)]


def test_a_policy_in_several_places_remembers_for_one_engine_alone():
    policy = policies.Fair(2, 64)
    fleet = Fleet([Engine(policy, SECOND) for _ in range(2)])
    fleet.serve(Workload([0.0] * 4, [3] * 4, [2] * 4, tenant=[1, 2, 1, 2]))
    assert fleet.runs[0].policy is policy and fleet.runs[1].policy is not policy


# What is refused


def test_refusals():
    engine = Engine(policies.Continuous(4, 64), SECOND)
    used = Engine(policies.Continuous(4, 64), SECOND)
    used.submit(policies.Request(0.0, 5), 2)
    static = Engine(policies.Static(4), SECOND)
    for engines, route, sentence in (
        ([], None, "a Fleet needs a list of engines, not "),
        (engine, None, "a Fleet needs a list of engines"),
        ([engine, engine], None, "engine 1 is in the list twice"),
        ([engine, used], None, "engine 1 has requests already"),
        ([engine, SECOND], None, "engine 1 must be an Engine with a step time, not PowerLaw"),
        ([engine, static], None, "engine 1 answers whole batches, and engine 0 does not"),
        ([engine], LeastLoaded, "route must be one of course.engine.routes, such as LeastLoaded"),
        ([engine], "least loaded", "route must be one of .*, not 'least loaded'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Fleet(engines, route)


@pytest.mark.parametrize(
    ("route", "sentence"),
    [
        (lambda request, replicas: 2, "to which function sends request 0 must be a whole number from 0 to 1"),
        (lambda request, replicas: None, "must be a whole number from 0 to 1, not None"),
        (ByClass({"docs": 0}), "the request of 0 s has the class 'chat', which has no replica: ByClass has 'docs'"),
        (ByClass({"chat": [0, 2]}), "ByClass sends 'chat' to replica 2, and there are 2, from 0"),
    ],
)  # fmt: skip
def test_routes_that_lead_nowhere(route, sentence):
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND) for _ in range(2)], route)
    with pytest.raises(ValueError, match=sentence):
        fleet.serve(Workload([0.0], [3], [2], class_=["chat"]))


def test_refusals_of_routes_and_workloads():
    for given_, sentence in (({}, "ByClass takes a dict"), ({"chat": []}, "'chat' needs the numbers of its replicas")):
        with pytest.raises(ValueError, match=sentence):
            ByClass(given_)
    with pytest.raises(ValueError, match="a replica of 'chat' must be a whole number"):
        ByClass({"chat": [-1]})
    with pytest.raises(ValueError, match="within must be a whole number"):
        ByPrefix(-1)
    fleet = Fleet([Engine(policies.Continuous(4, 64), SECOND)])
    for load in (
        Workload.closed_loop(2, 1, 2, 5, 5),
        replace(Workload([0.0, 1.0], [3] * 2, [2] * 2), max_concurrency=1),
    ):
        with pytest.raises(ValueError, match="a Fleet serves requests whose arrivals are known"):
            fleet.serve(load)
    with pytest.raises(ValueError, match="a Fleet serves a Workload"):
        fleet.serve([1])
    fleet.serve(Workload([0.0], [3], [2]))
    with pytest.raises(ValueError, match="this fleet has served a workload: make another one"):
        fleet.serve(Workload([0.0], [3], [2]))
