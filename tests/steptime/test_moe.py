"""Experts: how many of them a step reads."""

import numpy as np
import pytest

from course.models import model
from course.steptime import Moe, Roofline, Step

QWEN = Moe("qwen3-30b-a3b")


@pytest.mark.parametrize("tokens", [1, 2, 16, 64])
def test_touched_is_what_a_fair_router_touches(tokens):
    """Against draws: each token is sent to 8 different experts of 128, 2,000 times."""
    rng = np.random.default_rng(tokens)
    counts = np.empty(2_000)
    for i in range(len(counts)):
        chosen = rng.random((tokens, 128)).argpartition(8, axis=1)[:, :8]
        counts[i] = len(np.unique(chosen))
    error = counts.std() / np.sqrt(len(counts))
    assert abs(QWEN.touched(tokens) - counts.mean()) <= 5 * error + 1e-9  # of five deviations of the mean


def test_numbers_of_qwen3_30b_a3b():
    assert model("qwen3-30b-a3b").parameters == pytest.approx(30.5e9, rel=2e-3)  # as its model card says
    assert [round(QWEN.touched(n)) for n in (1, 16, 64)] == [8, 82, 126]
    growth = [QWEN.bytes_read(n) / QWEN.bytes_read(1) for n in (16, 64, 1_000)]
    assert growth == pytest.approx([6.54, 9.78, 9.94], abs=5e-3)
    # Sixteen for the price of one? Not here; of a dense model nearly.
    dense = Roofline("llama-3.1-8b", "H200")
    ratios = [one(Step(16, 16_384, ())) / one(Step(1, 1_024, ())) for one in (QWEN, dense)]
    assert ratios == pytest.approx([5.41, 1.12], abs=5e-3)


def test_it_is_the_roofline_of_that_model_and_says_so():
    step = Step(16, 4_000, ((100, 0), (50, 200)))
    assert QWEN(step) == Roofline("qwen3-30b-a3b", "H200")(step)
    assert Moe(model("gpt-oss-120b"), "H100").touched(1) == 4
    assert QWEN.badge.startswith("modelled")
    assert repr(QWEN) == "Moe('qwen3-30b-a3b', 'H200')"


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match=r"llama-3\.1-8b has no experts"):
        Moe("llama-3.1-8b")
    with pytest.raises(ValueError, match="no model is called 'qwen9'"):
        Moe("qwen9")
    for bad in (0, 1.5, "many"):
        with pytest.raises(ValueError, match="tokens must be a whole number"):
            QWEN.touched(bad)
        with pytest.raises(ValueError, match="tokens must be a whole number"):
            QWEN.bytes_read(bad)
