"""A model on several cards: against what two cards took, against arithmetic by hand, and what cannot be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve
from course.steptime import Link, Sharded, Step, links, recorded, recorded_link
from course.steptime.links import HOP, two_cards

H200 = recorded("h200-llama3-8b-flash")
STEPS = [row for row in two_cards()["steps"] if row["model"] == "llama-3.1-8b" and row["graphs"]]
DECODES = (1, 8, 16, 32, 64, 128, 256)
CONTEXT = 1_024


def layer(tp: int, tokens: int, kind: str) -> float:
    """Seconds of a layer as two cards took them."""
    (row,) = (row for row in STEPS if (row["tp"], row["tokens"], row["all_reduce"]) == (tp, tokens, kind))
    return 1e-6 * row["us_a_layer"][0]


def test_one_card_and_one_stage_are_the_recording_to_the_bit():
    same = Sharded(H200)
    for step in (Step(7, 9_000, ()), Step(0, 0, ((700, 100),)), Step(60, 50_000, ((1_000, 9_000),))):
        assert same(step) == H200(step)
    load = Workload.poisson(40, 200, 700, 60, seed=3)
    alone, one = (serve(load, policies.Continuous(64, 2_048), time) for time in (H200, same))
    assert np.array_equal(alone.e2e, one.e2e)
    assert same.badge.endswith("tp 1, pp 1")


@pytest.mark.parametrize("kind", ["nccl", "one_shot"])
@pytest.mark.parametrize("tokens", DECODES)
def test_two_cards_are_as_much_faster_as_they_were(tokens, kind):
    """Within 11%: the layers there are PyTorch's, a step here is up to a quarter shorter, and sums weigh more in it."""
    here = H200.seconds(tokens, CONTEXT * tokens, 0, 0, 0)
    ours = here / Sharded(H200, 2, link=recorded_link(kind)).seconds(tokens, CONTEXT * tokens, 0, 0, 0)
    assert ours == pytest.approx(layer(1, tokens, "none") / layer(2, tokens, kind), rel=0.11)


@pytest.mark.parametrize("tokens", DECODES)
@pytest.mark.parametrize("kind", ["nccl", "one_shot"])
def test_two_all_reduces_are_what_they_add_to_a_layer(tokens, kind):
    """Within 9 us of two alone: in a layer they wait for the slower of two cards, and their launch is hidden."""
    more = layer(2, tokens, kind) - layer(2, tokens, "none")
    assert more == pytest.approx(2 * recorded_link(kind).all_reduce(tokens * 8_192, 2), abs=9e-6)


def test_a_step_by_hand():
    link = Link(10e-6, 250e9)
    base, slope = H200.decode_line(64)
    # The median of seven batches is the fourth: here that with 32.
    shares = {n: 2 * layer(2, n, "none") / layer(1, n, "none") - 1 for n in DECODES}
    stays = sorted(share * H200.seconds(n, CONTEXT * n, 0, 0, 0) for n, share in shares.items())[3]
    for tp in (2, 4, 8):
        hops, more = {2: (0, 0.0), 4: (1, 0.5), 8: (2, 0.75)}[tp]
        size = 64 * 4_096 * 2
        each = 10e-6 + hops * HOP + (1 + more) * size / 250e9
        hand = stays + (base - stays) / tp + 2 * 32 * each + 64_000 * slope / tp
        assert Sharded(H200, tp, link=link)(Step(64, 64_000, ())) == pytest.approx(hand, rel=1e-12)
    # Ranks beyond the 8 KV heads copy them.
    sixteen = Sharded(H200, 16, link=link).decode_line(64)[1]
    assert sixteen == Sharded(H200, 8, link=link).decode_line(64)[1] == pytest.approx(slope / 8, rel=1e-12)


def test_more_work_never_takes_less_time():
    for tp in (2, 4, 8):
        model = Sharded(H200, tp)
        for context in (1, 256, 1_024, 4_096):
            found = [model.seconds(n, context * n, 0, 0, 0) for n in range(1, 600, 7)]
            assert np.all(np.diff(found) >= -1e-12)
        for decodes in (0, 32):
            chunks = [model(Step(decodes, 1_024 * decodes, ((chunk, 0),))) for chunk in range(1, 4_096, 61)]
            assert np.all(np.diff(chunks) >= -1e-12)


