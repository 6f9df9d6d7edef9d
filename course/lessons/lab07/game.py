"""The game of lab 07: 100 tokens a step, a prompt of 90 among decodes, and somebody who hands out the tokens."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score

SLOTS, TOKENS = 3, 100
CHUNK = 20


BUDGET = Game(
    id="budget",
    title="Hand out tokens",
    goal=f"Each step has at most {TOKENS} tokens: one for whoever decodes, the rest for prompts, whole or in chunks. "
    "A step takes 20 ms, and 1 ms more for each token of a prompt. Keep gaps and first tokens short.",
    asks=(Ask(0.0, 8, 12), Ask(0.0, 8, 10), Ask(0.05, 90, 3), Ask(0.15, 10, 4)),
    step_time=scores.by_tokens,
    max_num_seqs=SLOTS,
    max_num_batched_tokens=TOKENS,
    scores=(Score("longest gap [ms]", scores.gap_ms, "{:.0f}"), Score("mean TTFT [ms]", scores.ttft_ms, "{:.0f}")),
    rivals={
        "whole prompts": lambda: policies.Continuous(SLOTS, TOKENS),
        f"chunks of {CHUNK}": lambda: policies.Continuous(SLOTS, TOKENS, long_prefill_token_threshold=CHUNK),
    },
    hand=frozenset({"tokens"}),
    shows=frozenset({"prompt"}),
    unit="ms",
    span=0.5,
)
