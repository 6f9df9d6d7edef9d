"""An explorer that launches: the small language model answers questions, and Little's law on this machine's clock."""

import numpy as np

from course import lm, policies
from course.explore import Explorer, Slider
from course.explore.words import Play
from course.explore.words_beside import served_beside
from course.lessons.lab03 import shown_figures
from course.lessons.lab03.one_engine import STEP
from course.lm.prompts import held_out_prompts

PLACES = (13, 25, 20, 27, 55, 18, 0, 9, 26, 4)
"""Of the committed prompts: short answers, so that a move takes about a second."""
REQUESTS, SEED = 60, 0
BUDGET = 256  # tokens a step
PROMPTS = [held_out_prompts()[PLACES[number % len(PLACES)]] for number in range(REQUESTS)]
CONTROLS = (
    Slider("rate", "Arrival rate", 16, 128, 2, 64, "requests/s", log=True),
    Slider("max_num_seqs", "Slots (max_num_seqs)", 1, 8, 2, 4, log=True),
)
LAW = {
    "a step, median": lambda side: side.time(float(np.median(side.run.steps.seconds))),
    "λ, arrivals per second": lambda side: f"{side.run.little().arrival_rate:.6g}",
    "W, mean E2E": lambda side: f"{1e3 * side.run.little().W:.6g} ms",
    "λ W": lambda side: f"{side.run.little().arrival_rate * side.run.little().W:.6f}",
    "L, counted over time": lambda side: f"{side.run.little().L:.6f}",
}
"""Both sides of Little's law."""


def play(rate: float, max_num_seqs: int) -> Play:
    """The questions, at Poisson times."""
    asked = lm.Questions.poisson([prompt.turns for prompt in PROMPTS], rate, SEED)
    return Play(asked, policies.Continuous(max_num_seqs, BUDGET))


def explorer() -> Explorer:
    """Sliders for rate and slots; every move lets the model answer the questions, by the clock of this machine."""
    last = {"the last answer": lambda side: side.run.words[int(np.argmax(side.run.response))]}
    title = f"{REQUESTS} questions"
    return served_beside(PROMPTS, CONTROLS, play, STEP, LAW, last, shown_figures.numbers_in_system, title)
