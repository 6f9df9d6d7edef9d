"""Workloads: what every constructor promises, and what is refused."""

from dataclasses import FrozenInstanceError, replace
from math import inf, isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course.workload import Workload, lengths

PROMPTS, OUTPUTS = lengths.lognormal(300, 1), lengths.geometric(50)
OPEN = {
    "poisson": lambda rate, n, seed=0: Workload.poisson(rate, n, PROMPTS, OUTPUTS, seed=seed),
    "smooth": lambda rate, n, seed=0: Workload.gamma(rate, 0.3, n, PROMPTS, OUTPUTS, seed=seed),
    "bursty": lambda rate, n, seed=0: Workload.gamma(rate, 3, n, PROMPTS, OUTPUTS, seed=seed),
    "on_off": lambda rate, n, seed=0: Workload.on_off(rate, n, PROMPTS, OUTPUTS, period=5 / rate, seed=seed),
    "fixed": lambda rate, n, seed=0: Workload.fixed(
        rate, num_requests=n, prompt_tokens=PROMPTS, output_tokens=OUTPUTS, seed=seed
    ),
}
rates, sizes, seeds = st.floats(0.01, 1_000), st.integers(1, 300), st.integers(0, 2**64 - 1)


def small(**changes):
    return Workload(**{"arrival": [0.0, 1.0, 1.0], "prompt_tokens": [5, 6, 7], "output_tokens": [1, 2, 3], **changes})


def even(**settings):
    return Workload.fixed(**settings, prompt_tokens=1, output_tokens=1)


@pytest.mark.parametrize("kind", OPEN)
@settings(max_examples=25, deadline=None)
@given(rate=rates, n=sizes, seed=seeds)
def test_open_arrivals_are_sorted_counted_and_repeatable(kind, rate, n, seed):
    load = OPEN[kind](rate, n, seed)
    assert len(load) == n == len(load.prompt_tokens) == len(load.output_tokens)
    assert load.arrival[0] >= 0 and (np.diff(load.arrival) >= 0).all()
    assert load.prompt_tokens.min() >= 1 and load.output_tokens.min() >= 1
    assert load == OPEN[kind](rate, n, seed)


@settings(max_examples=25, deadline=None)
@given(rate=rates, other=rates, cv=st.floats(0, 5), n=sizes, seed=seeds)
def test_arrival_settings_leave_the_lengths_alone(rate, other, cv, n, seed):
    a = Workload.poisson(rate, n, PROMPTS, OUTPUTS, seed=seed)
    for b in (
        Workload.gamma(other, cv, n, PROMPTS, OUTPUTS, seed=seed),
        Workload.fixed(interval=0, num_requests=n, prompt_tokens=PROMPTS, output_tokens=OUTPUTS, seed=seed),
        Workload.closed_loop(n, 1.0, 1, PROMPTS, OUTPUTS, seed=seed),
    ):
        assert a.prompt_tokens.tolist() == b.prompt_tokens.tolist()
        assert a.output_tokens.tolist() == b.output_tokens.tolist()
    # And the other way round: other lengths leave the arrivals alone.
    assert a.arrival.tolist() == Workload.poisson(rate, n, 1, 1, seed=seed).arrival.tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cv", [0, 0.3, 1, 3])
def test_gaps_have_the_rate_and_the_variation_asked_for(cv, seed):
    n, rate = 50_000, 7.0
    gaps = np.diff(Workload.gamma(rate, cv, n, 1, 1, seed=seed).arrival, prepend=0)
    # Five standard errors of the mean of independent gaps; a fixed gap has only rounding.
    assert gaps.mean() == pytest.approx(1 / rate, rel=5 * cv / sqrt(n) + 1e-9)
    # Var(CV^2 estimate) of a gamma sample is about cv^4 (2 + 6 cv^2 + ...) / n; 6% is five such errors at cv = 3.
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06, abs=1e-9)


def test_a_variation_of_one_is_poisson():
    assert Workload.gamma(5, 1, 100, 1, 1, seed=4) == Workload.poisson(5, 100, 1, 1, seed=4)


