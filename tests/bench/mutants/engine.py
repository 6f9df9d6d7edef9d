"""The loop, its tight case, padded batches and the log."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, UNIT, Mutant

TESTS = (
    "tests/engine/test_reference.py",
    "tests/engine/test_oracle.py",
    "tests/engine/test_invariants.py",
    "tests/engine",
    "tests/policies",
)
LOOP, TIGHT, PADDED = (f"course/engine/{name}.py" for name in ("loop", "tight", "padded"))
STEPS, RUN, LOG = (f"course/engine/{name}.py" for name in ("steps", "run", "log"))
STRETCH, EXECUTOR, ARRIVALS = (f"course/engine/{name}.py" for name in ("stretch", "executor", "arrivals"))

MUTANTS = (
    Mutant(LOOP, "if times[arrivals.head] <= self.now:", "if times[arrivals.head] < self.now:", COMPARISON),
    Mutant(LOOP, "while arrivals.times[arrivals.head] <= now:", "if arrivals.times[arrivals.head] <= now:", COMPARISON),
    Mutant(
        LOOP,
        "self.waiting_shown = (*reversed(self._sent_back), *self._queue)",
        "self.waiting_shown = (*self._sent_back, *self._queue)",
        ORDER,
    ),
    Mutant(
        LOOP,
        "self.waiting_shown = (*reversed(self._sent_back), *self._queue)",
        "self.waiting_shown = (*self._queue, *reversed(self._sent_back))",
        ORDER,
    ),
    Mutant(
        LOOP,
        "return self.limits.max_num_seqs - len(self._running)",
        "return self.limits.max_num_seqs - len(self._running) + 1",
        BOUNDARY,
    ),
    Mutant(LOOP, "slots - len(self._running)\n", "slots - len(self._running) - 1\n", BOUNDARY),
    Mutant(LOOP, "if self._finishes[0][0] <= self.step:", "if self._finishes[0][0] < self.step:", COMPARISON),
    Mutant(
        LOOP,
        "known = request._c, request._prompt_tokens + request._e",
        "known = request._c, request._prompt_tokens",
        TERM,
    ),
    Mutant(LOOP, "context += known\n", "context += known + 1\n", BOUNDARY),
    Mutant(LOOP, "total > limits.max_num_batched_tokens or", "total > limits.max_num_batched_tokens + 1 or", BOUNDARY),
    Mutant(LOOP, "limit = finishes[0][0] - self.step", "limit = finishes[0][0] - self.step + 1", BOUNDARY),
    Mutant(LOOP, "if coming < stop:", "if coming > stop:", COMPARISON),
    Mutant(LOOP, "self.context += decodes * taken", "self.context += taken", TERM),
    Mutant(
        LOOP,
        "if self.decodes:\n            self._fruitless = 0\n            self.context += self.decodes",
        "if self.decodes:\n            self._fruitless = 0",
        TERM,
    ),
    Mutant(
        LOOP,
        "request._since, request._tokens_from = step, step - 1",
        "request._since, request._tokens_from = step, step",
        BOUNDARY,
    ),
    Mutant(LOOP, "self.context += request._c + 1", "self.context += request._c", BOUNDARY),
    Mutant(
        LOOP,
        "step + self.executor.lengths[request._index] - request._e",
        "step + self.executor.lengths[request._index]",
        BOUNDARY,
    ),
    Mutant(LOOP, "self.context -= request._prompt_tokens + emitted", "self.context -= request._prompt_tokens", TERM),
    Mutant(LOOP, "self.context -= request.known", "self.context -= request.computed", BOUNDARY),
    Mutant(
        LOOP,
        "self.notes.preemptions.extend((victim._index, self.step, victim._c))",
        "self.notes.preemptions.extend((victim._index, self.step, 0))",
        TERM,
    ),
    Mutant(LOOP, "victim._c = 0", "victim._c = victim._prompt_tokens", TERM),
    Mutant(
        LOOP,
        "request._e, request._c = request.emitted + more, request.computed + more",
        "request._e, request._c = request.emitted + more, request.computed",
        TERM,
    ),
    Mutant(LOOP, "self.context += more", "self.context += 1", TERM),
    Mutant(
        LOOP,
        "self.notes.stays.extend((victim._index, victim._admitted, self.step - 1))",
        "self.notes.stays.extend((victim._index, victim._admitted, self.step))",
        BOUNDARY,
    ),
    Mutant(
        TIGHT,
        "needed = -((1 - prompts - outputs) // size)",
        "needed = -((-prompts - outputs) // size)",
        BOUNDARY,
        equivalent="a block more than is needed closes the tight way a little earlier; the times are the same",
    ),
    Mutant(
        TIGHT,
        "longest = policy.long_prefill_token_threshold or policy.max_num_batched_tokens",
        "longest = policy.max_num_batched_tokens",
        TERM,
    ),
    Mutant(
        TIGHT, "self.pairs = (prompts * (prompts + 1) // 2)", "self.pairs = (prompts * (prompts - 1) // 2)", BOUNDARY
    ),
    Mutant(
        TIGHT,
        "self.length = engine.arrivals.prompt, (prompts + outputs).tolist()",
        "self.length = engine.arrivals.prompt, (prompts + outputs - 1).tolist()",
        BOUNDARY,
    ),
    Mutant(
        TIGHT,
        "if tokens + decodes > budget:",
        "if tokens + decodes >= budget:",
        COMPARISON,
        equivalent="the way step by step gives the same step",
    ),
    Mutant(TIGHT, "if tokens + decodes > budget:", "if tokens > budget:", TERM),
    Mutant(TIGHT, "last = head + slots - decodes", "last = head + slots - decodes + 1", BOUNDARY),
    Mutant(TIGHT, "while end < last and times[end] <= now:", "while end < last and times[end] < now:", COMPARISON),
    Mutant(TIGHT, "offset += tokens\n", "offset += tokens + 1\n", BOUNDARY),
    Mutant(
        TIGHT,
        "leave, coming = finishes[0] // n, times[head] if decodes < slots else NEVER",
        "leave, coming = finishes[0] // n, times[head]",
        TERM,
    ),
    Mutant(TIGHT, "left -= self.decodes\n", "left -= 0\n", TERM),
    Mutant(
        TIGHT,
        "chunk = min(self.prompt[row] - computed, cap, left)",
        "chunk = min(self.prompt[row] - computed, left)",
        TERM,
    ),
    Mutant(TIGHT, "pairs += chunk * computed + chunk * (chunk + 1) // 2", "pairs += chunk * (chunk + 1) // 2", TERM),
    Mutant(TIGHT, "self.context += prompt + 1", "self.context += prompt", BOUNDARY),
    Mutant(
        TIGHT,
        "notes.decodes.extend((request, begin + 1, last, self.prompt[request] + 1))",
        "notes.decodes.extend((request, begin + 1, last, self.prompt[request]))",
        BOUNDARY,
    ),
    Mutant(
        PADDED, "self._reserve(prompt + longest - 1, longest)", "self._reserve(prompt + longest, longest)", BOUNDARY
    ),
    Mutant(PADDED, "longest = max(lengths[request._index]", "longest = min(lengths[request._index]", COMPARISON),
    Mutant(PADDED, "((prompt, 0),) * width)", "((prompt, 0),))", TERM),
    Mutant(PADDED, "width, width * (prompt + 1)", "width, width * prompt", BOUNDARY),
    Mutant(PADDED, "(row, step, step + lengths[row] - 1, 1)", "(row, step, step + lengths[row], 1)", BOUNDARY),
    Mutant(STEPS, "return arrived - answered - self.running", "return arrived - answered", TERM),
    Mutant(STEPS, "return self.end - self.start", "return (self.end - self.start) * 1e3", UNIT),
    Mutant(
        STEPS,
        "np.subtract.at(change, spans[:, 2] + 1, weight)",
        "np.subtract.at(change, spans[:, 2], weight)",
        BOUNDARY,
    ),
    Mutant(STEPS, "wait = (1 - known) % size", "wait = -known % size", BOUNDARY),
    Mutant(STEPS, "tokens = self._log.lengths[stays[:, 0]] - 1", "tokens = self._log.lengths[stays[:, 0]]", BOUNDARY),
    Mutant(RUN, "gaps = np.where(tokens > 1, tokens - 1, 1)", "gaps = np.where(tokens > 1, tokens, 1)", BOUNDARY),
    Mutant(RUN, "_fixed(self.admitted - self.arrival)", "_fixed(self.first_computed - self.arrival)", TERM),
    Mutant(RUN, "float(self.response.max() - self.arrival.min())", "float(self.response.max())", TERM),
    Mutant(RUN, "np.add.at(emitting, rows[:, 1] + 1, 1)", "np.add.at(emitting, rows[:, 1], 1)", BOUNDARY),
    Mutant(
        STRETCH, "now += usable(step_time(step), step)", "now = now + usable(step_time(step), step) * 1.0000001", UNIT
    ),
    Mutant(
        STRETCH,
        "del clock[bisect_left(clock, stop, start) + 1 :]",
        "del clock[bisect_left(clock, stop, start) :]",
        BOUNDARY,
    ),
    Mutant(STRETCH, "begin = int((stop - now) / first) + 2", "begin = int((stop - now) / first)", BOUNDARY),
    Mutant(
        EXECUTOR,
        "pairs += chunk * cached + chunk * (chunk + 1) // 2",
        "pairs += chunk * cached + chunk * chunk // 2",
        BOUNDARY,
    ),
    Mutant(EXECUTOR, "seen += tokens\n", "seen += 0\n", TERM),
    Mutant(
        LOG,
        "(tokens[:, 2] - tokens[:, 1] + 1) * tokens[:, 3]",
        "(tokens[:, 2] - tokens[:, 1]) * tokens[:, 3]",
        BOUNDARY,
    ),
)
