"""Recordings of cards that were cut off, lost points or were damaged: a usable step time, or a sentence."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.steptime import Recorded, Step, files, recorded
from course.steptime.points import COLUMNS, COUNTS
from tests.helpers.strategies import examples

pytestmark = pytest.mark.filterwarnings("error")

CARDS = files.names("llama_step")
STEPS = [
    Step(decodes, decodes * each, chunks)
    for decodes in (0, 1, 3, 20, 100, 256)
    for each in ((1, 300, 5_000) if decodes else (0,))
    for chunks in ((), ((1, 0),), ((300, 0),), ((512, 2_048),), ((2_048, 9_000),), ((8_000, 9),), ((100, 5), (40, 3)))
    if decodes or chunks
]  # fmt: skip
ODD = (None, float("nan"), float("inf"), -1, 10**400, 1e300, "x", [], [1], {}, 3)


@cache
def card(name):
    return files.read("llama_step", name)


@cache
def whole(name):
    return asked(Recorded(name, card(name)), STEPS)


def asked(model, steps):
    """Seconds of each step, NaN where some of it was not recorded."""
    found = []
    for step in steps:
        seconds, each = model(step), step.decode_context // max(step.decodes, 1)
        sequence = max([each, *(tokens + cached for tokens, cached in step.prefill_chunks)])
        beyond = model.beyond(
            decodes=step.decodes, context=step.decode_context, sequence=sequence, prompt=step.prefill_tokens
        )
        assert seconds > 0
        found.append(np.nan if beyond else seconds)
    return np.array(found)


def with_rows(name, rows):
    points = card(name)["points"]
    return card(name) | {"points": {key: [points[key][i] for i in rows] for key in COLUMNS}}


def recorded_steps(recording):
    """Steps and seconds of its points."""
    columns = (recording["points"][key] for key in (*COUNTS, "seconds"))
    rows = list(zip(*columns, strict=True))
    steps = [Step(n, context, ((chunk, cached),) if chunk else ()) for n, context, chunk, cached, _ in rows]
    return steps, np.array([seconds for *_, seconds in rows])


@pytest.mark.parametrize("name", CARDS)
def test_a_recording_that_was_cut_off_anywhere_says_nearly_what_the_whole_one_does(name):
    length, usable = len(card(name)["points"]["seconds"]), 0
    levels: dict[int, set[int]] = {}
    needed = 0  # points until two sizes of chunks have their second one
    for n, _, chunk, cached in zip(*(card(name)["points"][key] for key in COUNTS), strict=True):
        needed += sum(len(each) > 1 for each in levels.values()) < 2
        levels.setdefault(chunk, set()).update([cached] if chunk and not n else [])
    for most in range(1, length):
        part = with_rows(name, range(most))
        try:
            model = Recorded(name, part)
        except ValueError as error:
            # Nothing is to be read off it before that.
            assert most < needed and f"{name} is not a recording of steps: " in str(error)
            continue
        usable += 1
        off = np.abs(asked(model, STEPS) / whole(name) - 1)
        # A fifth: what a size of chunk between two others may be off where its own points are missing.
        assert (off[~np.isnan(off)] < 0.2).all()
        steps, seconds = recorded_steps(part)
        far = np.abs([model(step) for step in steps] / seconds - 1)
        # As far off as a whole recording is from its own points: 8.4% at most.
        assert (far > 0.1).sum() <= model.left_out
    assert usable >= length - needed


@given(st.sampled_from(CARDS), st.data())
@examples(200)
def test_a_recording_without_some_of_its_points_answers_or_says_why(name, data):
    length = len(card(name)["points"]["seconds"])
    rows = sorted(data.draw(st.sets(st.integers(0, length - 1), min_size=1)))
    try:
        model = Recorded(name, with_rows(name, rows))
    except ValueError as error:
        assert f"{name} is not a recording of steps: " in str(error)
        return
    found = asked(model, STEPS)
    assert (found[~np.isnan(found)] > 0).all() and np.isfinite(list(model.misfit.values())).all()


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_part_of_another_kind_is_named(value):
    name = CARDS[0]
    for part in ("points", "provenance"):
        with pytest.raises(ValueError, match=rf"bad is not a recording of steps: it has no .*{part}\."):
            Recorded("bad", card(name) | {part: value})
    for key in COLUMNS:
        column = [*card(name)["points"][key][:-1], value]
        for changed in (value, column):
            if changed is column and value == 3:
                continue
            with pytest.raises(ValueError, match="bad is not a recording of steps: "):
                Recorded("bad", card(name) | {"points": card(name)["points"] | {key: changed}})


@pytest.mark.parametrize("key", ["model", "card", "date"])
def test_what_is_said_in_words_is_text(key):
    found = card(CARDS[0])
    wrong = found | ({key: None} if key == "model" else {"provenance": found["provenance"] | {key: None}})
    with pytest.raises(ValueError, match=f"its {key} must be text, not None"):
        Recorded("bad", wrong)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "9" * 5_000, "{} {}", "\ufeff{}"], ids=range(5))
def test_a_file_that_is_no_json(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.json cannot be read as a recording: "):
        recorded(tmp_path / "bad.json")


def test_what_is_no_path():
    for name in ("a\0.json", "a" * 5_000 + ".json"):
        with pytest.raises(ValueError, match=r"\.json cannot be read as a recording: "):
            recorded(name)


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((64,), "all its chunks have 64 tokens, and a line needs two sizes"),
        ((256, 512, 1_024), "its smallest chunk has 256 tokens, and shorter prompts need one of at most 128"),
    ],
)
def test_chunks_that_say_nothing_of_others(sizes, sentence):
    """Else a prompt of one token would take as long as the smallest chunk that is left."""
    name = CARDS[0]
    rows = [i for i, size in enumerate(card(name)["points"]["chunk"]) if size in (0, *sizes)]
    with pytest.raises(ValueError, match=sentence):
        Recorded(name, with_rows(name, rows))
