"""The game of lab 15: two slots, and more deadlines than anybody can meet."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score

SLOTS, TOKENS, PACE = 2, 64, 1.0
EIGHT = ((0, 3, 6), (0, 3, 8), (0, 4, 4), (0, 4, 5), (1, 2, 4), (1, 3, 5), (2, 3, 7), (3, 5, 8))
"""When each comes, steps that its answer takes, and how long after it came it is due."""


DEADLINES = Game(
    id="deadlines",
    title="Who can still make it?",
    goal="Let few answers end after they are due.",
    # As many prompt tokens as its answer takes steps: for the policies, which have to know when it must start.
    asks=tuple(Ask(float(at), steps, steps, guess=steps, due=float(due)) for at, steps, due in EIGHT),
    max_num_seqs=SLOTS,
    scores=(
        Score("late answers", scores.late, "{:.0f}"),
        Score("mean time to an answer [steps]", scores.mean_answer, "{:.2f}"),
    ),
    shows=frozenset({"guess", "due"}),
    rivals={
        "in order": lambda: policies.Continuous(SLOTS, TOKENS),
        "earliest deadline": lambda: policies.EarliestDeadline(SLOTS, TOKENS),
        "hopeless last": lambda: policies.HopelessLast(SLOTS, TOKENS, tokens_per_second=PACE),
    },
    best=2.0,
)
