"""The live view of lab 08: a cache that runs out, and answers that go on with the same words after a preemption."""

from __future__ import annotations

from collections.abc import Mapping

from course import lm
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.compared import cells, said, where
from course.explore.tasks import Settings
from course.explore.words import Spoken, WordsExplorer, words_on_the_screen
from course.figures.words import seconds
from course.lm.live import BLOCK_SIZE
from course.lm.prompts import as_workload, held_out_prompts
from course.memory.kvcache import KVCache
from course.policies.continuous import Continuous
from course.steptime import recorded as recorded_steps

PLACES = (2, 12, 57, 44, 18, 4, 25, 0)
"""Of the committed prompts: four long answers, which meet in the cache, then four short ones."""
RATE, SLOTS, SEED, BUDGET = 128, 4, 1, 256
"""At the start: requests/s, slots, the seed of the arrivals; and the tokens a step."""
PROMPTS = [held_out_prompts()[place] for place in PLACES]
TURNS = [prompt.turns for prompt in PROMPTS]
POOLS = {"blocks for all": None, "16 blocks": 16, "12 blocks": 12}
"""KV blocks by name; None: enough for every slot."""
STEP = recorded_steps("h100-llama3-8b")


def cache(name: str) -> KVCache | None:
    """The pool of that name, in blocks of 16 tokens."""
    blocks = POOLS[name]
    return None if blocks is None else KVCache(blocks, BLOCK_SIZE)


def view() -> WordsExplorer:
    """The view, with a table of blocks, preemptions and times here and on the recorded card.

    A model that cannot be loaded leaves the recording and a sentence. As text, all runs are counted in steps.
    """
    return words_on_the_screen(
        TURNS,
        policy="12 blocks",
        rate=RATE,
        max_num_seqs=SLOTS,
        seed=SEED,
        choices={name: lambda slots, name=name: (Continuous(slots, BUDGET), cache(name)) for name in POOLS},
        tasks=(),
        compare=rows,
        title=f"{len(TURNS)} questions and a small pool",
    )


def recorded(rate: float, max_num_seqs: int) -> dict[str, Run]:
    """The same arrivals and as many tokens on the recorded steps, by pool. LMError without the tokenizer."""
    load = as_workload(PROMPTS, lm.Questions.poisson(TURNS, rate, SEED).arrival)
    return {name: serve(load, Continuous(max_num_seqs, BUDGET), STEP, cache(name)) for name in POOLS}


def rows(settings: Settings, spoken: Mapping[str, Spoken]) -> list[tuple[str, ...]]:
    """Blocks, preemptions, tokens whose K and V were lost, times here and on the card, and the words."""
    card, names = recorded(settings["rate"], settings["max_num_seqs"]), list(POOLS)
    runs = {name: one.run for name, one in spoken.items()}
    times = {name: one.time(one.run.makespan) for name, one in spoken.items()}
    return [
        ("", *names),
        (
            f"recorded: {STEP.card.split()[1]}, Llama-3.1-8B",
            *(f"{seconds(run.makespan)}, {_lost(run)}" for run in card.values()),
        ),
        (where(spoken), *cells({name: f"{times[name]}, {_lost(run)}" for name, run in runs.items()}, names)),
        (
            "most blocks in use, here",
            *cells({name: f"{run.steps.blocks.max():,}" for name, run in runs.items()}, names),
        ),
        ("words", *cells(said(spoken, names), names)),
    ]


def _lost(run: Run) -> str:
    """How often somebody was preempted, and the tokens that had to be computed again."""
    count = int(run.steps.preemptions.sum())
    if not count:
        return "0 preempted"
    again = int(run.steps.dropped.sum())
    return f"{count} preempted, {again:,} tokens again"
