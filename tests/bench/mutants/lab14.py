"""Lab 14: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab14", "tests/lessons/test_every_lab.py")
ASKS, FACTS = "course/lessons/lab14/asks.yaml", "course/lessons/lab14/facts.py"
CARDS, FOUR = "course/lessons/lab14/cards.py", "course/lessons/lab14/four.py"
SUMS, HALVES = "course/lessons/lab14/sums.py", "course/lessons/lab14/halves.py"
DECISION = "course/lessons/lab14/decision.py"

MUTANTS = (
    Mutant(ASKS, "many want replicas.\n    right: c", "many want replicas.\n    right: b", KEY),
    Mutant(ASKS, "not all that a card keeps.\n    right: b", "not all that a card keeps.\n    right: c", KEY),
    Mutant(FACTS, '"cost_seconds": right * 3_600', '"cost_seconds": right * 60', UNIT),
    Mutant(FACTS, '"quiz_dearer": 2 / two.speed_up', '"quiz_dearer": two.speed_up', NUMBER),
    Mutant(CARDS, "self.batch / self.step / self.cards", "self.batch / self.step", TERM),
    Mutant(CARDS, "time.stays if cards > 1 else 0.0", "time.stays", COMPARISON),
    Mutant(CARDS, 'return float(sum(row["watts"]) / 2)', 'return float(sum(row["watts"]))', TERM),
    Mutant(FOUR, "(run.ttft <= TTFT) & ~(run.tpot > tpot)", "(run.ttft <= TTFT) | ~(run.tpot > tpot)", COMPARISON),
    Mutant(FOUR, "range(4 // each)", "range(4)", BOUNDARY),
    Mutant(SUMS, "WEIGHT = 4", "WEIGHT = 1", CONSTANT),
    Mutant(SUMS, "waiting = [len(here) - active for", "waiting = [len(here) for", TERM),
    Mutant(HALVES, "self.sums += 1", "self.sums += 2", NUMBER),
    Mutant(HALVES, "queries, keys, values = np.split", "keys, queries, values = np.split", ORDER),
    Mutant(DECISION, "RATE, GOAL_MS = 30, 5.3", "RATE, GOAL_MS = 30, 4.0", CONSTANT),
)
