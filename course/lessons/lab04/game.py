"""The games of lab 04: two slots and six questions, played by hand, and the same board for a learner's refill."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score

ANSWER = Score("mean time to an answer [steps]", scores.mean_answer, "{:.2f}")
WASTED = Score("wasted slot-steps", scores.wasted, "{:.0f}")
STEPS = Score("steps", scores.steps, "{:.0f}")
SIX = ((0, 2), (0, 7), (0, 3), (1, 6), (3, 1), (4, 2))  # when each comes, and tokens of its answer
SLOTS = 2


REFILL = Game(
    id="refill",
    title="Be the scheduler",
    goal="Two slots, six questions, and nobody knows how long an answer will be. Fill slots, take steps, and answer "
    "everybody as early as you can.",
    asks=tuple(Ask(float(at), 1, answer, guess=answer) for at, answer in SIX),
    max_num_seqs=SLOTS,
    scores=(ANSWER, WASTED, STEPS),
    rivals={"static": lambda: policies.Static(SLOTS), "continuous": lambda: policies.Continuous(SLOTS, 64)},
    best=14 / 3,
)
GUESSED = Game(
    **vars(REFILL)
    | {
        "id": "guessed",
        "title": "Be the scheduler, with a predictor",
        "goal": "The same six questions, and a predictor says how long each answer will be. Whom do you let in first?",
        "shows": frozenset({"guess"}),
        "rivals": {
            **REFILL.rivals,
            "shortest first": lambda: policies.ShortestFirst(SLOTS, 64, by="guess"),
        },
    }
)
PROMPTS = (3, 4, 5, 3, 4, 5)  # longer than a token, so that a refill that feeds them in pieces is told apart
REPLAYED = Game(
    **vars(REFILL)
    | {
        "id": "replayed",
        "title": "Your refill at work",
        "goal": "The same two slots. Prompts now have 3 to 5 tokens. Each step is what your function returned.",
        "asks": tuple(Ask(ask.arrival, prompt, ask.answer) for ask, prompt in zip(REFILL.asks, PROMPTS, strict=True)),
        "shows": frozenset({"prompt"}),
        "best": None,
    }
)
