"""Lab 10's scenarios against formulas, cases by hand and what the real vLLM did."""

from __future__ import annotations

import numpy as np
import pytest

from course.exercises.compare import same
from course.lessons import lab10, load
from course.lessons.lab10 import by_hand, chats, decision, evening, facts, live_words, lookup, one_prompt, sketch, tasks
from course.lessons.lab10.chats import AGENTS, PEOPLE
from tests.helpers.places import REAL

SEEDS = range(5)


def test_full_blocks_of_the_system_prompt_are_found_and_nothing_else():
    for size, full in ((16, 2_000), (128, 1_920), (512, 1_536), (2_048, 0)):
        both = one_prompt.both(block_size=size)
        assert both.found == full
        # Whoever joins in the first step computes it, or finds what another one of the same step computes.
        assert both.hit_rate == pytest.approx(full / 2_104, rel=2e-3)


def test_what_is_computed_with_caching_is_what_is_needed_less_what_is_found():
    both = one_prompt.both()
    needed, found = 600 * 2_104, both.on.log.lookups[:, 2].sum()
    assert both.on.steps.prefill_tokens.sum() == needed - found and not both.on.preempted.any()


def test_the_last_prompt_computes_what_it_does_not_find():
    """Its 2,104 tokens less 2,000 found; in blocks of 2,048 nothing is found."""
    assert tasks.computed({}, one_prompt.both()) == 104
    assert tasks.computed({}, one_prompt.both(block_size=2_048)) == 2_104


def test_the_gain_is_nearly_that_of_amdahls_law_where_memory_does_not_bind():
    """The law takes the other share as it is; fewer prompts a step also make the batch of decodes larger."""
    for answer in (20, 50, 100):
        both = one_prompt.both(answer)
        law = one_prompt.by_amdahl(both.hit_rate, one_prompt.prompts_alone(answer))
        assert both.gain == pytest.approx(law, rel=0.08)
    assert one_prompt.by_amdahl(1.0, 0.5) == 2.0 and one_prompt.by_amdahl(0.0, 0.9) == 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_below_saturation_caching_gains_no_tokens_but_time(seed):
    both = one_prompt.both(rate=tasks.LIGHT, seed=seed)
    assert both.gain == pytest.approx(1, abs=0.01)
    assert both.off.ttft.mean() > 6 * both.on.ttft.mean()


def test_the_blocks_of_agents_are_those_of_a_run_with_one_turn_after_the_other():
    """Written without the engine: in a pause of 60 s, 30 chats end a turn of each number."""
    needed = sum(30 * turn * 100 for turn in (1, 2, 3, 4, 5)) + 125
    assert chats.blocks_needed(chats.RATE, 60, 5, 100, 125) == needed == 45_125
    assert chats.blocks_of_who_returns(chats.RATE, 60, 5, 100, 125) == needed - 30 * 5 * 100


@pytest.mark.parametrize("seed", SEEDS)
def test_agents_find_little_until_the_pool_holds_a_pause_and_people_find_more_with_each_block(seed):
    rates = {cv: [chats.returned(n, pause_cv=cv, seed=seed).hit_rate for n in (2_000, 14_000, 50_000, 54_000)]
             for cv in (AGENTS, PEOPLE)}  # fmt: skip
    small, start, needed, whole = rates[AGENTS]
    assert start - small < 0.06 and needed == pytest.approx(whole, abs=0.003)
    assert whole - start > 0.4
    small, start, needed, whole = rates[PEOPLE]
    assert start - small > 0.18 and whole - needed < 0.02


@pytest.mark.parametrize("seed", SEEDS)
def test_the_formula_is_a_mean_and_bursts_of_arrivals_take_more(seed):
    """Of 15 chats that begin in a pause, two standard deviations more are 23; of 30, 41: so much is enough."""
    for pause in (30, 60):
        needed = chats.blocks_needed(chats.RATE, pause, chats.TURNS, chats.A_TURN, chats.SHARED)
        margin = 1 + 2 / (chats.RATE * pause) ** 0.5
        rates = [chats.returned(int(n), pause, AGENTS, seed=seed).hit_rate for n in (margin * needed, needed / 2)]
        assert rates[0] == pytest.approx(chats.most(), abs=0.003) and rates[1] < chats.most() - 0.2


