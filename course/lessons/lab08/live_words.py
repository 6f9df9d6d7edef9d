"""The live view of lab 08: the small language model tells four stories in a pool that may be too small for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import numpy as np

from course import lm, policies
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.controls import Slider
from course.explore.table import Rows, rows_of
from course.explore.tasks import Settings
from course.explore.words import Spoken, WordsExplorer
from course.figures.words import seconds
from course.lm.prompts import Prompt, as_workload, held_out_prompts
from course.memory.kvcache import KVCache
from course.steptime import recorded

STORIES = (8, 10, 46, 2)
"""Of the committed prompts: long answers, which all begin at once."""
BLOCK_SIZE, BUDGET = 16, 512  # tokens of a block and of a step
POOL = Slider("num_blocks", "Blocks in the pool", 12, 28, 4, 16)
STEP = recorded("h100-llama3-8b")
Clock = Callable[[], float]


@cache
def prompts() -> tuple[Prompt, ...]:
    """What is asked, with the answers that the model gives where there is room for all."""
    return tuple(held_out_prompts()[place] for place in STORIES)


class PoolWords(WordsExplorer):
    """A slider for the blocks over the model that speaks, with a table that has the recorded card beside it."""

    def begin(self, settings: Settings, clock: Clock | None = None) -> Spoken:
        """A run that nobody has computed yet. clock: counts steps in place of seconds."""
        cache = KVCache(settings[POOL.name], BLOCK_SIZE)
        watch = lm.Watch(
            lm.Questions.at_once(self.prompts), _policy(), _model(), cache, clock=clock or time.perf_counter
        )
        return Spoken(self.prompts, "continuous", watch, clock is not None)

    def rows(self, result: Spoken) -> Rows:
        """One run, beside the recorded card."""
        assert result.run.cache is not None
        return rows_of(_rows(result.run.cache.num_blocks, result))

    def compared(self, settings: Settings) -> Rows:
        """The same under the lanes; before a run is complete, the recorded card alone."""
        blocks = settings[POOL.name]
        return rows_of(_rows(blocks, self._measured.get((blocks,))))


def explorer() -> PoolWords:
    """The view. As text the run is counted in steps; a model that cannot be loaded leaves the recording."""
    asked = [prompt.turns[-1] for prompt in prompts()]
    return PoolWords(asked, (POOL,), 0, None, title="Four stories in a small pool")


@lru_cache(maxsize=8)
def on_the_card(num_blocks: int) -> Run:
    """The same requests and pool on the recorded steps. LMError where the tokenizer cannot be read."""
    load = as_workload(prompts(), np.zeros(len(STORIES)))
    return serve(load, _policy(), STEP, KVCache(num_blocks, BLOCK_SIZE))


def longest_gap(run: Run) -> float:
    """The longest time without a word in a story [s]."""
    return float(max(np.diff(run.token_times(row)).max() for row in range(len(run))))


def _policy() -> policies.Continuous:
    return policies.Continuous(len(STORIES), BUDGET)


def _who(times: Sequence[int]) -> str:
    """The preemptions, and of whom."""
    who = ", ".join(f"#{row}" for row, count in enumerate(times) if count)
    return f"{sum(times)} ({who})" if who else "0"


def _felt(run: Run) -> list[str]:
    """Preemptions and tokens computed again."""
    return [_who(run.preempted.tolist()), f"{int(run.steps.dropped.sum()):,} tokens"]


def _rows(num_blocks: int, result: Spoken | None) -> list[tuple[str, str, str]]:
    card = on_the_card(num_blocks)
    here, head = ["-"] * 4, "measured here"
    if result is not None:
        run, head = result.run, "counted in steps" if result.counted else head
        other = sum(said != prompt.answer for said, prompt in zip(run.words, prompts(), strict=True))
        here = [*_felt(run), result.time(longest_gap(run)), f"{other} of {len(run.words)}"]
    there = [*_felt(card), seconds(longest_gap(card)), "-"]
    labels = ("preemptions", "computed again", "longest gap in a story", "answers that changed")
    return [
        ("", head, f"simulated: {STEP.card.split()[1]}"),
        ("blocks in the pool", f"{num_blocks:,}", f"{num_blocks:,}"),
        *zip(labels, here, there, strict=True),
    ]


@cache
def _model() -> lm.LanguageModel:
    """Loaded once, and asked once: the first step of a process is a slow one."""
    model = lm.load()
    lm.serve_live(lm.Questions.at_once(["Spell owl."], max_tokens=1), _policy(), model)
    return model
