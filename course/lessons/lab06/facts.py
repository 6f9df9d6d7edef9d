"""The numbers in the texts of lab 06, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab06 import agents, by_hand, decision, deeper, one_launch, sketch, tasks, two_orders
from course.lessons.lab06.on_device import ATTENTION, PRODUCT
from course.lessons.lab06.two_orders import ANSWER, BUDGET, FIRST, MIXED, PROMPT, RATE, SLOTS, served
from course.models import engine_defaults
from course.models.gpus import gpu

SMALL, FEW_TOKENS = 2_048, 1_024
EARLIER = 512, 12  # token budget and chats of the question from lab 07
FILL, FILL_TWIN = (2_048, 40, (1_200, 700, 900)), (1_024, 64, (500, 300, 600))
"""Budget, decodes and prompts of exercise 1; the question is about the last prompt."""
TWIN_PROMPT, TWIN_ANSWER = 300, 400  # tokens, of the twin of exercise 2
RULE = 0.2  # the share of a step's tokens that a rule of thumb leaves to prompts
SEEDS = range(5)

GIVEN = (RATE, PROMPT, ANSWER, SLOTS, BUDGET, SMALL, FEW_TOKENS, tasks.FEW, agents.AT_ONCE, agents.PROMPT,
         agents.EVERY, EARLIER[0])  # fmt: skip


def rest(budget: int, decodes: int, prompts: tuple[int, ...]) -> int:
    """Tokens of the last prompt in a step, if decodes and the other prompts go before it."""
    return min(prompts[-1], budget - decodes - sum(prompts[:-1]))


def prompts_percent(prompt: int, answer: int) -> float:
    """Of all tokens that are computed, those of prompts [%]: the first token of an answer is no decode."""
    return 100 * prompt / (prompt + answer - 1)


def in_progress(found: two_orders.Served) -> float:
    """Decodes in a step at a time, on average until the last arrival: after it the steps only empty the engine."""
    steps, last = found.run.steps, float(found.run.arrival.max())
    here = steps.start < last
    return float((steps.decodes * steps.seconds)[here].sum() / last)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return _story() | _explain() | _exercises() | _ticket_and_quiz() | deeper.facts()


def _story() -> dict[str, Any]:
    mixed, first = served(MIXED), served(FIRST)
    return {
        "engines_slots": engine_defaults.LARGE[0],
        "earlier_budget": EARLIER[0], "earlier_chats": EARLIER[1],
        "earlier_rest": EARLIER[0] - EARLIER[1], "earlier_sum": sum(EARLIER),
        "mixed_ttft_ms": 1e3 * mixed.ttft, "first_ttft_ms": 1e3 * first.ttft,
        "mixed_e2e_s": mixed.e2e, "first_e2e_s": first.e2e, "whole_ms": sketch.WHOLE_MS,
        "gap_mixed_ms": 1e3 * mixed.gap, "gap_first_ms": 1e3 * first.gap,
        "gap_512_ms": 1e3 * served(FIRST, 512).gap,
        "short_ms": 1e3 * tasks.SHORT, "early_ms": 1e3 * tasks.EARLY,
    }  # fmt: skip


def _explain() -> dict[str, Any]:
    mixed, few = served(MIXED), served(MIXED, FEW_TOKENS)
    whole, both, _ = by_hand.cases().values()
    card = one_launch.recording().at(32, 128)
    decodes = in_progress(mixed)
    return {
        "hand_budget": by_hand.BUDGET, "hand_prompt": by_hand.PROMPT, "hand_least": by_hand.LEAST,
        "hand_readers": by_hand.READERS, "hand_left": by_hand.BUDGET - by_hand.READERS,
        "hand_gap_first": whole.gap, "hand_gap_mixed": both.gap,
        "few_ttft_ms": 1e3 * few.ttft, "few_e2e_s": few.e2e, 
        "decodes": decodes, "room": BUDGET - round(decodes), "rule_tokens": decodes * RULE / (1 - RULE),
        "arrive": RATE * PROMPT, "traffic": prompts_percent(PROMPT, ANSWER),
        "product_gain": one_launch.gain(card, PRODUCT), "attention_gain": one_launch.gain(card, ATTENTION),
        
    }  # fmt: skip


def _exercises() -> dict[str, Any]:
    (budget, decodes, prompts), (budget_twin, decodes_twin, prompts_twin) = FILL, FILL_TWIN
    return {
        "fill_budget": budget, "fill_decodes": decodes, "fill_prompts": "{:,}, {:,} and {:,}".format(*prompts),
        "fill_step": rest(*FILL), "fill_forgets": rest(budget, 0, prompts), "fill_whole": prompts[-1],
        "fill_other": budget - decodes - prompts[0],
        "twin_budget": budget_twin, "twin_decodes": decodes_twin,
        "twin_prompts": "{}, {} and {}".format(*prompts_twin),
        "fill_step_twin": rest(*FILL_TWIN), "twin_forgets": rest(budget_twin, 0, prompts_twin),
        "twin_whole": prompts_twin[-1],
        "traffic_decodes": 100 - prompts_percent(PROMPT, ANSWER), "traffic_ratio": PROMPT / ANSWER,
        "traffic_twin": prompts_percent(TWIN_PROMPT, TWIN_ANSWER), "twin_prompt": TWIN_PROMPT,
        "twin_answer": TWIN_ANSWER, "traffic_twin_decodes": 100 - prompts_percent(TWIN_PROMPT, TWIN_ANSWER),
        "traffic_twin_ratio": TWIN_PROMPT / TWIN_ANSWER,
        "gap_promised_ms": 1e3 * decision.GAP, "ttft_promised_ms": 1e3 * decision.TTFT,
        "gap_twin_ms": 1e3 * decision.GAP_TWIN, "ttft_twin_s": decision.TTFT_TWIN, "busier": decision.BUSY / RATE - 1,
    }  # fmt: skip


def _ticket_and_quiz() -> dict[str, Any]:
    before, now, small = agents.run(agents.BEFORE), agents.run(agents.NOW), agents.run(FIRST, SMALL)
    return {
        "agents_p99_before_ms": 1e3 * before.summary()["itl_p99"], "agents_p99_ms": 1e3 * now.summary()["itl_p99"],
        "agents_gap_s": now.itl.max(), "agents_gap_before_ms": 1e3 * before.itl.max(),
        "agents_small_s": small.itl.max(), "agents_slots": now.steps.running.max(),
        "agents_tokens": agents.AT_ONCE * agents.PROMPT,
        "quarter_ms": sketch.WHOLE_MS / 4,
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    mixed, first, few = served(MIXED), served(FIRST), served(MIXED, FEW_TOKENS)
    before, now = agents.run(agents.BEFORE), agents.run(agents.NOW)
    repairs = (agents.run(FIRST, SMALL), agents.run(FIRST, slots=2 * SLOTS), agents.run(MIXED))
    told = (
        float(now.ttft.mean() / before.ttft.mean()),
        now.summary()["itl_p99"] / before.summary()["itl_p99"],
        float(now.itl.max() / before.itl.max()),
    )
    change = served(FIRST, SMALL).gap / first.gap
    late = few.e2e / mixed.e2e
    full = now.steps.running.max() >= SLOTS
    return {
        "join": "before each step",
        "rest-of-a-step": tuple(
            tokens + EARLIER[1] == EARLIER[0] for tokens in (EARLIER[0], EARLIER[0] - EARLIER[1], sum(EARLIER))
        ),
        "price": (first.e2e < 0.98 * mixed.e2e, abs(first.e2e / mixed.e2e - 1) < 0.02, first.e2e > 1.02 * mixed.e2e),
        "cause": (False, told[2] > 5 and now.itl.max() > 1, bool(full)),
        "measure": tuple(one > 2 for one in told),
        "repair": tuple(one.itl.max() < agents.ENOUGH for one in repairs),
        "halved": (change < 0.5, 0.8 < change < 1.25, change > 1.5),
        "twenty": (False, prompts_percent(PROMPT, ANSWER) > 100 * RULE, False),
        "together": "Rows of a product",
        "ends": (late < 0.98, abs(late - 1) < 0.02, late > 1.02),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    pairs = [(served(MIXED, seed=seed), served(FIRST, seed=seed)) for seed in SEEDS]
    slots = [(served(MIXED, slots=tasks.FEW, seed=seed), served(FIRST, slots=tasks.FEW, seed=seed)) for seed in SEEDS]
    wide = served(MIXED, slots=1_024), served(FIRST, slots=1_024)
    few = [served(MIXED, FEW_TOKENS, seed=seed) for seed in SEEDS]
    small = served(FIRST, 512)
    turns = [served(rule) for rule in two_orders.TURNS]
    start = served(MIXED)
    by_rule = served("1/4")
    card = one_launch.recording()
    return {
        "an H200 has 1,024 slots and 8,192 tokens by default": engine_defaults.batch(gpu("H200")) == (1_024, BUDGET),
        "slots are never all taken": all(one.run.steps.running.max() < 160 for pair in pairs for one in pair),
        "and more of them change nothing": wide[0].gap == start.gap and wide[1].gap == served(FIRST).gap,
        "a fifth of the TTFT, in five draws": all(0.15 < 1 - first.ttft / mixed.ttft < 0.25 for mixed, first in pairs),
        "for gaps of three to seven times the length": all(
            2.5 < first.gap / mixed.gap < 7.5 and first.gap > 0.5 for mixed, first in pairs
        ),
        "and later ends": all(1.05 < first.e2e / mixed.e2e < 1.1 for mixed, first in pairs),
        "with 64 slots first tokens come later too": all(first.ttft > mixed.ttft for mixed, first in slots),
        "a budget of 1,024 gives later first tokens and earlier last ones": all(
            one.ttft > 1.2 * mixed.ttft and one.e2e < mixed.e2e for one, (mixed, _) in zip(few, pairs, strict=True)
        ),
        "a smaller budget leaves the longest gap of prompts first as it is, or longer": (
            small.gap > served(FIRST).gap and abs(served(FIRST, SMALL).gap / served(FIRST).gap - 1) < 0.05
        ),
        "the given height of the sketch": abs(1e3 * served(FIRST).gap - sketch.WHOLE_MS) < 10,
        "prompts in some of the steps only: later first tokens, gaps as long": all(
            one.ttft > 1.1 * start.ttft and one.gap > 0.99 * start.gap for one in turns
        ),
        "a quarter for prompts is like a budget of 2,048": abs(by_rule.gap / served(MIXED, SMALL).gap - 1) < 0.1,
        "the decodes of a step are those of Little's law": abs(
            in_progress(start) / (RATE * (start.e2e - start.ttft)) - 1
        ) < 0.05,
        "what is computed is what arrives": all(
            abs(100 * one.prompt_share - prompts_percent(PROMPT, ANSWER)) < 1 for one in (start, *turns, served(FIRST))
        ),
        "one launch is shorter than two, at each setting": all(
            one_launch.gain(card.at(decodes, chunk), what) > 1
            for decodes in (16, 32, 64, 128) for chunk in (64, 128, 256, 512) for what in (PRODUCT, ATTENTION)
        ),
        **deeper.claims(),
        "the promise about gaps is broken today": "far too long" in decision.kept({decision.CHUNK: decision.NOW}),
    }  # fmt: skip
