"""Trace files and what is said of them."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/traces",)
ROWS, COLUMNS, REMARKS = (f"course/traces/{name}.py" for name in ("rows", "columns", "remarks"))
BLOCKS, SERVEGEN, TABLE = (f"course/traces/{name}.py" for name in ("blocks", "servegen", "table"))

MUTANTS = (
    Mutant(ROWS, "* 86_400 + hour * 3_600", "* 86_400 + hour * 360", UNIT),
    Mutant(ROWS, "+ second - _offset(zone)", "+ second + _offset(zone)", TERM),
    Mutant(ROWS, '(fraction or "").ljust(12, "0")', '(fraction or "").rjust(12, "0")', UNIT),
    Mutant(ROWS, '(-1 if zone[0] == "-" else 1)', "1", TERM),
    Mutant(
        ROWS, "if hour > 23 or minute > 59 or second > 59:", "if hour > 24 or minute > 59 or second > 59:", BOUNDARY
    ),
    Mutant(ROWS, "if int(match[1]) == 0:", "if int(match[1]) < 0:", COMPARISON),
    Mutant(
        "course/traces/azure.py",
        "rows.prompt(PROMPT, prompt), rows.count(OUTPUT, output)",
        "rows.prompt(OUTPUT, output), rows.count(PROMPT, prompt)",
        ORDER,
    ),
    Mutant("course/traces/mooncake.py", "PICOSECONDS // 1_000", "PICOSECONDS", UNIT),
    Mutant("course/traces/mooncake.py", "BLOCK_TOKENS = 512", "BLOCK_TOKENS = 256", CONSTANT),
    Mutant("course/traces/burstgpt.py", 'if cells[OUTPUT] in ("0", "0.0"):', 'if cells[OUTPUT] in ("0.0",):', TERM),
    Mutant(
        "course/traces/plain.py",
        'MILLISECOND if _plain(self._columns[0]).endswith("_ms") else rows.PICOSECONDS',
        "rows.PICOSECONDS",
        UNIT,
    ),
    Mutant(
        "course/traces/splitwise.py", "rows.count(BATCH, batch[0]) != 1", "rows.count(BATCH, batch[0]) > 2", BOUNDARY
    ),
    Mutant("course/traces/qwen_bailian.py", "return small > large", "return small < large", COMPARISON),
    Mutant(
        "course/traces/__init__.py",
        "row.prompt + row.output > longest",
        "row.prompt + row.output >= longest",
        COMPARISON,
    ),
    Mutant(
        "course/traces/__init__.py",
        "total = len(columns) + sum(map(len, failed.values()))",
        "total = len(columns)",
        TERM,
    ),
    Mutant(
        COLUMNS,
        "np.array([(times[i] - first) / PICOSECONDS for i in order])",
        "np.array([times[i] / PICOSECONDS for i in order])",
        TERM,
    ),
    Mutant(COLUMNS, "if moment < before:", "if moment <= before:", COMPARISON),
    Mutant(
        COLUMNS,
        "prompt_tokens=np.array(self.prompt, dtype=np.int64)[order]",
        "prompt_tokens=np.array(self.prompt, dtype=np.int64)",
        ORDER,
    ),
    Mutant(COLUMNS, "self.prefixes[i] or () for i in order", "prefix or () for prefix in self.prefixes", ORDER),
    Mutant(REMARKS, "len(ticks) < len(arrival) / 2 and", "len(ticks) < len(arrival) and", CONSTANT),
    Mutant(REMARKS, "np.percentile(steps, (10, 50, 90))", "np.percentile(steps, (50, 50, 50))", PERCENTILE),
    Mutant(REMARKS, "contexts > LONG_CONTEXT", "contexts >= LONG_CONTEXT", COMPARISON),
    Mutant(REMARKS, "steps[place] * rank / counts[place]", "steps[place] * rank", TERM),
    Mutant(REMARKS, 'side="left")', 'side="right")', BOUNDARY),
    Mutant(
        BLOCKS,
        "if not full - self.slack <= len(ids) <= full:",
        "if not full - self.slack - 1 <= len(ids) <= full:",
        BOUNDARY,
    ),
    Mutant(BLOCKS, "full = -(-prompt // self.block_tokens)", "full = prompt // self.block_tokens", BOUNDARY),
    Mutant(SERVEGEN, "round(rate * usual)", "round(rate * usual) + 1", BOUNDARY),
    Mutant(SERVEGEN, "np.cumsum(gaps[:-1])", "np.cumsum(gaps[1:])", BOUNDARY),
    Mutant(SERVEGEN, 'side="right")) - 1', 'side="left")) - 1', BOUNDARY),
    Mutant(SERVEGEN, "rng.weibull(window.shape, size=n)", "rng.gamma(window.shape, size=n)", TERM),
    Mutant(
        SERVEGEN,
        "return Workload(arrival - arrival[0], tokens[0], tokens[1]), note",
        "return Workload(arrival - arrival[0], tokens[1], tokens[0]), note",
        ORDER,
    ),
    Mutant(TABLE, "count(column, cell) != prompt + output", "count(column, cell) < prompt + output", COMPARISON),
)
