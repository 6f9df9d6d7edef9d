"""Lab 07: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab07", "tests/lessons/test_every_lab.py")
ASKS = "course/lessons/lab07/asks.yaml"
FACTS, SHARE, DECISION, TASKS, BY_HAND, RUSH, LONG, CHUNKS, TABLES = (
    f"course/lessons/lab07/{name}.py"
    for name in ("facts", "share", "decision", "tasks", "by_hand", "rush", "long_prompt", "prompt_chunks", "deeper")
)
LAUNCHED, PROMPT = "course/lessons/lab07/chunk_explorer.py", "course/gpu/one_prompt.py"
IN_LIVE, IN_PROMPT = ("tests/lessons/lab07/test_live.py",), ("tests/gpu/test_one_prompt.py",)
TEXT, DEEPER = "solutions/07_chunked_prefill.py", "solutions/07_chunked_prefill_deeper.py"
IN_EXERCISES, IN_TASKS, IN_TABLES = (
    (f"tests/lessons/lab07/test_{name}.py",) for name in ("exercises", "tasks", "tables")
)

MUTANTS = (
    Mutant(LAUNCHED, "np.min(found, axis=0)", "np.max(found, axis=0)", PERCENTILE, IN_LIVE),
    Mutant(LAUNCHED, "if chunk not in self._known", "if True", COMPARISON, IN_LIVE),
    Mutant(PROMPT, "visible = cached + last", "visible = last", TERM, IN_PROMPT),
    Mutant(PROMPT, "> cached + np.arange", ">= cached + np.arange", BOUNDARY, IN_PROMPT),
    Mutant(PROMPT, "self._step(cached, cached + chunk)", "self._step(0, cached + chunk)", TERM, IN_PROMPT),
    Mutant(ASKS, "    right: a\n    why: From", "    right: b\n    why: From", KEY),
    Mutant(ASKS, "    right: c\n    why: With a budget", "    right: a\n    why: With a budget", KEY),
    Mutant(ASKS, "    solution: steps\n", "    solution: steps_twin\n", TERM),
    Mutant(
        ASKS,
        "  evaluate: decision.kept\n",
        "  evaluate: decision.kept_twin\n",
        TERM,
        ("tests/lessons/test_every_lab.py",),
    ),
    Mutant(FACTS, "ceil(prompt / (budget - decodes))", "ceil(prompt / budget)", TERM, IN_EXERCISES),
    Mutant(FACTS, "0 if first else PROMPT - chunk", "0 if first else PROMPT", TERM, IN_EXERCISES),
    Mutant(FACTS, "LIMIT, LIMIT_TWIN = 0.025, 0.020", "LIMIT, LIMIT_TWIN = 0.028, 0.020", CONSTANT, IN_EXERCISES),
    Mutant(DECISION, "if gaps and first:", "if gaps or first:", COMPARISON, IN_EXERCISES),
    Mutant(FACTS, '"gap_ms": 1e3 * whole.itl["max"]', '"gap_ms": 1e3 * whole.itl["p99"]', PERCENTILE),
    Mutant(FACTS, '"caught_share_cut": caught * chunks / tokens', '"caught_share_cut": caught / tokens', TERM),
    Mutant(DECISION, "values <= edge", "values > edge", COMPARISON, IN_EXERCISES),
    Mutant(
        DECISION,
        "values <= edge",
        "values < edge",
        BOUNDARY,
        equivalent="no gap and no TTFT of the run is exactly 0.01, 0.1, 0.5, 1 or 2.5 s",
    ),
    Mutant(DECISION, "GAP, GAP_TWIN = 0.1, 0.06", "GAP, GAP_TWIN = 0.08, 0.06", CONSTANT, IN_EXERCISES),
    Mutant(DECISION, "START = 4_096", "START = 8_192", CONSTANT, IN_EXERCISES),
    Mutant(ASKS, "than arrive.\n      right: c", "than arrive.\n      right: b", KEY),
    Mutant(ASKS, "not tokens.\n    right: c", "not tokens.\n    right: a", KEY),
    Mutant(ASKS, "room in a step.\n    right: b", "room in a step.\n    right: a", KEY),
    Mutant(FACTS, "np.percentile(repaired.run.ttft, 95)", "np.percentile(repaired.run.ttft, 99)", PERCENTILE),
    Mutant(
        SHARE,
        "min(left, cap, budget - sum(tokens.values()))\n        if chunk > 0",
        "min(left, cap, budget - sum(tokens.values()))\n        if chunk >= 0",
        BOUNDARY,
        IN_EXERCISES,
    ),
    Mutant(SHARE, "if request.remaining == 1]", "if request.remaining >= 1]", COMPARISON, IN_EXERCISES),
    Mutant(SHARE, "min(budget, len(decoding) + cap)", "min(budget, cap)", TERM, IN_EXERCISES),
    Mutant(TASKS, "alone and gap(result) <= SHORT", "alone or gap(result) <= SHORT", COMPARISON, IN_TASKS),
    Mutant(
        TASKS,
        'settings["long_prefill_token_threshold"] == 0',
        'settings["long_prefill_token_threshold"] >= 0',
        COMPARISON,
        IN_TASKS,
    ),
    Mutant(
        TASKS,
        "result.run.ttft[result.later].max() <= FIRST",
        "result.run.ttft[result.later].min() <= FIRST",
        ORDER,
        IN_TASKS,
    ),
    Mutant(TASKS, ">= 10 * at_the_start().outcome", ">= 1.5 * at_the_start().outcome", CONSTANT, IN_TASKS),
    Mutant(
        BY_HAND,
        "max(LEAST, float(step.decodes + step.prefill_tokens))",
        "max(LEAST, float(step.prefill_tokens))",
        TERM,
        IN_TABLES,
    ),
    Mutant(RUSH, "(run.arrival <= t) & (run.admitted > t)", "(run.arrival <= t) & (run.response > t)", TERM, IN_TABLES),
    Mutant(
        RUSH,
        "np.percentile(run.ttft[group == k], 95)",
        "np.percentile(run.ttft[group == k], 90)",
        PERCENTILE,
        IN_TABLES,
    ),
    Mutant(LONG, "times = np.arange(every / 2, end, every)", "times = np.arange(every, end, every)", CONSTANT),
    Mutant(LONG, "np.median(self.run.ttft[~self.chats])", "np.median(self.run.ttft[self.chats])", ORDER, IN_TABLES),
    Mutant(LONG, 'found.chat_ttft["p99"]), (found', 'found.chat_ttft["p95"]), (found', PERCENTILE, IN_TABLES),
    Mutant(
        LONG, "return Hidden(found, every, limit_ms / 1e3)", "return Hidden(found, every, limit_ms)", UNIT, IN_TABLES
    ),
    Mutant(LONG, "FOURTH == FOURTH // 2", "FOURTH == 0", BOUNDARY, ("tests/lessons/lab07/test_explorers.py",)),
    Mutant(CHUNKS, "(run.steps.useful + run.steps.prefill_tokens)[until]", "run.steps.useful[until]", TERM),
    Mutant(CHUNKS, "for r in state.running if not r.emitted", "for r in state.running if r.emitted", COMPARISON),
    Mutant(TABLES, "tokens * (tokens + 1) / 2", "tokens * (tokens + 1)", TERM, IN_TABLES),
    Mutant(TEXT, "Some {{chunks}} chunks make", "Some 66 chunks make", NUMBER),
    Mutant(TEXT, "leaves the prompt {{hand_chunk}} tokens", "leaves the prompt 5 tokens", NUMBER),
    Mutant(DEEPER, "{{weights_ms:.2f}} ms", "5.97 ms", NUMBER),
)
