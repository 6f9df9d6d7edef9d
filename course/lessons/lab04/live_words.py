"""The live view of lab 04: the small language model answers the same questions under three policies, beside an H100."""

from __future__ import annotations

from collections.abc import Mapping

from course import lm
from course.engine.run import Run
from course.engine.serving import serve
from course.explore.tasks import Settings
from course.explore.words import Spoken, WordsExplorer, policy_of, words_on_the_screen
from course.figures.words import seconds
from course.lessons.lab04.side_by_side import NAMES
from course.lessons.lab04.three_batchers import STEP
from course.lm.prompts import as_workload, held_out_prompts

PLACES = (18, 2, 25, 27, 3, 9, 12, 0, 54, 20, 13, 4)
"""Of the committed prompts: a long answer in each batch of four, so that their CV is about that of the chat."""
RATE, SLOTS, SEED = 128, 4, 1
"""At the start: requests/s, faster than anybody answers them. The seed is that of the arrivals."""
PROMPTS = [held_out_prompts()[place] for place in PLACES]
ASKED = [prompt.turns[-1] for prompt in PROMPTS]


def view() -> WordsExplorer:
    """The view, with a table of what each policy took here and on the recorded card.

    A model that cannot be loaded leaves the recording and a sentence. As text, all three runs are counted in steps.
    """
    return words_on_the_screen(
        ASKED,
        rate=RATE,
        max_num_seqs=SLOTS,
        seed=SEED,
        choices=NAMES,
        compare=rows,
        title=f"{len(ASKED)} questions, three policies",
    )


def recorded(rate: float, max_num_seqs: int) -> dict[str, Run]:
    """Each policy on the recorded steps, with the same arrivals and as many tokens. LMError without the tokenizer."""
    load = as_workload(PROMPTS, lm.Questions.poisson(ASKED, rate, SEED).arrival)
    return {name: serve(load, policy_of(name, max_num_seqs), STEP) for name in NAMES}


def rows(settings: Settings, spoken: Mapping[str, Spoken]) -> list[tuple[str, ...]]:
    """Time and tokens/s on the card and here, padding, and whether the words are the same; "-": not played yet."""
    card = recorded(settings["rate"], settings["max_num_seqs"])
    here = "counted in steps" if any(one.counted for one in spoken.values()) else "measured on this machine"
    times = {name: one.time(one.run.makespan) for name, one in spoken.items()}
    speeds = {name: one.speed for name, one in spoken.items()}
    padding = {name: f"{one.padding:,} of {one.computed:,} tokens" for name, one in spoken.items()}
    return [
        ("", *NAMES, "gain"),
        (f"recorded: {STEP.card.split()[1]}, Llama-3.1-8B", *(_on_the_card(run) for run in card.values()), _gain(card)),
        (here, *_cells({name: f"{times[name]}, {speeds[name]}" for name in spoken}),
         _gain({name: one.run for name, one in spoken.items()})),
        ("padding computed here", *_cells(padding), ""),
        ("words", *_cells(said(spoken)), ""),
    ]  # fmt: skip


def said(spoken: Mapping[str, Spoken]) -> dict[str, str]:
    """What the answers of each policy are, compared word by word with those of the first one that was played."""
    if not spoken:
        return {}
    first, *others = [name for name in NAMES if name in spoken]
    words = spoken[first].run.words
    found = {first: f"{len(words)} answers"}
    for name in others:
        same = spoken[name].run.words == words
        found[name] = "the same words" if same else "other words"
    return found


def _on_the_card(run: Run) -> str:
    return f"{seconds(run.makespan)}, {run.workload.output_tokens.sum() / run.makespan:,.0f} tokens/s"


def _gain(runs: Mapping[str, Run]) -> str:
    """Tokens/s of continuous over those of static, where both are known: the tokens are the same."""
    both = [runs[name] for name in ("static", "continuous") if name in runs]
    return f"{both[0].makespan / both[1].makespan:.2f}x" if len(both) == 2 else "-"


def _cells(found: Mapping[str, str]) -> list[str]:
    return [found.get(name, "-") for name in NAMES]
