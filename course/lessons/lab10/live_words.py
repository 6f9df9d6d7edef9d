"""The live view of lab 10: 24 questions after one conversation, to the small language model, with and without caching.

The same questions at the same times went to the real vLLM with this model (course/data/vllm, `prefix_on`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from random import Random

import numpy as np

from course import lm, policies
from course.calibration import vllm_live
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.controls import Choice
from course.explore.tasks import Settings
from course.explore.words import Play, Spoken, Timed, WordsExplorer
from course.explore.words_beside import HERE
from course.lessons.lab10.one_prompt import STEP
from course.lm.cache import prefix_ids
from course.lm.loading import ROOM
from course.lm.prompts import Prompt, as_workload, held_out_prompts
from course.lm.tokenizer import Tokenizer
from course.memory.kvcache import KVCache

LIVE = vllm_live.read("prefix_on")
ON, OFF = "on", "off"
SLOTS, BUDGET, BLOCKS, BLOCK_SIZE = (
    LIVE.engine[name] for name in ("max_num_seqs", "max_num_batched_tokens", "free_blocks", "block_size")
)


def asked() -> list[Prompt]:
    """One long conversation before 24 different questions, as vLLM was asked them."""
    prompts = held_out_prompts()
    longest = max(prompts, key=lambda one: len(one.turns))
    chosen = Random(4).sample([one for one in prompts if len(one.turns) == 1], len(LIVE))
    return [replace(one, turns=(*longest.turns, longest.answer, *one.turns)) for one in chosen]


PROMPTS = asked()


def kv(caching: str) -> KVCache:
    """The pool that vLLM had."""
    return KVCache(BLOCKS, BLOCK_SIZE, LIVE.engine["version"], caching == ON)


def play(caching: str) -> Play:
    """The questions at the times at which vLLM got them."""
    load = lm.Questions([prompt.turns for prompt in PROMPTS], LIVE.due - LIVE.due[0])
    return Play(load, policies.Continuous(SLOTS, BUDGET), kv(caching))


@cache
def on_card(caching: str) -> Run:
    """The same questions on recorded steps of an H200."""
    tokenizer = Tokenizer(ROOM / "tokenizer.json")
    ids = prefix_ids([tokenizer.prompt(prompt.turns) for prompt in PROMPTS], BLOCK_SIZE)
    load = as_workload(PROMPTS, LIVE.due - LIVE.due[0])
    if caching == ON:
        load = replace(load, prefix=ids, prefix_block_size=BLOCK_SIZE)
    return serve(load, policies.Continuous(SLOTS, BUDGET), STEP, kv(caching))


def found_by_vllm(caching: str) -> int:
    """Prompt tokens that the real vLLM found, as its steps show."""
    run = vllm_live.read(f"prefix_{caching}")
    first: dict[int, int] = {}
    for step in run.schedule:
        for request, (_, computed) in step.items():
            first.setdefault(request, computed)
    return sum(first.values())


def words_again() -> WordsExplorer:
    """The small model answers questions after one conversation, which is computed once or every time."""

    def compare(settings: Settings, runs: Mapping[str, Spoken]) -> list[tuple[str, ...]]:
        here = next(iter(runs.values()), None)
        name = "counted in steps" if here and here.counted else HERE
        caching = settings["prefix_caching"]
        sides = {name: here, "simulated: H200": Timed(on_card(caching))}
        needed = int(LIVE.prompt_tokens.sum())

        def line(label: str, cell: Callable[[Timed], str], last: str) -> tuple[str, ...]:
            return (label, *("-" if side is None else cell(side) for side in sides.values()), last)

        def changed() -> str:
            if here is None:
                return "-"
            said = zip(here.run.words, PROMPTS, strict=True)
            return f"{sum(words != prompt.answer for words, prompt in said)} of {len(PROMPTS)}"

        found = found_by_vllm(caching)
        return [
            ("", *sides, f"vLLM {LIVE.engine['version']}, recorded"),
            line("prompt tokens", lambda side: f"{side.run.workload.prompt_tokens.sum():,}", f"{needed:,}"),
            line("found", lambda side: f"{side.run.summary().get('prefix_cache_hits', 0):,.0f}", f"{found:,}"),
            line("computed", lambda side: f"{side.run.steps.prefill_tokens.sum():,}", f"{needed - found:,}"),
            line("mean TTFT", lambda side: side.time(float(np.mean(side.run.ttft))), "-"),
            ("answers that changed", changed(), "-", f"{len(LIVE) - LIVE.same_as_numpy} of {len(LIVE)}"),
        ]

    control = Choice("prefix_caching", "Prefix caching", [(ON, ON), (OFF, OFF)], ON)
    return WordsExplorer(
        [prompt.turns for prompt in PROMPTS],
        (control,),
        lambda prefix_caching: play(prefix_caching),
        compare,
        title="24 questions after one conversation",
    )
