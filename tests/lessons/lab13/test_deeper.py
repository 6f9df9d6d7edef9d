"""Lab 13, deeper: ties against the formula, acceptance measured again, and verifications that are wrong on purpose."""

import json

import numpy as np
import pytest

from course.lessons import lab13
from course.lessons.lab13 import deeper, pays, tasks
from tests.helpers.sizes import size
from tools.lm import seen


@pytest.mark.parametrize("drafter", pays.DRAFTERS)
@pytest.mark.parametrize("batch", deeper.TIED)
def test_drafts_tie_at_the_acceptance_that_the_formula_says(drafter, batch):
    found, accept = pays.pays(drafter, 4, 0.5, batch), pays.tie(drafter, batch, 4)
    tokens = sum(accept**i for i in range(5))
    # brentq stops within 1e-6 of the root; the tokens change by at most 10 times that
    assert tokens * found.plain == pytest.approx(found.draft + found.verification, rel=2e-5)


def test_drafts_that_lose_although_all_are_accepted_have_no_tie():
    assert np.isnan(pays.tie(pays.MODEL, 1, 0))


def test_the_1b_model_ties_at_one_setting_only():
    drafter, k, accept, batch = at = (pays.MODEL, 2, 0.5, 64)
    assert tasks.ties({}, pays.pays(*at))
    for other in (
        (drafter, k, 0.6, batch), (drafter, k, 0.4, batch), (drafter, k + 1, accept, batch), (drafter, k, accept, 32),
        (pays.HEAD, k, accept, batch),
    ):  # fmt: skip
        assert not tasks.ties({}, pays.pays(*other)), other


def test_the_acceptance_by_answers_seen_is_measured_again():
    stored = {int(number): share for number, share in json.loads(deeper.SEEN.read_text()).items()}
    assert tuple(stored) == seen.NUMBERS
    assert list(stored.values()) == sorted(stored.values())
    numbers = size(seen.NUMBERS[:2], seen.NUMBERS)
    assert seen.acceptance(numbers) == pytest.approx(
        {number: stored[number] for number in numbers}, abs=5e-5
    )  # 4 digits


def test_a_verification_by_hand():
    assert deeper.verified([7], [1, 2, 3], lambda tokens: [1, 2, 9, 8]) == [1, 2, 9]
    assert deeper.verified([6, 7], [1, 2], lambda tokens: [7, 1, 2, 3]) == [1, 2, 3]
    assert deeper.verified([6, 7], [1], lambda tokens: [7, 5, 4]) == [5]
    found = deeper.by_hand(deeper.verified)
    assert found.wrong is None and found.passes == found.steps < found.tokens
    assert "the model's own" in repr(lab13.your_verification(deeper.verified))


def _all(known, drafts, after):
    return [*drafts, after(known + drafts)[-1]]


def _each_alone(known, drafts, after):
    said = after(known + drafts)[len(known) - 1 :]
    return [*(draft for draft, own in zip(drafts, said, strict=False) if draft == own), said[-1]]


def _without_its_own(known, drafts, after):
    return deeper.verified(known, drafts, after)[:-1]


def _a_place_late(known, drafts, after):
    said = after(known + drafts)[len(known) :]
    return [said[0]]


@pytest.mark.parametrize(("step", "said"), [
    (_all, "the model alone says"), (_each_alone, "the model alone says"), (_a_place_late, "the model alone says"),
    (_without_its_own, "Your step gives no token"), (lambda *given: None, "Your function returns nothing yet."),
    (lambda *given: [1] * 6, "4 drafts and the model's own are 5"), (lambda *given: "words", "Return a list of tokens"),
    (lambda *given: [0.5], "Return a list of tokens"),
])  # fmt: skip
def test_a_wrong_verification_is_told(step, said):
    assert said in repr(lab13.your_verification(step))


def test_one_token_a_pass_is_right_and_slow():
    slow = deeper.by_hand(lambda known, drafts, after: [after(known)[-1]])
    assert slow.wrong is None and slow.steps == slow.tokens > deeper.by_hand(deeper.verified).steps
