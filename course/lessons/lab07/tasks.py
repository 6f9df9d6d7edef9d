"""Lab 07: what its two explorers ask of a result. The settings shown leave room for other step times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course.explore.tasks import Settings
from course.figures.words import seconds
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import CLASS, EVERY, MEET, STALL, WHOLE, Hidden, Moment

SHORT = 0.04  # seconds: the promise that the tasks about the budget keep; 512 is the largest budget that does
GAP, FIRST = 0.11, 0.4  # seconds: every gap, and every first token, when all come at once

# One long prompt among streaming chats


def waits(result: Moment) -> np.ndarray:
    """TTFT of those who come just after the long prompt [s]."""
    return result.run.ttft[list(result.newcomers)]


def whole(settings: Settings) -> Moment:
    """The same with the whole prompt in one step."""
    return long_prompt.moment(WHOLE, 0, settings["at_once"], settings["crowd"])


def streams(settings: Settings, result: Moment) -> bool:
    """Whether the budget alone keeps the chats streaming past the long prompt."""
    alone = settings["at_once"] == 1 and not settings["crowd"] and settings["long_prefill_token_threshold"] == 0
    return alone and result.gap <= SHORT


def both(settings: Settings, result: Moment) -> bool:
    """Whether nobody waits for long when MEET long prompts come at once, and a class with them."""
    meet = settings["at_once"] == MEET and settings["crowd"] == CLASS
    return bool(meet and result.gap <= GAP and result.run.ttft[result.later].max() <= FIRST)


def needs_both(settings: Settings, result: Moment) -> bool:
    """Whether neither the budget nor the cap does it alone, and the long prompts pay."""
    here = {"at_once": MEET, "crowd": CLASS}
    budget = long_prompt.moment(settings["max_num_batched_tokens"], 0, MEET, CLASS)
    cap = long_prompt.moment(WHOLE, settings["long_prefill_token_threshold"], MEET, CLASS)
    pays = result.run.ttft[result.long] > whole(settings).run.ttft[result.long]
    return bool(pays and not (both(here, budget) or both(here, cap)))


def newcomer_waits_as_long(settings: Settings, result: Moment) -> bool:
    """Whether the first newcomer waits as long as behind the whole prompt in one step."""
    return bool(waits(result)[0] >= 0.95 * waits(whole(settings))[0])


def moment(settings: Settings, result: Moment) -> Mapping[str, Any]:
    """What the answers name."""
    return {
        "budget": f"{settings['max_num_batched_tokens']:,}",
        "gap": seconds(result.gap),
        "steps": f"{len(result.chunk_steps[0]):,}",
        "ttft": seconds(result.run.ttft[result.long]),
        "worst": seconds(float(result.run.ttft[result.later].max())),
    }


# Gaps, by tokens and by chats


def at_the_start() -> Hidden:
    """Contracts in one step each."""
    return long_prompt.hidden(WHOLE, 0, EVERY, 1e3 * STALL)


def stopped_percent(settings: Settings, result: Hidden) -> float:
    """Chats with a gap above the limit [%]."""
    return 100 * result.outcome.stalled(result.limit)


def hidden_in_tokens(settings: Settings, result: Hidden) -> bool:
    """Whether a percentile sees the gaps over chats, and not over tokens."""
    return result.tokens < 0.01 < result.outcome.stalled(result.limit)


def promise_to_chats(settings: Settings, result: Hidden) -> bool:
    """Whether all but one chat in a hundred stream without a gap above SHORT."""
    return result.p99 < SHORT


def p99_over_tokens_rises(settings: Settings, result: Hidden) -> bool:
    """Whether the p99 over tokens is above that of the start."""
    return result.outcome.itl["p99"] > at_the_start().outcome.itl["p99"]


def gaps(settings: Settings, result: Hidden) -> Mapping[str, Any]:
    """What the answers name."""
    before, found = at_the_start(), result.outcome
    return {
        "budget": f"{settings['max_num_batched_tokens']:,}",
        "p99": seconds(found.itl["p99"]),
        "chats_p99": seconds(result.p99),
        "chats_p99_before": seconds(before.p99),
        "chats": f"{found.stalled(result.limit):.1%}",
        "tokens": f"{result.tokens:.3%}",
    }
