"""Lab 06: what it asks and says, what its explorers compute, its fill, its decision and its ticket."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab06",)
ASKS, FACTS = "course/lessons/lab06/asks.yaml", "course/lessons/lab06/facts.py"
ORDERS, TASKS = "course/lessons/lab06/two_orders.py", "course/lessons/lab06/tasks.py"
AGENTS, HAND = "course/lessons/lab06/agents.py", "course/lessons/lab06/by_hand.py"
DECISION, FILL = "course/lessons/lab06/decision.py", "course/lessons/lab06/fill.py"
DEEP = "course/lessons/lab06"
GAME, SKETCH = "course/lessons/lab06/game.py", "course/lessons/lab06/sketch.py"

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why: From {{mixed_e2e_s", "    right: a\n    why: From {{mixed_e2e_s", KEY),
    Mutant(ASKS, "{{gap_first_ms:.0f}} ms.\n", "700 ms.\n", NUMBER),
    Mutant(FACTS, "min(prompts[-1], budget - decodes - sum(prompts[:-1]))",
           "min(prompts[-1], budget - sum(prompts[:-1]))", TERM),
    Mutant(FACTS, "100 * prompt / (prompt + answer - 1)", "100 * prompt / (prompt + answer)", BOUNDARY),
    Mutant(FACTS, "decodes * RULE / (1 - RULE)", "decodes * RULE", TERM),
    Mutant(ORDERS, "np.percentile(self.run.ttft, 99)", "np.percentile(self.run.ttft, 50)", PERCENTILE),
    Mutant(ORDERS, "np.searchsorted(upto, 0.99 * upto[-1])", "np.searchsorted(upto, 0.5 * upto[-1])", PERCENTILE),
    Mutant(ORDERS, "(steps.prefill_tokens > 0) & (steps.decodes > 0)", "(steps.prefill_tokens > 0)", TERM),
    Mutant(ORDERS, "self.run.steps.end[self.run.steps.decodes > 0]", "self.run.steps.end", TERM),
    Mutant(ORDERS, "steps.prefill_tokens[here].sum() / PROMPT", "steps.prefill_tokens[here].sum()", TERM,
           EXPLORERS),
    Mutant(TASKS, "SHORT, EARLY = 0.065, 0.1", "SHORT, EARLY = 0.65, 0.1", CONSTANT, EXPLORERS),
    Mutant(TASKS, "return 100 * (result.ttft / mixed(settings).ttft - 1)",
           "return 100 * (mixed(settings).ttft / result.ttft - 1)", TERM, EXPLORERS),
    Mutant(TASKS, "return result.gap >= mixed(settings).gap and", "return result.gap < mixed(settings).gap and",
           COMPARISON, EXPLORERS),
    Mutant(AGENTS, "np.arange(EVERY / 2, SECONDS, EVERY)", "np.arange(EVERY, SECONDS, EVERY)", CONSTANT),
    Mutant(AGENTS, "np.concatenate([each[1:] for each in times])", "np.concatenate([each[:-1] for each in times])",
           BOUNDARY),
    Mutant(AGENTS, "BEFORE, NOW = MIXED, FIRST", "BEFORE, NOW = FIRST, MIXED", ORDER),
    Mutant(HAND, "return max(LEAST, float(step.decodes + step.prefill_tokens))",
           "return LEAST + float(step.decodes + step.prefill_tokens)", TERM),
    Mutant(HAND, "SHARE = 0.5", "SHARE = 0.25", CONSTANT),
    Mutant(DECISION, "BUSY = 1.1 * RATE", "BUSY = 0.9 * RATE", CONSTANT),
    Mutant(DECISION, "all(day(seed).ttft_p99 <= ttft", "all(day(seed).ttft <= ttft", PERCENTILE),
    Mutant(DECISION, "    if flag == CHUNK:\n", "    if flag == VLLM:\n", KEY),
    Mutant(FILL, "    room = min(int(share * budget), budget - len(decoding))\n    for",
           "    room = int(share * budget)\n    for", TERM),
    Mutant(FILL, "            room -= tokens[request]\n    return tokens\n\n\ndef whole_budget",
           "    return tokens\n\n\ndef whole_budget", TERM),
    Mutant("course/explore/scores.py", "0.020 + 0.001 * step.prefill_tokens", "0.020 + 0.002 * step.prefill_tokens",
           CONSTANT),
    Mutant(f"{DEEP}/over_time.py", "np.where(steps.prefill_tokens == 0, 2,", "np.where(steps.decodes > 0, 2,", TERM),
    Mutant(f"{DEEP}/over_time.py", "self.found.run.steps.start.astype(int)", "self.found.run.steps.end.astype(int)",
           BOUNDARY),
    Mutant(f"{DEEP}/draws.py", "stdtrit(n - 1, (1 + CONFIDENCE) / 2)", "stdtrit(n - 1, CONFIDENCE)", TERM),
    Mutant(f"{DEEP}/draws.py", "self.mixed.var(ddof=1) + self.first.var(ddof=1)", "self.mixed.var(ddof=1)", TERM),
    Mutant(f"{DEEP}/draws.py", "(one.run.response - one.run.admitted).mean()", "one.run.e2e.mean()", TERM),
    Mutant(f"{DEEP}/give_way.py", "PrefillEvery(SLOTS, BUDGET, k)", "PrefillEvery(SLOTS, BUDGET, k + 1)", CONSTANT),
    Mutant(f"{DEEP}/give_way.py", "LongPromptsYield(SLOTS, SMALL, depth=DEPTH)", "Continuous(SLOTS, SMALL)", KEY),
    Mutant(f"{DEEP}/give_way.py", "policies.ShortestRemaining(FEW", "policies.ShortestRemaining(SLOTS", CONSTANT),
    Mutant(SKETCH, "served(two_orders.FIRST, budget).gap", "served(two_orders.MIXED, budget).gap", KEY,
           ("tests/lessons/test_misconceptions.py",)),
)  # fmt: skip
