"""The live view of lab 04: the small language model under three policies, beside an H100 and vLLM's own run."""

from course import lm
from course.explore.words import Play, WordsExplorer, policy_of, words_on_the_screen
from course.explore.words_beside import policies_beside
from course.lessons.lab04 import as_vllm
from course.lessons.lab04.side_by_side import NAMES
from course.lessons.lab04.three_batchers import STEP
from course.lm.prompts import held_out_prompts

PLACES = (18, 2, 25, 27, 3, 9, 12, 0, 54, 20, 13, 4)
"""Of the committed prompts: a long answer in each batch of four, so that their CV is about that of the chat."""
RATE, SLOTS, SEED = 128, 4, 1
"""At the start: requests/s, faster than anybody answers them. The seed is that of the arrivals."""
PROMPTS = [held_out_prompts()[place] for place in PLACES]
ASKED = [prompt.turns for prompt in PROMPTS]


def play(rate: float, max_num_seqs: int, policy: str) -> Play:
    """What the view serves."""
    return Play(lm.Questions.poisson(ASKED, rate, SEED), policy_of(policy, max_num_seqs))


def view() -> WordsExplorer:
    """The view, with a table of what each policy took here and on the recorded card, and of vLLM's own run."""
    return words_on_the_screen(
        ASKED,
        rate=RATE,
        max_num_seqs=SLOTS,
        seed=SEED,
        choices=NAMES,
        compare=policies_beside(PROMPTS, NAMES, play, STEP, "Llama-3.1-8B", as_vllm.line),
        title=f"{len(ASKED)} questions, three policies",
    )
