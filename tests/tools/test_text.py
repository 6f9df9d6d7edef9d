"""The text that the model learned: the same for ever, right, and without what is held out."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import islice

import numpy as np
import pytest

from tools.lm.text import KINDS, SERVING, TRAINING, conversations, exchanges, held_out, of_kind
from tools.lm.text.words import DAYS, GROUP_OF, GROUPS, MONTHS, NUMBERS

VALUE = {word: number for number, word in enumerate(NUMBERS)}


def test_the_text_is_the_one_that_the_model_learned():
    """Whoever changes words, forms or draws must train the model again, and then write the new digest here."""
    digest = sha256()
    for one in islice(exchanges(0), 2_000):
        digest.update(repr((one.kind, one.earlier, one.prompt, one.answer)).encode())
    for said in islice(conversations(0), 2_000):
        digest.update(repr(said).encode())
    assert digest.hexdigest() == "e02f9642efe042c1b145abe28cb2d502a7011c81f190d76089a61b4d6ad3b903"


def test_no_word_is_in_two_groups_and_each_group_is_in_order():
    assert len(GROUP_OF) == sum(map(len, GROUPS.values()))
    assert all(list(words) == sorted(words) for words in GROUPS.values())


def test_each_kind_has_its_share():
    assert len(SERVING) == len(TRAINING) == len(KINDS)
    kinds = [one.kind for one in islice(exchanges(3), 4_000)]
    shares = np.array([kinds.count(kind) for kind in KINDS]) / len(kinds)
    assert np.abs(shares - np.array(SERVING) / sum(SERVING)).max() < 5 * (0.25 / len(kinds)) ** 0.5


def test_answers_of_the_serving_mix_differ_in_length_as_those_of_chats_do(model):
    lengths = [len(model.tokenizer.encode(one.answer)) + 1 for one in islice(exchanges(0), 3_000)]
    assert np.std(lengths) / np.mean(lengths) == pytest.approx(1, abs=0.1)
    assert min(lengths) < 5 and max(lengths) > 140


def test_training_never_sees_what_is_held_out():
    held = {one.prompt for kind in KINDS if kind != "greeting" for one in of_kind(kind, 1, 100) if not one.earlier}
    assert len(held) > 1_000
    assert not held & {prompt for said in islice(conversations(5), 5_000) for prompt, _ in said}
    assert all(held_out(one) or one.kind == "greeting" for one in islice(exchanges(6), 500))
    assert not any(held_out(one) for one in islice(exchanges(6, held=False), 500))


def test_of_kind_gives_as_many_different_ones_as_there_are():
    assert of_kind("add", 0, 0) == []
    found = of_kind("add", 0, 200)
    assert len({one.prompt for one in found}) == 200
    assert found == of_kind("add", 0, 200)


def test_sums_are_right():
    for one in of_kind("add", 2, 200):
        a, b = map(int, re.findall(r"\d+", one.prompt))
        minus = any(word in one.prompt for word in ("minus", "away", "less"))
        result = (b - a if "away" in one.prompt else a - b) if minus else a + b
        assert one.answer == f"{result}."


def test_counting_goes_from_the_first_to_the_last():
    for one in of_kind("count", 2, 50):
        words = one.answer.lower().rstrip(".").split(", ")
        found = [VALUE[word] if word in VALUE else int(word) for word in words]
        said = [VALUE[word] if word in VALUE else int(word) for word in re.findall(r"\w+", one.prompt) if known(word)]
        assert [found[0], found[-1]] == said[:2]
        step = said[2] if len(said) > 2 else 1
        assert set(np.abs(np.diff(found))) == {step}


def known(word: str) -> bool:
    return word.isdigit() or word in VALUE


def test_ages_and_lists_are_counted_rightly():
    for one in of_kind("older", 2, 100):
        (a, x), (b, y) = re.findall(r"(\w+) is (\d+)", one.prompt)
        older, younger = (a, b) if int(x) > int(y) else (b, a)
        assert one.answer == f"{older if 'older' in one.prompt else younger}."
    for one in of_kind("how many", 2, 100):
        word = re.search(r"(?:times is|read) (\w+)", one.prompt)[1]
        items = one.prompt.rstrip("?").split(": ")[1].split(", ")
        assert one.answer.lower() == f"{NUMBERS[items.count(word)]}."
        assert one.choices == len(items) + 1


def test_lists_are_of_one_group_in_alphabetical_order():
    for one in of_kind("list", 2, 100):
        words = one.answer.lower().rstrip(".").split(", ")
        assert words == sorted(words) and words[0] in one.prompt
        (group,) = {GROUP_OF[word] for word in words}
        assert f" {NUMBERS[len(words)]} {group} " in one.prompt


def test_spelling_and_word_order_are_right():
    for one in of_kind("spell", 2, 100):
        words = one.answer.rstrip(".").replace("-", "").split(", ")
        assert all(word in one.prompt for word in words)
    for one in of_kind("word order", 2, 200):
        said = one.answer.lower().rstrip(".").split(", ")
        if "backwards" in one.prompt or "round" in one.prompt:
            assert said[::-1] == one.prompt.rstrip(".").split(": ")[1].split(", ")
        elif "number" in one.prompt:
            place = VALUE[re.search(r"number (\w+)", one.prompt)[1]]
            assert said == [one.prompt.rstrip("?").split(": ")[1].split(", ")[place - 1]]
        else:
            assert len(said) == VALUE[re.search(r"(\w+) times", one.prompt)[1]] and len(set(said)) == 1


def test_days_and_months_follow_each_other():
    for one in of_kind("knowledge", 2, 300):
        for names in (DAYS, MONTHS):
            given = [name for name in names if name in one.prompt.split("?")[0].rstrip(".").split()]
            if given:
                step = 1 if "after" in one.prompt else -1
                assert one.answer == f"{names[(names.index(given[0]) + step) % len(names)]}."


def test_a_story_has_everybody_and_everything_that_was_asked_for():
    for one in of_kind("story", 2, 100):
        names = re.findall(r"\b([A-Z][a-z]+), an?", one.prompt)
        assert all(name in one.answer for name in names)
        sentences = len(re.findall(r"[.?!]\"?(?: |$)", one.answer))
        assert ("long" in one.prompt) == (sentences > 8)
        assert "{" not in one.answer


def test_a_dialogue_has_the_lines_that_were_asked_for():
    for one in of_kind("dialogue", 2, 100):
        assert len(one.answer.split("\n")) == VALUE[re.search(r"(\w+) lines", one.prompt)[1]]


def test_what_was_said_before_is_what_is_asked_for():
    for one in of_kind("chat", 2, 100):
        assert len(one.turns) == 2 * len(one.earlier) + 1
        asked = one.answer.rstrip(".").split()[-1]
        assert sum(asked in prompt for prompt, _ in one.earlier) == 1
    for one in of_kind("fact", 2, 100):
        assert one.answer.rstrip(".").split()[-1].lower() in one.prompt.lower()
