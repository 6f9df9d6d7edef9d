"""Lab 13: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab13/asks.yaml", "course/lessons/lab13/facts.py"
PAYS, SPOKEN = "course/lessons/lab13/pays.py", "course/lessons/lab13/spoken.py"
ADAPTIVE, DECISION = "course/lessons/lab13/adaptive.py", "course/lessons/lab13/decision.py"
DEEPER, TASKS = "course/lessons/lab13/deeper.py", "course/lessons/lab13/tasks.py"

MUTANTS = (
    Mutant(ASKS, "No row gives two tokens.\n    right: b", "No row gives two tokens.\n    right: a", KEY),
    Mutant(ASKS, "The model looks at every draft.\n    right: c", "The model looks at every draft.\n    right: b", KEY),
    Mutant(ADAPTIVE, "accept) * plain / (k * draft + verify)\n\n\ndef forgets",
           "accept) * plain / (draft + verify)\n\n\ndef forgets", TERM),
    Mutant(FACTS, '"expected_all": k + 1', '"expected_all": k', NUMBER),
    Mutant(FACTS, '"expected": expected(accept, k)', '"expected": expected(accept, k - 1)', TERM),
    Mutant(PAYS, "HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-6", "HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-3", UNIT),
    Mutant(PAYS, "(1 - accept ** (k + 1)) / (1 - accept)", "(1 - accept**k) / (1 - accept)", TERM),
    Mutant(PAYS, "self.plain / (self.draft + self.verification)", "self.plain / self.verification", TERM),
    Mutant(SPOKEN, "for long in range(LONGEST, 0, -1)", "for long in range(1, LONGEST + 1)", ORDER),
    Mutant(ADAPTIVE, "best, most = 0, 1.0", "best, most = 0, 0.0", CONSTANT),
    Mutant(ADAPTIVE, "if gain > most:", "if gain < most:", COMPARISON),
    Mutant(ADAPTIVE, "best, most = k, gain", "best, most = k - 1, gain", BOUNDARY),
    Mutant(DEEPER, "[len(known) - 1 :]", "[len(known) :]", BOUNDARY),
    Mutant(DEEPER, "answer[len(known) - len(prompt) :]", "answer", TERM),
    Mutant(TASKS, "result.accept - 0.1", "result.accept + 0.1", TERM),
    Mutant(DECISION, "RUNNING, DRAFTS = 128, 4", "RUNNING, DRAFTS = 64, 4", CONSTANT),
)  # fmt: skip
