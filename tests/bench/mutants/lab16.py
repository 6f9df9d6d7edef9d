"""Lab 16: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab16", "tests/lessons/test_every_lab.py")
EXPLORERS = ("tests/lessons/test_every_explorer.py",)
ASKS, FACTS, HONEST = (
    "course/lessons/lab16/asks.yaml",
    "course/lessons/lab16/facts.py",
    "course/lessons/lab16/honest.py",
)
TEST, STEADY, TASKS, LAUNCHED, HTTP, TOOLS = (
    f"course/lessons/lab16/{name}.py"
    for name in ("load_test", "steady_window", "tasks", "launched", "over_http", "many_tools")
)
TEXT = "solutions/16_measuring_honestly.py"

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why: For users", "    right: a\n    why: For users", KEY),
    Mutant(ASKS, "    right: a\n    why: Short answers", "    right: c\n    why: Short answers", KEY),
    Mutant(ASKS, "{{due:.0f}} requests were due", "{{slowest:.0f}} requests were due in 9 s", NUMBER),
    Mutant(ASKS, "    solution: late_s\n", "    solution: late_twin_s\n", TERM),
    Mutant(ASKS, "    solution: ours_ms\n", "    solution: all_tokens_ms\n", TERM),
    Mutant(ASKS, "flag: --max-concurrency", "flag: --request-rate", CONSTANT),
    Mutant(FACTS, "return honest.felt_ttft(PLAN, took)[3]", "return honest.felt_ttft(PLAN, took)[2]", TERM),
    Mutant(FACTS, "2 ** ceil(log2(rate * e2e))", "2 ** ceil(log2(rate / e2e))", TERM),
    Mutant(FACTS, "TOLD, TOLD_TWIN, TOKENS = 50, 38, 20", "TOLD, TOLD_TWIN, TOKENS = 50, 40, 20", CONSTANT),
    Mutant(FACTS, '"held_ms": 1e3 * p99(busy.written)', '"held_ms": 1e3 * p99(busy.run.ttft)', TERM),
    Mutant(FACTS, '"bounded": bounded()', '"bounded": bounded() - 1', BOUNDARY),
    Mutant(TASKS, "return p99(result.written) > LONG", "return p99(result.run.ttft) > LONG", TERM, EXPLORERS),
    Mutant(TASKS, "return abs(itl / tpot - 1) <= NEAR", "return abs(itl / tpot - 1) >= 0", COMPARISON, EXPLORERS),
    Mutant(TEXT, "{{due:.0f}} requests were due", "96 requests were due", NUMBER),
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
    Mutant(LAUNCHED, "before < STALLED <= begun", "before <= STALLED < begun", BOUNDARY),
    Mutant(LAUNCHED, "found.stall, LEAST) / 2", "found.stall, LEAST)", CONSTANT),
    Mutant(HTTP, "self.first - self.planned)", "self.first - self.sent)", TERM),
    Mutant(HTTP, "(self.last - self.first) / (self.tokens - 1)", "(self.last - self.first) / self.tokens", TERM),
    Mutant(HTTP, "ThreadPoolExecutor(max_concurrency)", "ThreadPoolExecutor(SLOTS)", CONSTANT),
    Mutant(HTTP, "_between(before, after, end - begin)", "_between(after, after, end - begin)", TERM),
    Mutant(TOOLS, "float(decode.sum() / n.sum())", "float((decode / n).mean())", TERM),
    Mutant(TOOLS, "np.concatenate(seen.piece_tokens).sum())", "len(all_gaps))", TERM),
)
