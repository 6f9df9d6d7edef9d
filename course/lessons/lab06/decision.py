"""Lab 06's decision: a flag of one of two engines, tried in the simulator, and the log that it starts from."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from course.exercises.decision import flag_typed, the_flag
from course.lessons.lab06.two_orders import FIRST, MIXED, PROMPT, RATE, SLOTS, Served, served

CHUNK, RUNNING, VLLM = "--chunked-prefill-size", "--max-running-requests", "--max-num-batched-tokens"
MIX = "--enable-mixed-chunk"  # the engine of the question then mixes: true, and not what is asked
GAP, TTFT = 0.065, 0.6  # seconds: of the longest gap and of the p99 of the TTFT, promised
GAP_TWIN, TTFT_TWIN = 0.04, 1.5  # and in the twin
BUSY = 1.1 * RATE  # requests/s: a busy day, on which the promises hold too
DAYS, MANY = (0, 1, 2), 2_000  # seeds of busy days, and requests of each
WHOLE = 16_384  # tokens a step when prompts are not split: SGLang's default of --max-prefill-tokens
NOW = 2_048  # the budget of the service, prompts first
LINES = 5  # of the log that are shown


def kept(answer: Any) -> str:
    """Which promises hold with a flag, in words: of the engine that starts prompts first, or of one that mixes.

    Raises ValueError: no flag or several, one that the question does not offer, or a value that no engine takes.
    """
    return _kept(answer, GAP, TTFT)


def kept_twin(answer: Any) -> str:
    """The same with shorter gaps promised, and later first tokens."""
    return _kept(answer, GAP_TWIN, TTFT_TWIN)


def _kept(answer: Any, gap: float, ttft: float) -> str:
    if isinstance(answer, Mapping) and MIX in map(flag_typed, answer):
        raise ValueError(f"{MIX} mixes as well, with small enough chunks; here choose {CHUNK}, {VLLM} or {RUNNING}")
    flag, value = the_flag(answer, f"{{{CHUNK!r}: 512}}")
    if flag == RUNNING:
        _whole(flag, value, 1)
        return "slots are no limit here"
    if flag not in (CHUNK, VLLM):
        raise ValueError(f"{flag} is none of the flags of the question: choose {CHUNK}, {VLLM} or {RUNNING}")
    if flag == CHUNK and value == -1:  # chunking off
        value = WHOLE
    _whole(flag, value, SLOTS)
    if flag == CHUNK:
        return _held(FIRST, value, gap, ttft) + ", prompts first"
    return _held(MIXED, value, gap, ttft)


def _whole(flag: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{flag} is {value!r}: give a whole number, {least} or more")


def _held(rule: str, budget: int, gap: float, ttft: float) -> str:
    """Which promises hold on all busy days. A day that breaks the gaps decides, and the others are not served."""

    def day(seed: int) -> Served:
        return served(rule, min(budget, 65_536), SLOTS, BUSY, seed, MANY)

    if not all(day(seed).gap <= gap for seed in DAYS):
        return "gaps are far too long" if day(DAYS[0]).gap > 2 * gap else "gaps are too long"
    return "both promises hold" if all(day(seed).ttft_p99 <= ttft for seed in DAYS) else "first tokens come too late"


def log() -> str:
    """What the engine writes around the longest gap, in SGLang's words: a line for each step with prompts.

    Of decodes it writes one for each 40 steps; those that stand before and after the gap are shown. Queue, usage
    and throughput are left out.
    """
    found = served(FIRST, NOW)
    steps, (begin, end) = found.run.steps, found.longest_gap
    in_gap = np.flatnonzero((steps.start >= begin - 1e-9) & (steps.end <= end + 1e-9) & (steps.prefill_tokens > 0))
    lines = [_decodes(found, int(in_gap[0]) - 1)]
    shown = [*in_gap[: LINES - 3], in_gap[-1]]
    for before, step in zip([shown[0], *shown], shown, strict=False):
        if step > before + 1:
            left_out = int(steps.prefill_tokens[before + 1 : step].sum())
            lines.append(f"... {step - before - 1} more, #new-token: {left_out} together ...")
        new = int(steps.prefill_tokens[step])
        many = -(-new // PROMPT)
        lines.append(
            f"[{_time(steps.start[step])}] Prefill batch, #new-seq: {many}, #new-token: {new}, "
            f"#running-req: {int(steps.running[step]) - many}"
        )
    lines.append(_decodes(found, int(in_gap[-1]) + 1))
    return "\n".join(lines)


def _decodes(found: Served, step: int) -> str:
    steps = found.run.steps
    return f"[{_time(steps.start[step])}] Decode batch, #running-req: {int(steps.decodes[step])}"


def _time(seconds: float) -> str:
    return f"12:00:{seconds:06.3f}"
