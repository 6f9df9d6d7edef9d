"""Models of a step's time."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, UNIT, Mutant

TESTS = ("tests/steptime",)
STEP, POWER_LAW, ROOFLINE = "course/engine/step.py", "course/steptime/power_law.py", "course/steptime/roofline.py"
SHARDED, LINKS = "course/steptime/sharded.py", "course/steptime/links.py"
RECORDED = "course/steptime/recorded.py"

MUTANTS = (
    Mutant(
        STEP, "tokens * cached + tokens * (tokens + 1) // 2", "tokens * cached + tokens * (tokens - 1) // 2", BOUNDARY
    ),
    Mutant(STEP, "return sum(tokens + cached for tokens, cached", "return sum(cached for tokens, cached", TERM),
    Mutant(
        POWER_LAW,
        "batch = self.c * decodes**self.alpha if decodes else 0.0",
        "batch = self.c * decodes if decodes else 0.0",
        TERM,
    ),
    Mutant(POWER_LAW, "+ self.pairs * pairs", "+ self.pairs * tokens", TERM),
    Mutant(
        POWER_LAW,
        "self.t0 + min(self.c, self.prefill) < SHORTEST",
        "self.t0 + max(self.c, self.prefill) < SHORTEST",
        COMPARISON,
    ),
    Mutant(POWER_LAW, "return self.prefill, self.pairs", "return self.pairs, self.prefill", ORDER),
    Mutant(ROOFLINE, "11 * self.model.num_layers + 4", "11 * self.model.num_layers", BOUNDARY),
    Mutant(
        ROOFLINE,
        "(2 * wide / self.gpu.matrix_flops",
        "(wide / self.gpu.matrix_flops",
        CONSTANT,
    ),
    Mutant(
        ROOFLINE,
        "full * spec.kv_bytes_per_element / bandwidth",
        "full * spec.kv_bytes_per_element / self.gpu.matrix_flops",
        UNIT,
    ),
    Mutant(
        ROOFLINE,
        "self.per_token * (decodes + tokens) + self.per_logits * decodes",
        "self.per_token * (decodes + tokens) + self.per_logits * (decodes + tokens)",
        TERM,
    ),
    Mutant(ROOFLINE, "cached + max(computing, reading)", "cached + min(computing, reading)", COMPARISON),
    Mutant(
        ROOFLINE,
        "return self.launch + max(self._reading(decodes + tokens), products) + cached",
        "return max(self._reading(decodes + tokens), products) + cached",
        TERM,
    ),
    Mutant(
        ROOFLINE,
        "self.launch + max(self._reading(decodes), products), self",
        "self.launch + self._reading(decodes) + products, self",
        TERM,
    ),
    Mutant(
        ROOFLINE,
        "return self.weights / (self.per_token + self.per_logits)",
        "return self.weights / self.per_token",
        TERM,
    ),
    Mutant(STEP, "for context in (decodes, 1000 * decodes):", "for context in (decodes,):", COMPARISON),
    Mutant(RECORDED, "tokens * (tokens + 1) // 2", "tokens * (tokens - 1) // 2", BOUNDARY),
    Mutant(
        RECORDED, "share = max(tokens - low, 0) / (high - low)", "share = max(high - tokens, 0) / (high - low)", ORDER
    ),
    Mutant(RECORDED, "if tokens > self.most:", "if tokens >= self.most:", COMPARISON),
    Mutant(RECORDED, "pairs = first * tokens ", "pairs = first ", TERM),
    Mutant(SHARDED, "return (seconds - stays) / self.tp + stays", "return seconds / self.tp + stays", TERM),
    Mutant(SHARDED, "return 2 * self.layers * self.link", "return self.layers * self.link", TERM),
    Mutant(SHARDED, "slope / min(self.tp, self.kv_heads) / self.pp", "slope / self.tp / self.pp", TERM),
    Mutant(LINKS, "more = 2 * (ranks - 1) / ranks - 1", "more = (ranks - 1) / ranks - 1", TERM),
    Mutant(LINKS, 'if kind in ("fastest", row["kind"]):', 'if kind == row["kind"]:', COMPARISON),
)
