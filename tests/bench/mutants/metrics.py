"""Percentiles, Little's law and the summary of a run."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = (
    "tests/engine/test_metrics.py",
    "tests/engine/test_warnings.py",
    "tests/engine/test_metrics_refusals.py",
    "tests/engine/test_invariants.py",
    "tests/engine/test_oracle.py",
)
METRICS = "course/engine/metrics.py"

MUTANTS = (
    Mutant(METRICS, "PERCENTILES = (50, 90, 95, 99)", "PERCENTILES = (50, 90, 95, 98)", PERCENTILE),
    Mutant(METRICS, "known = ~np.isnan(values)", "known = np.ones(len(values), dtype=bool)", TERM),
    Mutant(METRICS, "known &= weights > 0", "known &= weights > 1", BOUNDARY),
    Mutant(METRICS, "np.array(PERCENTILES) / 100 * (upto[-1] - 1)", "np.array(PERCENTILES) / 100 * upto[-1]", BOUNDARY),
    Mutant(
        METRICS, 'np.searchsorted(upto, below, side="right")', 'np.searchsorted(upto, below, side="left")', BOUNDARY
    ),
    Mutant(METRICS, "np.minimum(below + 1, upto[-1] - 1)", "np.minimum(below, upto[-1] - 1)", BOUNDARY),
    Mutant(METRICS, "np.average(values, weights=weights[known][order])", "np.average(values)", TERM),
    Mutant(METRICS, "np.append(times[1:] != times[:-1], True)", "np.append(True, times[1:] != times[:-1])", ORDER),
    Mutant(
        METRICS,
        "inside = (arrival >= start) & (arrival < end)",
        "inside = (arrival > start) & (arrival < end)",
        COMPARISON,
    ),
    Mutant(METRICS, "rate = float(inside.sum() / seconds)", "rate = float(inside.sum() / end)", UNIT),
    Mutant(METRICS, "np.minimum(response, end) - start", "response - start", TERM),
    Mutant(METRICS, "rate * mean_stay + carried_in - carried_out)", "rate * mean_stay + carried_in)", TERM),
    Mutant("course/engine/promises.py", "> limits(slos, name)", ">= limits(slos, name)", COMPARISON),
    Mutant(METRICS, "counted = run.arrival >= begin", "counted = run.arrival > begin", COMPARISON),
    Mutant(METRICS, "window = (steps.end > begin) & (steps.end <= last)", "window = (steps.end > begin)", TERM),
    Mutant(
        METRICS,
        "useful = (steps.running - steps.wasted) * steps.seconds",
        "useful = steps.running * steps.seconds",
        TERM,
    ),
    Mutant(
        METRICS,
        '"offered_rate": (len(run) - 1) / (last - first)',
        '"offered_rate": len(run) / (last - first)',
        BOUNDARY,
    ),
    Mutant(
        METRICS,
        "(outputs + int(load.prompt_tokens[",
        "(int(load.prompt_tokens[",
        TERM,
    ),
    Mutant(METRICS, "computed / budget if", "computed / makespan if", UNIT),
    Mutant(
        METRICS,
        "np.dot(steps.blocks, steps.seconds)) / (blocks * makespan)",
        "np.dot(steps.blocks, steps.seconds)) / blocks",
        UNIT,
    ),
    Mutant(METRICS, "load.output_tokens[whole] - 1)", "load.output_tokens[whole])", BOUNDARY),
    Mutant(METRICS, "float(met.sum()) / makespan", "float(met.mean())", UNIT),
    Mutant(METRICS, "getattr(run, name)[counted]", "getattr(run, name)", TERM),
    Mutant(
        METRICS,
        "waiting > max(2 * run.limits.max_num_seqs, len(run) // 10)",
        "waiting > max(1 * run.limits.max_num_seqs, len(run) // 10)",
        BOUNDARY,
    ),
    Mutant(METRICS, "if preemptions > len(run) // 10:", "if preemptions > len(run) // 2:", COMPARISON),
)
