"""What stands around the loop: SLOs of requests, a fleet and its routes, and who leaves without an answer."""

from tests.bench.mutants import BOUNDARY, COMPARISON, KEY, ORDER, TERM, Mutant

TESTS = ("tests/workload/test_slo.py", "tests/engine/test_promises.py", "tests/engine/test_fleet.py")
SLO, PROMISES, CAPACITY = "course/workload/slo.py", "course/engine/promises.py", "course/engine/capacity.py"
FLEET, ROUTES = "course/engine/fleet.py", "course/engine/routes.py"
INTAKE, ANSWER, PLAIN, RUN, STEPS = (
    f"course/engine/{name}.py" for name in ("intake", "answer", "plain", "run", "steps")
)
LOOP, PASSES, LIVES, TIGHT = (f"course/engine/fast/{name}.py" for name in ("loop", "passes", "lives", "tight"))
LIMIT = "course/policies/rate_limit.py"
SWAP, LEAVING = (
    "course/memory/swap_pool.py",
    ("tests/engine/test_leaving.py", "tests/engine/test_coming_again.py", "tests/engine/test_cancel.py"),
)
OF_FLEETS = ("tests/engine/test_fleet.py",)
APART, ELSEWHERE = (
    "course/engine/disaggregated.py",
    ("tests/engine/test_elsewhere.py", "tests/engine/test_disaggregated.py"),
)
ARRIVALS, TRANSFORMS, METRICS = (
    "course/engine/arrivals.py", "course/workload/transforms.py", "course/engine/metrics.py"
)  # fmt: skip

