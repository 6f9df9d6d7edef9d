"""SLODriven: windows, two queues, prompts that give way, and what it learns of rate and step."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, serve, steptime
from course.engine.plain import PlainEngine
from course.policies import SLODriven
from course.policies.slo_driven import BATCHES, BULK, INTERACTIVE, MEMORY, REFIT
from tests.helpers.asking import BOTH
from tests.helpers.strategies import examples

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
MS = steptime.PowerLaw(t0=0.001, c=0, alpha=1)


def classed(arrival, classes, prompt=5, output=2):
    names = [{"i": INTERACTIVE, "b": BULK}[one] for one in classes]
    many = len(arrival)
    prompts, outputs = (value if isinstance(value, list) else [value] * many for value in (prompt, output))
    return Workload(arrival, prompts, outputs, class_=names)


@pytest.mark.parametrize("serving", BOTH)
def test_an_idle_engine_waits_for_a_window_and_no_longer_than_the_queue_is_full(serving):
    assert serving(classed([0.0], "b"), SLODriven(64, 512), MS).first_computed[0] == pytest.approx(0.050 + 0.001)
    # One a while: nobody more is expected within 8 ms, so the window is the least.
    assert serving(classed([0.0], "i"), SLODriven(64, 512), MS).first_computed[0] == pytest.approx(0.001 + 0.001)
    full = serving(classed([0.0] * 128, "b" * 128), SLODriven(128, 1_024), MS)  # the largest batch of bulk
    assert full.first_computed.min() == pytest.approx(0.001)
    both = serving(classed([0.0, 0.001], "bi"), SLODriven(64, 512), MS)  # whoever's window ends first opens the step
    assert both.first_computed.tolist() == pytest.approx([0.003, 0.003])


def test_the_window_is_slo_less_step_less_margin_within_its_bounds():
    policy = SLODriven(64, 512, slo=0.050, margin=0.010)
    policy.rate, policy.t0, policy.c = 1_000.0, 0.030, 0.0005
    assert policy.window(INTERACTIVE, 8) == pytest.approx(0.050 - 0.034 - 0.010)
    assert policy.window(INTERACTIVE, 30) == 0.001 and policy.window(INTERACTIVE, 1) == 0.008
    assert policy.window(BULK, 8) == 0.050
    policy.rate = 100.0
    assert policy.window(INTERACTIVE, 8) == 0.001  # 0.6 are expected in 6 ms


@pytest.mark.parametrize("serving", BOTH)
def test_between_the_tokens_of_a_bulk_answer_interactive_requests_are_admitted(serving):
    """The note's loop looks at its other queue when the answer is complete, here after 1,000 steps."""
    load = classed([0.0, 0.2], "bi", output=[1_000, 2])
    run = serving(load, SLODriven(64, 512), MS)
    assert run.ttft[1] < 0.0025


@pytest.mark.parametrize("serving", BOTH)
def test_each_queue_has_its_largest_batch_and_interactive_ones_come_first(serving):
    load = classed([0.0] * 60, "b" * 30 + "i" * 30, output=3)
    run = serving(load, SLODriven(64, 512), SECOND)
    first = run.admitted == run.admitted.min()
    # 30 interactive ones wait, more than 8, so that no bulk one is admitted.
    assert first[:30].sum() == 0 and first[30:].sum() == BATCHES[INTERACTIVE][1]
    shallow = serving(load, SLODriven(64, 512, depth=30), SECOND)
    assert (shallow.admitted == shallow.admitted.min()).sum() == 16 + 30


@pytest.mark.parametrize("serving", BOTH)
def test_bulk_prompts_give_way_to_a_deep_queue(serving):
    """A prompt of 90 steps; after 2 s, five interactive ones, more than the depth of 4."""
    load = classed([0.0] + [2.5] * 5, "biiiii", prompt=[900, 5, 5, 5, 5, 5], output=2)
    run = serving(load, SLODriven(8, 10, depth=4), SECOND)
    assert run.preempted.tolist() == [1, 0, 0, 0, 0, 0] and run.ttft[1:].max() < 8
    patient = serving(load, SLODriven(8, 10, depth=5), SECOND)
    assert patient.preempted.sum() == 0 and patient.ttft[1] > 60


def test_it_learns_the_curve_of_the_step_and_fits_the_largest_batches_to_it():
    """2 ms + 1 ms for each that decodes, and 20 ms wanted: 18 in all, of which 16 may be interactive."""
    step = steptime.PowerLaw(t0=0.002, c=0.001, alpha=1)
    load = classed([0.1 * n for n in range(40)], "b" * 40, output=[20 + 7 * n for n in range(40)])
    run = serve(load, SLODriven(64, 512, tpot=0.020), step)
    assert len(run.policy.points) >= REFIT
    assert run.policy.t0 == pytest.approx(0.002) and run.policy.c == pytest.approx(0.001)
    assert run.policy.most == {INTERACTIVE: 16, BULK: 16}  # 2 are left, and 16 are the least


def test_the_rate_is_an_average_that_forgets():
    """At a steady rate it swings around it: between rate and rate + 1 / MEMORY just after an arrival."""
    load = classed([0.05 * n for n in range(200)], "i" * 200, output=1)
    rate = serve(load, SLODriven(64, 512), MS).policy.rate
    assert rate == pytest.approx(1 / MEMORY / (1 - math.exp(-0.05 / MEMORY)))


rows = st.lists(
    st.tuples(st.floats(0, 5), st.integers(1, 60), st.integers(1, 20), st.sampled_from("ib")), min_size=2, max_size=40
)


@examples(40)
@given(rows, st.sampled_from([0, 2, 8]), st.sampled_from([None, 60]))
def test_every_loop_gives_the_same_run(drawn, depth, blocks):
    drawn = sorted(drawn, key=lambda row: row[0])
    load = classed([row[0] for row in drawn], [row[3] for row in drawn], *([row[k] for row in drawn] for k in (1, 2)))
    cache = KVCache(blocks, block_size=2) if blocks else None
    runs = [serving(load, SLODriven(4, 16, depth=depth), SECOND, cache) for serving in BOTH]
    plain = PlainEngine(SLODriven(4, 16, depth=depth).fresh(), SECOND, cache)
    plain.follow(load)
    clock = list(plain.run().clock)
    for run in runs:
        assert run.steps.end.tolist() == clock


def test_settings_that_cannot_be():
    for name, value in (("slo", 0), ("tpot", -1), ("margin", "none"), ("depth", 0.5)):
        with pytest.raises(ValueError, match=f"{name} must be a"):
            SLODriven(64, 512, **{name: value})
    assert "slo=0.5" in repr(SLODriven(64, 512)) and "max_num_seqs=64" in repr(SLODriven(64, 512))
