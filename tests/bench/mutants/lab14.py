"""Lab 14: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab14/asks.yaml", "course/lessons/lab14/facts.py"
CARDS, FOUR = "course/lessons/lab14/cards.py", "course/lessons/lab14/four.py"
SUMS, HALVES = "course/lessons/lab14/sums.py", "course/lessons/lab14/halves.py"
DECISION = "course/lessons/lab14/decision.py"
APART, LAYERS = "course/lessons/lab14/apart.py", "course/lessons/lab14/layers.py"

MUTANTS = (
    Mutant(ASKS, "many want replicas.\n    right: c", "many want replicas.\n    right: b", KEY),
    Mutant(ASKS, "not all that a card keeps.\n    right: b", "not all that a card keeps.\n    right: c", KEY),
    Mutant(SUMS, "cards, batch, price)\n\n\ndef cost_one_card", "1, batch, price)\n\n\ndef cost_one_card", TERM),
    Mutant(SUMS, "prices.HOUR * cost", "60 * cost", UNIT),
    Mutant(SUMS, "if cards > 1 else 0.0", "if cards > 2 else 0.0", BOUNDARY),
    Mutant(APART, "transfer=link_gb * GB", "transfer=link_gb", UNIT),
    Mutant(APART, "CARDS_THERE - prompts", "CARDS_THERE - 1", TERM),
    Mutant(
        APART, "return 1 / step_time(card).seconds(0, 0, tokens", "return 1 / step_time(card).seconds(0, 0, 1", TERM
    ),
    Mutant(APART, "/ (tpot_ms / 1e3) / of.answer", "/ (tpot_ms / 1e3)", TERM),
    Mutant(APART, "(cards - many) * answers", "cards * answers", TERM),
    Mutant(LAYERS, "1 - cards.layer_us(2, tokens", "cards.layer_us(2, tokens", TERM),
    Mutant(LAYERS, "(stages - 1) / interleaved", "stages / interleaved", BOUNDARY),
    Mutant(LAYERS, '"PP2": (1, 2)', '"PP2": (2, 1)', ORDER),
    Mutant(FACTS, '"quiz_dearer": 2 / two.speed_up', '"quiz_dearer": two.speed_up', NUMBER),
    Mutant(CARDS, "self.batch / self.step / self.cards", "self.batch / self.step", TERM),
    Mutant(CARDS, "whole - sums - time.stays, time.stays", "whole - sums, time.stays", TERM),
    Mutant(CARDS, 'return float(sum(row["watts"]) / 2)', 'return float(sum(row["watts"]))', TERM),
    Mutant(FOUR, "(run.ttft <= TTFT) & ~(run.tpot > tpot)", "(run.ttft <= TTFT) | ~(run.tpot > tpot)", COMPARISON),
    Mutant(FOUR, "range(4 // each)", "range(4)", BOUNDARY),
    Mutant(SUMS, "WEIGHT = 4", "WEIGHT = 1", CONSTANT),
    Mutant(SUMS, "waiting = [len(here) - active for", "waiting = [len(here) for", TERM),
    Mutant(HALVES, "self.sums += 1", "self.sums += 2", NUMBER),
    Mutant(HALVES, "queries, keys, values = np.split", "keys, queries, values = np.split", ORDER),
    Mutant(DECISION, "RATE, GOAL_MS = 30, 5.3", "RATE, GOAL_MS = 30, 4.0", CONSTANT),
)
