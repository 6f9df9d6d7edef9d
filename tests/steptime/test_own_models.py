"""A step must take time, and a model of one's own must say the same in both of its ways."""

import pytest

from course.engine.step import with_checks
from course.steptime import PowerLaw, StepTimeModel


def test_a_step_takes_time_whatever_it_holds():
    """Decodes and prompts each come alone as well: without t0 both need a time of their own."""
    PowerLaw(t0=0, c=1e-3, alpha=1, prefill=1e-5)
    PowerLaw(t0=1e-3, c=0, alpha=1)
    for free in ({"c": 1e-3}, {"c": 0, "prefill": 1e-5}):
        with pytest.raises(ValueError, match="a step must take time"):
            PowerLaw(t0=0, alpha=1, **free)


class Bent(StepTimeModel):
    """Agrees with its line where each decode attends to one token, and bends beyond `bend` tokens in all."""

    def __init__(self, bend):
        self.bend = bend

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        return 1.0 + 0.5 * min(decode_context, self.bend)

    def decode_line(self, decodes):
        return 1.0, 0.5


def test_a_line_that_bends_is_refused():
    assert with_checks(Bent(10**9)).decode_line(4) == (1.0, 0.5)
    for bend in (2, 100):
        with pytest.raises(ValueError, match="must agree to the last bit"):
            with_checks(Bent(bend)).decode_line(4)
