"""Lab 17: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, ORDER, PERCENTILE, TERM, UNIT, Mutant

ASKS = "course/lessons/lab17/asks.yaml"
FACTS, TENANTS, TURNS, GATE, DECISION, TASKS, THROTTLED, SILENCE, FIGURES, GAME, BY_HAND = (
    f"course/lessons/lab17/{name}.py"
    for name in ("facts", "tenants", "turns", "gate", "decision", "tasks", "throttled", "silence", "figures", "game",
                 "by_hand")
)  # fmt: skip

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why: All are", "    right: b\n    why: All are", KEY),
    Mutant(ASKS, "    right: a\n    why: N's queue", "    right: b\n    why: N's queue", KEY),
    Mutant(FACTS, "BURST + 1_000 * throttled.NOW * MINUTE", "1_000 * throttled.NOW * MINUTE", TERM),
    Mutant(TENANTS, '"priority": int(name == NOISY)', '"priority": int(name != NOISY)', COMPARISON),
    Mutant(TENANTS, "policies.Bucket(slots, BUDGET, 1e3 * gateway", "policies.Bucket(slots, BUDGET, gateway", UNIT),
    Mutant(
        TENANTS,
        "np.percentile(self.run.ttft[self.quiet], 95)",
        "np.percentile(self.run.ttft[self.quiet], 90)",
        PERCENTILE,
    ),
    Mutant(TENANTS, "np.nanpercentile(self.run.tpot[self.quiet]", "np.nanpercentile(self.run.tpot[~self.quiet]", ORDER),
    Mutant(TENANTS, "STORM = 1.0, 10, 30", "STORM = 1.0, 10, 20", CONSTANT),
    Mutant(TURNS, "requests * (prompt + output_weight * output)", "requests * (prompt + output)", TERM),
    Mutant(TURNS, '"B": (2, 800, 50)', '"B": (2, 800, 90)', CONSTANT),
    Mutant(GATE, "level = min(burst, level + rate", "level = max(burst, level + rate", ORDER),
    Mutant(GATE, "max(0.0, first + second - level) / rate", "max(0.0, second - level) / rate", TERM),
    Mutant(DECISION, "found.ttft <= TTFT", "found.noisy_ttft <= TTFT", ORDER),
    Mutant(DECISION, "TPOT, TPOT_TWIN = 0.045, 0.02", "TPOT, TPOT_TWIN = 0.025, 0.02", CONSTANT),
    Mutant(DECISION, "(1 - LOSS) * before", "LOSS * before", TERM),
    Mutant(TASKS, "ageing=ageing - 1).ttft > SOON", "ageing=ageing - 2).ttft > SOON", BOUNDARY),
    Mutant(TASKS, 'alone = settings["gateway"] == NONE and', 'alone = settings["gateway"] <= NONE and', COMPARISON),
    Mutant(THROTTLED, "((passed <= at) & (run.admitted > at))", "((run.arrival <= at) & (run.admitted > at))", TERM),
    Mutant(THROTTLED, "NOW, REPAIR = 4, 28", "NOW, REPAIR = 4, 48", CONSTANT),
    Mutant(SILENCE, "arrival=back.arrival + SILENT", "arrival=back.arrival", TERM),
    Mutant(FIGURES, "sums / np.maximum(counts, 1)", "sums", TERM),
    Mutant(GAME, '(6, 2, "B")', '(6, 4, "B")', CONSTANT),
    Mutant(BY_HAND, "step.decodes + len(step.prefill_chunks)", "step.decodes", TERM),
)
