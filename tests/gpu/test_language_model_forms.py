"""The forms of the language model on a device that differ in who starts the kernels: the committed words in each."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

from course import lm, policies
from course.gpu.plain import PlainDevice
from course.lm import weights
from course.lm.loading import FOLDERS
from course.lm.prompts import held_out_prompts
from tests.gpu.conftest import DEVICES, queue_on
from tests.helpers.lm_reference import reference
from tests.helpers.lm_schedules import speak
from tests.helpers.sizes import size

NUMPY = lm.load()
PROMPTS = sorted(held_out_prompts(), key=lambda one: len(NUMPY.prompt(one.turns)) + len(one.answer))
FORMS = ("graph", "persistent")
# bf16 rounds to 2^-9 of a value; logits are up to 40. The largest difference seen here is 0.23, on a committed prompt
# 0.17; the smallest margin of a committed word is 12 (course/lm/CARD.md).
ERROR = 1.0
MANY = {"numpy": size(small=4, whole=24), "cpu-shim": 1, "cuda": None}
# The CPU shim takes ten seconds for an answer of the draft: tests/gpu/ops has its kernels one by one, on smaller sizes.
KINDS = size(small=[DEVICES[0], DEVICES[2]], whole=DEVICES)


@cache
def loaded(kind: str, form: str) -> lm.LanguageModel:
    """The model on each device; on the CPU shim the draft, which is a tenth of it."""
    return lm.load("draft" if kind == "cpu-shim" else "model", device=queue_on(kind).device, form=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_words_are_the_committed_ones(kind: str, form: str) -> None:
    model, chosen = loaded(kind, form), PROMPTS[: MANY[kind]]
    assert model.answers([one.turns for one in chosen]) == [one.answer for one in chosen]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_a_captured_step_equal_float64_within_rounding(kind: str) -> None:
    """A batch of three is padded to four; the padding changes nobody's row and nobody's cache."""
    model, rng = loaded(kind, "graph"), np.random.default_rng(0)
    rows = [rng.integers(4, 2048, 5 + row).tolist() for row in range(3)]
    kv = model.paged_kv(3)
    name = "draft" if kind == "cpu-shim" else "model"
    stored = weights.read(FOLDERS[name] / "model.safetensors")
    done = [len(row) - 2 for row in rows]
    model.forward([token for row in rows for token in row[:-2]], done, [0] * 3, [[2], [0], [1]], kv)
    for back in (2, 1):  # the first is launched one by one, the second replayed where there are graphs
        tokens = [row[-back] for row in rows]
        found = model.forward(tokens, [1] * 3, [len(row) - back for row in rows], [[2], [0], [1]], kv)
        for logits, row in zip(found, rows, strict=True):
            right = reference(model.config, stored, row[: len(row) - back + 1])[-1]
            assert np.abs(logits - right).max() < ERROR


@pytest.mark.parametrize("kind", [DEVICES[0], DEVICES[2]])
def test_the_words_do_not_depend_on_the_schedule(kind: str) -> None:
    """Chunks of prompts beside decodes, preempted and computed again; sizes of a step that are captured in between."""
    model, chosen = loaded(kind, "graph"), PROMPTS[:3]
    asked = [NUMPY.prompt(one.turns) for one in chosen]
    wanted = [[*NUMPY.tokenizer.encode(one.answer), NUMPY.tokenizer.end] for one in chosen]
    assert speak(model, asked, Random(0), longest_chunk=8, preempt=0.05) == wanted


@pytest.mark.parametrize("form", FORMS)
def test_policies_change_no_word(form: str) -> None:
    run = lm.serve_live(
        lm.Questions.at_once([one.turns for one in PROMPTS[:2]]), policies.Continuous(3, 16), loaded("numpy", form)
    )
    assert run.words == tuple(one.answer for one in PROMPTS[:2])


def test_more_decodes_than_the_largest_captured_step_are_launched_one_by_one() -> None:
    model = loaded("numpy", "graph")
    kv = model.paged_kv(33)
    found = model.forward([5] * 33, [1] * 33, [0] * 33, [[block] for block in range(33)], kv)
    # A product may sum the last of 33 rows in another order than the first: one unit of bf16 (8 bits) at most.
    assert found.shape == (33, 2048) and np.abs(found - found[0]).max() <= 2**-7 * np.abs(found).max()


def test_a_form_that_is_not_there_is_refused_with_a_sentence() -> None:
    with pytest.raises(lm.LMError, match="has the form launches, graph, persistent, not 'fused'"):
        lm.load("draft", device=PlainDevice(), form="fused")
    with pytest.raises(lm.LMError, match="The form 'graph' is one of a device"):
        lm.load("draft", form="graph")
    hot = lm.Sampling(temperature=1.0, seed=0)
    with pytest.raises(lm.LMError, match='with a temperature use form="graph"'):
        loaded("numpy", "persistent").answers(["Spell owl."], sampling=hot)
    assert loaded("numpy", "persistent").answers([]) == []
