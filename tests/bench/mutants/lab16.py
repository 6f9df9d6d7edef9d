"""Lab 16: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab16/test_texts.py", "tests/lessons/lab16", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, HONEST = (f"course/lessons/lab16/{name}.py" for name in ("exercises", "quiz", "honest"))
TEST, STEADY, FLAWS = (f"course/lessons/lab16/{name}.py" for name in ("load_test", "steady_window", "flaws"))

MUTANTS = (
    Mutant(ASKS, '"c",\n            "35 ms', '"a",\n            "35 ms', KEY),
    Mutant(ASKS, '"a",\n            "TPOT counts', '"c",\n            "TPOT counts', KEY),
    Mutant(ASKS, '"d",\n            "19%', '"b",\n            "19%', KEY),
    Mutant(ASKS, "users would have seen 4.8 s", "users would have seen 2.8 s", NUMBER),
    Mutant(ASKS, "stall 66 requests were due, 3% of", "stall 66 requests were due, 6% of", NUMBER),
    Mutant(ASKS, "so two requests above 1 s", "so three requests above 1 s", NUMBER),
    Mutant(ASKS, "mean TPOT of 30 ms", "mean TPOT of 3 ms", NUMBER),
    Mutant(ASKS, "mean ITL of 22 ms", "mean ITL of 28 ms", NUMBER),
    Mutant(ASKS, "The p99 of ITL is 15 ms", "The p99 of ITL is 150 ms", NUMBER),
    Mutant(ASKS, '"19%. ITL has', '"9%. ITL has', NUMBER),
    Mutant(ASKS, "vanishes among 250,000", "vanishes among 25,000", NUMBER),
    Mutant(ASKS, "still 37%.", "still 73%.", NUMBER),
    Mutant(ASKS, "below the p99 only if all n are", "below the p95 only if all n are", PERCENTILE),
    Mutant(ASKS, "version 0 of guidellm begins", "version 1 of guidellm begins", NUMBER),
    Mutant(ASKS, "solution=honest.fewest_requests(99, 0.95)", "solution=honest.fewest_requests(95, 0.95)", PERCENTILE),
    Mutant(QUIZ, 'move together."),\n        ),\n        "b"', 'move together."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, 'that of all."),\n        ),\n        "c"', 'that of all."),\n        ),\n        "d"', KEY),
    Mutant(
        QUIZ,
        'first token already."),\n        ),\n        "c"',
        'first token already."),\n        ),\n        "a"',
        KEY,
    ),
    Mutant(QUIZ, 'start and end."),\n        ),\n        "b"', 'start and end."),\n        ),\n        "c"', KEY),
    Mutant(QUIZ, 'to be above 0."),\n        ),\n        "c"', 'to be above 0."),\n        ),\n        "d"', KEY),
    Mutant(QUIZ, "300 tokens is 1.7 ms", "300 tokens is 7.1 ms", NUMBER),
    Mutant(QUIZ, "the mean of the 14,400 values", "the mean of the 1,440 values", NUMBER),
    Mutant(QUIZ, "about 6,000", "about 60,000", NUMBER),
    Mutant(QUIZ, "1 / sqrt(shape) = 2: lower", "1 / sqrt(shape) = 4: lower", NUMBER),
    Mutant(HONEST, "free = max(free, moment) + took", "free = free + took", TERM),
    Mutant(HONEST, "return value * tokens / (tokens - 1)", "return value", TERM),
    Mutant(
        HONEST,
        "(value * tokens - ttft) / (tokens - 1)\n    return value\n",
        "value * tokens / (tokens - 1)\n    return value\n",
        TERM,
    ),
    Mutant(HONEST, "math.ceil(math.log(1 - confidence)", "math.floor(math.log(1 - confidence)", BOUNDARY),
    Mutant(TEST, "if len(flying) < limit:", "if len(flying) <= limit:", BOUNDARY),
    Mutant(TEST, "sent[i] = max(moment, flying[0])", "sent[i] = flying[0]", COMPARISON),
    Mutant(
        TEST, "return self.run.first_computed - self.sent", "return self.run.first_computed - self.run.arrival", TERM
    ),
    Mutant(
        TEST,
        "(self.run.response - self.sent).sum() / self.run.makespan",
        "(self.run.response - self.sent).mean()",
        UNIT,
    ),
    Mutant(
        TEST,
        "(np.arange(documents) + 0.5) * num_requests / documents",
        "np.arange(documents) * num_requests / documents",
        CONSTANT,
    ),
    Mutant(TEST, "PERCENTILES = (50, 90, 95, 99)", "PERCENTILES = (50, 90, 95, 98)", PERCENTILE),
    Mutant(TEST, "int((way > 1).sum())", "int((way > 0.1).sum())", CONSTANT),
    Mutant(STEADY, "(1 - confidence) / 2\n    if", "(1 - confidence)\n    if", TERM),
    Mutant(STEADY, 'side="left")) + 1', 'side="left"))', BOUNDARY),
    Mutant(
        STEADY,
        "steps.useful[counted].sum()) / (self.end - self.start)",
        "steps.useful[counted].sum()) / self.end",
        TERM,
    ),
    Mutant(STEADY, "(self.run.arrival < self.end)", "(self.run.arrival <= self.run.arrival[-1])", TERM),
    Mutant(
        FLAWS,
        '_nightly["completed"] / _nightly["duration"],  # requests/s',
        '_nightly["num_prompts"] / _nightly["duration"],  # requests/s',
        TERM,
    ),
    Mutant(FLAWS, '"peak": _peak["duration"] - _e2e - _due', '"peak": _peak["duration"] - _due', TERM),
)
