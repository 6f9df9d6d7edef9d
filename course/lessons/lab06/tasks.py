"""Lab 06: what its two explorers ask of a result."""

from collections.abc import Mapping
from typing import Any

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab06 import two_orders
from course.lessons.lab06.two_orders import BUDGET, FIRST, MIXED, RATE, SHARES, SLOTS, TURNS, Served

SHORT, EARLY = 0.065, 0.1  # seconds: the longest gap, and the mean TTFT, that two tasks ask for
FEW = 64  # slots of the last task
TURN = "every 4th step"

# Who goes first


def prompts_in_gap(settings: Settings, result: Served) -> float:
    """Prompts that were computed in the longest gap."""
    return result.prompts_in_gap


def many_in_a_row(settings: Settings, result: Served) -> bool:
    """Whether the gap is many times a step with one prompt, and few prompts were there when it began."""
    begin, _ = result.longest_gap
    there = ((result.run.arrival <= begin) & (result.run.admitted >= begin)).sum()
    return bool(result.prompts_in_gap > 10 * max(1, there))


def short(settings: Settings, result: Served) -> bool:
    """Whether no gap is long and first tokens come early, in the explorer's own traffic."""
    return result.gap <= SHORT and result.ttft <= EARLY


def needs_both(settings: Settings, result: Served) -> bool:
    """Whether neither the order nor the budget does it alone."""
    alone = two_orders.served(MIXED), two_orders.served(FIRST, settings["max_num_batched_tokens"])
    return not any(one.gap <= SHORT for one in alone)


def no_shorter(settings: Settings, result: Served) -> bool:
    """Whether the longest gap is at least as long as with the whole budget."""
    return result.gap >= two_orders.served(FIRST).gap


def order(settings: Settings, result: Served) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "prompts": f"{result.prompts_in_gap:.0f}",
        "tokens": f"{result.prompts_in_gap * two_orders.PROMPT:,.0f}",
        "gap": seconds(result.gap),
        "ttft": seconds(result.ttft),
        "budget": f"{settings['max_num_batched_tokens']:,}",
        "whole": seconds(two_orders.served(FIRST).gap),
    }


# A share for prompts


def share(settings: Settings, result: Served) -> bool:
    """Whether a share keeps gaps short and first tokens early, at the start's rate and slots."""
    here = settings["rate"] == RATE and settings["max_num_seqs"] == SLOTS
    return here and settings["rule"] in SHARES and result.gap <= SHORT and result.ttft <= EARLY


def like_a_budget(settings: Settings, result: Served) -> bool:
    """Whether a budget of the same tokens gives nearly the same gaps and first tokens."""
    same = two_orders.served(MIXED, int(SHARES[settings["rule"]] * BUDGET))
    return abs(same.gap / result.gap - 1) < 0.1 and abs(same.ttft / result.ttft - 1) < 0.1


def at_turn(settings: Settings, result: Served) -> bool:
    """Whether prompts run in every fourth step, at the start's rate and slots."""
    return settings["rule"] == TURN and settings["rate"] == RATE and settings["max_num_seqs"] == SLOTS


def later_percent(settings: Settings, result: Served) -> float:
    """By how much the mean TTFT is above that of mixed batches [%]."""
    return 100 * (result.ttft / mixed(settings).ttft - 1)


def buys_nothing(settings: Settings, result: Served) -> bool:
    """Whether the longest gap is no shorter than that of mixed batches."""
    return result.gap >= mixed(settings).gap and settings["rule"] in TURNS


def mixed(settings: Settings) -> Served:
    """Mixed batches at the same rate, with the same slots."""
    return two_orders.served(MIXED, BUDGET, settings["max_num_seqs"], float(settings["rate"]))


def slots_come_later(settings: Settings, result: Served) -> bool:
    """Whether all slots are taken, answers take longer than in mixed batches, and first tokens come later."""
    other = mixed(settings)
    held, before = ((one.run.response - one.run.admitted).mean() for one in (result, other))
    full = all(one.run.steps.running.max() == one.slots for one in (result, other))
    return bool(full and held > before and result.ttft > other.ttft)


def sharing(settings: Settings, result: Served) -> Mapping[str, Any]:
    """What the answers name."""
    other = mixed(settings)
    held, before = (float((one.run.response - one.run.admitted).mean()) for one in (result, other))
    return {
        "rule": result.rule,
        "gap": seconds(result.gap),
        "ttft": seconds(result.ttft),
        "before": seconds(other.ttft),
        "gap_before": seconds(other.gap),
        "percent": f"{later_percent(settings, result):.0f}%",
        "held": f"{held:.2f} s",
        "held_before": f"{before:.2f} s",
        "tokens": f"{SHARES.get(result.rule, 1) * BUDGET:,.0f}",
    }
