"""Prefix caching: the pool, the spans it is made of, the plan, and what the engine says of it."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, Mutant

TESTS = (
    "tests/engine/test_prefix_caching.py",
    "tests/engine/test_prefixes_at_random.py",
    "tests/engine/test_vllm.py",
    "tests/calibration/test_vllm_live.py",
)
POOL, SPANS, PLAN = (f"course/memory/prefix_{name}.py" for name in ("pool", "spans", "plan"))
SHARING, FEASIBLE = "course/workload/sharing.py", "course/engine/feasible.py"
METRICS = "course/engine/metrics.py"
MUTANTS = (
    Mutant(POOL, "place, most, growing = 0, (known - 1)", "place, most, growing = 0, known", BOUNDARY),
    Mutant(POOL, "if spans and end < spans[-1].hi:", "if spans and end <= spans[-1].hi:", COMPARISON),
    Mutant(POOL, "copy = span.copies[0]", "copy = span.copies[-1]", ORDER),
    Mutant(POOL, "self.free -= span.hi - span.lo", "pass", TERM),
    Mutant(
        POOL,
        "chain.hashed, chain.blocks, chain.rank = end, end",
        "chain.hashed, chain.blocks, chain.rank = end, 0",
        TERM,
    ),
    Mutant(
        POOL,
        "-(-(computed + tokens) // size), (computed + tokens) // size",
        "-(-(computed + tokens) // size), computed // size",
        TERM,
    ),
    Mutant(POOL, "sorted(gone, key=lambda one: self._chains[one[0]].rank)", "reversed(gone)", ORDER),
    Mutant(POOL, "self._bring_home(len(self._lost))\n        self._step += 1", "self._step += 1", TERM),
    Mutant(
        POOL,
        "while self._lost and blocks > self.free - self._lost_blocks:\n            self._bring",
        "while self._lost:\n            self._bring",
        TERM,
    ),
    Mutant(POOL, "self.shared.append(self._held - used)", "self.shared.append(used)", TERM),
    Mutant(POOL, "tokens if answers else min(tokens, request.prompt_tokens)", "tokens", TERM),
    Mutant(POOL, "ids[size // each - 1 :: size // each]", "ids[:: size // each]", BOUNDARY),
    Mutant(POOL, "other.request.computed + (other.request in self._decoding)", "other.request.computed", BOUNDARY),
    Mutant(POOL, "self.steady = self.steady and not answers", "self.steady = True", TERM),
    Mutant(POOL, "own if self.unhashed_first else blank + own", "own", TERM),
    Mutant(POOL, "own if self.unhashed_first else blank + own", "blank + own", TERM),
    Mutant(POOL, "for copy in reversed(chain.copies):", "for copy in list(chain.copies):", ORDER),
    Mutant(
        POOL,
        "if not holders:\n                queue.append(copy)",
        "if True:\n                queue.append(copy)",
        TERM,
    ),
    Mutant(POOL, "span.hi -= most\n", "span.lo += most\n", ORDER),
    Mutant(POOL, "if not span.copies:\n            del", "if True:\n            del", TERM),
    Mutant(POOL, "return blank if self.unhashed_first else 0", "return 0", TERM),
    Mutant(
        POOL,
        "insort(span.copies, copy := Copy(span, {chain}, since, stride, chain.rank), key=lambda one: one.age)",
        "span.copies.insert(0, copy := Copy(span, {chain}, since, stride, chain.rank))",
        ORDER,
    ),
    Mutant(POOL, "return 0 if chain.blocks else self.found", "return self.found", TERM),
    Mutant(POOL, "spans[-1].forked = True", "pass", TERM),
    Mutant(SPANS, "copy.rank == rank and not self.forked", "copy.rank == rank", TERM),
    Mutant(SPANS, "return on_time and copy", "return copy", TERM),
    Mutant(POOL, "        self.keep_own(chain)\n        self._lost", "        self._lost", TERM),
    Mutant(POOL, "chain.hashed - chain.found", "0", TERM),
    Mutant(POOL, "elif self._owed and not span.copies[0].holders:", "elif False:", TERM),
    Mutant(POOL, "if not spans or spans[-1].hi <= place:", "if True:", TERM),
    Mutant(POOL, "if len(chains) > 1 or key in self._spans:", "if False:", TERM),
    Mutant(SPANS, "last.blocks += blocks", "last.blocks = blocks", TERM),
    Mutant(PLAN, "if any(other.shared > end and other.key(end) == key for other in growing):", "if False:", TERM),
    Mutant(PLAN, "growing += [pool.chain(request)", "[pool.chain(request)", TERM),
    Mutant(
        PLAN, "if not self._looked:\n            return False", "if not self._looked:\n            return True", TERM
    ),
    Mutant(PLAN, "if self._gone or (self._owed and", "if False and (self._owed and", TERM),
    Mutant(PLAN, "            pool.keep_own(chain)\n", "", TERM),
    Mutant(SPANS, "twin.link(copy)", "twin.link(copy.after)", ORDER),
    Mutant(SPANS, "return max(start, equal * parts)", "return end", TERM),
    Mutant(SPANS, "end = min(end, span.hi)", "end = span.hi", TERM),
    Mutant(PLAN, "woken = sum(blocks for *_, blocks in revived) if revived else 0", "woken = 0", TERM),
    Mutant(PLAN, "self._keep[copy] = stop", "pass", TERM),
    Mutant(PLAN, "self._owed += new", "pass", TERM),
    Mutant(PLAN, "if chain.shared and full > (end if joins else chain.hashed):", "if False:", TERM),
    Mutant(PLAN, "self._end[node] = self._end.get(node, node.span.hi) - taken", "pass", TERM),
    Mutant(
        PLAN,
        "(other.request.computed + 1) // self._size > place",
        "other.request.computed // self._size > place",
        BOUNDARY,
    ),
    Mutant(
        PLAN,
        "if copy.holders <= self._gone:\n                    nodes",
        "if not copy.holders:\n                    nodes",
        TERM,
    ),
    Mutant("course/memory/block_pool.py", "if self._plain else request.known - self.hit(request)", "", TERM),
    Mutant("course/policies/continuous.py", "return holds if plan.steady else None", "return holds", TERM),
    Mutant("course/policies/prefill_first.py", "if state.waiting and not plan.steady:", "if False:", TERM),
    Mutant(METRICS, "found[first].sum() / known[first].sum()", "found.sum() / known.sum()", TERM),
    Mutant(
        FEASIBLE, "if size % cache.block_size and cache.block_size % size:", "if size < cache.block_size:", COMPARISON
    ),
    Mutant(SHARING, "shared = tuple(range(tokens // size))", "shared = tuple(range(-(-tokens // size)))", BOUNDARY),
)
