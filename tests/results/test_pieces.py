"""Tokens or pieces: E2E of a summary that lacks it, and why mean TPOT, mean ITL and E2E - TTFT differ."""

import math
from functools import partial

import pytest

from course.results import pieces
from tests.helpers.result_files import changed, said, written


@pytest.fixture
def result(tmp_path):
    """Writes a document, or documents as lines, and reads it."""
    return partial(written, tmp_path)


def summary(tpot, itl, e2e=None, ttft=0.3, tokens=51, n=20, duration=30.0, **more):
    """A vLLM summary of n answers of so many tokens; seconds."""
    doc = changed("vllm_bench_summary.json", request_rate="inf", num_prompts=n, completed=n, failed=0,
                  duration=duration, request_throughput=n / duration, total_output_tokens=tokens * n,
                  output_throughput=tokens * n / duration, total_input_tokens=n,
                  total_token_throughput=(tokens + 1) * n / duration, mean_ttft_ms=1000 * ttft,
                  mean_tpot_ms=1000 * tpot, median_tpot_ms=1000 * tpot, mean_itl_ms=1000 * itl, **more)  # fmt: skip
    doc = {key: value for key, value in doc.items() if "e2el" not in key}
    return doc | ({"mean_e2el_ms": 1000 * e2e} if e2e else {})


def test_drafted_tokens_make_a_gap_a_step(result):
    """Three tokens a step: ITL 36 ms is three times TPOT 12 ms; E2E is 0.3 + 50 x 12 ms."""
    found = result(summary(0.012, 0.036, spec_decode_acceptance_length=3.0, max_concurrency=4, duration=4.5))
    assert found.ours["e2e"]["mean"] == pytest.approx(0.9)
    assert found.totals["in_flight"] == pytest.approx(20 / 4.5 * 0.9)
    assert said(found, "With drafted tokens ITL is a step of several tokens")
    assert said(found, "ITL is between steps that bring 3 tokens on average (drafted tokens: the file says 3 a step)")
    assert not said(found, "cannot be") and not said(found, "requests with few tokens")


def test_the_limit_in_flight_refutes_an_estimate(result):
    """Without a word of drafts: with ITL there would be 3.2 in flight of 1 allowed, so pieces held several tokens."""
    found = result(summary(0.012, 0.036, max_concurrency=1, duration=18.5))
    assert found.ours["e2e"]["mean"] == pytest.approx(0.9)
    assert said(found, "in flight of 1 allowed, so a piece of the stream held several tokens")
    assert said(found, "between pieces, which held several tokens each") and not said(found, "cannot be")


def test_where_nothing_decides_both_are_said(result):
    found = result(summary(0.012, 0.036, duration=200.0))
    assert said(found, "s with TPOT, if pieces held several")
    assert said(found, "or pieces held several tokens. E2E would tell, and is not in the file")


@pytest.mark.parametrize(
    ("tpot", "itl", "e2e", "why"),
    [
        (0.040, 0.012, 0.9, "requests with few tokens were slower than those with many. ITL x gaps is E2E - TTFT"),
        (0.010, 0.012, 0.9, "requests with few tokens were faster than those with many. ITL x gaps is E2E - TTFT"),
        (0.012, 0.048, 0.9, "between pieces, which held 4 tokens each"),
        (0.012, 0.006, 0.9, "between pieces, of which there were 2 for every token that was counted"),
        (0.040, 0.040, 0.9, "ITL agrees with TPOT, so what was counted as tokens and the pieces of the stream differ"),
    ],
)
def test_e2e_tells_which(result, tpot, itl, e2e, why):
    found = result(summary(tpot, itl, e2e))
    assert said(found, why) and len([note for note in found.notes if "TPOT" in note]) == 1


def test_a_few_short_answers_that_stalled(result):
    """No ITL in the file: the median goes with E2E and the mean does not."""
    doc = summary(0.080, 0.012, 0.9) | {"median_tpot_ms": 12.1, "mean_itl_ms": None, "median_itl_ms": None}
    found = result(doc)
    assert said(found, "Its median is 12.1 ms, so a few requests with few tokens make that mean")
    assert said(result(doc | {"median_tpot_ms": 80.0}), "ITL would tell")


def test_rows_know_their_pieces(result):
    """Equally long answers in pieces of two: no word of faster and slower requests."""
    n = 25
    doc = changed("vllm_bench_detailed.json", completed=n, start_times=..., input_lens=[7] * n, output_lens=[9] * n,
                  ttfts=[0.2] * n, itls=[[0.1] * 4] * n, errors=[""] * n, mean_tpot_ms=50.0,
                  mean_itl_ms=100.0)  # fmt: skip
    found = result(doc)
    assert said(found, "ITL is between the 100 pieces that the server sent, not between 200 tokens")
    assert not said(found, "slower than") and not said(found, "faster than")


def test_sglang_has_its_own_word_for_drafts(result):
    doc = changed("sglang_bench.jsonl", accept_length=2.6, mean_itl_ms=260.0, mean_tpot_ms=100.0, input_lens=...,
                  output_lens=..., ttfts=..., itls=..., errors=...)  # fmt: skip
    assert said(result(doc), "ITL is between steps that bring 2.6 tokens on average")


@pytest.mark.parametrize("drafted", [math.nan, 3.0])
@pytest.mark.parametrize(("itl", "tpot", "zero"), [(0.0, 0.02, "ITL"), (0.02, 0.0, "TPOT")])
def test_a_mean_of_zero_is_no_divisor(itl, tpot, zero, drafted):
    reported = {"ttft": {"mean": 0.1}, "itl": {"mean": itl}, "tpot": {"mean": tpot}, "e2e": {"mean": 2.1}}
    totals = {"requests": 10, "output_tokens": 1_010}
    (said,) = pieces.on_tokens(reported, totals, drafted, None)
    assert said.startswith(f"The mean {zero} is 0 and the mean ") and "20 ms" in said
