"""The host's part of a step: hidden behind the card, or on top of it."""

import pytest

from course import KVCache, Workload, policies, serve
from course.steptime import PowerLaw, Roofline, Step, recorded, with_host
from course.steptime.host import MEASURED

CARD = recorded("h200-llama3-8b")
DECODES, PROMPT = Step(8, 8_192, ()), Step(8, 8_192, ((512, 0),))


@pytest.mark.parametrize("step", [DECODES, PROMPT, Step(0, 0, ((16, 0),))])
@pytest.mark.parametrize("card", [CARD, lambda step: CARD(step), Roofline("llama-3.1-8b", "H200")])
def test_the_longer_of_both_or_their_sum(card, step):
    alone = card(step)
    for seconds in (0, 1e-3, alone, 2 * alone):
        hidden, added = with_host(card, seconds), with_host(card, seconds, overlap=False)
        assert hidden(step) == pytest.approx(max(alone, seconds), rel=1e-12)
        assert added(step) == pytest.approx(alone + seconds, rel=1e-12)
    for overlap, expected in ((True, max(alone, 9e-3)), (False, alone + 9e-3)):
        both = with_host(card, 9e-3, overlap=overlap, serial=2e-3)
        assert both(step) == pytest.approx(expected + 2e-3, rel=1e-12)


@pytest.mark.parametrize("seconds", [0, 1e-3, 4.5e-3, 0.02])
@pytest.mark.parametrize("overlap", [True, False])
def test_the_fast_loop_gives_what_a_callable_gives(seconds, overlap):
    """To the bit: with the host hidden behind every step, behind some, and behind none."""
    load = Workload.poisson(20, 60, 300, 40, seed=4)
    model = with_host(CARD, seconds, overlap=overlap, serial=1e-4)
    fast, plain = (
        serve(load, policies.Continuous(16, 512), one, KVCache(2_000)) for one in (model, lambda step: model(step))
    )
    assert fast.e2e.tolist() == plain.e2e.tolist()
    assert fast.ttft.tolist() == plain.ttft.tolist()


def test_a_host_that_one_decode_hides_leaves_the_line_straight():
    assert with_host(CARD, MEASURED["all steps, slowest run"]).straight
    assert not with_host(CARD, 4e-3).straight
    with pytest.raises(ValueError, match="do not follow a straight line: call `seconds`"):
        with_host(CARD, 4e-3).decode_line(1)
    assert with_host(CARD, 4e-3, overlap=False).straight
    # A curve of one's own may fall: then nothing is known of larger batches.
    assert not with_host(with_host(CARD, 4e-3), 1e-3).straight


def test_what_a_live_engine_took():
    assert 3e-4 < min(MEASURED.values()) < max(MEASURED.values()) < 1.2e-3
    assert MEASURED["decodes alone, quickest run"] < MEASURED["all steps, quickest run"]


def test_bad_settings_are_refused():
    for bad in (-1e-3, float("nan"), "1 ms", None):
        with pytest.raises(ValueError, match="seconds must be"):
            with_host(CARD, bad)
        with pytest.raises(ValueError, match="serial must be"):
            with_host(CARD, 1e-3, serial=bad)
    with pytest.raises(ValueError, match="overlap must be True or False, not 'no'"):
        with_host(CARD, 1e-3, overlap="no")
    with pytest.raises(ValueError, match="a callable from a Step to seconds, not 3"):
        with_host(3, 1e-3)


def test_it_goes_on_as_far_as_the_card_does():
    assert with_host(CARD, 1e-3).longest == CARD.longest
    assert with_host(CARD, 1e-3).source == "recorded"
    assert with_host(PowerLaw(1e-2, 0, 1), 1e-3).source == "modelled"
    assert with_host(CARD, 1e-3).beyond(decodes=300) == "modelled beyond 256 decodes"
    assert with_host(CARD, 1e-3).badge == f"{CARD.badge}, 1 ms of a host behind it"
    assert with_host(CARD, 1e-3, overlap=False).badge.endswith(", 1 ms of a host after it")