MUTANTS = (
    Mutant(LOOP, "request.life.prompt_tokens - request.life.elsewhere", "request.life.prompt_tokens", TERM, ELSEWHERE),
    Mutant(LIVES, "(life.emitted_before or life.elsewhere)", "life.emitted_before", TERM, ELSEWHERE),
    Mutant(LIVES, "if self.counts or pool.coming:", "if self.counts:", TERM, ELSEWHERE),
    Mutant(STEPS, "np.insert(log.brought, 3, 0", "np.insert(log.brought[:0], 3, 0", TERM, ELSEWHERE),
    Mutant(INTAKE, "request.prompt_tokens - 1)", "request.prompt_tokens)", BOUNDARY, ELSEWHERE),
    Mutant(INTAKE, "if tokens > request.prompt_tokens:", "if tokens >= request.prompt_tokens:", BOUNDARY, ELSEWHERE),
    Mutant(APART, "(rows, comes[rows])", "(comes[rows], rows)", ORDER, ELSEWHERE),
    Mutant(APART, "load.prompt_tokens[rows] + 1,", "load.prompt_tokens[rows] + 2,", BOUNDARY, ELSEWHERE),
    Mutant(APART, "brought=log.brought[:0]", "brought=log.brought", TERM, ELSEWHERE),
    Mutant(APART, "was.tokens + int(load.prompt_tokens[of[row]])", "was.tokens", TERM, ELSEWHERE),
    Mutant(APART, "first.answered & (load", "(load", TERM, ELSEWHERE),
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
    Mutant(FLEET, "engine.now > self._now", "engine.now >= self._now", COMPARISON, OF_FLEETS),
    Mutant(FLEET, "engine.now > self._now", "False", TERM, OF_FLEETS),
    Mutant(FLEET, "engine.advance(self._now)", "pass", TERM, OF_FLEETS),
    Mutant(FLEET, "engine.policy = fresh(engine.policy)", "pass", TERM, OF_FLEETS),
    Mutant(FLEET, "noted[:, steps] += before", "pass", TERM, OF_FLEETS),
    Mutant(FLEET, "log.idle + before", "log.idle", TERM, OF_FLEETS),
    Mutant(FLEET, "(step + int(n), budget)", "(step, budget)", TERM, OF_FLEETS),
    Mutant(FLEET, "float(max(peaks))", "float(min(peaks))", ORDER, OF_FLEETS),
    Mutant(FLEET, "steps.queue for steps in each", "steps.running for steps in each", KEY, OF_FLEETS),
    Mutant(ROUTES, "(self._next + 1) % len(replicas)", "self._next % len(replicas)", TERM, OF_FLEETS),
    Mutant(ROUTES, "if known[n] == most]", "if known[n] >= 0]", TERM, OF_FLEETS),
    Mutant(ROUTES, "<= fewest + self.within", "<= fewest", TERM, OF_FLEETS),
    Mutant(ROUTES, "self._sent[chosen].update(request.prefix)", "pass", TERM, OF_FLEETS),
    Mutant(ROUTES, "return least_loaded(replicas, group)", "return group[0]", TERM, OF_FLEETS),
    Mutant(ROUTES, "low = middle + 1", "low = middle + 2", BOUNDARY, OF_FLEETS),
    Mutant(INTAKE, "<= self.now:\n            end", "< self.now:\n            end", COMPARISON, LEAVING),
    Mutant(INTAKE, "self.first_token(request) <= end", "self.first_token(request) < end", COMPARISON, LEAVING),
    Mutant(INTAKE, "            stop, self.next_leave,", "            stop,", TERM, LEAVING),
    Mutant(INTAKE, "self.answered += 1\n        if self.arrivals.follow", "if self.arrivals.follow", TERM, LEAVING),
    Mutant(INTAKE, "self.waiting.forget_orders()", "pass", TERM, LEAVING),
    Mutant(INTAKE, "come_again(request, self.now + seconds)", "come_again(request, seconds)", TERM, LEAVING),
    Mutant(ANSWER, ">= RETRIES:", "> 9 * RETRIES:", TERM, LEAVING),
    Mutant(
        LIMIT, "max(1, math.ceil(missing / self.tokens_per_second))", "missing / self.tokens_per_second", TERM, LEAVING
    ),
    Mutant(LIMIT, "missing > 1e-9 * cost", "missing > 1", TERM, LEAVING),
    Mutant(
        LIMIT,
        "self.level[tenant_of(request)] = left - cost, now",
        "self.level[tenant_of(request)] = left, now",
        TERM,
        LEAVING,
    ),
    Mutant(LOOP, "elif not rejects:", "else:", TERM, LEAVING),
    Mutant(PASSES, "stop = min(stop, self.next_leave)", "pass", TERM, LEAVING),
    Mutant(PASSES, "and (not self.impatient or self.next_leave > now)", "and True", TERM, LEAVING),
    Mutant(
        LIVES, "life.decodes_from == self.steps and life.emitted_before == 1", "life.emitted_before == 1", TERM, LEAVING
    ),
    Mutant(LIVES, "tokens = self.pool.forget(request)", "tokens = 0", TERM, LEAVING),
    Mutant(SWAP, "self.host_free += self.blocks_for(tokens)\n        return tokens", "return tokens", TERM, LEAVING),
    Mutant(
        PLAIN, "request.life.tokens_from = self.steps", "request.life.tokens_from = self.steps - 1", BOUNDARY, LEAVING
    ),
    Mutant(
        PLAIN,
        "tokens = request.computed\n            self.pool.release(request)",
        "tokens = request.computed",
        TERM,
        LEAVING,
    ),
    Mutant(TIGHT, "load.patience is not None or", "", TERM, LEAVING),
    Mutant(RUN, "whole[gone] = False", "pass", TERM, LEAVING),
    Mutant(RUN, "needed[late].sum()", "0", TERM, LEAVING),
    Mutant(PROMISES, "met = run.answered.copy()", "met = np.ones(len(run), dtype=bool)", TERM, LEAVING),
    Mutant(METRICS, "load.output_tokens[run.answered].sum()", "load.output_tokens.sum()", TERM, LEAVING),
    Mutant(ANSWER, "or request in reject[:place]", "", TERM, LEAVING),
    Mutant(
        ANSWER,
        'if request in schedule.tokens:\n            raise Broken(f"it rejects',
        'if False:\n            raise Broken(f"it rejects',
        TERM,
        LEAVING,
    ),
    Mutant(STEPS, "lost |= {(request, left.step - 1)", "lost |= {(request, left.step)", BOUNDARY, LEAVING),
    Mutant(CAPACITY, "high - low > within * high", "high - low > within * high * 100", TERM),
)
