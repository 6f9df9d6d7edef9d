"""Lab 15: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, ORDER, PERCENTILE, TERM, Mutant

ASKS = "course/lessons/lab15/asks.yaml"
FACTS, PROMISES, ORDERS, DECISION, TASKS, MIXED, FIGURES, GAME, BY_HAND, SURPRISE, WORDS, DEEPER = (
    f"course/lessons/lab15/{name}.py"
    for name in ("facts", "promises", "orders", "decision", "tasks", "mixed", "figures", "game", "by_hand", "surprise",
                 "live_words", "deeper")
)  # fmt: skip

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why:", "    right: b\n    why:", KEY),
    Mutant(
        FACTS,
        "1 / rate\n    return window",
        "2 / rate\n    return window",
        CONSTANT,
        equivalent="both waits grow by one factor, and the key compares their ratio",
    ),
    Mutant(FACTS, "TTFT[CHAT] - CHAT_PROMPT / PACE", "TTFT[CHAT]", TERM),
    Mutant(PROMISES, "busy // ON * (PERIOD - ON)", "busy // ON * PERIOD", TERM),
    Mutant(PROMISES, "< rate / MOST", "< 1", TERM),
    Mutant(PROMISES, "np.nanpercentile(self.run.tpot, 95)", "np.nanpercentile(self.run.tpot, 90)", PERCENTILE),
    Mutant(PROMISES, "self.run.ttft <= self.promised", "self.run.ttft <= TTFT[CHAT]", TERM),
    Mutant(PROMISES, "~self.kept & ~self.chat", "~self.kept & self.chat", ORDER),
    Mutant(ORDERS, "case.t0 + case.c * case.batch", "case.t0 + case.batch", TERM),
    Mutant(
        ORDERS,
        "pace)\n    return sorted(range(len(waiting)), key=lambda place: (start[place] < now, s",
        "pace)\n    return sorted(range(len(waiting)), key=lambda place: (0, s",
        TERM,
    ),
    Mutant(ORDERS, "return (interactive + bulk)[: most - running]", "return (interactive + bulk)[:most]", TERM),
    Mutant(DECISION, "found.tpot <= tpot,", "found.ttft <= tpot,", ORDER),
    Mutant(DECISION, 'found["tokens"] < found["seqs"]', 'found["tokens"] <= found["seqs"]', COMPARISON),
    Mutant(DECISION, "RATE, SLOTS = 16, 256", "RATE, SLOTS = 6, 256", CONSTANT),
    Mutant(TASKS, "return next(broken, MOST + 1) - 1", "return next(broken, MOST + 1)", BOUNDARY),
    Mutant(MIXED, "CAP = 1_024", "CAP = 8_192", CONSTANT),
    Mutant(MIXED, "chat & (came == k)", "came == k", TERM),
    Mutant(FIGURES, '"late": ~in_time', '"late": ~kept', TERM),
    Mutant(GAME, "(0, 4, 5)", "(0, 4, 9)", CONSTANT),
    Mutant(BY_HAND, "DUE = (4, 4, 2, 2), (4.0, 7.0,", "DUE = (4, 4, 2, 2), (4.0, 8.0,", CONSTANT),
    Mutant(SURPRISE, "SEEDS = range(5)", "SEEDS = range(4)", CONSTANT),
    Mutant(DEEPER, "seconds(tokens + GRAIN) <= target", "seconds(tokens) <= target", BOUNDARY),
    Mutant(DEEPER, 'attrgetter("due", "index")', 'attrgetter("index")', ORDER),
    Mutant(WORDS, "request.class_ != URGENT", "request.class_ == URGENT", COMPARISON),
)
