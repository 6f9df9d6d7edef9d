"""A recording of prompt chunks as a step time, by hand: straight lines through a few made-up points."""

import numpy as np
import pytest

from course.steptime import Step
from course.steptime.profiles.chunks import ChunkProfile

CONTEXT = 1e-6  # seconds a token of the decodes' context


@pytest.fixture
def profile():
    """4 decodes over 100 tokens; chunks of 64 and 128 along a prompt of 256, and decodes alone."""
    points = [(0, 0, 0.010)]
    points += [(64, cached, 0.020 + 1e-5 * cached) for cached in (0, 64, 128, 192)]
    points += [(128, cached, 0.040 + 3e-5 * cached) for cached in (0, 128)]
    chunk, cached, seconds = (np.array(column) for column in zip(*points, strict=True))
    names = np.full(len(points), "one kernel")
    return ChunkProfile("made-up", "a model", 4, 100, chunk, cached, seconds, seconds, seconds, names, seconds, {})


@pytest.mark.parametrize(
    ("step", "seconds"),
    [
        (Step(4, 100, ((64, 64),)), 0.02064),  # a recorded point
        (Step(4, 100, ((64, 96),)), 0.02096),  # between two amounts of cached tokens
        (Step(4, 100, ((128, 128),)), 0.04384),  # the largest chunk
        (Step(4, 100, ((96, 0),)), 0.030),  # halfway between two chunks
        (Step(4, 100, ((112, 0),)), 0.035),  # three quarters of the way
        (Step(4, 150, ((64, 64),)), 0.02064 + 50 * CONTEXT),  # another context
        (Step(10, 100, ((58, 0),)), 0.020),  # six decodes more count as six tokens
        (Step(4, 100, ((32, 0), (32, 32))), 0.020),  # two chunks with the pairs of one
        (Step(4, 100, ()), 0.010),
        (Step(60, 100, ()), 0.010),
    ],
)
def test_a_step_is_read_off_the_recording(profile, step, seconds):
    assert profile.step_time(CONTEXT)(step) == pytest.approx(seconds, rel=1e-9)


def test_decodes_alone_follow_their_line(profile):
    base, slope = profile.step_time(CONTEXT).decode_line(4)
    assert (base, slope) == (pytest.approx(0.010 - 100 * CONTEXT), CONTEXT)


def test_beyond_the_recording_nothing_is_read_off(profile):
    with pytest.raises(ValueError, match="up to 128 tokens, and a step asks for 129"):
        profile.step_time(CONTEXT)(Step(4, 100, ((129, 0),)))


def test_the_steps_of_a_prompt(profile):
    assert profile.steps(256, 64) == pytest.approx([0.020, 0.02064, 0.02128, 0.02192])
    assert profile.steps(256, 128) == pytest.approx([0.040, 0.04384])
    for prompt, chunk in ((192, 128), (320, 64), (384, 128)):
        with pytest.raises(ValueError, match="must be whole chunks within that"):
            profile.steps(prompt, chunk)
    with pytest.raises(ValueError, match="recorded were 64, 128"):
        profile.steps(256, 32)
