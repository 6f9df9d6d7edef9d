"""Steps that verify drafts, between the points of a recording."""

import pytest

from course.steptime import Step, Verification, files, recorded, verify

H200 = verify()
TABLE = files.read("llama_step", "h200_llama3_8b_verify")["verify"]


def test_at_the_recorded_points_it_gives_what_was_recorded():
    for sequences, drafts, context, seconds in zip(
        *(TABLE[key] for key in ("sequences", "drafts", "context", "seconds")), strict=True
    ):
        found = H200.seconds(sequences, drafts, context // sequences)
        assert found == pytest.approx(seconds, rel=1e-6)  # two contexts a line, which meets both


def test_no_drafts_are_a_step_of_decodes():
    step = recorded("h200-llama3-8b-verify")
    for sequences in (1, 8, 64, 256):
        expected = step(Step(sequences, 1_024 * sequences, ()))
        assert H200.seconds(sequences, 0, 1_024) == pytest.approx(expected, rel=1e-12)


def test_more_drafts_sequences_and_context_take_longer():
    for sequences in (1, 3, 64, 100, 256):
        times = [H200.seconds(sequences, k, 1_024) for k in range(8)]
        assert times == sorted(times)
        assert H200.seconds(sequences, 4, 8_192) > H200.seconds(sequences, 4, 1_024)
    for k in (1, 3, 7):
        times = [H200.seconds(many, k, 1_024) for many in range(1, 257, 5)]
        assert times == sorted(times)


def test_keys_and_values_that_are_read_once_make_drafts_cheap():
    """Of a few sequences drafts cost next to nothing, and of 64 less than half of what a sequence more would."""
    step = recorded("h200-llama3-8b-verify")
    for sequences, drafts in ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1)):  # the goal of 1.04
        plain = step(Step(sequences, 1_024 * sequences, ()))
        assert H200.seconds(sequences, drafts, 1_024) < 1.04 * plain
    # 64 with a draft, 1.10. And never less than a step of decodes.
    plain, double = (step(Step(many, many * 1_024, ())) for many in (64, 128))
    assert plain < H200.seconds(64, 1, 1_024) < min(1.10 * plain, (plain + double) / 2)


def test_beyond_the_recording_it_is_refused():
    for ask, message in [
        ((257, 1, 1_024), "sequences must be a whole number from 1 to 256"),
        ((1, 8, 1_024), "drafts must be a whole number from 0 to 7"),
        ((1, 7, 7), "context must be a whole number from 8"),
    ]:
        with pytest.raises(ValueError, match=message):
            H200.seconds(*ask)
    for name in ("h100-llama3-8b", "h200-llama3-8b-flash"):
        with pytest.raises(ValueError, match=f"{name} has no steps that verify drafts"):
            verify(name)
    with pytest.raises(ValueError, match="no recording of llama_step is called 'mine'"):
        verify("mine")


ONE_LESS = [i for i, pair in enumerate(zip(TABLE["sequences"], TABLE["drafts"], strict=True)) if pair != (4, 7)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": ["soon"] * 68}, "has no list of numbers seconds"),
        ({"drafts": [1.5] * 68}, "drafts of what it verified must be numbers from 1"),
        ({"context": [1]}, "one value per point"),
        ({key: [] for key in TABLE}, "at least one point"),
        ({key: [values[i] for i in ONE_LESS] for key, values in TABLE.items()}, "7 drafts, but not of 4 sequences"),
    ],
)
def test_damaged_tables_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Verification(recorded("h200-llama3-8b-verify"), TABLE | change)
