"""Lab 07: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

ASKS, TEXT = "course/lessons/lab07/asks.yaml", "solutions/07_chunked_prefill.py"
DEEPER = "solutions/07b_chunked_prefill.py"
FACTS, SHARE, DECISION, TASKS, BY_HAND, RUSH, LONG, CHUNKS, STOPS, FIGURES = (
    f"course/lessons/lab07/{name}.py"
    for name in ("facts", "share", "decision", "tasks", "by_hand", "rush", "long_prompt", "prompt_chunks",
                 "recorded_stops", "figures")
)  # fmt: skip

MUTANTS = (
    Mutant(ASKS, "    right: a\n    why: From", "    right: b\n    why: From", KEY),
    Mutant(ASKS, "than arrive.\n      right: c", "than arrive.\n      right: b", KEY),
    Mutant(ASKS, "not tokens.\n    right: c", "not tokens.\n    right: a", KEY),
    Mutant(FACTS, "ceil(prompt / (budget - decodes))", "ceil(prompt / budget)", TERM),
    Mutant(FACTS, "0 if first else PROMPT - chunk", "0 if first else PROMPT", TERM),
    Mutant(FACTS, "LIMIT, LIMIT_TWIN = 0.025, 0.020", "LIMIT, LIMIT_TWIN = 0.028, 0.020", CONSTANT),
    Mutant(FACTS, '"gap_ms": 1e3 * whole.itl["max"]', '"gap_ms": 1e3 * whole.itl["p99"]', PERCENTILE),
    Mutant(DECISION, "if gaps and first:", "if gaps or first:", COMPARISON),
    Mutant(DECISION, "values <= edge", "values > edge", COMPARISON),
    Mutant(DECISION, "GAP, GAP_TWIN = 0.1, 0.06", "GAP, GAP_TWIN = 0.08, 0.06", CONSTANT),
    Mutant(DECISION, "START = 4_096", "START = 8_192", CONSTANT),
    Mutant(SHARE, "if chunk > 0", "if chunk >= 0", BOUNDARY),
    Mutant(SHARE, "if request.remaining == 1]", "if request.remaining >= 1]", COMPARISON),
    Mutant(TASKS, "alone and result.gap <= SHORT", "alone or result.gap <= SHORT", COMPARISON),
    Mutant(TASKS, "ttft[result.later].max() <= FIRST", "ttft[result.later].min() <= FIRST", ORDER),
    Mutant("course/lessons/lab07/game.py", "Ask(0.05, 90, 3)", "Ask(0.05, 60, 3)", CONSTANT),
    Mutant("course/explore/scores.py", "return 1e3 * longest_gap(board)", "return longest_gap(board)", UNIT),
    Mutant(BY_HAND, "step.decodes + step.prefill_tokens", "step.prefill_tokens", TERM),
    Mutant(RUSH, "(run.arrival <= t) & (run.admitted > t)", "(run.arrival <= t) & (run.response > t)", TERM),
    Mutant(RUSH, "np.percentile(run.ttft[group == k], 95)", "np.percentile(run.ttft[group == k], 90)", PERCENTILE),
    Mutant(LONG, "times = np.arange(every / 2, end, every)", "times = np.arange(every, end, every)", CONSTANT),
    Mutant(LONG, "np.median(self.run.ttft[~self.chats])", "np.median(self.run.ttft[self.chats])", ORDER),
    Mutant(LONG, "Hidden(found, every, limit_ms / 1e3)", "Hidden(found, every, limit_ms)", UNIT),
    Mutant(CHUNKS, "(run.steps.useful + run.steps.prefill_tokens)[until]", "run.steps.useful[until]", TERM),
    Mutant(STOPS, "if step[one][1] < run.prompt_tokens[one]", "if step[one][1] >= 0", BOUNDARY),
    Mutant(FIGURES, "1e3 * one.gaps, 4)", "one.gaps, 4)", UNIT),
    Mutant(DEEPER, "Some {{chunks}} chunks make", "Some 66 chunks make", NUMBER),
)
