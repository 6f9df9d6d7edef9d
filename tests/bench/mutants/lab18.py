"""Lab 18: the service, the design, the score, what it asks and says."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab18/asks.yaml", "course/lessons/lab18/facts.py"
DESIGN, SCORING = "course/lessons/lab18/design.py", "course/lessons/lab18/scoring.py"
DRAFTED, KEEPING = "course/lessons/lab18/drafted.py", "course/lessons/lab18/keeping.py"
SERVICE, DECISION = "course/lessons/lab18/service.py", "course/lessons/lab18/decision.py"

MUTANTS = (
    Mutant(ASKS, "The least served.\n      \"C\": That was served most.\n      \"A\": B was served less.\n    right: a",
           "The least served.\n      \"C\": That was served most.\n      \"A\": B was served less.\n    right: b", KEY),
    Mutant(FACTS, '"hand_kept": 780', '"hand_kept": 790', NUMBER),
    Mutant(FACTS, '"gain_right": 1 / (1 - hit)', '"gain_right": 1 / hit', TERM),
    Mutant(DESIGN, "self.replicas * self.tensor_parallel_size", "self.replicas", TERM),
    Mutant(DESIGN, "max(1, round(replicas / 4))", "max(1, round(replicas / 2))", CONSTANT),
    Mutant(SCORING, "self.per_dollar if self.passed else 0.0", "self.per_dollar", TERM),
    Mutant(SCORING, "min(self.share.values()) >= service.NEED", "max(self.share.values()) >= service.NEED", COMPARISON),
    Mutant(SCORING, "* end / 3_600", "* end / 60", UNIT),
    Mutant(SCORING, "return base, slope / 2", "return base, slope", TERM),
    Mutant(DRAFTED, "np.logical_and.accumulate(right, axis=1)", "right", TERM),
    Mutant(DRAFTED, "HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-6", "HEAD_S, HEAD_EACH_S = 0.30e-3, 0.6e-3", UNIT),
    Mutant(KEEPING, "> arrival + promised, arrival + promised", "< arrival + promised, arrival + promised", ORDER),
    Mutant(SERVICE, "seen = seed < UNSEEN[0]", "seen = seed <= UNSEEN[0]", BOUNDARY),
    Mutant(DECISION, "sum(one == 0 for one in found) > MISSED", "sum(one == 0 for one in found) >= 6", BOUNDARY),
)  # fmt: skip
