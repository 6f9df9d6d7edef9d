"""The table of assumed prices, and what a million tokens cost."""

import pytest

from course.lessons.lab02 import one_curve
from course.models import prices
from course.models.gpus import gpu


def test_each_row_is_of_a_known_card_with_a_month_and_a_source():
    for name, row in prices.prices().items():
        assert gpu(name).name == name == row.card
        assert 0.1 < row.dollars_an_hour < 20  # outside of that it would be in cents, or a day's price
        year, month = row.as_of.split("-")
        assert int(year) >= 2026 and 1 <= int(month) <= 12
        assert row.source == "assumed"  # nobody's offer is quoted


def test_a_card_is_found_however_it_is_written():
    assert prices.per_hour("NVIDIA H200") == prices.price("h200").dollars_an_hour == 3.5
    assert prices.price("H200").badge == "3.5 dollars an hour, assumed 2026-11"
    with pytest.raises(ValueError, match=r"no price for T4: the table has .*H200.*your own"):
        prices.per_hour("T4")
    with pytest.raises(ValueError, match="abacus"):
        prices.per_hour("abacus")


def test_a_million_tokens_by_hand():
    # 3.6 dollars an hour are 0.001 a second; 100 tokens/s are a million in 10,000 s.
    assert prices.per_million(100, 3.6) == pytest.approx(10.0, rel=1e-12)
    assert prices.per_million(100, 3.6, cards=4) == pytest.approx(40.0, rel=1e-12)
    # Lab 02 has its own function of batch and step.
    assert prices.per_million(128 / 12.1e-3, 3.0) == pytest.approx(one_curve.dollars(128, 12.1e-3, 3.0), rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"), [((0, 3.5), "tokens_per_second"), ((10, -1), "dollars_an_hour"), ((10, 3.5, 0), "cards")]
)
def test_impossible_numbers_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        prices.per_million(*settings)
