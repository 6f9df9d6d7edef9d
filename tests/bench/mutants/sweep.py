"""Grids, rows, files, tables, the front, capacity, and the loop that numba compiles."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, Mutant

SWEEP, TABLE, COMPILED = (f"tests/sweep/test_{name}.py" for name in ("sweep", "table", "compiled"))
TESTS = (TABLE, COMPILED)
GRID, ROW, FILE, RUNNING, FRONT, OF_TABLE, CAPACITY, LOOP, FAST = (
    f"course/sweep/{name}.py"
    for name in ("grid", "row", "rows_file", "running", "front", "table", "capacity", "loop", "fast")
)
RUNS = (SWEEP,)

MUTANTS = (
    Mutant(
        GRID, "unique.setdefault(repr(sorted(plain.items())), plain)", "unique[str(len(unique))] = plain", TERM, RUNS
    ),
    Mutant(
        GRID, "if total <= 2 * number + 1_000:", "if False:", COMPARISON, equivalent="the other way draws as fairly"
    ),
    Mutant(GRID, "rng.permutation(total)[:number]", "range(number)", TERM),
    Mutant(GRID, "if runs > MOST_RUNS:", "if runs > 2 * MOST_RUNS:", CONSTANT, RUNS),
    Mutant(ROW, "sorted(settings.items())", "list(settings.items())", ORDER, RUNS),
    Mutant(ROW, "not isfinite(value) else value", "value < 0 else value", COMPARISON, RUNS),
    Mutant(ROW, "refused, failed = reason(error), True", "refused, failed = reason(error), False", TERM, RUNS),
    Mutant(ROW, "with one_thread():", "if True:", TERM, RUNS),
    Mutant(ROW, "versions(), seconds, loop()", "versions(), seconds, ENGINE", TERM),
    Mutant(FILE, 'content[: content.rfind("\\n") + 1]', "content", TERM, RUNS),
    Mutant(FILE, "file.truncate(size - tail + end + 1)", "pass", TERM, RUNS),
    Mutant(RUNNING, "for row in there if not row.failed", "for row in there", TERM, RUNS),
    Mutant(RUNNING, "known[key] for key in keys), tuple(notes)", "known.values()), tuple(notes)", ORDER, RUNS),
    Mutant(RUNNING, "                add(row)\n", "", TERM, RUNS),
    Mutant(FRONT, "(one[least], -one[most])", "(one[least], one[most])", ORDER),
    Mutant(FRONT, "one[most] > found[-1][most]", "one[most] >= found[-1][most]", COMPARISON),
    Mutant(OF_TABLE, "if len(kept) == len(rows):", "if kept:", COMPARISON),
    Mutant(OF_TABLE, "sum(kept) / len(kept)", "max(kept)", TERM),
    Mutant(
        OF_TABLE,
        "rows[0].summary if refused is None else ()",
        "rows[0].summary",
        TERM,
        equivalent="a refused row has no numbers, so that no number is in every row",
    ),
    Mutant(CAPACITY, "t.ppf(0.975, len(rates) - 1)", "t.ppf(0.5, len(rates) - 1)", CONSTANT),
    Mutant(CAPACITY, "good, rate = rate, 2 * rate", "good, rate = rate, 1e9 * rate", CONSTANT),
    Mutant(
        CAPACITY,
        "min(share_within_slo(run, by, slo=slo).values())",
        "max(share_within_slo(run, by, slo=slo).values())",
        TERM,
    ),
    Mutant(LOOP, "s[SHORT] = room < 0", "s[SHORT] = 0", TERM),
    Mutant(
        LOOP,
        "alone = decoding <= 1 and",
        "alone = decoding <= 2 and",
        BOUNDARY,
        equivalent="of two that decode neither is alone",
    ),
    Mutant(LOOP, "(s[RUNS] and need + s[KEPT_FREE] > room)", "need + s[KEPT_FREE] > room", TERM),
    Mutant(LOOP, "for place in range(s[RUNS] - 1, stay - 1, -1):", "for place in range(stay, s[RUNS]):", ORDER),
    Mutant(
        LOOP,
        "if not s[CHUNKED]:\n                break",
        "if not s[CHUNKED]:\n                return",
        TERM,
        equivalent="nothing follows the loop",
    ),
    Mutant(LOOP, "(r[one, EMITTED] and remaining(r, one) == 1)", "False", TERM),
    Mutant(LOOP, "blocks(whole if s[WHOLE] else tokens, s[SIZE])", "blocks(tokens, s[SIZE])", TERM),
    Mutant(LOOP, "if f[0] >= coming:", "if f[0] > coming:", COMPARISON),
    Mutant(
        LOOP,
        "waits = s[RUNS] == s[SLOTS] or s[BACKS] or",
        "waits = s[BACKS] or",
        TERM,
        equivalent="a stretch ends sooner, and begins again",
    ),
    Mutant(FAST, "load.patience is not None or engine.arrivals.follow_answers", "load.patience is not None", TERM),
    Mutant(FAST, "tokens[:, 1] + by_chunk", "tokens[:, 1]", BOUNDARY),
)
