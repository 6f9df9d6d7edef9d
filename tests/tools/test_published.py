"""docs/published.md: each command gives the numbers that stand beside it, and the shape that was published."""

import re

import pytest

from tools import published

SHAPES = {
    "orca": lambda n: n["ratio"] > 2,
    "paged_attention": lambda n: (
        n["ratio"] > 2
        and n["ratio to reservations of the true length"] > 1.1
        and n["of blocks empty"] < 0.04 < n["of a reservation in use"] < 0.4
    ),
    "sarathi": lambda n: n["ratio"] > 1.5,
    "splitfuse": lambda n: (
        n["p95 gap at 9/s, prompts first over a budget of 1,024"] > 2
        and n["p95 gap at 5/s, prompts first over a budget of 1,024"] < 1
    ),
    "radix_attention": lambda n: 0.5 < n["hit rate"] < 1 and n["ratio of throughputs"] > 3,
    "hits_on_a_slow_host": lambda n: (
        n["hit rate"] > 0.94
        and 1 < n["ratio of throughputs, 35 ms of host a step"] < 1.1 < n["ratio of throughputs, card alone"]
    ),
    "vtc": lambda n: n["VTC"] <= n["bound"] < n["first come, first served"],
    "speculation": lambda n: list(n.values()) == sorted(n.values(), reverse=True) and n["1 users"] > 1 > n["256 users"],
    "distserve": lambda n: n["ratio"] > 1.2 and n["apart at 15 ms"] < n["chunks of 512 at 15 ms"],
    "shortest_first": lambda n: n["exact guesses"] > n["guesses with an error of 1"] > 1.3,
    "mixing": lambda n: n["one step for both"] > n["prompts apart"] > n["whole batches"],
}


def row_of(root, name):
    """The row of docs/published.md whose command has this name."""
    text = (root / "docs" / "published.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("|") and f"`tools.published {name}`" in line]
    return row


@pytest.mark.parametrize("name", published.CLAIMS)
def test_the_command_gives_the_numbers_of_the_page_and_the_published_shape(root, name):
    numbers = published.CLAIMS[name]()
    assert SHAPES[name](numbers), numbers
    ours = row_of(root, name).split(" | ")[3]
    shown = {float(text.replace(",", "")) for text in re.findall(r"\d[\d,]*\.?\d*", ours)}
    missing = {what: value for what, value in numbers.items() if float(f"{value:.3g}") not in shown}
    assert not missing, f"docs/published.md, {name}: {missing}"


def test_a_claim_that_is_not_there_is_a_sentence(capsys):
    with pytest.raises(SystemExit, match="there is no claim splitwise: there are orca, paged_attention"):
        published.main(["splitwise"])


def test_a_bisection_says_where_nothing_is():
    assert published.highest(lambda rate: rate <= 3, 1, 10, within=0.001) == pytest.approx(3, rel=1e-3)
    with pytest.raises(ValueError, match="is not between 5 and 10"):
        published.highest(lambda rate: rate <= 3, 5, 10)
