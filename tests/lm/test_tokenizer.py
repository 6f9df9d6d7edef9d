"""Text to tokens and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from course import lm
from course.lm.loading import ROOM
from tests.helpers.places import DATA

TOKENIZER = lm.Tokenizer(ROOM / "tokenizer.json")


@given(st.text())
@example("<|end|><|user|> \r\n\t\u2003é日本🙂👩‍🚀\x00")
def test_any_text_comes_back(text: str):
    tokens = TOKENIZER.encode(text)
    assert TOKENIZER.decode(tokens) == text
    assert not TOKENIZER.special.intersection(tokens)
    stream = TOKENIZER.stream()
    assert "".join(map(stream.add, tokens)) + stream.close() == text
    assert TOKENIZER.encode(text.encode()) == tokens


@given(st.lists(st.integers(0, len(TOKENIZER) - 1)))
def test_any_tokens_are_some_text(tokens: list[int]):
    stream = TOKENIZER.stream()
    assert "".join(map(stream.add, tokens)) + stream.close() == TOKENIZER.decode(tokens)


def test_it_splits_as_hugging_face_does():
    """The ids were written by the package `tokenizers` 0.23 from the same file."""
    for text, tokens in json.loads((DATA / "lm_tokens.json").read_text(encoding="utf-8")):
        assert TOKENIZER.encode(text) == tokens


def test_half_a_character_waits_for_the_other_half():
    stream = TOKENIZER.stream()
    tokens = TOKENIZER.encode("日")
    assert len(tokens) > 1
    assert [stream.add(token) for token in tokens] == [""] * (len(tokens) - 1) + ["日"]
    stream.add(tokens[0])
    assert stream.close() == "\ufffd"


def test_a_prompt_opens_the_next_answer():
    t = TOKENIZER
    one = [t.user, *t.encode("Hello!"), t.assistant]
    assert t.prompt("Hello!") == t.prompt(b"Hello!") == t.prompt(["Hello!"]) == one
    assert t.prompt(["Hello!", "Hi.", "Bye!"]) == [
        *one,
        *t.encode("Hi."),
        t.end,
        t.user,
        *t.encode("Bye!"),
        t.assistant,
    ]
    assert t.user not in t.encode("<|user|>")


@pytest.mark.parametrize(
    ("turns", "sentence"),
    [
        ("", "The prompt is empty"),
        (" \n", "The prompt is empty"),
        (["Hello!", "Hi.", ""], "The prompt is empty"),
        ([], "must end with a prompt"),
        (["Hello!", "Hi."], "must end with a prompt"),
        (b"Hello \xff", r"byte 6 \(0xff\) is not UTF-8"),
        ("half \ud83d", r"U\+D83D is half of a character"),
        ([3], "must be text, not int"),
        (3, "must be text, not int"),
    ],
)
def test_what_cannot_be_answered_gets_a_sentence(turns, sentence: str):
    with pytest.raises(lm.LMError, match=sentence):
        TOKENIZER.prompt(turns)


def test_a_token_that_is_none_gets_a_sentence():
    with pytest.raises(lm.LMError, match="Token 2048 is not one of the 2048"):
        TOKENIZER.decode([2048])


@pytest.mark.parametrize("content", ["", "{}", '{"model": {"vocab": {}, "merges": []}, "added_tokens": []}', "[1]"])
def test_another_file_is_refused(content: str, tmp_path: Path):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(lm.LMError, match=r"is not a tokenizer\.json of byte-level BPE"):
        lm.Tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(lm.LMError, match="cannot be read: No such file"):
        lm.Tokenizer(tmp_path / "missing.json")
