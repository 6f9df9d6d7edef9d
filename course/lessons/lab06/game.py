"""The games of lab 06: two who read and three prompts that come together, played by hand, and by a learner's fill."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score

SLOTS, TOKENS = 5, 40


ORDER = Game(
    id="order",
    title="Who goes first?",
    goal=f"Two begin. Three prompts come while these answers are read. Hand out {TOKENS} tokens a step, which takes "
    "20 ms, and 1 ms more for each token of a prompt.",
    asks=(Ask(0.0, 8, 9), Ask(0.0, 8, 7), Ask(0.04, 50, 3), Ask(0.04, 30, 3), Ask(0.04, 10, 3)),
    step_time=scores.by_tokens,
    max_num_seqs=SLOTS,
    max_num_batched_tokens=TOKENS,
    scores=(Score("longest gap [ms]", scores.gap_ms, "{:.0f}"), Score("mean TTFT [ms]", scores.ttft_ms, "{:.0f}")),
    rivals={
        "prompts first": lambda: policies.PrefillFirst(SLOTS, TOKENS),
        "decodes first": lambda: policies.Continuous(SLOTS, TOKENS),
    },
    hand=frozenset({"tokens"}),
    shows=frozenset({"prompt"}),
    unit="ms",
    span=0.4,
)
REPLAYED = Game(
    **vars(ORDER)
    | {
        "id": "replayed",
        "title": "Your fill at work",
        "goal": f"The same five requests and {TOKENS} tokens a step, of which prompts get half at most.",
    }
)
SHARE = 0.5  # of REPLAYED
