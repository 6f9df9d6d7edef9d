"""Lab 02: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab02", "tests/lessons/test_every_lab.py")
EXPLORERS = ("tests/lessons/test_every_explorer.py",)
CURVES = ("tests/steptime/test_curve.py",)
ASKS, FACTS = "course/lessons/lab02/asks.yaml", "course/lessons/lab02/facts.py"
STEP, CURVE = "course/lessons/lab02/one_step.py", "course/lessons/lab02/one_curve.py"
TASKS, FLOOR, LOG = (f"course/lessons/lab02/{name}.py" for name in ("tasks", "floor", "engine_log"))
HAND, CARDS, LAUNCH, HERE = (
    f"course/lessons/lab02/{name}.py" for name in ("by_hand", "two_cards", "launch", "on_device")
)
FIGURES, FURTHER = "course/lessons/lab02/figures.py", "course/lessons/lab02/further.py"
FIT, LAYER = "course/steptime/curve.py", "course/gpu/one_layer.py"
TEXT, DEEPER = "solutions/02_the_memory_wall.py", "solutions/02_the_memory_wall_deeper.py"

MUTANTS = (
    Mutant(ASKS, '    right: c\n    why: "Reading takes', '    right: b\n    why: "Reading takes', KEY),
    Mutant(ASKS, '    right: b\n    why: "It takes', '    right: c\n    why: "It takes', KEY),
    Mutant(ASKS, "of a read probe:", "of a matrix product:", KEY),
    Mutant(ASKS, "{{knee_1k:.0f}} to {{knee_4k:.0f}}", "{{knee_4k:.0f}} to {{knee_1k:.0f}} or 26", NUMBER),
    Mutant(FACTS, "return (t0 / c) ** (1 / alpha)", "return (t0 / c) ** alpha", TERM),
    Mutant(FACTS, "COST, COST_TWIN = (128, 12.1e-3, 3.0)", "COST, COST_TWIN = (128, 12.1e-3, 2.5)", CONSTANT),
    Mutant(FACTS, "return float(np.interp(2 * steps[0], steps, batches))",
           "return float(np.interp(3 * steps[0], steps, batches))", TERM),
    Mutant(STEP, "return max(self.reading_weights, self.computing) + self.reading_kv + self.attention",
           "return self.reading_weights + self.computing + self.reading_kv + self.attention", TERM),
    Mutant(STEP, "max(self.reading_weights, self.computing) + self.reading_kv +",
           "max(self.reading, self.computing) +", TERM),
    Mutant(STEP, "return WEIGHTS + KV_TOKEN * self.decodes * self.context",
           "return WEIGHTS + KV_TOKEN * self.context", TERM),
    Mutant(STEP, "return self.flops / self.recorded", "return self.flops / self.floor", TERM),
    Mutant(STEP, "pairs = prompt * (prompt + 1) // 2", "pairs = prompt * prompt", TERM),
    Mutant(STEP, "FLOOR.per_token * (decodes + prompt) + FLOOR.per_logits * decodes",
           "FLOOR.per_token * (decodes + prompt) + FLOOR.per_logits * (decodes + prompt)", TERM),
    Mutant(STEP, "return Roofline(MODEL, card, kernels=0)", "return Roofline(MODEL, card)", CONSTANT),
    Mutant(STEP, "if not prompt and decodes in batches", "if decodes in batches", COMPARISON),
    Mutant(STEP, "(chunk == 0) & (tokens == decodes * context)",
           "(chunk == 0) & (tokens >= decodes * context)", COMPARISON),
    Mutant(CURVE, "return price / 3_600 * step / batch * 1e6", "return price / 60 * step / batch * 1e6", UNIT),
    Mutant(CURVE, "return self.batches <= self.most", "return self.batches < self.most", BOUNDARY),
    Mutant(CURVE, "fit(batches[batches <= most], steps[batches <= most])", "fit(batches, steps)", TERM),
    Mutant(HAND, "max(self.weights, self.computing) + self.kv", "max(self.weights + self.kv, self.computing)", TERM),
    Mutant(HAND, "batch * 2 * WEIGHTS / COMPUTE", "batch * WEIGHTS / COMPUTE", TERM),
    Mutant(FLOOR, "return max(W / B, batch * F / R) + batch * context * K / B\n\n\ndef adds_up",
           "return max(W / B, F / R) + batch * context * K / B\n\n\ndef adds_up", TERM),
    Mutant(FLOOR, "(400, 16), ", "", CONSTANT),
    Mutant(LOG, "if step(running) <= promise", "if step(running) >= promise", COMPARISON),
    Mutant(LOG, "PROMISE, PROMISE_TWIN = 12.5e-3", "PROMISE, PROMISE_TWIN = 11.5e-3", CONSTANT),
    Mutant(LOG, "(run.arrival <= end) & (run.admitted > end)",
           "(run.arrival <= end) & (run.admitted <= end)", COMPARISON),
    Mutant(CARDS, 'OLD, NEW = "A100", "L40S"', 'OLD, NEW = "A100", "H100"', CONSTANT),
    Mutant(CARDS, "max(theory.weights / 2, _products", "max(theory.weights, _products", TERM),
    Mutant(CARDS, "Step(batch, batch * CONTEXT, ())", "Step(batch, CONTEXT * 2, ())", TERM),
    Mutant(TASKS, "CHEAP = 0.10", "CHEAP = 4.00", CONSTANT, EXPLORERS),
    Mutant(TASKS, "return found.largest > 2 * found.recorded_largest", "return found.largest > found.recorded_largest",
           COMPARISON, EXPLORERS),
    Mutant(TASKS, "return found.reading_kv > found.reading_weights",
           "return found.reading_kv > 0", COMPARISON, EXPLORERS),
    Mutant(TASKS, "return found.computing > found.reading\n",
           "return found.computing < found.reading\n", ORDER, EXPLORERS),
    Mutant(LAUNCH, '["kv_bytes_per_token"] * context', '["kv_bytes_per_token"]', TERM),
    Mutant(LAUNCH, "found.kv_bytes * batch", "found.kv_bytes", TERM),
    Mutant(HERE, "batch * size <= MOST_HERE", "size <= MOST_HERE", COMPARISON),
    Mutant(HERE, "if context not in self._known", "if True", COMPARISON),
    Mutant(HERE, "if not self._products", "if True", COMPARISON),
    Mutant(FIGURES, "_bar(row, base, 1e3 * value, part, 2, most)", "_bar(row, 0.0, 1e3 * value, part, 2, most)", TERM),
    Mutant(FIGURES, "[found.reached / 1e12]", "[found.flops / 1e12]", TERM),
    Mutant(FURTHER, "return flops / bandwidth", "return bandwidth / flops", ORDER),
    Mutant(FURTHER, "return WEIGHTS / (KV_TOKEN * CONTEXT)", "return WEIGHTS / KV_TOKEN", TERM),
    Mutant(FURTHER, "narrow = max(half, step.computing) + step.reading_kv", "narrow = half + step.reading_kv", TERM),
    Mutant(FIT, "gradient = np.stack([np.ones_like(b), power, self.c * power * np.log(b)]",
           "gradient = np.stack([np.ones_like(b), power, power * np.log(b)]", TERM, CURVES),
    Mutant(FIT, "(student**2 * spread * np.outer(unit, unit))",
           "(student * spread * np.outer(unit, unit))", TERM, CURVES),
    Mutant(LAYER, "for table, each in zip(tables, queries, strict=True)", "for table, each in zip(tables, queries[:1])",
           BOUNDARY, ("tests/gpu/test_one_layer.py",)),
    Mutant(TEXT, "The H100 needs {{ridge:.0f}}", "The H100 needs 358", NUMBER),
    Mutant(TEXT, "take 3, 4 and 6 s", "take 3, 4 and 5 s", NUMBER),
    Mutant(TEXT, "Running: 128 reqs, Waiting: 641 reqs", "Running: 128 reqs, Waiting: 614 reqs", NUMBER),
    Mutant(LOG, "float(steps.decodes[here].sum() + first.sum())", "float(steps.decodes[here].sum())", TERM),
    Mutant(HERE, "times[what][batch] = timing.seconds", "times[what][batch] = timing.low", TERM),
    Mutant(HERE, "launches=LAUNCHES, max_seconds=max_seconds", "launches=1, max_seconds=max_seconds", CONSTANT),
    Mutant(TEXT, "R, K = 15.0e9, 3.02e12", "R, K = 16.0e9, 3.02e12", NUMBER),
    Mutant(DEEPER, "At {{kv_even:.0f}} sequences", "At 122 sequences", NUMBER),
)  # fmt: skip
