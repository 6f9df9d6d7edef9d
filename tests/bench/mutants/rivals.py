"""Paging's rivals: blocks on the host, pieces that are reserved; another victim; and a watermark."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, Mutant

TESTS = ("tests/memory/test_rivals.py", "tests/policies/test_fewest_computed.py", "tests/engine/test_oracle.py")
SWAP, PIECES = "course/memory/swap_pool.py", "course/memory/contiguous_pool.py"
FEWEST, PASSES = "course/policies/fewest_computed.py", "course/engine/fast/passes.py"
CONTINUOUS, WATERMARK = (
    "course/policies/continuous.py",
    ("tests/policies/test_continuous.py", "tests/engine/test_vllm.py"),
)

MUTANTS = (
    Mutant(SWAP, "blocks > self.host_free", "blocks >= self.host_free", COMPARISON),
    Mutant(SWAP, "self.host_free -= blocks", "pass", TERM),
    Mutant(
        SWAP,
        "self.host_free += self.blocks_for(tokens)\n            self._moved",
        "pass\n            self._moved",
        TERM,
    ),
    Mutant(SWAP, "self._moved += blocks", "pass", TERM),
    Mutant(SWAP, "self._moved += self.blocks_for(tokens)", "pass", TERM),
    Mutant(SWAP, "blocks, self._moved = self._moved, 0", "blocks = self._moved", TERM),
    Mutant(SWAP, "if not tokens or blocks > self.host_free:", "if not tokens:", TERM),
    Mutant(SWAP, "        self._kept[request] = tokens\n", "", TERM),
    Mutant(SWAP, "return blocks * self.host_seconds", "return self.host_seconds if blocks else 0.0", TERM),
    Mutant(
        SWAP,
        "self.host_free += self.blocks_for(tokens)\n        return tokens",
        "return tokens",
        TERM,
        ("tests/engine/test_leaving.py",),
    ),
    Mutant(
        CONTINUOUS,
        "int(self.watermark * (state.num_blocks + 1))",
        "int(self.watermark * state.num_blocks)",
        BOUNDARY,
        WATERMARK,
    ),
    Mutant(
        CONTINUOUS,
        "int(self.watermark * (state.num_blocks + 1))",
        "-int(-self.watermark * (state.num_blocks + 1) // 1)",
        BOUNDARY,
        WATERMARK,
    ),
    Mutant(CONTINUOUS, "if kept_free and (tokens or state.running):", "if kept_free:", TERM, WATERMARK),
    Mutant(
        CONTINUOUS, "if kept_free and (tokens or state.running):", "if kept_free and state.running:", TERM, WATERMARK
    ),
    Mutant(CONTINUOUS, "if kept_free and (tokens or state.running):", "if kept_free and tokens:", TERM, WATERMARK),
    Mutant(CONTINUOUS, "if must_fit > plan.free:", "if must_fit >= plan.free:", COMPARISON, WATERMARK),
    Mutant(
        CONTINUOUS, "plan.need(request, remaining if whole else chunk)", "plan.need(request, chunk)", TERM, WATERMARK
    ),
    Mutant(
        CONTINUOUS, "if self.watermark and not release(self.engine_version).watermark:", "if False:", TERM, WATERMARK
    ),
    Mutant(PIECES, "key=lambda hole: hole[by], default", "key=lambda hole: -hole[by], default", ORDER),
    Mutant(PIECES, 'int(self.fit == "best")', "1", TERM),
    Mutant(PIECES, "self._space.holes.copy(), self.fit", "self._space.holes.copy()", TERM),
    Mutant(PIECES, "if hole[1] >= length)", "if hole[1] > length)", BOUNDARY),
    Mutant(PIECES, "(tokens - 1).bit_length()", "tokens.bit_length()", BOUNDARY),
    Mutant(PIECES, "return min(max_model_len, ", "return max(0, ", TERM),
    Mutant(PIECES, "or start + length == hole[0]", "", TERM),
    Mutant(PIECES, "if self._starts[request] != place:", "if True:", TERM),
    Mutant(PIECES, "self._space is None or self._space.largest >= blocks", "True", TERM),
    Mutant(PIECES, "self.debt.append(int(self.free) - self._space.largest)", "self.debt.append(int(self.free))", TERM),
    Mutant(FEWEST, "min(reversed(running)", "min(running", ORDER),
    Mutant(FEWEST, "key=lambda request: request.computed", "key=lambda request: -request.computed", ORDER),
    Mutant(
        PASSES, "self.now += seconds + self.pool.copying() if self.counts else seconds", "self.now += seconds", TERM
    ),
    Mutant(PASSES, "            limit = 1\n        elif", "            pass\n        elif", BOUNDARY),
)
