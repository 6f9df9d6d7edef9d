"""A decision as typed: spellings of a flag and of a number, and what is no decision."""

import pytest

from course.exercises.decision import flag_typed, one_flag, value_typed


@pytest.mark.parametrize("typed", ["--max-num-seqs", "max_num_seqs", " --Max-Num-Seqs ", "-max-num-seqs"])
def test_spellings_of_a_flag(typed):
    assert flag_typed(typed) == "--max-num-seqs"


@pytest.mark.parametrize(
    ("typed", "value"), [("2,048", 2048), ("2_048", 2048), (" 14 ", 14), (14, 14), (0.9, 0.9), ("many", "many")]
)
def test_spellings_of_a_number(typed, value):
    assert value_typed(typed) == value


@pytest.mark.parametrize(
    ("typed", "point"),
    [("0,5", "0.5"), (" 12,50 ", "12.50"), ("-1,5", "-1.5"), ("0,9000", "0.9000"), ("0,500", "0.500")],
)
def test_a_decimal_comma_is_told_and_never_dropped(typed, point):
    with pytest.raises(ValueError, match=f"has a decimal comma: write {point}$"):
        value_typed(typed)


def test_a_list_of_numbers_is_no_number():
    assert value_typed("1,2,4,8") == "1,2,4,8"


def test_the_value_counts_where_the_flag_is_right():
    choice = one_flag("--max-num-seqs")
    assert choice({"max_num_seqs": "14", "--other": None}) == {"flag": "--max-num-seqs", "value": 14}
    assert choice({"--other": 5}) == choice({"--other": 7}) == {"flag": "--other", "value": 0}
    assert choice({"--other": False}) == {"flag": "--no-other", "value": 0}, "turned off, it is another flag"


def test_a_value_that_is_not_offered_is_not_called_wrong():
    choice = one_flag("--max-num-seqs", (32, 1_024))
    assert choice({"max_num_seqs": "1,024"}) == {"flag": "--max-num-seqs", "value": 1_024}
    assert choice({"--other": 80}) == {"flag": "--other", "value": 0}
    for typed, said in ((80, "80"), ("many", "'many'")):
        with pytest.raises(ValueError, match=f"^{said} is none of the values to choose from: 32, 1,024$"):
            choice({"--max-num-seqs": typed})


def test_what_is_no_decision():
    choice = one_flag("--max-num-seqs")
    with pytest.raises(NotImplementedError):
        choice({"--max-num-seqs": None})
    with pytest.raises(ValueError, match="choose one flag"):
        choice({"--max-num-seqs": 1, "--other": 2})
    with pytest.raises(ValueError, match="give a dictionary"):
        choice(14)
