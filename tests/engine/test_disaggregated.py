"""Prefill and decode apart: each side does what it would alone, and K and V come in between over the link."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import SLO, KVCache, Workload, policies, steptime
from course.engine.disaggregated import Disaggregated
from course.engine.fleet import Fleet
from course.engine.routes import LeastLoaded
from course.engine.serving import Engine
from course.policies.base import Schedule, fresh
from tests.helpers import strategies
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
A_TOKEN = steptime.PowerLaw(t0=1, c=0, alpha=1, prefill=1)
ANY = st.one_of(
    strategies.continuous(most=12), strategies.storms(), strategies.many_in_chunks(), strategies.shortest_first(),
).filter(lambda case: not any(before is not None for before in case.after))  # fmt: skip
LINKS = st.sampled_from([1.0, 16.0, 1e3, 1e12])


def engines(number, step_time=SECOND, cache=None, policy=None):
    return [Engine(fresh(policy or policies.Continuous(4, 640)), step_time, cache) for _ in range(number)]


def accounted(run):
    """Tokens that must have been computed, on both sides together."""
    load, summary, whole = run.workload, run.summary(), run.outcome == "answered"
    needed = int((load.prompt_tokens + load.output_tokens - 1)[whole].sum())
    here = summary["elsewhere_tokens"] == 0  # all was computed on one of the sides
    return here and needed + summary["recomputed_tokens"] + summary["abandoned_tokens"]


def test_by_hand():
    """A prompt of 8 takes 9 s; its K and V of 8 bytes take 2 s at 4 bytes/s. Request 1 ends with its first token."""
    fleet = Disaggregated(engines(1, A_TOKEN), engines(1, A_TOKEN), transfer=4, token_bytes=1)
    run = fleet.serve(Workload([0.0, 20.0], [8, 2], [3, 1]))
    assert [run.token_times(row).tolist() for row in (0, 1)] == [[9, 12, 13], [23]]
    assert (run.ttft.tolist(), run.tpot[0], run.e2e.tolist()) == ([9, 3], 2.0, [13, 3])
    assert run.steps.engine.tolist() == [0, 0, 1, 1]
    assert (run.steps.prefill_tokens.tolist(), run.steps.decodes.tolist()) == ([8, 2, 0, 0], [0, 0, 1, 1])
    assert sorted(run.itl.tolist()) == [1, 3]
    assert run.summary()["computed_tokens"] == 8 + 2 + 2
    assert (fleet.sent.tolist(), fleet.seconds(8)) == ([0], 2.0)


def test_a_short_prompt_overtakes_a_long_one_on_the_link():
    """Both first tokens leave at 1 s; K and V of 9 tokens take 9 s, of 2 tokens 2 s."""
    fleet = Disaggregated(engines(1), engines(2), transfer=1, token_bytes=1)
    run = fleet.serve(Workload([0.0, 0.0], [9, 2], [2, 2]))
    assert run.last_computed.tolist() == [11, 4]
    assert (fleet.sent.tolist(), fleet.decode.routed.tolist()) == ([1, 0], [0, 1])


@given(ANY, LINKS)
@examples(80, 15)
def test_two_oracles_in_a_row(case, link):
    """The tests' own loop serves prompts alone, and then the rest, with K and V from elsewhere."""
    n, memory = len(case.prompt), case.cache
    if memory is not None:  # the decode side holds the first token of an answer as well
        memory = replace(memory, num_blocks=memory.num_blocks + 1)
    case = replace(case, cache=memory)
    one_token = replace(case, output=(1,) * n)
    first = one_token.by_the_oracle().response
    rows = [row for row in range(n) if case.output[row] > 1]
    comes = {row: first[row] + case.prompt[row] * 2 / link for row in rows}
    rows.sort(key=lambda row: (comes[row], row))
    run = Disaggregated(
        engines(1, case.step_time, memory, case.policy), engines(1, case.step_time, memory, case.policy),
        transfer=link, token_bytes=2,
    ).serve(case.load)  # fmt: skip
    times = {row: [first[row]] for row in range(n)}
    if rows:
        second = replace(
            case, arrival=tuple(comes[row] for row in rows), prompt=tuple(case.prompt[row] + 1 for row in rows),
            output=tuple(case.output[row] - 1 for row in rows), elsewhere=tuple(case.prompt[row] for row in rows),
            after=(None,) * len(rows), think_time=(0.0,) * len(rows),
            guess=None if case.guess is None else tuple(case.guess[row] for row in rows),
        )  # fmt: skip
        out = second.by_the_oracle()
        for place, row in enumerate(rows):
            times[row] += out.token_times[place]
    # A transfer is one number times another, in an order of its own: equal but for rounding.
    for row in range(n):
        assert run.token_times(row) == pytest.approx(times[row], rel=1e-9)
    assert run.summary()["computed_tokens"] == accounted(run)
    assert np.sort(run.itl) == pytest.approx(np.sort(np.concatenate([np.diff(run.token_times(r)) for r in range(n)])))


