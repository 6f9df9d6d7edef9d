"""vLLM itself with the small model: its line beside the live words, and its own refill, step by step, as recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from course.calibration import vllm_live
from course.calibration.vllm_live import VllmRun
from course.exercises.learner import tried
from course.explore.table import Table, table
from course.explore.tasks import Settings

Tokens = dict[int, int]
RECORDED = {4: "questions_4", 8: "questions_8"}
"""The same questions by the slots that vLLM had for them."""
SHOWN = 4
"""Refills that the table lists; behind them stands how many of all steps are the same."""


@cache
def run(slots: int = 4) -> VllmRun:
    """What was recorded with so many slots."""
    return vllm_live.read(RECORDED[slots])


def name() -> str:
    """What was recorded: engine, model, machine, date."""
    engine = run().engine
    return f"{engine['name']} {engine['version']}, small model, two cores, {engine['date']}"


def same_words() -> int:
    """To how many of the committed prompts vLLM gave the committed answer."""
    return json.loads((vllm_live.FOLDER / "words.json").read_text(encoding="utf-8"))["same_text"]


def tokens_a_step(slots: int) -> float:
    """Tokens of answers for each step of the recorded run: unlike its seconds, no matter of the machine."""
    found = run(slots)
    return float(found.output_tokens.sum() / len(found.schedule))


def line(settings: Settings) -> tuple[str, ...]:
    """A row for the table of the three policies: vLLM batches continuously, and was recorded with 4 and 8 slots."""
    slots = settings["max_num_seqs"]
    found = f"{tokens_a_step(slots):.2f} tokens a step" if slots in RECORDED else "-"
    return (f"{name()}: {len(run())} questions", "-", "-", found, "")


@dataclass(frozen=True)
class Decision:
    """One step: who runs and who waits, {request: tokens before its next one}, and what vLLM computed. From 1."""

    step: int
    ended: tuple[int, ...]
    running: Tokens
    waiting: Tokens
    tokens: Tokens


@cache
def decisions() -> tuple[Decision, ...]:
    """Every step of the run with 4 slots, as a refill is asked. No prompt of it is cut, and nobody preempted."""
    found, begun, before = run(), set[int](), dict[int, tuple[int, int]]()
    last = {request: k for k, step in enumerate(found.schedule) for request in step}
    steps = []
    for k, step in enumerate(found.schedule):
        there = np.flatnonzero(found.arrival <= found.looks[k]).tolist()
        steps.append(
            Decision(
                k + 1,
                tuple(request + 1 for request in before if last[request] == k - 1),
                {request + 1: 1 for request in before if last[request] >= k},
                {request + 1: int(found.prompt_tokens[request]) for request in there if request not in begun},
                {request + 1: tokens for request, (tokens, _) in step.items()},
            )
        )
        begun |= set(step)
        before = step
    return tuple(steps)


def beside_vllm(refill: Callable[[Tokens, Tokens, int], Tokens]) -> Table:
    """The refills of vLLM when all slots were taken, beside what the learner's function returns for the same."""
    slots, asked = run().engine["max_num_seqs"], decisions()
    answers, _ = tried(refill, lambda: [refill(dict(one.running), dict(one.waiting), slots) for one in asked])
    same = [answers is not None and answers[k] == one.tokens for k, one in enumerate(asked)]
    rows: list[tuple[str, ...]] = [("step", "ended before it", "waiting", "vLLM computes", "your refill")]
    for place in [k for k, one in enumerate(asked) if one.ended and one.waiting][:SHOWN]:
        one, mine = asked[place], answers[place] if answers else None
        yours = "the same" if same[place] else "-" if mine is None else str(mine)
        rows.append((str(one.step), _listed(one.ended), _listed(one.waiting), str(one.tokens), yours))
    rows.append((f"all {len(asked)}", "", "", "", f"the same in {sum(same)}"))
    return table(rows, f"{name()}: {len(run())} questions, {slots} slots [recorded]")


def _listed(requests: tuple[int, ...] | Tokens) -> str:
    """Some requests; of many the first, and how many more."""
    first = list(requests)[:3]
    more = len(requests) - len(first)
    return ", ".join(map(str, first)) + (f" and {more} more" if more else "")
