"""Workloads that make no sense are refused with a sentence that names the setting or the request."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from course.workload import Workload


def small(**changes):
    return Workload(**{"arrival": [0.0, 1.0, 1.0], "prompt_tokens": [5, 6, 7], "output_tokens": [1, 2, 3], **changes})


def even(**settings):
    return Workload.fixed(**settings, prompt_tokens=1, output_tokens=1)


BAD_TOKENS = [0, -1, 2.5, nan, inf, 1e30, 10**30, 10**9 + 1, "7", None, True]


@pytest.mark.parametrize("bad", BAD_TOKENS)
@pytest.mark.parametrize("name", ["prompt_tokens", "output_tokens"])
def test_a_bad_token_count_is_refused_with_its_request(name, bad):
    with pytest.raises(ValueError, match=f"{name} .*request 1"):
        small(**{name: [4, bad, 5]})


@pytest.mark.parametrize("bad", [-1.0, nan, inf, -inf, 1e30, 10**400, "0", None, True])
def test_a_bad_arrival_is_refused_with_its_request(bad):
    with pytest.raises(ValueError, match=r"arrival .*(request 1|too large)"):
        small(arrival=[0.0, bad, 2.0])


@pytest.mark.parametrize(
    "bad", ["abc", 5, None, [[1, 2, 3]], [[1], [2, 3]], {1: 2}, (x for x in (1, 2, 3)), np.array(["a"] * 3)]
)
def test_a_column_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="prompt_tokens"):
        small(prompt_tokens=bad)


def test_unsorted_arrivals_name_the_row():
    with pytest.raises(ValueError, match=r"request 2 arrives at 1 s, before request 1 at 2.5 s: sort"):
        small(arrival=[0.0, 2.5, 1.0])


def test_other_lengths_empty_and_too_many_are_refused():
    with pytest.raises(ValueError, match="arrival has 3 requests but output_tokens has 2"):
        small(output_tokens=[1, 2])
    with pytest.raises(ValueError, match="at least one request"):
        Workload([], [], [])
    with pytest.raises(ValueError, match="at most 5,000,000"):
        Workload(np.zeros(5_000_001), np.ones(5_000_001, int), np.ones(5_000_001, int))
    for name in ("class_", "tenant", "prefix"):
        with pytest.raises(ValueError, match=f"{name} has 1"):
            small(**{name: [()] if name == "prefix" else [1]})
    with pytest.raises(ValueError, match="class_ must be"):
        small(class_=[1.5, 2, 3])
    with pytest.raises(ValueError, match="prefix must be"):
        small(prefix=["abc", "d", "e"])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"after": [-1, 0, 5], "arrival": [0, nan, nan]}, "request 2 follows request 5: .* an earlier one"),
        ({"after": [-1, 1, -1], "arrival": [0, nan, 1]}, "request 1 follows request 1"),
        ({"after": [-1, -2, -1]}, "request 1 follows request -2"),
        ({"after": [-1, 0, -1]}, "arrival of request 1 must be NaN, since it follows an answer"),
        ({"after": [-1, -1, -1], "arrival": [0, nan, 1]}, "arrival of request 1 is missing"),
        ({"after": [-1, 0.5, -1]}, "after of request 1 must be the number of an earlier request"),
        ({"after": [-1, 0, -1], "arrival": [0, nan, 1], "think_time": [0, -1, 0]}, "think_time of request 1"),
        ({"after": [-1, 0, -1], "arrival": [0, nan, 1], "think_time": [0, 1, 2]}, "request 2 has a think time of 2 s"),
        ({"think_time": [0, 1, 2]}, "think_time needs after"),
        ({"after": [-1, 0, -1], "arrival": [5, nan, 1]}, "request 2 arrives at 1 s, before request 0"),
    ],
)
def test_chains_that_make_no_sense_are_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        small(**changes)


POISSON = {"rate": 5, "num_requests": 10, "prompt_tokens": 3, "output_tokens": 3}
BAD_NUMBERS = [nan, inf, -inf, -1, 1e30, 10**400, "5", None, True, [5], 1j]


@pytest.mark.parametrize("bad", [*BAD_NUMBERS, 0])
@pytest.mark.parametrize("name", ["rate", "num_requests", "prompt_tokens", "output_tokens"])
def test_every_setting_of_a_poisson_load_is_checked(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Workload.poisson(**{**POISSON, name: bad})


@pytest.mark.parametrize("bad", BAD_NUMBERS)
def test_cv_think_time_and_period_are_checked(bad):
    with pytest.raises(ValueError, match=r"^cv must be"):
        Workload.gamma(cv=bad, **POISSON)
    for name in ("think_time", "think_cv"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            Workload.closed_loop(
                **{
                    "users": 2,
                    "requests_per_user": 2,
                    "think_time": 1,
                    "prompt_tokens": 1,
                    "output_tokens": 1,
                    name: bad,
                }
            )
    for name in ("on_fraction", "period"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            Workload.on_off(**POISSON, **{name: bad})
    if bad is not None:
        with pytest.raises(ValueError, match=r"^interval must be"):
            even(interval=bad, num_requests=3)


@pytest.mark.parametrize("bad", [-1, 1.5, nan, 2**64, "0", None, True])
def test_the_seed_is_checked(bad):
    with pytest.raises(ValueError, match=r"^seed must be"):
        Workload.poisson(**POISSON, seed=bad)


def test_sizes_that_would_exhaust_memory_are_refused_at_once():
    with pytest.raises(ValueError, match="num_requests must be a whole number from 1 to 5,000,000, not 1000000000000"):
        Workload.poisson(1, 10**12, 1, 1)
    with pytest.raises(ValueError, match="3,000 users with 4,000 requests each are 12,000,000 requests"):
        Workload.closed_loop(3_000, 1.0, 4_000, 1, 1)
    with pytest.raises(ValueError, match="5,000,000 conversations of 1e\\+09 turns"):
        Workload.turns(1.0, 5_000_000, 10**9, 1, 1)
    with pytest.raises(ValueError, match="make the period longer"):
        Workload.on_off(1.0, 1_000, 1, 1, period=1e-6)


def test_a_rate_that_is_infinite_is_told_what_to_use():
    with pytest.raises(ValueError, match=r"Workload.fixed\(interval=0"):
        Workload.poisson(inf, 10, 1, 1)
    for neither_or_both in ({}, {"rate": 1, "interval": 1}):
        with pytest.raises(ValueError, match=r"either rate .* or interval"):
            even(num_requests=3, **neither_or_both)


def test_a_prompt_that_outgrows_every_limit_is_refused():
    with pytest.raises(ValueError, match="prompt_tokens of request 2 must be a whole number from 1 to 1,000,000,000"):
        Workload.turns(1.0, 1, 3, 400_000_000, 1)


@pytest.mark.parametrize("whole", [2e1, np.int32(20), np.float64(20), np.uint8(20)])
def test_a_whole_number_of_another_type_is_one(whole):
    assert Workload.poisson(5, whole, whole, whole) == Workload.poisson(5, 20, 20, 20)


def test_replace_checks_again():
    with pytest.raises(ValueError, match="arrival has 3 requests"):
        replace(small(), prompt_tokens=[1])


# Names, notes and labels


@pytest.mark.parametrize("bad", ["hello", None, 5, [1], ["a", None], {"a": 1}, b"a"])
def test_notes_are_sentences_not_letters(bad):
    with pytest.raises(ValueError, match="notes must be a tuple of sentences"):
        small(notes=bad)
    assert small(notes=["one", "two"]).notes == ("one", "two")


@pytest.mark.parametrize("bad", [None, 5, ["a"], b"a"])
def test_a_name_is_text(bad):
    with pytest.raises(ValueError, match="the name of a workload must be text, not "):
        small(name=bad)


@pytest.mark.parametrize("bad", [[[1], [1, 2], [3]], [None, 1, 2], 5, {"a": 1}, [True, False, True], [1j, 2, 3]])
def test_labels_of_another_kind_are_refused(bad):
    for name in ("class_", "tenant"):
        with pytest.raises(ValueError, match=f"{name} must be a sequence of whole numbers or of strings"):
            small(**{name: bad})


@pytest.mark.parametrize("bad", [5, "abc", [5, 6, 7], [([1],), ([2],), ([3],)], {1: (2,)}])
def test_prefixes_of_another_kind_are_refused(bad):
    with pytest.raises(ValueError, match="prefix must be a sequence of block-hash sequences"):
        small(prefix=bad)


def test_a_masked_number_is_missing():
    with pytest.raises(ValueError, match="prompt_tokens has masked values"):
        small(prompt_tokens=np.ma.array([1, 2, 3], mask=[False, True, False]))
    assert small(prompt_tokens=np.ma.array([1, 2, 3])).prompt_tokens.tolist() == [1, 2, 3]


def test_a_column_that_raises_when_it_is_read():
    class Wordless(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    class Column:
        def __array__(self, *_, **__):
            raise Wordless

    with pytest.raises(ValueError, match="prompt_tokens must be a sequence of numbers, one per request: Wordless"):
        small(prompt_tokens=Column())
    with pytest.raises(ValueError, match="class_ must be a sequence"):
        small(class_=Column())


def test_a_rate_that_is_an_array_is_refused():
    with pytest.raises(ValueError, match=r"^rate must be a number"):
        Workload.poisson(np.array([1.0, 2.0]), 10, 1, 1)
