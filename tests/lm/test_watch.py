"""A run that is watched: the words, times and padding of `serve_live`, and nothing computed between the looks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from course import KVCache, lm, policies
from course.engine import metrics
from course.memory.block_pool import blocks_for

SCARCE = 15  # blocks: too few for all that could run at once
POLICIES = {
    "static": (policies.Static(4), None),
    "dynamic": (policies.Dynamic(4, 0.03), None),
    "continuous": (policies.Continuous(4, 64), None),
    "small budget": (policies.Continuous(4, 6), None),
    "preempting": (policies.Continuous(8, 64), KVCache(SCARCE, 4)),
}


@pytest.fixture(scope="module")
def asked(prompts) -> lm.Questions:
    short = [one.turns for one in prompts if len(one.answer) < 90 and len(one.turns) == 1]
    return lm.Questions.poisson(short[:12], rate=40, seed=3, max_tokens=25)


@pytest.fixture(scope="module", params=POLICIES)
def watch(request, model, asked) -> lm.Watch:
    policy, cache = POLICIES[request.param]
    watch = lm.Watch(asked, policy, model, cache, clock=lm.step_clock())
    while not watch.done:
        before = len(watch.frames)
        watch.advance(0)
        assert len(watch.frames) > before  # a step at least
    return watch


def test_the_words_are_those_of_serve_live(watch, asked, model):
    words = [""] * len(asked.conversations)
    for frame in watch.frames:
        for part in frame.parts:
            words[part.row] += part.text or ""
    same = lm.serve_live(asked, watch.policy, model, watch.run.cache, waits=False)
    assert tuple(words) == watch.run.words == same.words
    assert watch.run.ended == same.ended


def test_frames_have_the_times_of_the_run(watch, asked):
    starts, ends = ([getattr(frame, name) for frame in watch.frames] for name in ("start", "end"))
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    first = {row: frame.end for frame in watch.frames for row in frame.sent}
    assert [first[row] - asked.arrival[row] for row in sorted(first)] == pytest.approx(
        watch.run.ttft.tolist(),
        abs=1e-12,  # rounding of one subtraction
    )
    assert sum(len(frame.sent) for frame in watch.frames) == len(asked.conversations)


def test_padding_is_what_the_metrics_count(watch):
    padding = sum(part.padding for frame in watch.frames for part in frame.parts)
    assert padding == metrics.summary(watch.run)["padding_tokens"]
    assert (padding > 0) == watch.run.limits.padded


def test_a_lane_is_a_slot(watch):
    """No more than there are, one request each, and a request stays in its own as long as it runs."""
    before: dict[int, int] = {}
    for frame in watch.frames:
        lanes = {part.row: part.lane for part in frame.parts}
        assert len(set(lanes.values())) == len(lanes)
        assert set(lanes.values()) <= set(range(watch.run.limits.max_num_seqs))
        assert all(lanes[row] == before[row] for row in lanes.keys() & before.keys())
        before = lanes


def test_the_line_is_who_has_come_and_has_no_slot(watch, asked):
    """In order of arrival, preempted ones first."""
    begun: set[int] = set()
    for frame in watch.frames:
        running = {part.row for part in frame.parts}
        begun |= running
        left = {row for row in range(len(asked.arrival)) if watch.run.response[row] <= frame.start}
        come = {row for row in range(len(asked.arrival)) if asked.arrival[row] <= frame.start}
        assert set(frame.waiting) == come - running - left
        new = [row for row in frame.waiting if row not in begun]
        assert new == sorted(new) and list(frame.waiting[len(frame.waiting) - len(new) :]) == new
    if isinstance(watch.run.cache, KVCache) and watch.run.cache.num_blocks == SCARCE:
        assert watch.run.preempted.sum() > 0


def test_the_blocks_suffice_for_the_longest_of_these(asked, model):
    """Else the preempting case above would be refused in place of preempting."""
    longest = max(len(model.prompt(turns)) for turns in asked.conversations) + asked.max_tokens
    assert blocks_for(longest, 4) <= SCARCE


def test_nothing_is_computed_unless_asked(asked, model):
    before = threading.enumerate()
    watch = lm.Watch(asked, policies.Continuous(4, 64), model)
    assert list(watch.frames) == [] and not watch.done
    watch.advance(0)
    assert threading.enumerate() == before
    assert (np.diff([frame.end for frame in watch.frames]) > 0).all()


def test_counted_in_steps_it_is_the_same_run_again(asked, model):
    runs = []
    for slice_ in (0, 10):
        watch = lm.Watch(asked, policies.Dynamic(4, 0.05), model, clock=lm.step_clock())
        while not watch.done:
            watch.advance(slice_)
        runs.append(watch.frames)
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda model: lm.Watch(lm.Questions.at_once([" "]), policies.Static(2), model), "empty"),
        (lambda model: lm.Watch(lm.Questions.at_once(["Hi."]), policies.Static(0), model), "max_num_seqs"),
        (lambda model: lm.Watch(lm.Questions.at_once(["Hi."]), policies.Static(1), model).advance(-1), "seconds"),
    ],
)
def test_refusals(model, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(model)
