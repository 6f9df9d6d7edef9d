"""The words of every committed prompt are the right ones, and the same whatever the schedule."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from course import lm
from course.lm import weights
from course.lm.loading import FOLDERS
from tests.helpers import lm_schedules
from tests.helpers.lm_reference import reference
from tests.helpers.lm_schedules import is_certain, side_by_side, speak
from tests.helpers.sizes import size
from tools.lm.text import KINDS, of_kind

MARGIN = 100  # times the measured error: what other sums in another order may at most do is far below it
SAMPLED_PROMPTS = size(small=12, whole=32)
SAMPLED = lm.Sampling(temperature=2.5, top_k=0, seed=7)  # hot enough that some words are not the greedy ones


@pytest.fixture(scope="module")
def alone(model, asked, wanted) -> list[np.ndarray]:
    """The logits before each token of each answer, every prompt alone and in one step."""
    return [lm_schedules.alone(model, before, answer) for before, answer in zip(asked, wanted, strict=True)]


@pytest.fixture(scope="module")
def error(model, asked, wanted, alone) -> float:
    """The largest difference that batch, chunks, order or float64 made to a logit of a committed answer."""
    worst = 0.0
    stored = weights.read(FOLDERS["model"] / "model.safetensors")
    shortest = sorted(range(len(asked)), key=lambda i: len(asked[i]) + len(wanted[i]))[:4]
    for i in shortest:  # the plain forward is slow
        expected = reference(model.config, stored, asked[i] + wanted[i][:-1])[len(asked[i]) - 1 :]
        worst = max(worst, float(np.abs(alone[i] - expected).max()))
    together = side_by_side(model, asked, wanted)
    return max(worst, *(float(np.abs(one - other).max()) for one, other in zip(alone, together, strict=True)))


def test_every_kind_and_long_conversations_are_among_them(prompts, asked):
    assert {one.kind for one in prompts} == {*KINDS, "conversation"}
    assert max(map(len, asked)) > 150


def test_each_is_answered_rightly(model, prompts):
    assert model.answers([one.turns for one in prompts]) == [one.answer for one in prompts]


def test_each_decision_keeps_its_margin(alone, wanted, error):
    assert 0 < error < 1e-3
    for logits, answer in zip(alone, wanted, strict=True):
        assert logits.argmax(-1).tolist() == answer
        best, second = np.sort(logits, axis=-1)[:, :-3:-1].T
        assert (best - second).min() > MARGIN * error


@pytest.mark.parametrize(
    ("block_size", "longest_chunk", "preempt"), [(16, 512, 0.0), (16, 8, 0.0), (5, 64, 0.0), (16, 64, 0.05)]
)
def test_the_words_do_not_depend_on_the_schedule(model, asked, wanted, block_size, longest_chunk, preempt):
    for first in range(0, size(small=20, whole=len(asked)), 20):
        part = slice(first, first + 20)
        said = speak(
            model,
            asked[part],
            Random(first),
            block_size=block_size,
            longest_chunk=longest_chunk,
            preempt=preempt,
        )
        assert said == wanted[part]


def test_sampled_words_do_not_depend_on_the_schedule(model, asked, error):
    asked = asked[:SAMPLED_PROMPTS]
    said = [speak(model, [tokens], Random(0), sampling=SAMPLED, requests=[i])[0] for i, tokens in enumerate(asked)]
    certain = 0
    together = speak(model, asked, Random(1), longest_chunk=20, preempt=0.05, sampling=SAMPLED)
    greedy = speak(model, asked, Random(1))
    for i, (before, one, other) in enumerate(zip(asked, said, together, strict=False)):
        if is_certain(lm_schedules.alone(model, before, one), SAMPLED, i, len(before), error):
            certain += 1
            assert other == one
    assert certain > SAMPLED_PROMPTS / 2
    assert said != greedy  # the temperature does something


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_prompts_of_each_kind_are_answered_rightly(model, kind: str):
    """At least 95% of other prompts than the committed ones; what the card says was measured on 150 of each kind."""
    asked = of_kind(kind, 99, size(small=5, whole=20))
    right = [said == one.answer for said, one in zip(model.answers([one.turns for one in asked]), asked, strict=True)]
    assert sum(right) >= 0.95 * len(right)
