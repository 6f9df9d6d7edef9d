"""Closed forms, chains and balances of queueing."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/queueing",)
SINGLE, SHARING, CAPACITY = (f"course/queueing/{name}.py" for name in ("single", "sharing", "capacity"))
MANY, GAIN, EMBEDDED = (f"course/queueing/{name}.py" for name in ("many", "gain", "embedded"))

MUTANTS = (
    Mutant(SINGLE, "rho * service / (2 * (1 - rho))", "rho * service / (1 - rho)", CONSTANT),
    Mutant(SINGLE, "service * (1 + cv**2)", "service * (1 + cv)", TERM),
    Mutant(SINGLE, '"mean_waiting_requests": arrival_rate * wait_s', '"mean_waiting_requests": wait_s', TERM),
    Mutant(SINGLE, "log(self.utilisation / tail)", "log(1 / tail)", TERM),
    Mutant(
        SINGLE,
        '-log(1 - check.share("quantile", quantile)) * self',
        '-log(check.share("quantile", quantile)) * self',
        PERCENTILE,
    ),
    Mutant(SINGLE, "int(seconds // self.service_s) + 1", "int(seconds // self.service_s)", BOUNDARY),
    Mutant(SINGLE, "return np.cumsum(in_system)[1:]", "return np.cumsum(in_system)[:-1]", BOUNDARY),
    Mutant(
        SINGLE,
        "if n <= terms:",
        "if n < terms:",
        COMPARISON,
        equivalent="more[terms] is a probability of a sum beyond 60 arrivals, below 1e-80",
    ),
    Mutant(SHARING, "waiting = full * rho / (1 - rho) ** 2", "waiting = full * rho / (1 - rho)", TERM),
    Mutant(SHARING, "p_wait=float(full / (1 - rho))", "p_wait=float(full)", TERM),
    Mutant(SHARING, "if self.p_wait <= tail:", "if self.p_wait >= tail:", COMPARISON),
    Mutant(SHARING, "(len(p) - 1) * full * rho / (1 - rho))", "len(p) * full * rho / (1 - rho))", BOUNDARY),
    Mutant(
        SHARING,
        "residual = sum(landed * step for landed, step in landings) / 2",
        "residual = sum(landed * step for landed, step in landings)",
        CONSTANT,
    ),
    Mutant(
        SHARING,
        "mean_ttft_s=chain.mean_wait_s + (1 - chain.p_wait) * residual + own",
        "mean_ttft_s=chain.mean_wait_s + own",
        TERM,
    ),
    Mutant(
        SHARING, "(busy - mixed, plain), (mixed, prefills[0])", "(mixed, plain), (busy - mixed, prefills[0])", ORDER
    ),
    Mutant(SHARING, "mixed = min(mixed, busy)", "mixed = max(mixed, busy)", COMPARISON),
    Mutant(CAPACITY, "room = max(1, budget - (sequences - 1))", "room = max(1, budget)", TERM),
    Mutant(CAPACITY, "decodes = need.output_tokens - 1", "decodes = need.output_tokens", BOUNDARY),
    Mutant(CAPACITY, "per_step = min(sequences", "per_step = max(sequences", COMPARISON),
    Mutant(CAPACITY, "((few, 1 - more), (few + 1, more))", "((few, more), (few + 1, 1 - more))", ORDER),
    Mutant(CAPACITY, "(output * (1 + cv**2) - 1) * output", "(output * (1 + cv**2)) * output", BOUNDARY),
    Mutant(CAPACITY, "(decodes * (decodes + 1) / 2).sum()", "(decodes * (decodes - 1) / 2).sum()", BOUNDARY),
    Mutant(CAPACITY, "Step(slots, slots * (prompt + token), ())", "Step(slots, prompt + token, ())", TERM),
    Mutant(CAPACITY, "for token in range(1, steps):", "for token in range(0, steps):", BOUNDARY),
    Mutant(CAPACITY, "range(1, int(max_num_seqs))]", "range(0, int(max_num_seqs) - 1)]", BOUNDARY),
    Mutant(CAPACITY, "prefill_tokens_per_step=slots * prompt / steps", "prefill_tokens_per_step=slots * prompt", UNIT),
    Mutant(MANY, "blocked / (1 - load / count * (1 - blocked))", "blocked / (1 - load / count)", TERM),
    Mutant(MANY, "for busy in range(1, count + 1):", "for busy in range(1, count):", BOUNDARY),
    Mutant(
        MANY, "return self.servers / self.service_s - self.arrival_rate", "return self.servers / self.service_s", TERM
    ),
    Mutant(MANY, "spare = self.servers - 1 - self.offered_load", "spare = self.servers - self.offered_load", BOUNDARY),
    Mutant(
        GAIN, 'np.arange(check.slots("batch", batch), 0, -1)', 'np.arange(check.slots("batch", batch), 1, -1)', BOUNDARY
    ),
    Mutant(GAIN, "wasted_share=1 - mean / longest", "wasted_share=mean / longest", TERM),
    Mutant(
        GAIN,
        "(np.arange(len(values) + 1) / len(values)) ** count",
        "(np.arange(len(values) + 1) / len(values)) ** (count + 1)",
        BOUNDARY,
    ),
    Mutant(GAIN, "fill = (size - 1) / (2 * rate)", "fill = size / (2 * rate)", BOUNDARY),
    Mutant(GAIN, "high = batches * (size / rate**2 + spread)", "high = batches * (1 / rate**2 + spread)", TERM),
    Mutant(EMBEDDED, "rate * durations**2 / 2", "rate * durations**2", CONSTANT),
    Mutant(EMBEDDED, "moves[:, 1] += moves[:, 0]", "moves[:, 1] += 0 * moves[:, 0]", TERM),
    Mutant(EMBEDDED, "(batches * durations) / (chain.at_start @ batches)", "durations", TERM),
)
