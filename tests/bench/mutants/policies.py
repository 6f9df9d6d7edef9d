"""What each policy decides."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, Mutant

TESTS = (
    "tests/policies",
    "tests/engine/test_reference.py",
    "tests/engine/test_oracle.py",
    "tests/engine/test_invariants.py",
    "tests/engine/test_changed_settings.py",
    "tests/engine/test_refusals.py",
)
CONTINUOUS, STATIC, DYNAMIC = (f"course/policies/{name}.py" for name in ("continuous", "static", "dynamic"))
WAITING = "course/policies/waiting.py"
SHORTEST, WINDOW, BASE = (f"course/policies/{name}.py" for name in ("shortest_first", "window", "base"))
REQUEST = "course/policies/request.py"
SHARE, EVERY = (f"course/policies/{name}.py" for name in ("prefill_share", "prefill_every"))
BY_KEY, PRIORITY, DEADLINE, FAIR, BUCKET = (
    f"course/policies/{name}.py" for name in ("by_key", "priority", "deadline", "fair", "bucket")
)
TARGET, HOPELESS, SLO, LOADED = (
    f"course/policies/{name}.py" for name in ("step_target", "hopeless_last", "slo_driven", "load_dependent")
)

LONGEST, SRPT, LEVELS, YIELDS, EXCHANGE = (
    f"course/policies/{name}.py"
    for name in ("longest_prefix", "shortest_remaining", "multi_level", "long_prompts_yield", "exchange")
)

MUTANTS = (
    Mutant(LONGEST, "if request.arrival <= since", "if request.arrival < since", BOUNDARY),
    Mutant(LONGEST, "others = [request for request in waiting if request.arrival > since]", "others = []", TERM),
    Mutant(LONGEST, "request.remaining - request.known", "request.remaining", TERM),
    Mutant(SRPT, "max(1.0, request.guess - request.emitted)", "request.guess", TERM),
    Mutant(SRPT, "if left(first) >= left(last):", "if left(first) > left(last):", BOUNDARY),
    Mutant(SRPT, "max(reversed(running), key=left)", "min(running, key=left)", ORDER),
    Mutant(LEVELS, "(request.emitted // self.quantum + 1).bit_length() - 1", "request.emitted // self.quantum", TERM),
    Mutant(LEVELS, "self.levels - 1)", "self.levels)", CONSTANT),
    Mutant(LEVELS, "if self.level(first) >= self.level(last):", "if self.level(first) > self.level(last):", BOUNDARY),
    Mutant(YIELDS, "short > (0 if self.yielding else self.depth)", "short > self.depth", TERM),
    Mutant(YIELDS, "short > (0 if", "short >= (0 if", BOUNDARY),
    Mutant(YIELDS, "and not request.emitted", "", TERM),
    Mutant(YIELDS, "return Schedule(answer.tokens, answer.preempt, answer.decodes)", "return answer", TERM),
    Mutant(YIELDS, "if request not in victims and chunk", "if chunk", TERM),
    Mutant(EXCHANGE, "- (last not in state.prefilling)", "", TERM),
    Mutant(EXCHANGE, "if request is not last}", "}", TERM),
    Mutant(EXCHANGE, "    if not answer.decodes:\n        return answer\n", "", TERM),
    Mutant(TARGET, "<= self.target", "< 0.9 * self.target", CONSTANT),
    Mutant(TARGET, "middle = (low + high + 1) // 2", "middle = high", TERM),
    Mutant(TARGET, "state.prefilling[0].computed if state.prefilling else 0", "0", TERM),
    Mutant(HOPELESS, "(state.now, -1)", "(state.now, math.inf)", BOUNDARY),
    Mutant(HOPELESS, "request.prompt_tokens / self.tokens_per_second", "0", TERM),
    Mutant(HOPELESS, "math.nextafter(self.start_by(first)[0], math.inf)", "math.inf", TERM),
    Mutant(SLO, "self.slo - self.seconds(batch) - self.margin", "self.slo - self.margin", TERM),
    Mutant(SLO, "if self.rate * wanted >= 1 else least", "if self.rate >= 1 else least", TERM),
    Mutant(SLO, "if not self._deep(waiting):", "if True:", TERM),
    Mutant(SLO, "fits -= self.most[name]", "fits -= 0", TERM),
    Mutant(LOADED, "if load < below", "if load <= below", BOUNDARY),
    Mutant(LOADED, "len(state.running) / self", "state.decodes / self", TERM),
    Mutant(
        CONTINUOUS,
        "self.max_num_batched_tokens < self.max_num_seqs",
        "self.max_num_batched_tokens <= self.max_num_seqs",
        COMPARISON,
    ),
    Mutant(
        CONTINUOUS, "return self.max_num_batched_tokens - state.decodes", "return self.max_num_batched_tokens", TERM
    ),
    Mutant(
        CONTINUOUS,
        "chunk = min(request.remaining, left, cap or left)\n            if not chunk:\n",
        "chunk = min(request.remaining, left)\n            if not chunk:\n",
        TERM,
    ),
    Mutant(CONTINUOUS, "spared = present == 1 and", "spared = present <= 2 and", BOUNDARY),
    Mutant(CONTINUOUS, "and not release(self.engine_version).thr", "and release(self.engine_version).thr", TERM),
    Mutant(CONTINUOUS, "chunk = min(remaining, cap) if cap else remaining", "chunk = remaining", TERM),
    Mutant(CONTINUOUS, "if chunk > left:", "if chunk > left + 1:", BOUNDARY),
    Mutant(CONTINUOUS, "remaining if whole else chunk) + kept_free", "chunk) + kept_free", TERM),
    Mutant(CONTINUOUS, "slots -= 1", "slots -= 0", TERM),
    Mutant(CONTINUOUS, "math.inf if left else None", "math.inf", TERM),
    Mutant(CONTINUOUS, "order.until if isinstance(order, Order) else None", "math.inf", TERM),
    Mutant(
        CONTINUOUS,
        "if len(state.waiting) == len(tokens) - begun:\n            return math.inf\n        return holds",
        "return holds",
        TERM,
        equivalent="asked more often than need be, with the same answers",
    ),
    Mutant(CONTINUOUS, "if tokens or not plan.steady else holds", "if not plan.steady else holds", TERM),
    Mutant(CONTINUOUS, "if self.budget_changes or (many > len", "if (many > len", TERM),
    Mutant(CONTINUOUS, "if left < 0:", "if left < -1:", BOUNDARY),
    Mutant(CONTINUOUS, "left += tokens.pop(victim, 0)", "tokens.pop(victim, 0)", TERM),
    Mutant(CONTINUOUS, "if position <= place:", "if position < place:", BOUNDARY),
    Mutant(
        CONTINUOUS,
        "state.spare_blocks < 0",
        "state.spare_blocks <= 0",
        COMPARISON,
        equivalent="make_room with nobody to send away lets all decode",
    ),
    Mutant(
        CONTINUOUS,
        "if plan.free < 0:",
        "if plan.free <= 0:",
        COMPARISON,
        equivalent="with no block left nobody can be admitted, and making room lets all that run go on",
    ),
    Mutant(CONTINUOUS, "return running[-1]", "return running[0]", ORDER),
    Mutant(
        CONTINUOUS,
        "plan.release(victim)\n                preempt.append(victim)\n            return",
        "preempt.append(victim)\n            return",
        TERM,
    ),
    Mutant(
        CONTINUOUS,
        "while place < len(running) and left:",
        "while place < len(running):",
        TERM,
        equivalent="with no budget left each of the others gets a chunk of no token, and is passed over",
    ),
    Mutant(CONTINUOUS, "return Schedule(tokens, preempt)", "return Schedule(tokens, preempt[::-1])", ORDER),
    Mutant(
        STATIC,
        "len(state.waiting) < self.max_num_seqs and not state.no_more_arrivals",
        "len(state.waiting) < self.max_num_seqs",
        TERM,
    ),
    Mutant(STATIC, "state.waiting[: self.max_num_seqs]", "state.waiting[: self.max_num_seqs - 1]", BOUNDARY),
    Mutant(STATIC, "longest = max((request.prompt_tokens", "longest = min((request.prompt_tokens", COMPARISON),
    Mutant(DYNAMIC, "state.waiting[0].arrival", "state.waiting[-1].arrival", ORDER),
    Mutant(DYNAMIC, "and state.now < deadline:", "and state.now <= deadline:", COMPARISON),
    Mutant(
        DYNAMIC, "len(state.waiting) < self.max_num_seqs and", "len(state.waiting) <= self.max_num_seqs and", COMPARISON
    ),
    Mutant(SHORTEST, '_prompt if self.by == "prompt" else _guess', "_prompt", TERM),
    Mutant(SHORTEST, 'float("inf") if request.guess is None', "0.0 if request.guess is None", ORDER),
    Mutant(
        WAITING,
        "(self.key(request), self.count + place, request)",
        "(self.key(request), -self.count - place, request)",
        ORDER,
    ),
    Mutant(WAITING, "insort(entries, entry, self.head)", "entries.append(entry)", ORDER),
    Mutant(
        WAITING,
        "while self.head < len(entries) and",
        "if self.head < len(entries) and",
        TERM,
        equivalent="those who have left are passed over when it is read",
    ),
    Mutant(WAITING, "sorted(reversed(self._sent_back), key=key), order, key", "order, self._sent_back, key", ORDER),
    Mutant(WAITING, "for request in reversed(self._sent_back):", "for request in self._sent_back:", ORDER),
    Mutant(WAITING, "sorted(self.groups.items(), key=_first_place)", "self.groups.items()", ORDER),
    Mutant(WAITING, "chain(reversed(self._sent_back), self._queue)", "chain(self._sent_back, self._queue)", ORDER),
    Mutant(
        WAITING,
        "if request in self.known:\n                break",
        "if request in self.known:\n                continue",
        TERM,
        equivalent="slower, and nobody is known twice",
    ),
    Mutant(WINDOW, "len(state.waiting) >= self.max_num_seqs:", "len(state.waiting) > self.max_num_seqs:", COMPARISON),
    Mutant(WINDOW, "if first > last_end or not last_end else", "if first >= 0 or not last_end else", COMPARISON),
    Mutant(WINDOW, "TOP_UP = 0.25", "TOP_UP = 0.2", CONSTANT),
    Mutant(WINDOW, "newcomers = state.waiting[: state.free_slots]", "newcomers = state.waiting", TERM),
    Mutant(WINDOW, "max(state.last_step_end, first) + self.window", "first + self.window", TERM),
    Mutant(
        REQUEST,
        "return self.emitted_before + self.engine.steps - self.decodes_from",
        "return self.emitted_before + self.engine.steps - self.decodes_from + 1",
        BOUNDARY,
    ),
    Mutant(BASE, "return self._engine.pool.free - self._engine.due", "return self._engine.pool.free", TERM),
    Mutant(BASE, "engine.pool.need(request, tokens)", "blocks_for(request.computed + tokens, block_size)", TERM),
    Mutant(SHARE, "max(1, int(self.prefill_share", "max(2, int(self.prefill_share", CONSTANT),
    Mutant(SHARE, "return min(super().room(state), ", "return max(super().room(state), ", TERM),
    Mutant(SHARE, "if not self.prefill_share:", "if self.prefill_share < 0:", COMPARISON),
    Mutant(EVERY, "self.decode_steps = self.every - 1", "self.decode_steps = self.every", CONSTANT),
    Mutant(EVERY, "and state.decodes and state.spare", "and state.spare", TERM),
    Mutant(EVERY, "and state.spare_blocks >= 0 and", "and", TERM),
    Mutant(EVERY, "return Schedule(answer.tokens, decodes=answer.decodes)", "return answer", TERM),
    Mutant(EVERY, "and not answer.preempt:", "and True:", TERM),
    Mutant(BY_KEY, "max(reversed(running), key=self.key)", "min(reversed(running), key=self.key)", ORDER),
    Mutant(BY_KEY, "max(reversed(running), key=self.key)", "max(running, key=self.key)", ORDER),
    Mutant(BY_KEY, "request.class_ if request.tenant is None", "request.tenant if request.tenant is None", TERM),
    Mutant(PRIORITY, "request.arrival + self.ageing * level", "request.arrival - self.ageing * level", TERM),
    Mutant(PRIORITY, "return level, request.arrival, request.index", "return request.arrival, level, 0", ORDER),
    Mutant(PRIORITY, '.get("priority", 0)', '.get("priority", 1)', CONSTANT),
    Mutant(DEADLINE, "request.due, request.index", "request.arrival, request.index", TERM),
    Mutant(FAIR, "self.output_weight * (emitted - before)", "(emitted - before)", TERM),
    Mutant(FAIR, "tokens = self.prompt_weight * request.prompt_tokens", "tokens = 0", TERM),
    Mutant(
        FAIR, "counters.get(tenant, 0.0) + tokens / weight.get(tenant, 1.0)", "counters.get(tenant, 0.0) + tokens", TERM
    ),
    Mutant(FAIR, "if self.lift and new:", "if self.lift and not new:", COMPARISON),
    Mutant(FAIR, "if tenant not in new), default=self.level", "if tenant not in new), default=0.0", CONSTANT),
    Mutant(FAIR, "self.counters[tenant] = max(", "self.counters[tenant] = min(", ORDER),
    Mutant(FAIR, "if new or len(groups) > 1:", "if new and len(groups) > 1:", COMPARISON),
    Mutant(FAIR, "heapreplace(turns, (counter,", "heapreplace(turns, (-counter,", ORDER),
    Mutant(
        BUCKET,
        "min(self.burst, left + self.tokens_per_second * (now - then))",
        "left + self.tokens_per_second * (now - then)",
        TERM,
    ),
    Mutant(BUCKET, "request.prompt_tokens + (request.guess or 0)", "request.prompt_tokens", TERM),
    Mutant(BUCKET, "if cost > self.burst:", "if cost >= self.burst:", BOUNDARY),
    Mutant(BUCKET, "max(left, cost) - cost, now", "left - cost, now", TERM),
    Mutant(BUCKET, "bisect_right(self.times, now)", "len(self.times)", TERM),
)
