"""Result files of benchmark tools, and what is said of them."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = (
    "tests/results/test_thresholds.py",
    "tests/results/test_results.py",
    "tests/results/test_traps.py",
    "tests/results/test_pieces.py",
    "tests/results/test_loops.py",
    "tests/results/test_llmservingsim.py",
    "tests/results/test_sweeps.py",
    "tests/results/test_refusals.py",
    "tests/results/test_fuzz.py",
)
ASSEMBLE, REMARKS, ROWS = (f"course/results/{name}.py" for name in ("assemble", "remarks", "rows"))
VLLM, GUIDELLM, LLMPERF = (f"course/results/{name}.py" for name in ("vllm_bench", "guidellm", "llmperf"))
AIPERF, INFERENCE_PERF, SERVINGSIM = (
    f"course/results/{name}.py" for name in ("aiperf", "inference_perf", "llmservingsim")
)
LISTS, SHAPE, RESULT, SGLANG = (f"course/results/{name}.py" for name in ("lists", "shape", "result", "sglang_bench"))

LOAD, PIECES = "course/results/load.py", "course/results/pieces.py"

MUTANTS = (
    Mutant(
        ASSEMBLE,
        "(e2e - ttft) / np.maximum(output_tokens - 1, 1)",
        "(e2e - ttft) / np.maximum(output_tokens, 1)",
        BOUNDARY,
    ),
    Mutant(ASSEMBLE, "np.where(output_tokens > 1, (e2e", "np.where(output_tokens > 0, (e2e", BOUNDARY),
    Mutant(
        ASSEMBLE,
        "float(whole.sum()))",
        "float(whole.mean()))",
        TERM,
    ),
    Mutant(ASSEMBLE, '{"in_flight": mean * totals.get(', '{"in_flight": mean / totals.get(', TERM),
    Mutant(ASSEMBLE, "table.ttft - table.e2e > 1e-6", "table.e2e - table.ttft > 1e6", ORDER),
    Mutant(
        ASSEMBLE, "abs(whole - first) <= SAME_TIME * whole", "abs(whole - first) <= 100 * SAME_TIME * whole", CONSTANT
    ),
    Mutant(ASSEMBLE, "(values | own | reported)", "(reported | own | values)", ORDER),
    Mutant(
        ASSEMBLE,
        "several.any() and _at_once(table)[several].all()",
        "several.any() and _at_once(table)[several].any()",
        COMPARISON,
    ),
    Mutant(REMARKS, "float((len(table) - 1) / span)", "float(len(table) / span)", BOUNDARY),
    Mutant(REMARKS, '"in_flight": e2e_sum / duration,', '"in_flight": e2e_sum / counts["requests"],', UNIT),
    Mutant(
        REMARKS,
        "ends.max() - np.nanmin(table.arrival)",
        "ends.max()",
        TERM,
        equivalent="the arrivals of a table count from the first one, which is 0",
    ),
    Mutant(LOAD, "if not offered < (1 - SHORTFALL) * requested:", "if not offered < requested:", COMPARISON),
    Mutant(
        LOAD,
        "load = offered if isfinite(offered) else requested",
        "load = requested if isfinite(requested) else offered",
        ORDER,
    ),
    Mutant(LOAD, "if flying > (1 + SLACK) * most and", "if flying < (1 + SLACK) * most and", COMPARISON),
    Mutant(REMARKS, 'total = failed + totals.get("requests", 0)', 'total = totals.get("requests", 0)', TERM),
    Mutant(REMARKS, "- amount) > max(SLACK * max", "- amount) > max(10 * SLACK * max", CONSTANT),
    Mutant(PIECES, "not 1 / FAR <= tpot / gap <= FAR", "not 0 <= tpot / gap <= FAR", COMPARISON),
    Mutant(PIECES, "gap = decode / gaps if", "gap = decode / (gaps + 1) if", BOUNDARY),
    Mutant(
        PIECES,
        "{how} are {1000 * gap_mean:.4g} ms",
        "{how} are {gap_mean:.4g} ms",
        UNIT,
    ),
    Mutant(ROWS, "LONGEST = 1e6", "LONGEST = 1e7", CONSTANT),
    Mutant(ROWS, 'value = 100 * float(f"0.{digits}")', 'value = float(f"0.{digits}")', PERCENTILE),
    Mutant(ROWS, "else float(digits) / 10", "else float(digits)", PERCENTILE),
    Mutant(ROWS, '"median": "p50"', '"median": "mean"', PERCENTILE),
    Mutant(ROWS, "value = number(place, doc, key) * scale", "value = number(place, doc, key)", UNIT),
    Mutant(ROWS, "number > 0 else NAN", "number >= 0 else NAN", COMPARISON),
    Mutant(
        PIECES,
        'totals.get("output_tokens", nan) / requests) - 1',
        'totals.get("output_tokens", nan) / requests)',
        BOUNDARY,
    ),
    Mutant(PIECES, "by_itl, by_tpot = first + itl * gaps", "by_itl, by_tpot = itl * gaps", TERM),
    Mutant(PIECES, 'few = "slower" if itl < tpot', 'few = "slower" if itl > tpot', COMPARISON),
    Mutant(VLLM, 'totals["failed"] = requests - completed', 'totals["failed"] = requests', TERM),
    Mutant(
        VLLM,
        '"prompt_tokens": count(place, doc, "total_input_tokens")',
        '"prompt_tokens": count(place, doc, "total_output_tokens")',
        ORDER,
    ),
    Mutant(GUIDELLM, '"itl": ("inter_token_latency_ms", 1e-3)', '"itl": ("inter_token_latency_ms", 1.0)', UNIT),
    Mutant(GUIDELLM, "first - start, last - start", "first - start, end - start", TERM),
    Mutant(GUIDELLM, 'if lengths.get("std_dev") == 0:', 'if lengths.get("std_dev") != 0:', COMPARISON),
    Mutant(
        GUIDELLM,
        'row, "prompt_tokens"), tokens(place, row, "output_tokens")',
        'row, "output_tokens"), tokens(place, row, "prompt_tokens")',
        ORDER,
    ),
    Mutant(GUIDELLM, "if (~failed & inside).sum() != counted:", "if (~failed & inside).sum() < counted:", COMPARISON),
    Mutant(GUIDELLM, "start - start.min(), *columns", "start, *columns", TERM),
    Mutant(LLMPERF, "gaps = (output[some] - 1).sum()", "gaps = output[some].sum()", BOUNDARY),
    Mutant(LLMPERF, "float((e2e - ttft)[some].sum() / gaps)", "float(e2e[some].sum() / gaps)", TERM),
    Mutant(AIPERF, "(moment - min(starts)) / 10**9", "(moment - min(starts)) / 10**6", UNIT),
    Mutant(
        AIPERF,
        'meta.get("benchmark_phase") not in (None, "profiling")',
        'meta.get("benchmark_phase") in (None, "warmup")',
        COMPARISON,
    ),
    Mutant(INFERENCE_PERF, "scale = 1 if top <= 1 else 100", "scale = 1 if top <= 1 else 1", UNIT),
    Mutant(
        INFERENCE_PERF,
        '(totals["mean_output_tokens"] - 1)\n        values',
        'totals["mean_output_tokens"]\n        values',
        BOUNDARY,
    ),
    Mutant(INFERENCE_PERF, "float(times[0] - start), float(times[-1] - start)", "float(times[0] - start), e2e", TERM),
    Mutant(
        INFERENCE_PERF,
        '"offered_rate": rate(place, load, "achieved_rate")',
        '"offered_rate": rate(place, load, "requested_rate")',
        TERM,
    ),
    Mutant(
        SERVINGSIM,
        "(first - queued, tpot, last - queued, scheduled - queued)",
        "(first - arrived, tpot, last - arrived, scheduled - arrived)",
        TERM,
    ),
    Mutant(SERVINGSIM, 'series["kv_usage"] = usage / 100', 'series["kv_usage"] = usage', UNIT),
    Mutant(LISTS, 'columns["ttft"] + np.array([gap.sum()', "np.array([gap.sum()", TERM),
    Mutant(LISTS, "(table.output_tokens[good] - 1).sum()", "table.output_tokens[good].sum()", BOUNDARY),
    Mutant(LISTS, 'bool(row.get("errors")) or not columns["output"][i] > 0', 'bool(row.get("errors"))', TERM),
    Mutant(SHAPE, "first > EARLY * others", "first > 1 * others", CONSTANT),
    Mutant(
        SHAPE,
        "np.percentile(ttft, 99), np.percentile(ttft[later], 99)",
        "np.percentile(ttft, 90), np.percentile(ttft[later], 90)",
        PERCENTILE,
    ),
    Mutant(RESULT, "table.arrival[rows] - table.arrival[rows[0]]", "table.arrival[rows]", TERM),
    Mutant(RESULT, "np.flatnonzero(~self.requests.failed)", "np.flatnonzero(self.requests.failed | True)", TERM),
    Mutant(SGLANG, "> RETOKENISED_SHARE * server", "> 10 * RETOKENISED_SHARE * server", CONSTANT),
)
