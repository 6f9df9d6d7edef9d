"""The numbers in the texts of lab 10, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from course.lessons.lab10 import by_hand, chats, decision, deeper, evening, game, live_words, one_prompt, sketch, tasks
from course.lessons.lab10.chats import AGENTS, PEOPLE
from course.lessons.lab10.one_prompt import BLOCK_SIZE, SPEC, by_amdahl

MOONCAKE = json.loads((Path(__file__).parents[2] / "data" / "mooncake_hits.json").read_text(encoding="utf-8"))
QUERIES, HITS, EX_SHARE = 400_000, 320_000, 0.6
TWIN_RATE, TWIN_SHARE = 0.9, 0.5
"""Of exercise 1 and its twin: counters, and the share of the time that prompts take."""
POOL: dict[str, Any] = {"rate": 0.2, "pause": 90, "turns": 4, "a_turn": 50, "shared": 100}
TWIN_PAUSE = 150
"""Of exercise 2 and its twin."""
ROOM_MANY, ROOM_SHARED, ROOM_ALL = 10, 1_000, 1_200
WASTE, WASTE_BLOCK, WASTE_LIMIT = (20, 100, 41), 16, 128
THINKING_S, THINKING_GAP = 60.0, 4.0  # seconds

GIVEN = (one_prompt.SYSTEM, one_prompt.OWN, one_prompt.MANY, BLOCK_SIZE, chats.TURNS, chats.PAUSE,
         len(live_words.LIVE), 20)  # fmt: skip


def found_in(blocks: int | None) -> float:
    """Share of Mooncake's blocks that a cache of so many finds."""
    return MOONCAKE["hit_blocks"][MOONCAKE["capacity"].index(blocks)] / MOONCAKE["blocks"]


def card_blocks() -> int:
    """Mooncake's blocks that the pool of the H200 holds."""
    return (one_prompt.pool() + 1) * BLOCK_SIZE // MOONCAKE["block_size"]