def test_turns_find_all_that_was_said_before_in_a_pool_that_is_never_short():
    found = chats.returned(one_prompt.pool()).found / chats.CHATS
    known = [2_000 + 1_600 * turn for turn in range(5)]  # the last token of an answer is never computed
    assert found[1:] == pytest.approx([(tokens - 1) // 16 * 16 for tokens in known[1:]])
    # Without answers they find the prompt of the turn before.
    assert chats.most() - 0.06 < chats.without_answers() < chats.most() - 0.04


def test_by_hand():
    case = by_hand.small()
    assert dict(zip(case.names, case.found.tolist(), strict=True)) == {"A": 0, "B": 8, "C": 4, "D": 0}


def test_lookup_finds_what_the_small_model_finds():
    """The keys of one prompt, and the prefix cache of the engine that serves both one after the other."""
    history = list(range(50, 120))
    for prompt in (history, history[:64], [*history[:40], 1, 2, 3], [3, *history]):
        found = lookup.lookup(prompt, lookup.keys_of(history, 16), 16)
        same = next((i for i, (a, b) in enumerate(zip(history, prompt, strict=False)) if a != b), len(prompt))
        assert found == min(same, len(prompt) - 1) // 16 * 16


def test_each_wrong_lookup_differs_from_the_right_one_somewhere():
    for wrong in (lookup.with_the_last_token, lookup.goes_on_behind_a_gap, lookup.without_the_chain):
        assert any(wrong(*probe) != lookup.lookup(*probe) for probe in lookup.PROBES)


def test_recorded_steps_find_token_by_token_what_vllm_found():
    run, live = live_words.on_card("on"), live_words.LIVE
    assert run.workload.prompt_tokens.tolist() == live.prompt_tokens.tolist()
    assert run.workload.output_tokens.tolist() == live.output_tokens.tolist()
    assert run.summary()["prefix_cache_hits"] == live_words.found_by_vllm("on") == 5_504
    assert live_words.found_by_vllm("off") == 0 and live.same_as_numpy == len(live)


def test_the_log_is_what_vllm_wrote_and_its_rate_is_of_all_requests_so_far():
    """The first line: 24 short questions before, of 313 tokens, found nothing."""
    before = decision.HITS / decision.rates_logged()[0] - decision.QUERIES
    assert 250 < before < 350  # the log has three digits
    assert "81.5%" in decision.log() and "64.4%" in decision.log()


@pytest.mark.skipif(not REAL.is_dir(), reason="no folder ../shared/realinputs with Mooncake's trace")
def test_counts_of_the_published_trace_are_those_of_the_trace():
    from tools.mooncake_hits import counted

    path = REAL / "traces" / "mooncake_conversation_head3000.jsonl"
    assert counted(path) == facts.MOONCAKE


def test_the_sketch_is_the_explorers_curve():
    assert [100 * chats.returned(int(n)).hit_rate for n in sketch.BLOCKS] == [y for _, y in sketch.rates()]
    assert np.all(np.diff([y for _, y in sketch.rates()]) >= 0)


def test_all_its_explorers_are_there():
    assert lab10.one_system_prompt().compute().gain > 3
    assert len(lab10.four_prompts().data) > 4 and len(lab10.ticket_graphs().data) == 4


def test_what_the_texts_say_is_what_their_graphs_and_sliders_show():
    known = facts.facts()
    curve = next(one for one in lab10.ticket_graphs().data if one.name == "since Tuesday")
    assert 100 * known["ticket_since"] == pytest.approx(curve.y[-1])
    gain = 1 / (1 - round(known["hit_rate"], 3) * round(known["share"], 3))  # by hand, from what is printed
    assert f"{gain:.1f}" == f"{known['amdahl']:.1f}"
    assert known["enough_blocks"] == 46_000
    assert chats.returned(44_000).hit_rate < chats.most() - 0.003 < chats.returned(46_000).hit_rate
    assert known["decide_full"] == 40 * 9 + 1 and decision.hit_rate(decision.served(known["decide_full"])) < 0.05


def test_a_look_up_after_a_preemption_counts_from_its_own_step_on():
    since = evening.evening(evening.SINCE)
    log = since.run.log
    starts = log.start_of(np.sort(np.asarray(log.stays)[:, 1]))
    assert since.preemptions > 0
    for moment in starts[[20, 100, -1]]:
        _, known, found = np.asarray(log.lookups)[starts <= moment].T
        assert since.rate_by(moment) == pytest.approx(found.sum() / known.sum())


@pytest.mark.parametrize("answer, right", [(1.92, True), (1.9, True), (2, False), (1.8, False)])
def test_a_gain_may_be_given_with_the_digits_of_the_lab(answer, right):
    exercise = next(one for one in load("10").exercises if one.id == "gain")
    assert same(answer, exercise.solution, exercise.rtol, exercise.shown) == right