@given(ANY, st.integers(1, 3), st.integers(1, 3))
@examples(40, 10)
def test_the_prefill_side_is_a_fleet_that_says_one_token_each(case, prefill, decode):
    cache = case.cache and replace(case.cache, num_blocks=case.cache.num_blocks + 1)
    many = [engines(number, case.step_time, cache, case.policy) for number in (prefill, decode)]
    fleet = Disaggregated(*many, transfer=1e3, token_bytes=1, decode_route=LeastLoaded())
    run = fleet.serve(case.load)
    prompts = Workload(case.arrival, case.prompt, [1] * len(case.prompt), guess=case.guess_column)
    alone = Fleet(engines(prefill, case.step_time, cache, case.policy)).serve(prompts)
    assert np.array_equal(run.ttft, alone.ttft)
    assert np.array_equal(fleet.prefill.routed, alone_routed(len(prompts), prefill))
    assert (run.answered & (run.response >= run.first_computed)).all()
    assert run.summary()["computed_tokens"] == accounted(run)
    assert (run.steps.blocks >= 0).all() and len(run.steps.blocks) == len(run.steps)
    little = run.little()
    assert little.residual == pytest.approx(0, abs=1e-9 * max(1, little.L))  # sums of as many floats


def alone_routed(requests, many):
    return np.arange(requests) % many


@given(strategies.leaving().filter(lambda case: type(case.policy) is policies.Continuous and not case.cap))
@examples(60, 10)
def test_who_has_no_patience_is_not_sent(case):
    if any(before is not None for before in case.after) or (case.cache and case.cache.simulated_only):
        return
    cache = case.cache and replace(case.cache, num_blocks=case.cache.num_blocks + 1)
    many = [engines(1, case.step_time, cache, case.policy) for _ in range(2)]
    run = Disaggregated(*many, transfer=1e6, token_bytes=1).serve(case.load)
    alone = Fleet(engines(1, case.step_time, cache, case.policy)).serve(
        replace(case.load, output_tokens=[1] * len(case.prompt))
    )
    assert (run.outcome == alone.outcome).all()
    assert run.summary()["computed_tokens"] == accounted(run)


def test_who_has_the_first_token_waits_for_the_others():
    """One slot on the decode side: 1 has its first token at 1 s, and the second when 0 has gone."""
    load = Workload([0.0, 0.0], [2, 2], [6, 2], patience=[1.5, 1.5])
    decode = engines(1, policy=policies.Continuous(1, 64))
    run = Disaggregated(engines(1), decode, transfer=2, token_bytes=1).serve(load)
    assert [run.token_times(row).tolist() for row in (0, 1)] == [[1, 3, 4, 5, 6, 7], [1, 8]]


class Picky(policies.Continuous):
    """Sends whoever waits beside another away."""

    def schedule(self, state):
        reject = tuple(state.waiting) if state.running else ()
        return Schedule(reject=reject) if reject else super().schedule(state)


def test_who_is_sent_away_by_the_decode_side_had_its_prompt_computed():
    """0 comes there while 1 decodes: its prompt was computed for nothing, and one token of it left."""
    load = Workload([0.0, 0.0], [8, 2], [5, 3], slo=SLO(ttft=9))
    decode = engines(1, SECOND, KVCache(9, 4), Picky(4, 640))
    run = Disaggregated(engines(1), decode, transfer=8, token_bytes=1).serve(load)
    assert run.outcome.tolist() == ["rejected", "answered"]
    assert run.summary()["abandoned_tokens"] == 8
    assert run.summary()["computed_tokens"] == accounted(run) == 8 + 2 + 2
    assert len(run.token_times(0)) == 1


def test_refusals():
    one, other = engines(1), engines(1)
    for prefill, decode, more, sentence in (
        (one, other, {"transfer": 0}, "transfer is 0 bytes/s, over which K and V never arrive"),
        (one, other, {"transfer": -1}, "transfer must be a finite number"),
        (one, other, {"token_bytes": -1}, "token_bytes must be a finite number"),
        (one, one, {}, "engine 0 of the decode side is on the prefill side too"),
        (one, [], {}, "a Fleet needs a list of engines"),
        (engines(1, policy=policies.Static(4)), other, {}, "a padded batch is answered as a whole"),
        (one, engines(1, policy=policies.Static(4)), {}, "a padded batch is answered as a whole"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Disaggregated(prefill, decode, **{"transfer": 1, "token_bytes": 1} | more)
    fleet = Disaggregated(one, other, transfer=1, token_bytes=1)
    for load, sentence in (
        ([1], "a Fleet serves a Workload"),
        (Workload.closed_loop(2, 1, 2, 5, 5), "arrivals are known"),
        (Workload([0.0], [4], [4], prefix=[(1, 2)], prefix_block_size=4, prefix_answers=True), "go on over answers"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fleet.serve(load)
    fleet.serve(Workload([0.0], [3], [2]))
    with pytest.raises(ValueError, match="this fleet has served a workload"):
        fleet.serve(Workload([0.0], [3], [2]))
    with pytest.raises(ValueError, match="computed has 1 numbers for 2 requests"):
        Fleet(engines(1)).serve(Workload([0.0, 0.0], [3, 3], [2, 2]), computed=[1])
