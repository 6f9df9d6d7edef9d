"""Lab 14, deeper: phases apart and stages, against runs put together by hand, formulas and what was measured."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from course import Workload
from course.engine.disaggregated import Disaggregated
from course.engine.serving import Engine, serve
from course.lessons import lab14
from course.lessons.lab14 import apart, cards, figures, layers, sums
from course.models import model
from course.policies import Continuous, Window
from course.steptime import Sharded
from course.steptime.links import Link, two_cards
from tests.helpers.figures import valid

# Prompts and answers apart


def test_mixed_cards_serve_a_quarter_each():
    """A Fleet deals in turn: every fourth request, served alone, has the same times."""
    work = apart.load(apart.DOCUMENTS, 16)
    rows = np.arange(1, len(work), 4)
    part = Workload(work.arrival[rows], work.prompt_tokens[rows], work.output_tokens[rows])
    alone = serve(part, Continuous(1_024, 2_048, long_prefill_token_threshold=512), apart.step_time("H100"))
    assert np.array_equal(apart.served("H100", apart.MIXED, 16).e2e[rows], alone.e2e)


def test_the_prefill_side_says_first_tokens_as_if_alone_and_the_link_delays_the_second():
    work = apart.load(apart.DOCUMENTS, 8)
    rows = np.arange(0, len(work), 2)
    part = Workload(work.arrival[rows], work.prompt_tokens[rows], np.ones(len(rows), dtype=np.int64))
    alone = serve(part, Continuous(1_024, 8_192), apart.step_time("H100"))
    slow, fast = apart.served("H100", "2P2D", 8, 1), apart.served("H100", "2P2D", 8, 300)
    assert np.array_equal(slow.ttft[rows], alone.ttft) and np.array_equal(slow.ttft, fast.ttft)
    gaps = np.array([np.diff(slow.token_times(row)[:2])[0] for row in rows.tolist() if work.output_tokens[row] > 1])
    sent = 131_072 * work.prompt_tokens[rows][work.output_tokens[rows] > 1] / 1e9
    # A step of the decode side, and at most one that is under way, come on top of the transfer.
    assert (gaps > sent).all() and np.median(gaps - sent) < 0.02
    assert np.nanpercentile(slow.tpot, 95) > 2 * np.nanpercentile(fast.tpot, 95)


def test_kv_of_a_mean_prompt_by_hand():
    assert apart.KV_BYTES == 2 * 32 * 8 * 128 * 2 == model("llama-3.1-8b").kv_bytes_per_token
    assert apart.transfer(1) == pytest.approx(0.393216) and apart.transfer(50) == pytest.approx(0.393216 / 50)
    assert apart.links()[1][1:] == ("393 ms", "79 ms", "31 ms", "8 ms", "1 ms")


def test_every_card_is_used_once():
    for layout, prompts in list(apart.LAYOUTS.items())[1:]:
        run = apart.served("H200", layout, 24)
        assert len(run.parts) == apart.CARDS_THERE
        assert sum(part.workload.output_tokens.max() == 1 for part, _ in run.parts) == prompts


def test_rates_of_a_side_against_a_busy_engine():
    """Prompts back to back, and a full batch of answers that all begin at once."""
    step_time = apart.step_time("H200")
    prompts = Workload([0.0] * 200, [3_000] * 200, [1] * 200)
    run = serve(prompts, Continuous(1, 3_000), step_time)
    assert apart.prompts_a_second(apart.DOCUMENTS) == pytest.approx(200 / run.makespan, rel=1e-9)
    batch = round(apart.answers_a_second(apart.DOCUMENTS) * 0.008 * 150)
    line = step_time.decode_line
    assert (lambda base, slope: base + slope * batch * 3_075)(*line(batch)) <= 0.008
    assert (lambda base, slope: base + slope * (batch + 1) * 3_075)(*line(batch + 1)) > 0.008


@pytest.mark.parametrize(
    ("prompts", "answers", "cards_there"), list(itertools.product((1.0, 14, 120), (1.0, 30, 94), (2, 4, 7)))
)
def test_the_ratio_is_the_best_of_all(prompts, answers, cards_there):
    def keeps_up(count):
        return min(count * prompts, (cards_there - count) * answers)

    found = apart.split(prompts, answers, cards_there)
    every = [keeps_up(count) for count in range(1, cards_there)]
    assert keeps_up(found) == max(every) and found == 1 + every.index(max(every))


def test_a_ratio_at_work():
    table = lab14.split_at_work(apart.split)
    assert [row[3] for row in apart.split_at_work(apart.split)[1:]] == ["3P", "2P", "1P"]
    assert "documents" in repr(table)
    assert "returns nothing yet" in repr(lab14.split_at_work(lambda prompts, answers, cards_there: None))
    assert "does not run yet" in repr(lab14.split_at_work(lambda prompts, answers, cards_there: 1 / 0))


# Stages and layers


def test_a_step_of_stages_is_that_of_half_the_requests_and_two_sends():
    for batch in (16, 256):
        half = cards.RECORDING.seconds(batch // 2, cards.CONTEXT * batch // 2, 0, 0, 0)
        sends = 2 * Sharded(cards.RECORDING, 1, 2).link.send(batch // 2 * 4_096 * 2)
        assert layers.step("PP2", batch) == pytest.approx(half + sends, rel=1e-9)
    assert layers.step("TP4", 16) == cards.spread(4, 16).step


def test_a_bubble_by_hand():
    """Four stages, four micro-batches: a stage works for 4 of 7 turns. Cut in two, a turn is half as long: 8 of 11."""
    assert layers.bubble(4, 4) == pytest.approx(3 / 7)
    assert layers.bubble(4, 4, 2) == pytest.approx(3 / 11)
    assert layers.bubble(1, 4) == 0


def test_speed_ups_are_the_recorded_ones():
    times = {(row["model"], row["tp"], row["tokens"], row["all_reduce"]): row["us_a_layer"][0]
             for row in two_cards()["steps"] if row["graphs"]}  # fmt: skip
    for name, tokens in itertools.product(layers.NAMES, layers.TOKENS):
        on_two = min(us for key, us in times.items() if key[:3] == (name, 2, tokens) and key[3] != "none")
        assert layers.speed_up(name, tokens) == times[name, 1, tokens, "none"] / on_two
        assert layers.sums_share(name, tokens) == pytest.approx((on_two - times[name, 2, tokens, "none"]) / on_two)


def test_a_million_tokens_by_hand():
    """2 + 38 / 4 + 160 x 0.02 = 14.7 ms for 48 tokens, at 12 dollars an hour."""
    assert sums.cost(**sums.SHARED) == pytest.approx(12 / 3_600 * 0.0147 / 48 * 1e6)
    alone = sums.cost(8.0, 1.0, 1, 32, 0.01, 16, 3.5)
    assert alone == pytest.approx(3.5 / 3_600 * 0.008 / 16 * 1e6)  # nothing to add up
    assert sums.step(8.0, 1.0, 2, 32, 0.01) == pytest.approx(1 + 7 / 2 + 0.64)
    assert sums.cost_seconds(**sums.SHARED) == pytest.approx(12 * 0.0147 / 48 * 1e6)  # as if 12 dollars were a second's


# What cannot be


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (lambda: Window(8, -0.001), "window must be a finite number .*, not -0.001"),
        (lambda: Sharded(cards.RECORDING, 3), "tp 3 does not divide the 32 heads"),
        (lambda: Link(1e-5, 0), "bandwidth of a link, in bytes/s, must be .*, not 0"),
        (
            lambda: Disaggregated(
                [Engine(Continuous(4, 64), cards.RECORDING)], [Engine(Continuous(4, 64), cards.RECORDING)],
                transfer=0, token_bytes=1,
            ),
            "transfer is 0 bytes/s, over which K and V never arrive",
        ),
    ],
)  # fmt: skip
def test_a_sentence_for_what_cannot_be(asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        asked()


# On the screen


def test_the_explorer_draws_at_every_corner():
    for rate, promise, link in itertools.product((8, 32), (6.0, 20.0), (1.0, 300.0)):
        found = apart.apart(rate=rate, tpot_ms=promise, link_gb=link)
        valid(figures.prefill_and_decode(found))
        assert len(apart.rows(found)) == 4 and found.best() in apart.LAYOUTS
    for table in (apart.five_draws(), apart.links(), layers.speed_ups(), layers.stages(), layers.power()):
        assert len({len(row) for row in table}) == 1


def test_what_is_no_measurement_does_not_say_so():
    """One card and two were measured; more are extrapolated, and runs are simulated."""
    assert "extrapolated" in repr(lab14.stages()) and "measured" not in repr(lab14.stages())
    assert "extrapolated" in repr(lab14.step_on_cards()) and "extrapolated" in repr(lab14.four_cards())
    for shown in (lab14.five_draws(), lab14.links()):
        assert "simulated" in repr(shown)
    assert {row["tp"] for row in two_cards()["steps"]} == {1, 2}
