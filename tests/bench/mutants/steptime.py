"""Models of a step's time."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, UNIT, Mutant

TESTS = ("tests/steptime",)
MODELS, CHUNKS = "course/steptime/steptime.py", "course/steptime/profiles/chunks.py"

MUTANTS = (
    Mutant(
        MODELS, "tokens * cached + tokens * (tokens + 1) // 2", "tokens * cached + tokens * (tokens - 1) // 2", BOUNDARY
    ),
    Mutant(MODELS, "return sum(tokens + cached for tokens, cached", "return sum(cached for tokens, cached", TERM),
    Mutant(
        MODELS,
        "batch = self.c * decodes**self.alpha if decodes else 0.0",
        "batch = self.c * decodes if decodes else 0.0",
        TERM,
    ),
    Mutant(MODELS, "+ self.pairs * pairs", "+ self.pairs * tokens", TERM),
    Mutant(
        MODELS,
        "self.t0 + min(self.c, self.prefill) < SHORTEST",
        "self.t0 + max(self.c, self.prefill) < SHORTEST",
        COMPARISON,
    ),
    Mutant(MODELS, "return self.prefill, self.pairs", "return self.pairs, self.prefill", ORDER),
    Mutant(MODELS, "11 * self.model.num_layers + 4", "11 * self.model.num_layers", BOUNDARY),
    Mutant(
        MODELS,
        "self.per_token = 2 * self.model.layer_parameters",
        "self.per_token = self.model.layer_parameters",
        CONSTANT,
    ),
    Mutant(
        MODELS,
        "self.per_context = self.model.kv_bytes_per_token / self.gpu.read_bandwidth",
        "self.per_context = self.model.kv_bytes_per_token / self.gpu.matrix_flops",
        UNIT,
    ),
    Mutant(
        MODELS,
        "self.per_token * (decodes + tokens) + self.per_logits * decodes",
        "self.per_token * (decodes + tokens) + self.per_logits * (decodes + tokens)",
        TERM,
    ),
    Mutant(MODELS, "attention = max(self.per_pair * pairs", "attention = min(self.per_pair * pairs", COMPARISON),
    Mutant(
        MODELS,
        "return self.launch + max(self.weights, products) + self.per_context",
        "return max(self.weights, products) + self.per_context",
        TERM,
    ),
    Mutant(
        MODELS,
        "return self.launch + max(self.weights, products), self.per_context",
        "return self.launch + self.weights + products, self.per_context",
        TERM,
    ),
    Mutant(
        MODELS, "return self.weights / (self.per_token + self.per_logits)", "return self.weights / self.per_token", TERM
    ),
    Mutant(MODELS, "for context in (decodes, 1000 * decodes):", "for context in (decodes,):", COMPARISON),
    Mutant(
        CHUNKS,
        "if prompt % chunk or starts[-1] > cached[-1]:",
        "if prompt % chunk or starts[-1] >= cached[-1]:",
        COMPARISON,
    ),
    Mutant(CHUNKS, "pairs / tokens - (tokens + 1) / 2", "pairs / tokens", TERM),
    Mutant(CHUNKS, "self._base(tokens + decodes - self.profile.decodes if tokens", "self._base(tokens if tokens", TERM),
    Mutant(CHUNKS, "seconds - self.seconds_per_context * self.profile.decode_context", "seconds", TERM),
    Mutant(CHUNKS, "(size - low) / (high - low)", "(high - size) / (high - low)", ORDER),
    Mutant(CHUNKS, "if size > self.most:", "if size >= self.most:", COMPARISON),
)
