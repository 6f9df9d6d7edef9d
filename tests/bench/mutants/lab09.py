"""Lab 09: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab09/asks.yaml", "course/lessons/lab09/facts.py"
POOL, TASKS = "course/lessons/lab09/pool.py", "course/lessons/lab09/tasks.py"
GAME, RULES = "course/lessons/lab09/game.py", "course/lessons/lab09/victims.py"
DEEP = "course/lessons/lab09"
DECISION, FIGURES = "course/lessons/lab09/decision.py", "course/lessons/lab09/figures.py"

MUTANTS = (
    Mutant(ASKS, "    right: b\n    why: A token computed again", "    right: a\n    why: A token computed again", KEY),
    Mutant(ASKS, "    right: c\n    why: On an H200", "    right: a\n    why: On an H200", KEY),
    Mutant(ASKS, "scattered blocks took {{scattered_more:.0%}} longer", "scattered blocks took 7% longer", NUMBER),
    Mutant(ASKS, "    solution: waste\n", "    solution: waste_taken\n", TERM),
    Mutant(ASKS, "    solution: crossover\n", "    solution: crossover_way\n", TERM),
    Mutant(ASKS, "    solution: victims.fewest\n", "    solution: victims.anybody\n", TERM),
    Mutant(FACTS, "return 2 * a_token * prefill / 1e9", "return a_token * prefill / 1e9", TERM),
    Mutant(FACTS, "2_048 / STEP(Step(0, 0, ((2_048, 0),)))", "1_024 / STEP(Step(0, 0, ((2_048, 0),)))", CONSTANT),
    Mutant(FACTS, "-(-tokens // size) * size - tokens", "(tokens // size) * size - tokens", BOUNDARY),
    Mutant(FACTS, '"lost": start.preemptions', '"lost": few.preemptions', ORDER),
    Mutant(FACTS, "PROMISE_TWIN = 0.1", "PROMISE_TWIN = 0.3", CONSTANT),
    Mutant(POOL, "TOKENS, BLOCK = 40_000, 16", "TOKENS, BLOCK = 44_000, 16", CONSTANT),
    Mutant(
        POOL, "copy_seconds(BLOCK * SPEC.kv_bytes_per_token, 1e9", "copy_seconds(SPEC.kv_bytes_per_token, 1e9", UNIT
    ),
    Mutant(
        POOL, "return 1 - self.mean(self.held) / self.mean(self.taken)", "return self.mean(self.held) / TOKENS", TERM
    ),
    Mutant(POOL, "return self.run.steps.blocks * self.cache.block_size", "return self.run.steps.blocks * BLOCK", UNIT),
    Mutant(POOL, "self.run.steps.seconds * (self.run.steps.queue > 0)", "self.run.steps.seconds", TERM),
    Mutant(TASKS, "SHORT_GAP = 0.25", "SHORT_GAP = 0.6", CONSTANT),
    Mutant(GAME, "KVCache(7, block_size=4)", "KVCache(8, block_size=4)", CONSTANT),
    Mutant(GAME, "    best=6.5,", "    best=6.75,", CONSTANT),
    Mutant(GAME, "gone.append(running.pop(0))", "gone.append(running.pop())", ORDER),
    Mutant(RULES, "return min(reversed(others)", "return min(others", ORDER),
    Mutant(DECISION, "if worst(*one)[0] <= PROMISE]", "if worst(*one)[0] >= PROMISE]", COMPARISON),
    Mutant(DECISION, "PROMISE = 0.25", "PROMISE = 0.15", CONSTANT),
    Mutant(DECISION, "one.run.log.lookups[:, 2].sum()", "one.run.log.lookups[:, 1].sum()", TERM),
    Mutant(f"{DEEP}/pieces.py", "one.mean(one.taken) / TOKENS", "one.mean(one.held) / TOKENS", TERM),
    Mutant(f"{DEEP}/pieces.py", "return 2 * SPEC", "return SPEC", CONSTANT),
    Mutant(f"{DEEP}/pieces.py", "(steps.end > moment - MOMENTS[0])", "(steps.end > 0)", BOUNDARY),
    Mutant(
        f"{DEEP}/copies.py",
        "blocks * BLOCK * SPEC.kv_bytes_per_token / (again - free)",
        "blocks * BLOCK * SPEC.kv_bytes_per_token / (slow - free)",
        TERM,
    ),
    Mutant(f"{DEEP}/copies.py", "return max(MARKS,", "return min(MARKS,", ORDER),
    Mutant(f"{DEEP}/sessions.py", "sum(range(1, TURNS))", "sum(range(1, TURNS + 1))", BOUNDARY),
    Mutant(f"{DEEP}/sessions.py", "run.response[row - 1]", "run.arrival[row - 1]", TERM),
    Mutant(f"{DEEP}/sessions.py", "moments >= run.admitted[row]", "moments >= run.arrival[row]", TERM),
    Mutant(FIGURES, "worst = int(lost.argmax())", "worst = int(lost.argmin())", ORDER),
)
