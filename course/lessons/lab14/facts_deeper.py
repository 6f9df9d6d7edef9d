"""The numbers in the texts of lab 14's deeper notebook, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab14 import apart, cards, four, layers
from course.steptime.links import two_cards
from course.steptime.sharded import CONTEXT

LOOSE_TPOT_MS = 20.0
BUBBLE: dict[str, int] = {"stages": 4, "few_batches": 4, "many_batches": 16}


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return {**_apart(), **_layers()}


def _apart() -> dict[str, Any]:
    of, busy = apart.LOADS[apart.DOCUMENTS], apart.BUSY[apart.DOCUMENTS]
    tight, loose = (apart.apart(rate=busy, tpot_ms=ms) for ms in (apart.TPOT_MS, LOOSE_TPOT_MS))
    return {
        "apart_kib": apart.KV_BYTES / 1_024, "apart_prompt": of.prompt, "apart_answer": of.answer,
        "apart_chunk": apart.CHUNK, "apart_budget": apart.CHUNK_BUDGET, "apart_busy": busy,
        "apart_tight": apart.TPOT_MS, "apart_loose": LOOSE_TPOT_MS, "apart_link_rate": apart.LINK_RATE,
        "apart_mixed_tight": tight.share(apart.MIXED), "apart_mixed_loose": loose.share(apart.MIXED),
        "apart_1_tight": tight.share("1P3D"), "apart_3_tight": tight.share("3P1D"),
        "apart_3_loose": loose.share("3P1D"), "apart_prompts": apart.prompts_a_second(apart.DOCUMENTS),
    }  # fmt: skip


def _layers() -> dict[str, Any]:
    one, some, many = 1, layers.BATCHES[1], layers.BATCHES[-1]
    stages = BUBBLE["stages"]
    less = {batch: cards.tokens_a_joule(1, batch, "none") / cards.tokens_a_joule(2, batch, "one_shot") - 1
            for batch in (one, many)}  # fmt: skip
    return {
        **{f"bubble_{name}": value for name, value in BUBBLE.items()},
        "bubble_few": layers.bubble(stages, BUBBLE["few_batches"]),
        "bubble_many": layers.bubble(stages, BUBBLE["many_batches"]),
        "bubble_pieces": layers.bubble(stages, BUBBLE["few_batches"], 2),
        "stage_some": some, "stage_many": many,
        **{f"stage_{shape[:2].lower()}_{name}": 1e3 * layers.step(shape, batch) for shape in ("PP2", "TP2")
           for name, batch in ((1, one), ("some", some), ("many", many))},
        "measured_context": CONTEXT, "joule_more_1": less[one], "joule_more_256": less[many],
        "joule_step_1": layers.step_tokens_a_joule(one), "joule_step_256": layers.step_tokens_a_joule(many),
        "watts_one": cards.watts(1, one, "none"), "watts_limit": two_cards()["provenance"]["power_limit_w"],
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    h100_tight, h100_loose, h200_tight, h200_loose = apart.CASES
    few, more = four.SLOTS // 4, 2 * four.SLOTS
    every = {(case, slots): apart.shares(*case, slots=slots) for case in apart.CASES
             for slots in (few, four.SLOTS, more)}  # fmt: skip
    ratios = [
        (name, apart.split(apart.prompts_a_second(name), apart.answers_a_second(name), apart.CARDS_THERE), [
            {layout: apart.kept(apart.served(apart.H200, layout, apart.BUSY[name], name=name, seed=seed),
                                apart.TPOT_MS / 1e3) for layout in apart.LAYOUTS}
            for seed in apart.SEEDS])
        for name in apart.LOADS
    ]  # fmt: skip
    return {
        "on H100s a tight promise wants 2P2D, with any draw and any slots": all(
            every[h100_tight, slots]["2P2D"][0] > every[h100_tight, slots][layout][1] + 0.1
            for slots in (few, four.SLOTS, more)
            for layout in (apart.MIXED, "1P3D", "3P1D")
        ),
        "on H200s more cards for prompts hold most": all(
            every[h200_tight, slots]["3P1D"][0] > every[h200_tight, slots][apart.MIXED][0]
            and every[h200_tight, slots]["3P1D"][1] > every[h200_tight, slots][apart.MIXED][1]
            for slots in (few, four.SLOTS, more)
        ),
        "a loose promise is held by mixed cards as by the best": all(
            every[case, slots][apart.MIXED][0] >= max(low for low, _ in every[case, slots].values()) - 0.02
            for case in (h100_loose, h200_loose)
            for slots in (few, four.SLOTS, more)
        ),
        "one card for prompts is far too few": all(one["1P3D"][1] < 0.05 for one in every.values()),
        "the ratio from the rates is the best of the three, over five draws": all(
            one[f"{count}P{apart.CARDS_THERE - count}D"] >= max(one[name] for name in list(apart.LAYOUTS)[1:]) - 1e-9
            for _, count, draws in ratios
            for one in draws
        ),
        "three loads want three ratios": len({count for _, count, _ in ratios}) == 3,
        "another ratio can be useless": all(
            min(min(one[name] for name in list(apart.LAYOUTS)[1:]) for one in draws) < 0.3 for _, _, draws in ratios
        ),
        "one user's step is as long on two stages": abs(layers.step("PP2", 1) / layers.step("one card", 1) - 1) < 0.01,
        "a full pipeline is nearly as fast as shares": 1 < layers.step("PP2", 256) / layers.step("TP2", 256) < 1.05,
        "a 70B gains more from shares, and a prompt as much as a large batch": all(
            layers.speed_up(layers.LARGE, tokens) > layers.speed_up(layers.SMALL, tokens) for tokens in layers.TOKENS
        )
        and all(abs(layers.speed_up(name, 2_048) / layers.speed_up(name, 128) - 1) < 0.03 for name in layers.NAMES),
        "a batch of 256 makes far more tokens a joule": layers.step_tokens_a_joule(256)
        > 50 * layers.step_tokens_a_joule(1),
        "two cards make fewer tokens a joule with any batch": all(
            cards.tokens_a_joule(1, batch, "none") > cards.tokens_a_joule(2, batch, "one_shot")
            for batch in layers.JOULES
        ),
    }
