"""The accounting of KV blocks while an engine serves."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, Mutant

TESTS = (
    "tests/memory",
    "tests/engine/test_reference.py",
    "tests/engine/test_oracle.py",
    "tests/engine",
    "tests/policies",
)
POOL = "course/memory/block_pool.py"
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
        POOL,
        "self.phases[(self.step - computed) % self.block_size] += 1",
        "self.phases[(self.step - computed + 1) % self.block_size] += 1",
        BOUNDARY,
    ),
    Mutant(
        POOL,
        "self.phases[(self.step - computed) % self.block_size] -= 1",
        "self.phases[(self.step - computed + 1) % self.block_size] -= 1",
        BOUNDARY,
    ),
    Mutant(
        POOL,
        "self.phases[(self.step - computed) % size] -= 1\n",
        "self.phases[(self.step + computed) % size] -= 1\n",
        ORDER,
    ),
    Mutant(POOL, "self.free += -(-computed // size)", "self.free += computed // size", BOUNDARY),
    Mutant(POOL, "self._decodes * (limit // size + 1) <= free", "self._decodes * (limit // size) <= free", BOUNDARY),
    Mutant(
        POOL, "if free < 0:\n                return taken", "if free <= 0:\n                return taken", COMPARISON
    ),
    Mutant(
        POOL,
        "free -= self.phases[(self.step + taken) % size]",
        "free -= self.phases[(self.step + taken + 1) % size]",
        BOUNDARY,
    ),
    Mutant(
        POOL,
        "self._decodes * rounds + sum(self.phases[at : at + rest])",
        "self._decodes * rounds + sum(self.phases[:rest])",
        ORDER,
    ),
    Mutant(POOL, "if at + rest > size:", "if at + rest > size + 1:", BOUNDARY),
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
    Mutant(
        POOL,
        "if if_fit and -(-(held + if_fit) // size) - have > self.free:",
        "if if_fit and -(-(held + if_fit) // size) - have >= self.free:",
        COMPARISON,
    ),
    Mutant(POOL, "self.free -= pool.phases[pool.step % self._size]", "self.free -= 0", TERM),
    Mutant(POOL, "self._held[request] = 0", "pass", TERM),
)
