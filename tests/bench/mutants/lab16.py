"""Lab 16: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab16/test_texts.py", "tests/lessons/lab16", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, HONEST = (f"course/lessons/lab16/{name}.py" for name in ("exercises", "quiz", "honest"))
TEST, STEADY, FLAWS, LAUNCHED, HTTP, TOOLS = (
    f"course/lessons/lab16/{name}.py"
    for name in ("load_test", "steady_window", "flaws", "launched", "over_http", "many_tools")
)

MUTANTS = (
    Mutant(ASKS, '"c",\n            "For users it was', '"a",\n            "For users it was', KEY),
    Mutant(ASKS, '"a",\n            "Short answers end', '"c",\n            "Short answers end', KEY),
    Mutant(ASKS, "For users it was 4.8 s", "For users it was 2.8 s", NUMBER),
    Mutant(ASKS, "66 requests were due", "96 requests were due", NUMBER),
    Mutant(ASKS, "Mean TPOT is 30 ms", "Mean TPOT is 3 ms", NUMBER),
    Mutant(ASKS, "mean ITL 22 ms", "mean ITL 28 ms", NUMBER),
    Mutant(ASKS, '"about 35 ms"', '"about 350 ms"', NUMBER),
    Mutant(ASKS, "TOLD, TOKENS, TTFT = 50, 20, 525", "TOLD, TOKENS, TTFT = 50, 20, 425", NUMBER),
    Mutant(ASKS, "return honest.felt_ttft(PLAN, took)[3]", "return honest.felt_ttft(PLAN, took)[2]", TERM),
    Mutant(
        QUIZ,
        '"The rate is 64 / E2E."),\n        ),\n        "c"',
        '"The rate is 64 / E2E."),\n        ),\n        "b"',
        KEY,
    ),
    Mutant(QUIZ, "and 26 ms at 40", "and 62 ms at 40", NUMBER),
    Mutant(QUIZ, "It answers 18.5 requests/s", "It answers 28.5 requests/s", NUMBER),
    Mutant(QUIZ, "is sent 55 s after", "is sent 25 s after", NUMBER),
    Mutant(QUIZ, "the p99 is 86 ms then", "the p99 is 68 ms then", NUMBER),
    Mutant(QUIZ, "report 22.7 and 24.1 ms", "report 22.7 and 21.4 ms", NUMBER),
    Mutant(HONEST, "free = max(free, moment) + took", "free = free + took", TERM),
    Mutant(HONEST, "(per_token * tokens - ttft) / (tokens - 1)", "(per_token * tokens - ttft) / tokens", TERM),
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
    Mutant(TEST, "PERCENTILES = (50, 99)", "PERCENTILES = (50, 98)", PERCENTILE),
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
    Mutant(FLAWS, "2 ** ceil(log2(rate * e2e))", "2 ** ceil(log2(rate / e2e))", TERM),
    Mutant(LAUNCHED, "before < STALLED <= begun", "before <= STALLED < begun", BOUNDARY),
    Mutant(LAUNCHED, "found.stall, LEAST) / 2", "found.stall, LEAST)", CONSTANT),
    Mutant(HTTP, "self.first - self.planned)", "self.first - self.sent)", TERM),
    Mutant(HTTP, "(self.last - self.first) / (self.tokens - 1)", "(self.last - self.first) / self.tokens", TERM),
    Mutant(HTTP, "ThreadPoolExecutor(max_concurrency)", "ThreadPoolExecutor(SLOTS)", CONSTANT),
    Mutant(HTTP, "_between(before, after, end - begin)", "_between(after, after, end - begin)", TERM),
    Mutant(TOOLS, "float(decode.sum() / n.sum())", "float((decode / n).mean())", TERM),
    Mutant(TOOLS, "np.concatenate(seen.piece_tokens).sum())", "len(all_gaps))", TERM),
)