@cache
def ex_pool(**other: Any) -> float:
    """Exercise 2."""
    return chats.blocks_needed(**{**POOL, **other})


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    start, light, large = one_prompt.both(), one_prompt.both(rate=tasks.LIGHT), one_prompt.both(answer=1_000)
    monday, today = evening.evening(evening.BEFORE), evening.evening(evening.SINCE)
    case, live = by_hand.small(), live_words.LIVE
    small, at_start = chats.returned(tasks.SMALL), chats.returned()
    rate, taken = HITS / QUERIES, HITS / QUERIES * EX_SHARE
    room_own = ROOM_ALL - ROOM_SHARED
    saved = (ROOM_MANY - 1) * ROOM_SHARED
    logged = decision.rates_logged()
    token = SPEC.kv_bytes_per_token
    return {
        # Earlier labs
        "waste_held": "20, 100 and 41", "waste_block": WASTE_BLOCK, "waste_limit": WASTE_LIMIT,
        "waste_empty": _empty(), "waste_reserved": len(WASTE) * WASTE_LIMIT - sum(WASTE),
        "thinking_s": THINKING_S, "thinking_gap": THINKING_GAP, "thinking": THINKING_S / THINKING_GAP,
        "thinking_inverse": THINKING_S * THINKING_GAP,
        # Predictions and tasks
        "answer": start.answer, "hit_rate": start.hit_rate, "gain": start.gain, "light": tasks.LIGHT,
        "share": one_prompt.prompts_alone(start.answer), "new": chats.NEW, "chat_answer": chats.ANSWER,
        "chat_rate": chats.RATE, "small_rate": small.hit_rate, "small_blocks": tasks.SMALL,
        "start_rate": at_start.hit_rate, "start_blocks": at_start.num_blocks, "most_rate": chats.most(),
        "needed_k": round(_needed() / 1_000), "times": tasks.TIMES, "large": tasks.LARGE, "enough": tasks.ENOUGH,
        "most_blocks": tasks.MOST_BLOCKS,
        # The text
        "slots_text": f"{one_prompt.SLOTS:,}", "pool": one_prompt.pool(), "budget": one_prompt.BUDGET,
        "light_off_ms": 1e3 * light.off.ttft.mean(),
        "light_on_ms": 1e3 * light.on.ttft.mean(), "amdahl": by_amdahl(start.hit_rate, _share(200)),
        "large_gain": large.gain, "large_amdahl": by_amdahl(large.hit_rate, _share(1_000)),
        "needed": _needed(), "enough_blocks": chats.enough(), "a_turn": chats.A_TURN,
        "system_blocks": chats.SHARED, "large_answer": large.answer,
        "log_requests": 1_000,
        "hand_block": by_hand.BLOCK_SIZE,
        "hand_c": int(case.prompts[2]), "hand_c_found": int(case.found[2]),
        "live_queries": decision.QUERIES, "live_hits": decision.HITS,
        "moon_most": found_in(None), "moon_card": found_in(card_blocks()), "moon_requests": MOONCAKE["requests"],
        "moon_half": found_in(10_000) / 4 * 3, "moon_near": found_in(20_000),
        "moon_half_gb": 7_500 * MOONCAKE["block_size"] * token / 1e9,
        "moon_tb": 20_000 * MOONCAKE["block_size"] * token / 1e12,
        "answers_rate": chats.without_answers(),
        # Exercises
        "ex_queries": QUERIES, "ex_hits": HITS, "ex_share": EX_SHARE, "gain_right": by_amdahl(rate, EX_SHARE),
        "gain_rate_alone": 1 / (1 - rate), "gain_share_alone": 1 / (1 - EX_SHARE), "gain_time": 1 - taken,
        "gain_more": 1 + taken, "twin_share": TWIN_SHARE, "twin_rate": TWIN_RATE,
        "gain_twin": by_amdahl(TWIN_RATE, TWIN_SHARE), "gain_twin_rate_alone": 1 / (1 - TWIN_RATE),
        "gain_twin_time": 1 - TWIN_RATE * TWIN_SHARE,
        "pool_right": ex_pool(), "pool_returning": chats.blocks_of_who_returns(**POOL),
        "pool_without_system": ex_pool(shared=0), "pool_all_whole": _whole(),
        "pool_one_turn": POOL["rate"] * POOL["pause"] * POOL["turns"] * POOL["a_turn"] + POOL["shared"],
        "pool_twin": ex_pool(pause=TWIN_PAUSE, shared=0), "twin_pause": TWIN_PAUSE,
        "pool_twin_returning": chats.blocks_of_who_returns(**POOL | {"pause": TWIN_PAUSE, "shared": 0}),
        "ex_gap": 1 / POOL["rate"], "ex_pause": POOL["pause"], "ex_turns": POOL["turns"], "ex_a_turn": POOL["a_turn"],
        "ex_shared": POOL["shared"],
        # The decision
        "decide": decision.NEEDED, "decide_chats": decision.CHATS, "decide_history": decision.HISTORY,
        "decide_prompt": decision.PROMPT, "decide_answer": decision.ANSWER, "decide_end": decision.AT_ITS_END,
        "decide_histories": decision.CHATS * decision.HISTORY_BLOCKS + 1, "decide_slots": _slots(),
        "decide_full": decision.CHATS * ((decision.PROMPT + decision.ANSWER) // decision.BLOCK_SIZE) + 1,
        "decide_block": decision.BLOCK_SIZE, "decide_running": int(live.running.max()),
        "log_first": logged[0], "log_second": logged[1], "log_seconds": 9,
        "alone_rate": decision.HITS / decision.QUERIES,
        **deeper.facts(),
        # The ticket and the quiz
        "ticket_before": monday.rates[0], "ticket_since": float(today.rate_by(today.run.arrival.max())),
        "ticket_first": today.rates[1],
        "ticket_lost": today.preemptions, "ticket_share_before": evening.BEFORE, "ticket_share_since": evening.SINCE,
        "ticket_blocks_before": one_prompt.pool(evening.BEFORE), "ticket_blocks_since": one_prompt.pool(evening.SINCE),
        "room_many": ROOM_MANY, "room_shared": ROOM_SHARED, "room_all": ROOM_ALL, "room_own": room_own,
        "room_saved": saved, "room_more": saved // room_own, "room_wrong": saved // ROOM_ALL,
    }  # fmt: skip


def _empty() -> int:
    return sum(-held % WASTE_BLOCK for held in WASTE)


def _share(answer: int) -> float:
    return one_prompt.prompts_alone(answer)


def _needed() -> float:
    return chats.blocks_needed(chats.RATE, chats.PAUSE, chats.TURNS, chats.A_TURN, chats.SHARED)


def _whole() -> float:
    """Every chat with its whole history."""
    rate, pause, turns, a_turn = (POOL[name] for name in ("rate", "pause", "turns", "a_turn"))
    return rate * pause * turns * turns * a_turn + POOL["shared"]


def _slots() -> int:
    """Blocks of the decision's histories, and of what eight requests have besides."""
    own = decision.AT_ITS_END - decision.HISTORY_BLOCKS
    return decision.CHATS * decision.HISTORY_BLOCKS + live_words.SLOTS * own + 1


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    gain = one_prompt.both().gain
    monday, today = evening.evening(evening.BEFORE), evening.evening(evening.SINCE)
    away = THINKING_S / THINKING_GAP
    card = found_in(card_blocks())
    more = (ROOM_MANY - 1) * ROOM_SHARED // (ROOM_ALL - ROOM_SHARED)
    return {
        "waste": (_empty() == 223, _empty() == 31, _empty() == 0),
        "thinking": tuple(away == said for said in (240, 60, 15)),
        "worth": (gain > 15, 1.8 < gain < 2.1, 3.2 < gain < 3.6, gain < 1.1),
        "cause": (
            today.rates[1] > monday.rates[1] + 0.01,
            today.preemptions > 0 and today.rates[0] > today.rates[1],
            today.p95_ttft < monday.p95_ttft,
        ),
        "next": "num_preemptions_total",
        "repair": "memory back",
        "date": "nearly nothing",
        "room": (more == 7, more == ROOM_MANY, more == 45),
        "trace": (card < 0.05, 0.14 < card < 0.18, card > 0.25),
        "mixed": "other prompts came",
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    start, light = one_prompt.both(), one_prompt.both(rate=tasks.LIGHT)
    case = by_hand.small()
    monday, today = evening.evening(evening.BEFORE), evening.evening(evening.SINCE)
    histories = decision.served(decision.CHATS * decision.HISTORY_BLOCKS + 1)
    return {
        "at 8 requests/s the tokens/s are the same": abs(light.gain - 1) < 0.01,
        "found blocks are held once": start.blocks(start.on) < start.blocks(start.off) / 4,
        "D finds nothing, A the first time neither": case.found.tolist() == [0, 8, 4, 0],
        "more than Amdahl's law says, since more fit": one_prompt.both(answer=1_000).gain
        > by_amdahl(one_prompt.both().hit_rate, _share(1_000)),
        "those alone who return are not enough": chats.returned(30_000).hit_rate < 0.6 < tasks.ENOUGH,
        "a tenth above the formula nothing more is found": abs(chats.returned(50_000).hit_rate - chats.most()) < 0.003,
        "people: the first blocks buy most": _first_buy_most(),
        "recorded steps find as much as vLLM did": (
            live_words.on_card("on").summary()["prefix_cache_hits"] == decision.HITS
        ),
        "the log's rate is of earlier requests too": decision.rates_logged()[0] < decision.HITS / decision.QUERIES,
        "with the histories alone hardly anything is found": decision.hit_rate(histories) < 0.05,
        "with the decision's blocks as much as the first time": decision.hit_rate(
            decision.served(decision.NEEDED)) > 0.8,
        "the card holds as many of Mooncake's blocks as were counted": card_blocks() in MOONCAKE["capacity"],
        "more than a TB": 20_000 * MOONCAKE["block_size"] * SPEC.kv_bytes_per_token > 1e12,
        "first look-ups find as much as on Monday": abs(today.rates[1] - monday.rates[1]) < 1e-9,
        "first tokens take seconds": today.run.ttft.mean() > 2 > 0.2 > monday.run.ttft.mean(),
        "two manuals: longest prefix first computes less": game.BLOCKS < 2 * game.MANUAL // game.BLOCK_SIZE + 2,
        "sketch: the truth is no belief": not any(b.when(sketch.HITS.true) for b in sketch.HITS.beliefs.values()),
        "agents pause for as long each time": AGENTS == 0,
        "the text's decision: the pool was nearly empty": live_words.LIVE.blocks.max() < 0.15 * live_words.BLOCKS,
        **deeper.claims(),
    }  # fmt: skip


def _first_buy_most() -> bool:
    """Whether with people 8,000 blocks more buy more at the lower end than at the upper."""
    low = chats.returned(10_000, pause_cv=PEOPLE).hit_rate - chats.returned(2_000, pause_cv=PEOPLE).hit_rate
    high = chats.returned(42_000, pause_cv=PEOPLE).hit_rate - chats.returned(34_000, pause_cv=PEOPLE).hit_rate
    return bool(np.isfinite(low)) and low > 3 * high
