"""Lab 07: what its explorers ask. The settings shown leave room for other step times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Why
from course.figures.words import seconds
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import EVERY, PROMPT, STALL, WHOLE, Hidden, Moment

# One long prompt among streaming chats


def _gap(result: Moment) -> float:
    begin, end = result.longest_gap
    return end - begin


def _waits(result: Moment) -> np.ndarray:
    """TTFT of those who come just after the long prompt [s]."""
    return result.run.ttft[result.newcomers.start :]


SHORT = 0.06  # seconds: the promise that the tasks about the budget keep; 512 is the largest budget that does


def _whole(settings: Settings) -> Moment:
    """The same with the whole prompt in one step."""
    return long_prompt.moment(WHOLE, 0, settings["prompt"], settings["streaming"])


def _moment_facts(settings: Settings, result: Moment) -> Mapping[str, Any]:
    whole = _whole(settings)
    cap = settings["long_prefill_token_threshold"]
    return {
        "budget": f"{settings['max_num_batched_tokens']:,}",
        "cap": f"{cap:,}" if cap else "no",
        "gap": seconds(_gap(result)),
        "steps": f"{len(result.chunk_steps[0]):,}",
        "ttft": seconds(result.run.ttft[result.long]),
        "whole": seconds(whole.run.ttft[whole.long]),
        "first": seconds(_waits(result)[0]),
        "first_whole": seconds(_waits(whole)[0]),
        "worst": seconds(_waits(result).max()),
    }


def _streams(settings: Settings, result: Moment) -> bool:
    """Whether the budget alone keeps the chats streaming past the longest prompt."""
    alone = settings["prompt"] == PROMPT and settings["long_prefill_token_threshold"] == 0
    return alone and _gap(result) <= SHORT


MOMENT = (
    Find(
        id="budget",
        text="Lower the token budget alone until no gap is above 60 ms.",
        show={"max_num_batched_tokens": 512},
        reached=_streams,
        miss="The longest gap of a streaming chat is {gap}.",
        answer="With {budget} tokens the longest gap is {gap}. The long prompt takes {steps} steps and {ttft}.",
        facts=_moment_facts,
    ),
    Read(
        id="newcomer",
        text="Stay there. When does newcomer 1 get its first token, in ms?",
        show={"max_num_batched_tokens": 512},
        value=lambda settings, result: 1e3 * float(_waits(result)[0]),
        unit="ms",
        where=_streams,
        slips=((1e-3, "That is in seconds: give milliseconds."),),
        answer="After {first}; with one step for the prompt, {first_whole}.",
        facts=_moment_facts,
        claim=lambda settings, result: _waits(result)[0] >= 0.95 * _waits(_whole(settings))[0],
    ),
    Find(
        id="both",
        text="Help the newcomers too: first tokens within 100 ms, and no gap above 100 ms.",
        show={"max_num_batched_tokens": 2_048, "long_prefill_token_threshold": 512},
        reached=lambda settings, result: (
            settings["prompt"] == PROMPT and _gap(result) <= STALL and _waits(result).max() <= STALL
        ),
        miss="The newcomers wait {worst} at most, and the longest gap of a chat is {gap}.",
        answer="With a budget of {budget} and a cap of {cap} newcomers wait {worst} at most, and the longest gap is "
        "{gap}.",
        facts=_moment_facts,
        claim=lambda settings, result: result.run.ttft[result.long] > _whole(settings).run.ttft[result.long],
    ),
    Why(
        id="room",
        text="Why does a lower budget alone not help newcomers?",
        show={"max_num_batched_tokens": 512},
        options=(
            ("The long prompt takes the rest.", ""),
            ("The chats use up the whole budget.", "Each chat takes only one token of it per step."),
            ("Their own prompts are cut.", "A prompt of 200 tokens fits into one step."),
        ),
        right="a",
        answer="It came first, and for {ttft} takes all that decodes leave.",
        facts=_moment_facts,
        claim=lambda settings, result: _waits(result)[0] > 0.8 * result.run.ttft[result.long],
    ),
)


# Gaps, by tokens and by chats


def _tokens(result: Hidden) -> float:
    """Share of the tokens that come after a gap above the limit."""
    gaps, weights = result.outcome.run.itl_weighted
    return float(weights[gaps > result.limit].sum() / weights.sum())


def _chats_p99(result: Hidden) -> float:
    return float(np.percentile(result.outcome.chat_gaps, 99))


def _start() -> Hidden:
    return long_prompt.hidden(WHOLE, 0, EVERY, 1e3 * STALL)


def _hidden_facts(settings: Settings, result: Hidden) -> Mapping[str, Any]:
    before = _start()
    found = result.outcome
    return {
        "budget": f"{settings['max_num_batched_tokens']:,}",
        "every": f"{settings['every']:g}",
        "limit": seconds(result.limit),
        "p99": seconds(found.itl["p99"]),
        "p99_before": seconds(before.outcome.itl["p99"]),
        "chats_p99": seconds(_chats_p99(result)),
        "chats_p99_before": seconds(_chats_p99(before)),
        "chats": f"{found.stalled(result.limit):.1%}",
        "tokens": f"{_tokens(result):.3%}",
    }


def _as_it_was(settings: Settings, *free: str) -> bool:
    """Whether all controls but those named are where they were at the start."""
    start = {"max_num_batched_tokens": WHOLE, "long_prefill_token_threshold": 0, "every": 20, "limit_ms": 100}
    return all(settings[name] == value for name, value in start.items() if name not in free)


HIDDEN = (
    Read(
        id="stopped",
        text="At the start: what percentage of the chats has a gap above 100 ms?",
        show={},
        value=lambda settings, result: 100 * result.outcome.stalled(result.limit),
        unit="%",
        where=lambda settings, result: _as_it_was(settings),
        slips=((0.01, "That is a fraction: give it in per cent."),),
        answer="{chats} of the chats, but {tokens} of the tokens.",
        facts=_hidden_facts,
        claim=lambda settings, result: _tokens(result) < 0.01 < result.outcome.stalled(result.limit),
    ),
    Find(
        id="often",
        text="Change only how often long prompts come, until the p99 over tokens jumps.",
        show={"every": 2},
        reached=lambda settings, result: (
            _as_it_was(settings, "every") and result.outcome.itl["p99"] >= 10 * _start().outcome.itl["p99"]
        ),
        miss="With one every {every} s the p99 over tokens is {p99}; {chats} of the chats stop.",
        answer="With one every {every} s it is {p99}, not {p99_before}: the engine no longer keeps up, and {chats} of "
        "the chats stop.",
        facts=_hidden_facts,
        claim=lambda settings, result: result.outcome.chat_ttft["max"] > 20 * _start().outcome.chat_ttft["max"],
    ),
    Find(
        id="promise",
        text="Press Reset. Lower the token budget until the p99 over chats is below 60 ms.",
        show={"max_num_batched_tokens": 512},
        reached=lambda settings, result: _as_it_was(settings, "max_num_batched_tokens") and _chats_p99(result) < SHORT,
        miss="The p99 over chats is {chats_p99}.",
        answer="With {budget} tokens it fell from {chats_p99_before} to {chats_p99}.",
        facts=_hidden_facts,
        claim=lambda settings, result: result.outcome.itl["p99"] > _start().outcome.itl["p99"],
    ),
    Why(
        id="unseen",
        text="Why does the p99 over tokens hide the stalls?",
        show={},
        options=(
            ("Outliers are left out of it.", "Nothing is left out: the line goes on to the longest gap."),
            ("A gap is averaged with others.", "A percentile averages nothing; TPOT does."),
            ("It is one gap in hundreds.", ""),
        ),
        right="c",
        answer="They follow {tokens} of the tokens; a p99 shows only what exceeds 1%.",
        facts=_hidden_facts,
        claim=lambda settings, result: _tokens(result) < 0.01 < result.outcome.stalled(result.limit),
    ),
)
