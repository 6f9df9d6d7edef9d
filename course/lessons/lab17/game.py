"""The game of lab 17: two slots, a tenant that asks for much at once, and two that ask for little."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score

SLOTS, TOKENS = 2, 64
EIGHT = ((0, 2, "N"), (0, 5, "N"), (0, 3, "N"), (0, 2, "N"), (0, 4, "N"), (1, 6, "A"), (2, 2, "B"), (6, 2, "B"))
"""When each comes, tokens of its answer, and whose it is."""


TENANTS = Game(
    id="tenants",
    title="Whose turn?",
    goal="Two slots. N asked for five answers at once, A and B come later. Let nobody's answers wait long, and no "
    "tenant's much longer than another's.",
    asks=tuple(Ask(float(at), 1, answer, guess=answer, tenant=who) for at, answer, who in EIGHT),
    max_num_seqs=SLOTS,
    scores=(
        Score("mean time of the slowest tenant [steps]", scores.worst_tenant, "{:.2f}"),
        Score("mean time to an answer [steps]", scores.mean_answer, "{:.2f}"),
    ),
    shows=frozenset({"guess", "tenant"}),
    rivals={
        "in order": lambda: policies.Continuous(SLOTS, TOKENS),
        "fair": lambda: policies.Fair(SLOTS, TOKENS),
        "shortest first": lambda: policies.ShortestFirst(SLOTS, TOKENS, by="guess"),
    },
    best=7.0,
)
