"""Blocks, groups of layers, and the ledger of a card."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, ORDER, TERM, UNIT, Mutant

TESTS = ("tests/memory",)
LAYOUT, LEDGER, ESTIMATES = (f"course/memory/{name}.py" for name in ("layout", "ledger", "estimates"))
PREFIXES, REPORT = "course/memory/prefixes.py", "course/memory/report.py"

CARD = "course/memory/card.py"

MUTANTS = (
    Mutant(LAYOUT, "self.window - 1 + self.reserve", "self.window + self.reserve", BOUNDARY),
    Mutant(LAYOUT, "length) // self.block_size) + 1", "length) // self.block_size)", BOUNDARY),
    Mutant(
        LAYOUT,
        "return self.free_blocks // self.blocks_for(length)",
        "return -(-self.free_blocks // self.blocks_for(length))",
        BOUNDARY,
    ),
    Mutant(LAYOUT, "self.num_blocks // len(self.groups) * self.block_size", "self.num_blocks * self.block_size", TERM),
    Mutant(LAYOUT, "self.num_blocks * length // self.blocks_for(length)", "self.num_blocks * length", TERM),
    Mutant(
        LAYOUT, "self.blocks_for(middle) <= self.free_blocks", "self.blocks_for(middle) < self.free_blocks", COMPARISON
    ),
    Mutant("course/memory/ranks.py", "return [min(sizes[", "return [max(sizes[", COMPARISON),
    Mutant(LAYOUT, "for layer in drafting.layers]", "for layer in ()]", TERM),
    Mutant(
        LAYOUT,
        '(2 if mamba_cache_mode == "align" else 1) + drafting.tokens',
        '(2 if mamba_cache_mode == "align" else 1)',
        TERM,
    ),
    Mutant(
        LAYOUT,
        "tokens_by_kind[kind, window, each], ceil(count / layers))",
        "tokens_by_kind[kind, window, each], count // layers)",
        BOUNDARY,
    ),
    Mutant(
        LAYOUT, "return most if most < PADDED_UP_TO * fewest", "return most if most > PADDED_UP_TO * fewest", COMPARISON
    ),
    Mutant(
        LAYOUT, "cache.elements(tp) * element_bytes + cache.extra_bytes", "cache.elements(tp) * element_bytes", TERM
    ),
    Mutant(LAYOUT, "if state > block_size * max(attention):", "if state < block_size * max(attention):", COMPARISON),
    Mutant(LAYOUT, "block_size = ALIGNMENT * ceil(state", "block_size = ALIGNMENT * int(state", BOUNDARY),
    Mutant(
        CARD,
        "self.usable - self.weights.bytes - self.activation.bytes - self.other.bytes",
        "self.usable - self.weights.bytes - self.activation.bytes",
        TERM,
    ),
    Mutant(CARD, "int(self.share * total.bytes)", "total.bytes", TERM),
    Mutant(ESTIMATES, "(size - experts) / tp + experts", "(size - experts) + experts", TERM),
    Mutant(CARD, "kv_bytes=claim * pool.bytes_per_block", "kv_bytes=claim * pool.block_size", UNIT),
    Mutant(
        ESTIMATES,
        "SAMPLER_BYTES * max_num_seqs * spec.vocab_size + HIDDEN_STATES * hidden",
        "SAMPLER_BYTES * max_num_seqs * spec.vocab_size",
        TERM,
    ),
    Mutant(
        ESTIMATES,
        "hidden = spec.hidden_size * max_num_batched_tokens * 2",
        "hidden = spec.hidden_size * max_num_batched_tokens",
        UNIT,
    ),
    Mutant(ESTIMATES, "if sampling >= widest:", "if sampling < widest:", COMPARISON),
    Mutant(ESTIMATES, "CONTEXT_BYTES + NCCL_BYTES", "CONTEXT_BYTES", TERM),
    Mutant(ESTIMATES, "SAMPLER_BYTES = 38", "SAMPLER_BYTES = 34", CONSTANT),
    Mutant(PREFIXES, "if block not in cache), len(ids))", "if block not in cache), 0)", BOUNDARY),
    Mutant(PREFIXES, "cache.popitem(last=False)", "cache.popitem(last=True)", ORDER),
    Mutant(PREFIXES, "cache.move_to_end(block)", "pass", ORDER),
    Mutant(PREFIXES, "len(cache) > most", "len(cache) >= most", COMPARISON),
    Mutant(REPORT, "if weights > usable:", "if weights >= kv:", COMPARISON),
    Mutant(REPORT, "GIB = 2**30", "GIB = 10**9", UNIT),
    Mutant(REPORT, "if kv <= 0:", "if kv < -GIB:", COMPARISON),
)
