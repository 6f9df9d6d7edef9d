"""Who arrives, when, and with how many tokens."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, PERCENTILE, TERM, Mutant

TESTS = ("tests/workload",)
WORKLOAD, ARRIVALS, LENGTHS = (f"course/workload/{name}.py" for name in ("workload", "arrivals", "lengths"))
TRANSFORMS, TALKS, COLUMNS = (f"course/workload/{name}.py" for name in ("transforms", "conversations", "columns"))

MUTANTS = (
    Mutant(WORKLOAD, "return (len(self) - 1) / self.span if", "return len(self) / self.span if", BOUNDARY),
    Mutant(WORKLOAD, "self.arrival * (self.rate / rate)", "self.arrival * (rate / self.rate)", ORDER),
    Mutant(WORKLOAD, "return float(times[-1] - times[0])", "return float(times[-1])", TERM),
    Mutant(
        WORKLOAD, "rate=arrivals.checked_rate(rate), cv=1.0)", "rate=arrivals.checked_rate(rate), cv=0.0)", CONSTANT
    ),
    Mutant(
        WORKLOAD,
        'n = min(whole("n", n, high=10**18), len(self))',
        'n = min(whole("n", n, high=10**18), len(self) - 1)',
        BOUNDARY,
    ),
    Mutant(ARRIVALS, "rng.gamma(1 / cv**2, mean * cv**2, n)", "rng.gamma(1 / cv, mean * cv, n)", TERM),
    Mutant(ARRIVALS, "return np.arange(1, n + 1) / rate", "return np.arange(n) / rate", BOUNDARY),
    Mutant(ARRIVALS, "return interval * np.arange(1, n + 1)", "return interval * np.arange(n)", BOUNDARY),
    Mutant(ARRIVALS, "rng.exponential(on_fraction / rate, n)", "rng.exponential(1 / rate, n)", TERM),
    Mutant(ARRIVALS, "(1 - on_fraction) * period, ends.size + 1", "on_fraction * period, ends.size + 1", TERM),
    Mutant(ARRIVALS, "starts_on = rng.random() < on_fraction", "starts_on = rng.random() > on_fraction", COMPARISON),
    Mutant(LENGTHS, "rng.standard_normal(n) - sigma**2 / 2)", "rng.standard_normal(n))", TERM),
    Mutant(LENGTHS, "sigma = sqrt(log1p(self.cv**2))", "sigma = log1p(self.cv**2)", TERM),
    Mutant(LENGTHS, "np.clip(np.rint(draws), self.low", "np.clip(np.floor(draws), self.low", BOUNDARY),
    Mutant(LENGTHS, "size=n, endpoint=True", "size=n, endpoint=False", BOUNDARY),
    Mutant(TALKS, "after = np.arange(n) - users", "after = np.arange(n) - 1", BOUNDARY),
    Mutant(TALKS, "think[:users] = 0.0", "think[: users + 1] = 0.0", BOUNDARY),
    Mutant(TALKS, "_history(new_tokens + outputs, first, counts)", "_history(new_tokens, first, counts)", TERM),
    Mutant(TALKS, "prompts = system_tokens + _history", "prompts = _history", TERM),
    Mutant(TALKS, "before - np.repeat(before[first], counts)", "before", TERM),
    Mutant(TRANSFORMS, "key[i] = key[before] + pause", "key[i] = key[before]", TERM),
    Mutant(TRANSFORMS, "np.where(after < 0, -1, place[after])", "np.where(after < 0, -1, after)", ORDER),
    Mutant(TRANSFORMS, "float(np.percentile(counts, 99))", "float(np.percentile(counts, 95))", PERCENTILE),
    Mutant(TRANSFORMS, "float(gaps.std() / gaps.mean())", "float(gaps.std(ddof=1) / gaps.mean())", TERM),
    Mutant(
        COLUMNS,
        "bad = ~((array >= 1) & (array <= MAX_TOKENS))",
        "bad = ~((array >= 0) & (array <= MAX_TOKENS))",
        BOUNDARY,
    ),
    Mutant(COLUMNS, "(after < -1) | (after >= rows)", "(after < -1) | (after > rows)", COMPARISON),
    Mutant(
        COLUMNS,
        "np.flatnonzero(np.diff(arrival[rows]) < 0)",
        "np.flatnonzero(np.diff(arrival[rows]) <= 0)",
        COMPARISON,
    ),
)
