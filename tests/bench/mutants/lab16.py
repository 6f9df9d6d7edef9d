"""Lab 16: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, TERM, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab16",)
ASKS, FACTS, HONEST, TEST, STEADY, TASKS, LAUNCHED, HTTP, TOOLS = (
    f"course/lessons/lab16/{name}"
    for name in ("asks.yaml", "facts.py", "honest.py", "load_test.py", "steady_window.py", "tasks.py", "launched.py",
                 "over_http.py", "many_tools.py")
)  # fmt: skip
TEXT = "solutions/16_measuring_honestly.py"

MUTANTS = (
    Mutant(ASKS, "    right: c\n  sign:", "    right: a\n  sign:", KEY),
    Mutant(ASKS, "    solution: late_s\n", "    solution: late_twin_s\n", TERM),
    Mutant(ASKS, "    solution: ours_ms\n", "    solution: all_tokens_ms\n", TERM),
    Mutant(ASKS, "flag: --max-concurrency", "flag: --request-rate", CONSTANT),
    Mutant(FACTS, "return honest.felt_ttft(PLAN, took)[3]", "return honest.felt_ttft(PLAN, took)[2]", TERM),
    Mutant(FACTS, "2 ** ceil(log2(rate * e2e))", "2 ** ceil(log2(rate / e2e))", TERM),
    Mutant(FACTS, "TOLD, TOLD_TWIN, TOKENS = 50, 38, 20", "TOLD, TOLD_TWIN, TOKENS = 50, 40, 20", CONSTANT),
    Mutant(FACTS, '"held_ms": 1e3 * p99(busy.written)', '"held_ms": 1e3 * p99(busy.run.ttft)', TERM),
    Mutant(TASKS, "return p99(result.written) > LONG", "return p99(result.run.ttft) > LONG", TERM, EXPLORERS),
    Mutant(TASKS, "return abs(itl / tpot - 1) <= NEAR", "return abs(itl / tpot - 1) >= 0", COMPARISON, EXPLORERS),
    Mutant(TEXT, "for {{stall_s:.1f}} seconds: nobody", "for 5.7 seconds: nobody", NUMBER),
    Mutant(HONEST, "free = max(free, moment) + took", "free = free + took", TERM),
    Mutant(HONEST, "(per_token * tokens - ttft) / (tokens - 1)", "(per_token * tokens - ttft) / tokens", TERM),
    Mutant(TEST, "if len(flying) < limit:", "if len(flying) <= limit:", BOUNDARY),
    Mutant(TEST, "sent[i] = max(moment, flying[0])", "sent[i] = flying[0]", COMPARISON),
    Mutant(TEST, "first_computed - self.sent", "first_computed - self.run.arrival", TERM),
    Mutant(TEST, "int((way > 1).sum())", "int((way > 0.1).sum())", CONSTANT),
    Mutant(STEADY, "(1 - confidence) / 2\n    if", "(1 - confidence)\n    if", TERM),
    Mutant(STEADY, "(run.arrival < end)", "(run.arrival <= run.arrival[-1])", TERM),
    Mutant(LAUNCHED, "before < STALLED <= begun", "before <= STALLED < begun", BOUNDARY),
    Mutant(LAUNCHED, "found.stall, LEAST) / 2", "found.stall, LEAST)", CONSTANT),
    Mutant(HTTP, "self.first - self.planned)", "self.first - self.sent)", TERM),
    Mutant(HTTP, "ThreadPoolExecutor(max_concurrency)", "ThreadPoolExecutor(SLOTS)", CONSTANT),
    Mutant(TOOLS, "float(decode.sum() / n.sum())", "float((decode / n).mean())", TERM),
    Mutant(TOOLS, "np.concatenate(seen.piece_tokens).sum())", "len(all_gaps))", TERM),
)
