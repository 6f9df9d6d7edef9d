"""What stands around the loop: SLOs of requests."""

from tests.bench.mutants import COMPARISON, KEY, ORDER, TERM, Mutant

TESTS = ("tests/workload/test_slo.py", "tests/engine/test_promises.py")
SLO, PROMISES, CAPACITY = "course/workload/slo.py", "course/engine/promises.py", "course/engine/capacity.py"
ARRIVALS, TRANSFORMS, METRICS = (
    "course/engine/arrivals.py", "course/workload/transforms.py", "course/engine/metrics.py"
)  # fmt: skip

MUTANTS = (
    Mutant(SLO, "above=0, high=MAX_SECONDS", "low=0, high=MAX_SECONDS", COMPARISON),
    Mutant(SLO, "if nobody is not None:", "if False:", TERM),
    Mutant(SLO, "if without is not None:", "if False:", TERM),
    Mutant(SLO, "np.inf if value is None else value", "0 if value is None else value", TERM),
    Mutant(SLO, "if len(each) != n:", "if len(each) > n:", COMPARISON),
    Mutant(SLO, "SLO() if one is None else one", "one", TERM),
    Mutant(TRANSFORMS, '("slo", SLO())', '("slo", None)', TERM, equivalent="a Workload takes None for SLO() too"),
    Mutant(ARRIVALS, "deadline = slo.ttft", "deadline = slo.e2e", KEY),
    Mutant(ARRIVALS, "if deadline is None and slo is not None:", "if slo is not None:", TERM),
    Mutant(PROMISES, "> limits(slos, name)", ">= limits(slos, name)", COMPARISON),
    Mutant(PROMISES, 'for name in ("ttft", "tpot", "e2e"):', 'for name in ("ttft", "e2e"):', TERM),
    Mutant(PROMISES, 'run.workload.class_ if by == "class"', 'run.workload.class_ if by == "tenant"', KEY),
    Mutant(PROMISES, "load.slo if slo is None else slo", "slo if load.slo is None else load.slo", ORDER),
    Mutant(PROMISES, "float(met.sum()) / run.makespan", "float(met.mean())", TERM),
    Mutant(METRICS, "float(of_label.sum()) / makespan", "float(met.sum()) / makespan", TERM),
    Mutant(METRICS, "float(of_label.mean())", "float(met.mean())", TERM),
    Mutant(CAPACITY, "if least(middle) >= share:", "if least(middle) > share:", COMPARISON),
    Mutant(CAPACITY, "return low", "return high", ORDER),
    Mutant(CAPACITY, "min(share_within_slo(", "max(share_within_slo(", ORDER),
    Mutant(CAPACITY, "high - low > within * high", "high - low > within * high * 100", TERM),
)