def test_a_variation_too_small_to_square_is_none():
    assert Workload.gamma(5, 1e-300, 100, 1, 1) == Workload.fixed(5, num_requests=100, prompt_tokens=1, output_tokens=1)


@pytest.mark.parametrize("on_fraction", [0.1, 0.5, 1.0])
def test_on_off_has_the_rate_and_is_burstier_the_shorter_it_is_on(on_fraction):
    n, rate, period = 100_000, 20.0, 2.0
    load = Workload.on_off(rate, n, 1, 1, on_fraction=on_fraction, period=period, seed=5)
    # Periods are exponential, so over k cycles the count has a relative standard deviation of at most sqrt(2 / k) from
    # the periods, and 1 / sqrt(n) from the arrivals; five of these.
    cycles = n / (rate * period)
    assert load.rate == pytest.approx(rate, rel=5 * (sqrt(2 / cycles) + 1 / sqrt(n)))
    counts = np.bincount((load.arrival // 1.0).astype(int))[:-1]
    dispersion = counts.var() / counts.mean()  # 1 for Poisson
    # A second inside an on period sees rate / on_fraction: far above 1 when seldom on. 0.1 is five errors at 5,000 s.
    assert dispersion == pytest.approx(1, abs=0.1) if on_fraction == 1 else dispersion > 3


def test_on_off_is_silent_between_bursts():
    load = Workload.on_off(10, 20_000, 1, 1, on_fraction=0.2, period=30, seed=1)
    gaps = np.diff(load.arrival)
    # While on, gaps are exponential with mean 20 ms: one above 0.5 s (25 means) has odds of 1e-11. The rest is silence.
    silence = gaps[gaps > 0.5]
    # Off periods have mean 24 s; conditioned to be above 0.5 s, 24.5 s. About 67 cycles: five errors are 60%.
    assert 30 < len(silence) < 120
    assert silence.mean() == pytest.approx(24.5, rel=0.6)


def test_the_first_request_comes_after_the_first_gap():
    assert even(rate=4, num_requests=3).arrival.tolist() == [0.25, 0.5, 0.75]
    assert even(interval=0.5, num_requests=3).arrival.tolist() == [0.5, 1.0, 1.5]
    assert Workload.poisson(1, 3, 1, 1).arrival[0] > 0
    assert even(interval=0, num_requests=3).arrival.tolist() == [0, 0, 0]


@settings(max_examples=25, deadline=None)
@given(users=st.integers(1, 20), rounds=st.integers(1, 10), think=st.floats(0, 100), cv=st.floats(0, 3), seed=seeds)
def test_a_closed_loop_gives_every_user_a_chain(users, rounds, think, cv, seed):
    load = Workload.closed_loop(users, think, rounds, PROMPTS, OUTPUTS, think_cv=cv, seed=seed)
    assert len(load) == users * rounds
    assert load.after.tolist() == [-1] * users + list(range(users * (rounds - 1)))
    assert (load.arrival[:users] <= think).all() and np.isnan(load.arrival[users:]).all()
    assert (load.think_time[:users] == 0).all()
    assert isnan(load.rate) or rounds == 1


def test_think_times_have_their_mean_and_variation():
    n = 40_000
    for cv in (0, 1, 2):
        think = Workload.closed_loop(1, 3.0, n, 1, 1, think_cv=cv, seed=2).think_time[1:]
        assert think.mean() == pytest.approx(3, rel=5 * cv / sqrt(n) + 1e-12)  # five standard errors
        assert think.std() / think.mean() == pytest.approx(cv, rel=0.06, abs=1e-12)  # as for the gaps above


@settings(max_examples=25, deadline=None)
@given(conversations=st.integers(1, 20), mean_turns=st.floats(1, 6), system=st.integers(0, 500), seed=seeds)
def test_a_prompt_is_the_whole_conversation_so_far(conversations, mean_turns, system, seed):
    load = Workload.turns(
        1.0, conversations, lengths.geometric(mean_turns), PROMPTS, OUTPUTS, system_tokens=system, seed=seed
    )
    assert (load.after == -1).sum() == conversations
    typed = []
    for i, before in enumerate(load.after):
        history = system if before < 0 else load.prompt_tokens[before] + load.output_tokens[before]
        assert before in (-1, i - 1)
        typed.append(load.prompt_tokens[i] - history)
    streams = np.random.SeedSequence(seed).spawn(5)
    assert typed == PROMPTS.sample(np.random.default_rng(streams[1]), len(load)).tolist()


def test_scaled_changes_the_rate_and_nothing_else():
    load = Workload.poisson(5, 1_000, PROMPTS, OUTPUTS)
    fast = load.scaled(rate=20)
    assert fast.rate == pytest.approx(20, rel=1e-12)  # a few roundings
    assert fast.prompt_tokens.tolist() == load.prompt_tokens.tolist()
    assert np.diff(fast.arrival) / np.diff(load.arrival) == pytest.approx(load.rate / 20, rel=1e-6)
    assert len(load) == 1_000 and load.rate != 20


@pytest.mark.parametrize(
    ("load", "why"),
    [
        (small().head(1), "only one"),
        (even(interval=0, num_requests=5), "at once"),
        (Workload.closed_loop(2, 1.0, 3, 1, 1), "change users or think_time"),
    ],
)
def test_a_load_without_a_rate_is_not_scaled(load, why):
    with pytest.raises(ValueError, match=why):
        load.scaled(rate=5)


def test_head_takes_the_first_ones_and_cuts_no_chain():
    assert small().head(2) == small(arrival=[0.0, 1.0], prompt_tokens=[5, 6], output_tokens=[1, 2])
    assert small().head(100) == small()
    loop = Workload.closed_loop(3, 1.0, 4, 1, 1)
    for n in range(1, 13):
        assert loop.head(n).after.tolist() == loop.after[:n].tolist()
    labelled = small(class_=["a", "b", "c"], tenant=[1, 2, 3], prefix=[(1,), (), (2, 3)]).head(2)
    assert (labelled.class_.tolist(), labelled.tenant.tolist(), labelled.prefix) == (["a", "b"], [1, 2], ((1,), ()))
    with pytest.raises(ValueError, match="n must be a whole number"):
        small().head(0)


def test_concat_merges_by_arrival_and_keeps_ties_in_order():
    merged = small().concat(small(arrival=[0.5, 1.0, 9.0], prompt_tokens=[50, 60, 70]))
    assert merged.arrival.tolist() == [0, 0.5, 1, 1, 1, 9]
    assert merged.prompt_tokens.tolist() == [5, 50, 6, 7, 60, 70]
    labelled = small(class_=["a", "b", "c"], prefix=[(1,), (2,), (3,)]).concat(small())
    assert labelled.class_.tolist() == ["a", "", "b", "c", "", ""]
    assert labelled.prefix == ((1,), (), (2,), (3,), (), ())
    assert small(tenant=[1, 2, 3]).concat(small()).tenant.tolist() == [1, -1, 2, 3, -1, -1]
    with pytest.raises(ValueError, match="only another Workload"):
        small().concat([1, 2])


@settings(max_examples=25, deadline=None)
@given(seed=seeds, users=st.integers(1, 5), rounds=st.integers(1, 5), n=st.integers(1, 20))
def test_a_mix_keeps_every_request_its_label_and_its_chain(seed, users, rounds, n):
    # The prompt length says which request of its part each one was.
    loop = Workload.closed_loop(users, 2.0, rounds, PROMPTS, OUTPUTS, seed=seed)
    loop = replace(loop, prompt_tokens=np.arange(len(loop)) + 1)
    stream = replace(Workload.poisson(3, n, PROMPTS, OUTPUTS, seed=seed), prompt_tokens=np.arange(n) + 1)
    mixed = Workload.mix({"loop": loop, "stream": stream})
    assert len(mixed) == len(loop) + len(stream)
    for label, part in (("loop", loop), ("stream", stream)):
        rows = np.flatnonzero(mixed.class_ == label)
        was = mixed.prompt_tokens[rows] - 1
        assert sorted(was) == list(range(len(part)))
        assert np.array_equal(mixed.arrival[rows], part.arrival[was], equal_nan=True)
        assert mixed.output_tokens[rows].tolist() == part.output_tokens[was].tolist()
        if part.after is None:
            assert (mixed.after[rows] == -1).all()
            continue
        assert mixed.think_time[rows].tolist() == part.think_time[was].tolist()
        followed = [-1 if a < 0 else mixed.prompt_tokens[a] - 1 for a in mixed.after[rows]]
        assert followed == part.after[was].tolist()


def test_a_mix_of_a_list_is_labelled_by_number_and_refuses_what_is_none():
    assert sorted(Workload.mix([small(), small()]).class_.tolist()) == [0, 0, 0, 1, 1, 1]
    for parts, why in (
        ([], "at least one"),
        ({}, "at least one"),
        (["x"], "part 0 .* must be a Workload"),
        (5, "mix takes"),
    ):
        with pytest.raises(ValueError, match=why):
            Workload.mix(parts)


def test_nothing_in_a_workload_can_be_changed():
    times = np.array([0.0, 1.0])
    load = Workload(times, [1, 2], [3, 4])
    times[0] = 0.5
    assert load.arrival.tolist() == [0, 1]
    for values in (load.arrival, load.prompt_tokens, load.output_tokens):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1
    with pytest.raises(FrozenInstanceError):
        load.name = "other"


def test_equality_looks_at_the_requests_and_not_at_the_name():
    assert small() == small(name="other") and hash(small()) == hash(small(name="other"))
    assert small() != small(prompt_tokens=[5, 6, 8]) and small() != small(class_=[1, 2, 3]) and small() != 3
    loop = Workload.closed_loop(2, 1.0, 2, 1, 1)
    assert loop == Workload.closed_loop(2, 1.0, 2, 1, 1)  # although it holds NaN


def test_repr_is_one_short_line():
    assert repr(small(name="x")) == "Workload(x: 3 requests, 2/s, prompt mean 6, output mean 2 tokens)"
    assert "arrivals follow answers" in repr(Workload.closed_loop(2, 1.0, 2, 1, 1))
    assert all(len(repr(make(1, 5))) < 120 for make in OPEN.values())


def test_describe_of_three_requests_by_hand():
    found = small().describe()
    assert found == {
        "n": 3, "span_s": 1.0, "rps": 2.0, "gap_mean_s": 0.5, "gap_cv_population": 1.0, "max_gap_s": 1.0,
        "ties": 1, "negative": 0,
        "in_sum": 18, "in_mean": 6.0, "in_p50": 6.0, "in_p99": 6.98, "in_max": 7, "in_min": 5,
        "out_sum": 6, "out_mean": 2.0, "out_p50": 2.0, "out_p99": 2.98, "out_max": 3, "out_min": 1,
    }  # fmt: skip
    alone = small().head(1).describe()
    assert isnan(alone["rps"]) and isnan(alone["gap_mean_s"]) and alone["span_s"] == 0
    assert even(interval=0, num_requests=2).describe()["rps"] == inf


def test_a_rate_counts_from_the_first_arrival():
    late = small(arrival=[10.0, 11.0, 14.0])
    assert late.span == 4 and late.rate == 2 / 4


def test_on_off_begins_in_its_steady_state():
    """On with the probability of on_fraction: then the first request comes at once, else after 90 s on average."""
    first = [Workload.on_off(10, 1, 1, 1, on_fraction=0.1, period=100, seed=seed).arrival[0] for seed in range(400)]
    begins_on = np.mean(np.array(first) < 1)
    assert begins_on == pytest.approx(0.1, abs=0.05)  # three standard deviations of 400 draws; 1% are on within 1 s


def test_who_follows_an_answer_is_placed_by_the_earliest_time_at_which_it_could_come():
    talk = small(arrival=[0.0, np.nan, np.nan], after=[-1, 0, 1], think_time=[0.0, 2.0, 2.0])
    merged = talk.concat(small(arrival=[1.0, 3.0, 5.0], prompt_tokens=[50, 60, 70]))
    assert merged.prompt_tokens.tolist() == [5, 50, 6, 60, 7, 70]
    assert merged.after.tolist() == [-1, -1, 0, -1, 2, -1]
