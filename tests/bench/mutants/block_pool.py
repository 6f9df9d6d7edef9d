"""The accounting of KV blocks while an engine serves."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, Mutant

TESTS = (
    "tests/memory",
    "tests/engine/test_caches.py",
    "tests/engine/test_reference.py",
    "tests/engine/test_oracle.py",
    "tests/engine/test_invariants.py",
    "tests/engine/test_limits.py",
    "tests/policies",
)
POOL, PHASES = "course/memory/block_pool.py", "course/memory/phases.py"
# Each of these lines stands in several methods: what is changed is found by its neighbour.
MUTANTS = (
    Mutant(POOL, "return -(-tokens // block_size)", "return tokens // block_size", BOUNDARY),
    Mutant(
        POOL, "return -(-request.computed // self.block_size)", "return request.computed // self.block_size", BOUNDARY
    ),
    Mutant(POOL, "// self.block_size) - -(-computed // self.block_size)", "// self.block_size)", TERM),
    Mutant(
        POOL,
        "self._reserved[request] = blocks = -(-tokens // self.block_size)",
        "self._reserved[request] = blocks = tokens // self.block_size",
        BOUNDARY,
    ),
    Mutant(POOL, "self.free += self._reserved.pop(request)", "self._reserved.pop(request)", TERM),
    Mutant(
        PHASES,
        "self.counts[(self.step - computed) % self.block_size] += 1",
        "self.counts[(self.step - computed + 1) % self.block_size] += 1",
        BOUNDARY,
    ),
    Mutant(
        PHASES,
        "self.counts[(self.step - computed) % self.block_size] -= 1",
        "self.counts[(self.step + computed) % self.block_size] -= 1",
        ORDER,
    ),
    Mutant(PHASES, "self.decodes * (limit // size + 1) <= free", "self.decodes * (limit // size) <= free", BOUNDARY),
    Mutant(PHASES, "if free < 0:", "if free <= 0:", COMPARISON),
    Mutant(PHASES, "free -= counts[(step + taken) % size]", "free -= counts[(step + taken + 1) % size]", BOUNDARY),
    Mutant(
        PHASES,
        "self.decodes * rounds + sum(self.counts[at : at + rest])",
        "self.decodes * rounds + sum(self.counts[:rest])",
        ORDER,
    ),
    Mutant(PHASES, "if at + rest > size else taken", "if at + rest > size + 1 else taken", BOUNDARY),
    Mutant(
        POOL,
        "tokens = self.hit(request)\n        self.free -=",
        "tokens = self.hit(request)\n        self.free -= 0 *",
        TERM,
    ),
    Mutant(POOL, "((there or self.hit(request)) + tokens)", "(there + tokens)", TERM),
    Mutant(POOL, "there, held = 0 if self._plain else self._pool.hit(request), 0", "there, held = 0, 0", TERM),
    Mutant(POOL, "table.append(self._returned.pop())", "table.append(self._returned[-1])", TERM),
    Mutant(
        POOL,
        "-(-(request.computed + tokens) // self.block_size) - len(table)",
        "-(-request.computed // self.block_size) - len(table)",
        TERM,
    ),
    Mutant(
        POOL,
        "return self.need(request, tokens) <= self.free",
        "return self.need(request, tokens) < self.free",
        COMPARISON,
    ),
    Mutant(POOL, "if need > self.free:", "if need >= self.free:", COMPARISON),
    Mutant(POOL, "block_size, pool.free - due", "block_size, pool.free", TERM),
    Mutant(POOL, "self._there[request] = -1", "pass", TERM),
)
