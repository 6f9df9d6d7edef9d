"""The live view of lab 08: the small language model tells four stories in a pool that may be too small for them."""

from course import lm, policies
from course.engine.run import Run
from course.explore import Slider
from course.explore.words import Play, WordsExplorer
from course.explore.words_beside import longest_gap, played_beside
from course.lm.prompts import held_out_prompts
from course.memory.kvcache import KVCache
from course.steptime import recorded

STORIES = [held_out_prompts()[place] for place in (8, 10, 46, 2)]
"""Long answers, which all begin at once."""
BLOCK_SIZE, BUDGET = 16, 512  # tokens of a block and of a step
POOL = Slider("num_blocks", "Blocks in the pool", 12, 28, 4, 16)
STEP = recorded("h100-llama3-8b")


def play(num_blocks: int) -> Play:
    """The stories in a pool of so many blocks."""
    asked = lm.Questions.at_once([prompt.turns for prompt in STORIES])
    return Play(asked, policies.Continuous(len(STORIES), BUDGET), KVCache(num_blocks, BLOCK_SIZE))


def preemptions(run: Run) -> str:
    """How many, and of whom."""
    who = ", ".join(f"#{row}" for row, count in enumerate(run.preempted) if count)
    return f"{run.preempted.sum()} ({who})" if who else "0"


def words_again() -> WordsExplorer:
    """The small model tells stories on the machine at hand, in a pool that may be too small for them."""
    rows = {
        "preemptions": lambda side: preemptions(side.run),
        "computed again": lambda side: f"{int(side.run.steps.dropped.sum()):,} tokens",
        "longest gap in a story": lambda side: side.time(longest_gap(side.run, len(STORIES))),
    }
    return played_beside(STORIES, POOL, play, STEP, rows, title="Four stories in a small pool")
