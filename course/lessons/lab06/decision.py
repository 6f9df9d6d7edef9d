"""Lab 06's decision: flags of two engines, tried in the simulator, and the log that it starts from."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course.exercises.decision import flag_typed, value_typed
from course.lessons.lab06.two_orders import BUDGET, FIRST, MIXED, PROMPT, RATE, SLOTS, served

MIX, CHUNK, RUNNING = "--enable-mixed-chunk", "--chunked-prefill-size", "--max-running-requests"
VLLM = "--max-num-batched-tokens"
GAP, TTFT = 0.06, 0.6  # seconds: of the longest gap and of the p99 of the TTFT, promised
GAP_TWIN, TTFT_TWIN = 0.04, 1.5  # and in the twin
BUSY = 1.1 * RATE  # requests/s: a busy day, on which the promises hold too
DAYS, MANY = (0, 1, 2), 2_000  # seeds of busy days, and requests of each
ON = (True, None, "", "true", "True")
LINES = 7  # of the log


def kept(answer: Any) -> str:
    """Which promises hold with SGLang's flags of an answer, in words; what is left out stays as it is.

    Raises ValueError: no flags, one that the question does not offer, or a value that no engine takes.
    """
    flags = _flags(answer, (MIX, CHUNK, RUNNING))
    mixed = MIX in flags
    if mixed and flags[MIX] not in ON:
        raise ValueError(f"{MIX} is a switch: give it as {{{MIX!r}: True}}")
    budget, slots = flags.get(CHUNK, BUDGET), flags.get(RUNNING, SLOTS)
    for flag, value in ((CHUNK, budget), (RUNNING, slots)):
        _whole(flag, value, 1)
    if RUNNING in flags and CHUNK not in flags and not mixed:
        return "slots are no limit here"
    words = _held(MIXED if mixed else FIRST, max(budget, slots), slots, GAP, TTFT)
    return words + ("" if mixed else ", prompts first")


def kept_twin(answer: Any) -> str:
    """The same in vLLM, where the budget alone is chosen, with shorter gaps promised."""
    flags = _flags(answer, (VLLM,))
    _whole(VLLM, flags[VLLM], SLOTS)
    return _held(MIXED, flags[VLLM], SLOTS, GAP_TWIN, TTFT_TWIN)


def _flags(answer: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        raise ValueError(f"give a dictionary of flags, such as {{{known[-1]!r}: 512}}")
    flags = {flag_typed(flag): value_typed(value) if value is not True else True for flag, value in answer.items()}
    if not flags:
        raise NotImplementedError("no flag is chosen yet")
    other = [flag for flag in flags if flag not in known]
    if other:
        raise ValueError(f"{other[0]} is none of the flags of the question: choose {' or '.join(known)}")
    return flags


def _whole(flag: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{flag} is {value!r}: give a whole number, {least} or more")


def _held(rule: str, budget: int, slots: int, gap: float, ttft: float) -> str:
    """Which promises hold on all busy days; the first day decides where it breaks the gaps already."""
    days: Callable[[int], Any] = lambda seed: served(rule, min(budget, 65_536), slots, BUSY, seed, MANY)  # noqa: E731
    gaps = all(days(seed).gap <= gap for seed in DAYS)
    if not gaps:
        return "gaps are too long"
    return "both promises hold" if all(days(seed).ttft_p99 <= ttft for seed in DAYS) else "first tokens come too late"


def log() -> str:
    """What the engine writes around the longest gap, in SGLang's words: a line for each step with prompts.

    Of decodes it writes one for each 40 steps; those that stand before and after the gap are shown. Token usage and
    throughput are left out.
    """
    found = served(FIRST)
    steps, (begin, end) = found.run.steps, found.longest_gap
    in_gap = np.flatnonzero((steps.start >= begin - 1e-9) & (steps.end <= end + 1e-9) & (steps.prefill_tokens > 0))
    lines = [_decodes(found, int(in_gap[0]) - 1)]
    shown = [*in_gap[: LINES - 3], *in_gap[-1:]]
    for before, step in zip([shown[0], *shown], shown, strict=False):
        if step > before + 1:
            lines.append(f"... {step - before - 1} more of these ...")
        new = int(steps.prefill_tokens[step])
        at, running = steps.start[step], int(steps.running[step])
        came = len(np.flatnonzero((found.run.arrival <= at) & (found.run.admitted > at)))
        lines.append(
            f"[{_time(at)}] Prefill batch, #new-seq: {-(-new // PROMPT)}, #new-token: {new}, #cached-token: 0, "
            f"#running-req: {running - -(-new // PROMPT)}, #queue-req: {came}"
        )
    lines.append(_decodes(found, int(in_gap[-1]) + 1))
    return "\n".join(lines)


def _decodes(found: Any, step: int) -> str:
    steps = found.run.steps
    return f"[{_time(steps.start[step])}] Decode batch, #running-req: {int(steps.decodes[step])}, #queue-req: 0"


def _time(seconds: float) -> str:
    return f"12:00:{seconds:06.3f}"
