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
SHORTEST, WINDOW, BASE = (f"course/policies/{name}.py" for name in ("shortest_first", "window", "base"))
REQUEST = "course/policies/request.py"

MUTANTS = (
    Mutant(
        CONTINUOUS,
        "self.max_num_batched_tokens < self.max_num_seqs",
        "self.max_num_batched_tokens <= self.max_num_seqs",
        COMPARISON,
    ),
    Mutant(CONTINUOUS, "self.max_num_batched_tokens - state.decodes", "self.max_num_batched_tokens", TERM),
    Mutant(
        CONTINUOUS,
        "chunk = min(request.remaining, left, cap or left)\n            if not chunk",
        "chunk = min(request.remaining, left)\n            if not chunk",
        TERM,
    ),
    Mutant(CONTINUOUS, "spared = present == 1 and", "spared = present <= 2 and", BOUNDARY),
    Mutant(CONTINUOUS, "and not release(self.engine_version)", "and release(self.engine_version)", TERM),
    Mutant(CONTINUOUS, "chunk = min(remaining, cap) if cap else remaining", "chunk = remaining", TERM),
    Mutant(CONTINUOUS, "if chunk > left:", "if chunk > left + 1:", BOUNDARY),
    Mutant(CONTINUOUS, "remaining if self.scheduler_reserve_full_isl else chunk", "chunk", TERM),
    Mutant(CONTINUOUS, "slots -= 1", "slots -= 0", TERM),
    Mutant(CONTINUOUS, "until=math.inf if holds and left else None", "until=math.inf", TERM),
    Mutant(
        CONTINUOUS,
        "state.spare_blocks >= 0",
        "state.spare_blocks > 0",
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
    Mutant(CONTINUOUS, "victim = running.pop()", "victim = running.pop(0)", ORDER),
    Mutant(CONTINUOUS, "while len(running) > position and", "if len(running) > position and", COMPARISON),
    Mutant(CONTINUOUS, "plan.release(victim)", "pass", TERM),
    Mutant(
        CONTINUOUS, "if len(running) <= position or not left:", "if len(running) < position or not left:", COMPARISON
    ),
    Mutant(CONTINUOUS, "return Schedule(tokens, preempt)", "return Schedule(tokens, preempt[::-1])", ORDER),
    Mutant(
        STATIC, "len(batch) < self.max_num_seqs and not state.no_more_arrivals", "len(batch) < self.max_num_seqs", TERM
    ),
    Mutant(
        STATIC, "batch = state.waiting[: self.max_num_seqs]", "batch = state.waiting[: self.max_num_seqs - 1]", BOUNDARY
    ),
    Mutant(STATIC, "longest = max((request.prompt_tokens", "longest = min((request.prompt_tokens", COMPARISON),
    Mutant(DYNAMIC, "deadline = batch[0].arrival", "deadline = batch[-1].arrival", ORDER),
    Mutant(DYNAMIC, "and state.now < deadline:", "and state.now <= deadline:", COMPARISON),
    Mutant(DYNAMIC, "len(batch) < self.max_num_seqs and", "len(batch) <= self.max_num_seqs and", COMPARISON),
    Mutant(SHORTEST, 'key=_prompt if self.by == "prompt" else _guess', "key=_prompt", TERM),
    Mutant(SHORTEST, 'float("inf") if request.guess is None', "0.0 if request.guess is None", ORDER),
    Mutant(SHORTEST, "sorted(waiting, key", "sorted(reversed(waiting), key", ORDER),
    Mutant(WINDOW, "len(state.waiting) >= self.max_num_seqs:", "len(state.waiting) > self.max_num_seqs:", COMPARISON),
    Mutant(WINDOW, "if first > last_end or not last_end else", "if first >= 0 or not last_end else", COMPARISON),
    Mutant(WINDOW, "TOP_UP = 0.25", "TOP_UP = 0.2", CONSTANT),
    Mutant(WINDOW, "newcomers = state.waiting[: state.free_slots]", "newcomers = state.waiting", TERM),
    Mutant(WINDOW, "max(state.last_step_end, first) + self.window", "first + self.window", TERM),
    Mutant(
        REQUEST,
        "return self.emitted_before + self.engine.step - self.decodes_from",
        "return self.emitted_before + self.engine.step - self.decodes_from + 1",
        BOUNDARY,
    ),
    Mutant(BASE, "return pool.free - pool.phases[pool.step % pool.block_size]", "return pool.free", TERM),
    Mutant(
        BASE,
        "blocks_for(request.computed + tokens, block_size) - request.blocks",
        "blocks_for(request.computed + tokens, block_size)",
        TERM,
    ),
)
