"""The live view of lab 07: the small language model tells four stories, and a long prompt comes, beside an H200."""

from course import lm, policies
from course.engine.run import Run
from course.explore import Slider
from course.explore.words import Play, WordsExplorer
from course.explore.words_beside import longest_gap, played_beside
from course.lessons.lab07 import long_prompt
from course.lessons.lab07.long_prompt import STEP
from course.lm.prompts import Prompt, held_out_prompts

COMMITTED = held_out_prompts()
TALKERS = [COMMITTED[place] for place in (8, 10, 46, 2)]
"""Stories, whose answers are long."""
FIRST, LAST = COMMITTED[67], COMMITTED[69]
LONG = Prompt("long", (*FIRST.turns, FIRST.answer, *LAST.turns), LAST.answer)
"""Two conversations, one after the other."""
PROMPTS, ROW = (*TALKERS, LONG), len(TALKERS)
ARRIVES = 0.06  # seconds after the stories, the long prompt
WHOLE = 512  # a token budget that holds the long prompt beside all decodes
ON_THE_CARD = 128
"""The token budget on the H200 is so many times the one here, so that WHOLE holds the whole contract there too."""
BUDGET = Slider("max_num_batched_tokens", "Token budget", 16, WHOLE, 2, WHOLE, "tokens", log=True)


def play(max_num_batched_tokens: int) -> Play:
    """The stories at once, then the long prompt, which has a slot too."""
    asked = lm.Questions([prompt.turns for prompt in PROMPTS], [0.0] * ROW + [ARRIVES])
    return Play(asked, policies.Continuous(len(PROMPTS), max_num_batched_tokens))


def on_the_card(max_num_batched_tokens: int) -> Run:
    """Four chats and the contract, in row ROW too."""
    return long_prompt.moment(ON_THE_CARD * max_num_batched_tokens, 0, streaming=ROW).run


def chunks(run: Run) -> int:
    """Steps that computed a part of the long prompt."""
    return int(((run.steps.start >= run.admitted[ROW]) & (run.steps.end <= run.first_computed[ROW])).sum())


def explorer() -> WordsExplorer:
    """A slider for the token budget over the model that speaks."""
    rows = {
        "long prompt": lambda side: f"{side.run.workload.prompt_tokens[ROW]:,} tokens",
        "its chunks": lambda side: f"{chunks(side.run):,}",
        "longest gap of a story": lambda side: side.time(longest_gap(side.run, ROW)),
        "TTFT of the long prompt": lambda side: side.time(float(side.run.ttft[ROW])),
    }
    title = "A long prompt among four stories"
    return played_beside(PROMPTS, BUDGET, play, STEP, rows, title, card=on_the_card, scale=ON_THE_CARD)