def test_more_cards_are_faster_and_never_as_much_as_their_number():
    for step in (Step(1, 1_000, ()), Step(256, 256_000, ()), Step(0, 0, ((2_048, 0),)), Step(32, 9_000, ((512, 64),))):
        times = [Sharded(H200, tp)(step) for tp in (1, 2, 4, 8)]
        assert times == sorted(times, reverse=True)
        for (slow, fast), cards in zip(pairwise(times), (2, 4, 8), strict=True):
            assert slow < 2 * fast and cards * fast > times[0]


def test_a_pipeline_takes_a_batch_in_micro_batches():
    link = Link(10e-6, 250e9)
    piped = Sharded(H200, 1, 2, link=link)
    half = H200.seconds(32, 32_000, 0, 0, 0)
    assert piped(Step(64, 64_000, ())) == pytest.approx(half + 2 * link.send(32 * 8_192), rel=1e-12)
    # One decode alone goes through both stages: as long as on one card, and a send behind each stage.
    assert piped(Step(1, 1_000, ())) == pytest.approx(H200(Step(1, 500, ())) + 2 * link.send(8_192), rel=1e-12)


def test_the_line_of_decodes_is_the_step_time_to_the_last_bit():
    for tp, pp in ((2, 1), (4, 2), (1, 3)):
        model = Sharded(H200, tp, pp)
        for decodes, context in ((1, 5), (100, 123_456), (256, 200_000)):
            base, slope = model.decode_line(decodes)
            assert base + slope * context == model(Step(decodes, context, ()))
    load = Workload.poisson(20, 100, 700, 60, seed=3)
    fast, plain = (
        serve(load, policies.Continuous(32, 2_048), one, KVCache(2_000))
        for one in (Sharded(H200, 2), lambda step: Sharded(H200, 2)(step))
    )
    assert np.array_equal(fast.e2e, plain.e2e)


def test_a_recorded_link_is_its_points_and_goes_on():
    for kind in links.kinds():
        link = recorded_link(kind)
        times = {row["bytes"]: 1e-6 * row["in_graph_us"][0] for row in two_cards()["all_reduce"] if row["kind"] == kind}
        for size, seconds in times.items():
            # Where a larger size was faster, by the scatter of the recording, the larger of both stands.
            assert seconds <= link.of_two(size) <= 1.2 * seconds
            assert recorded_link().of_two(size) <= link.of_two(size)
        most = max(times)
        assert link.of_two(2 * most) == pytest.approx(link.of_two(most) + most / link.bandwidth, rel=1e-12)
        assert link.all_reduce(most, 1) == 0.0


def test_the_sums_that_were_timed_were_right():
    for row in two_cards()["all_reduce"]:
        assert row.get("wrong", 0.5) <= 0.5  # half a step of bf16: rounded once
    for row in two_cards()["steps"]:
        # Halves are rounded to bf16 before they add up, by 0.4% at most, and 32 layers of random weights make more of
        # it: as much with each kind of all-reduce. In float32 they agree to 1e-6.
        assert row.get("differs", 0.0) < 0.06


def test_what_is_modelled_or_extrapolated_says_so():
    assert Sharded(H200, 2).source == "modelled"
    assert "all-reduces recorded: 2 NVIDIA H200" in Sharded(H200, 2).badge
    assert "extrapolated" not in Sharded(H200, 2).badge and "extrapolated to 4" in Sharded(H200, 4).badge
    assert "all-reduces modelled, 10 us and 250 GB/s" in Sharded(H200, 2, link=Link(1e-5, 250e9)).badge
    assert Sharded(H200, 2).beyond(decodes=2_000) == H200.beyond(decodes=2_000) != ""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sharded(H200, 3), "tp 3 does not divide the 32 heads .* choose 1, 2, 4, 8, 16 or 32"),
        (lambda: Sharded(H200, 64), "tp 64 does not divide"),
        (lambda: Sharded(H200, 0), "tp must be a whole number from 1"),
        (lambda: Sharded(H200, 1, 33), "pp 33 is more than the 32 layers"),
        (lambda: Sharded("h200-llama3-8b"), "a recording with the sizes of its model"),
        (lambda: Sharded(H200, 2, link=12), "link must be a Link"),
        (lambda: Link(1e-5, 0), "bandwidth of a link, in bytes/s, must be .* not 0"),
        (lambda: Link(-1.0, 1e9), "latency of a link, in seconds, must be"),
        (lambda: Link(1e-5, 1e9).all_reduce(0, 2), "bytes of an all-reduce must be"),
        (lambda: recorded_link("carrier pigeon"), "no all-reduce called 'carrier pigeon' was recorded: .*nccl"),
    ],
)
def test_what_cannot_be_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
