"""Lab 07: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab07/test_texts.py", "tests/lessons/lab07", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, SHARE, DECISION, TASKS, BY_HAND, RUSH, LONG, CHUNKS, TABLES = (
    f"course/lessons/lab07/{name}.py"
    for name in (
        "exercises", "quiz", "share", "decision", "tasks", "by_hand", "rush", "long_prompt", "prompt_chunks", "deeper",
    )
)  # fmt: skip
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
    Mutant(ASKS, '"a",\n            "From 9.9 to 29.5 ms', '"b",\n            "From 9.9 to 29.5 ms', KEY),
    Mutant(ASKS, '"c",\n            "With a budget of 2,048', '"a",\n            "With a budget of 2,048', KEY),
    Mutant(ASKS, "9.9 to 29.5 ms", "9.9 to 25.9 ms", NUMBER),
    Mutant(ASKS, "But 66 chunks make 66 gaps", "But 66 chunks make 46 gaps", NUMBER),
    Mutant(ASKS, "Go down from 512 by 64", "Go down from 512 by 32", NUMBER),
    Mutant(ASKS, "ceil(prompt / (budget - decodes))", "ceil(prompt / budget)", TERM),
    Mutant(ASKS, "0 if first else PROMPT - chunk", "0 if first else PROMPT", TERM),
    Mutant(DECISION, "CAPS if value > right", "CAPS if value < right", COMPARISON, IN_EXERCISES),
    Mutant(DECISION, "values <= edge", "values > edge", COMPARISON, IN_EXERCISES),
    Mutant(
        DECISION,
        "values <= edge",
        "values < edge",
        BOUNDARY,
        equivalent="no gap and no TTFT of the run is exactly 0.01, 0.1, 0.5, 1 or 2.5 s",
    ),
    Mutant(DECISION, "GAP, FIRST = 0.1, 0.12", "GAP, FIRST = 0.1, 0.09", CONSTANT, IN_EXERCISES),
    Mutant(
        QUIZ,
        'into them than arrive."),\n            ),\n            "c"',
        'into them than arrive."),\n            ),\n            "b"',
        KEY,
    ),
    Mutant(QUIZ, 'not tokens."),\n        ),\n        "c"', 'not tokens."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, 'room in a step."),\n        ),\n        "b"', 'room in a step."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, "125 on average, at most 128", "115 on average, at most 128", NUMBER),
    Mutant(QUIZ, "The p95 of the TTFT is then 0.08 s", "The p99 of the TTFT is then 0.08 s", PERCENTILE),
    Mutant(QUIZ, "It leaves some 1,500 tokens", "It leaves some 500 tokens", NUMBER),
    Mutant(
        SHARE,
        "min(left, cap, budget - sum(tokens.values()))\n        if chunk > 0",
        "min(left, cap, budget - sum(tokens.values()))\n        if chunk >= 0",
        BOUNDARY,
        IN_EXERCISES,
    ),
    Mutant(SHARE, "if request.remaining == 1]", "if request.remaining >= 1]", COMPARISON, IN_EXERCISES),
    Mutant(SHARE, "min(budget, len(decoding) + cap)", "min(budget, cap)", TERM, IN_EXERCISES),
    Mutant(TASKS, "alone and _gap(result) <= SHORT", "alone or _gap(result) <= SHORT", COMPARISON, IN_TASKS),
    Mutant(
        TASKS,
        'settings["long_prefill_token_threshold"] == 0',
        'settings["long_prefill_token_threshold"] >= 0',
        COMPARISON,
        IN_TASKS,
    ),
    Mutant(
        TASKS,
        "_gap(result) <= STALL and _waits(result).max() <= STALL",
        "_gap(result) <= STALL and _waits(result).min() <= STALL",
        ORDER,
        IN_TASKS,
    ),
    Mutant(TASKS, ">= 10 * _start().outcome", ">= 1.5 * _start().outcome", CONSTANT, IN_TASKS),
    Mutant(TASKS, "if name not in free)", "if name in free)", COMPARISON, IN_TASKS),
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
    Mutant(LONG, "times = np.arange(every / 2, chats", "times = np.arange(every, chats", CONSTANT),
    Mutant(LONG, "np.median(self.run.ttft[~self.chats])", "np.median(self.run.ttft[self.chats])", ORDER, IN_TABLES),
    Mutant(LONG, 'found.chat_ttft["p99"]), (found', 'found.chat_ttft["p95"]), (found', PERCENTILE, IN_TABLES),
    Mutant(LONG, "limit_ms / 1e3", "limit_ms", UNIT, IN_TABLES),
    Mutant(LONG, "(run.token_times(0) <= ends[-1])", "(run.token_times(0) <= ends[0])", BOUNDARY, IN_TABLES),
    Mutant(CHUNKS, "(run.steps.useful + run.steps.prefill_tokens)[until]", "run.steps.useful[until]", TERM),
    Mutant(CHUNKS, "for r in state.running if not r.emitted", "for r in state.running if r.emitted", COMPARISON),
    Mutant(TABLES, "tokens * (tokens + 1) / 2", "tokens * (tokens + 1)", TERM, IN_TABLES),
    Mutant(TEXT, "A budget of 6 leaves the prompt 4 tokens", "A budget of 6 leaves the prompt 5 tokens", NUMBER),
    Mutant(TEXT, "Some 66 chunks make 2%", "Some 66 chunks make 12%", NUMBER),
    Mutant(TEXT, "66, as simulated", "64, as simulated", NUMBER),
    Mutant(DEEPER, "of 512 instead of 1,866 ms", "of 512 instead of 1,686 ms", NUMBER),
    Mutant(DEEPER, "reading them once [s] | 4.97 ms", "reading them once [s] | 5.97 ms", NUMBER),
    Mutant(DEEPER, "the long prompt waits 34% longer", "the long prompt waits 43% longer", NUMBER),
)
