"""Prefix caching: the pool, the spans it is made of, the plan, and what the engine says of it."""

from tests.bench.mutants import BOUNDARY, COMPARISON, ORDER, TERM, Mutant

TESTS = (
    "tests/engine/test_prefix_caching.py",
    "tests/engine/test_prefixes_at_random.py",
    "tests/engine/test_shared_drafts.py",
    "tests/engine/test_vllm.py",
    "tests/calibration/test_vllm_live.py",
)
POOL, INDEX, QUEUE, SPANS, PLAN = (
    f"course/memory/prefix_{name}.py" for name in ("pool", "index", "queue", "spans", "plan")
)
JOINING = "course/engine/fast/joining.py"
SHARING, FEASIBLE = "course/workload/sharing.py", "course/engine/feasible.py"
METRICS = "course/engine/metrics.py"
POOLS, PROMISES = ("tests/memory/test_block_pool.py",), ("tests/policies/test_prefill_first.py",)
MUTANTS = (
    Mutant(INDEX, "place, most, shared = 0, (known - 1)", "place, most, shared = 0, known", BOUNDARY),
    Mutant(POOL, "if end < last.hi:", "if end <= last.hi:", COMPARISON),
    Mutant(POOL, "copy = span.copies[0]", "copy = span.copies[-1]", ORDER),
    Mutant(POOL, "self.free -= span.hi - span.lo", "pass", TERM),
    Mutant(POOL, "chain.hashed = chain.blocks = end", "chain.hashed, chain.blocks = end, 0", TERM),
    Mutant(
        POOL,
        "self.grow(chain, computed + tokens, step)",
        "self.grow(chain, computed + tokens - 1, step)",
        TERM,
    ),
    Mutant(POOL, "sorted(gone, key=lambda one: self._chains[one[0]].rank)", "reversed(gone)", ORDER),
    Mutant(POOL, "self.bring_home(len(self._lost))\n        self._step += 1", "self._step += 1", TERM),
    Mutant(
        QUEUE,
        "while self._lost and blocks > self.free - self._lost_blocks:\n            self.bring",
        "while self._lost:\n            self.bring",
        TERM,
    ),
    Mutant(POOL, "self.shared.append(self._held - used)", "self.shared.append(used)", TERM),
    Mutant(INDEX, "elif tokens > request.prompt_tokens:", "elif False:", TERM),
    Mutant(INDEX, "if not chain.rank and shared < most:", "if shared < most:", TERM),
    Mutant(INDEX, "            chains.remove(chain)\n", "            chains.pop()\n", ORDER),
    Mutant(INDEX, "ids[size // each - 1 :: size // each]", "ids[:: size // each]", BOUNDARY),
    Mutant(INDEX, "other.request.computed + (other.request in self._decoding)", "other.request.computed", BOUNDARY),
    Mutant(INDEX, "self.steady = False", "pass", TERM),
    Mutant(POOL, "own if self.unhashed_first else blank + own", "own", TERM),
    Mutant(POOL, "own if self.unhashed_first else blank + own", "blank + own", TERM),
    Mutant(POOL, "for copy in reversed(chain.copies):", "for copy in list(chain.copies):", ORDER),
    Mutant(
        POOL,
        "if not holders:\n                copy.link(queue)",
        "if True:\n                copy.link(queue)",
        TERM,
    ),
    Mutant(QUEUE, "span.hi -= most\n", "span.lo += most\n", ORDER),
    Mutant(QUEUE, "if not span.copies:\n            del", "if True:\n            del", TERM),
    Mutant(POOL, "return blank if self.unhashed_first else 0", "return 0", TERM),
    Mutant(INDEX, "insort(span.copies, copy, key=Copy.age)", "span.copies.insert(0, copy)", ORDER),
    Mutant(INDEX, "insort(span.copies, copy, key=Copy.age)", "span.copies.append(copy)", ORDER),
    Mutant(INDEX, "if stop > place + 1 and (stride or any(", "if False and (stride or any(", TERM),
    Mutant(QUEUE, "                self.blank = node.blocks", "                self.blank = 0", TERM),
    Mutant(QUEUE, "if span.lo < span.chain.shared:", "if True:", TERM),
    Mutant(QUEUE, "                self._forget(span, most)\n", "", TERM),
    Mutant(QUEUE, "        self._forget(span, size)\n", "", TERM),
    Mutant(POOL, "return 0 if chain.blocks else self.found", "return self.found", TERM),
    Mutant(POOL, "last.forked = True", "pass", TERM),
    Mutant(SPANS, "if self.forked:", "if False:", TERM),
    Mutant(SPANS, "return on_time and copy", "return copy", TERM),
    Mutant(POOL, "        self.keep_own(chain)\n        self._lost", "        self._lost", TERM),
    Mutant(POOL, "chain.hashed - chain.found", "0", TERM),
    Mutant(INDEX, "elif self._owed and not span.copies[0].holders:", "elif False:", TERM),
    Mutant(INDEX, "if not spans or spans[-1].hi <= place:", "if True:", TERM),
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
    Mutant(SPANS, "if span.hi < end:", "if True:", TERM),
    Mutant(SPANS, "end if end < shared else shared)", "end)", TERM),
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
    Mutant("course/memory/block_pool.py", "if self._plain else request.known - self.hit(request)", "", TERM, POOLS),
    Mutant("course/policies/continuous.py", "return holds if plan.steady else None", "return holds", TERM),
    Mutant("course/policies/prefill_first.py", "if state.waiting and not plan.steady:", "if False:", TERM, PROMISES),
    Mutant(
        JOINING, "decodes, members, queue = engine.decodes", "decodes, members, queue = engine.decodes - 1", BOUNDARY
    ),
    Mutant(
        JOINING,
        "self.kept_free if members else 0",
        "self.kept_free",
        TERM,
        equivalent="where nobody runs and nobody joins, the policy is asked, and lets the first of the queue in",
    ),
    Mutant(JOINING, "self.kept_free if members else 0", "0", TERM),
    Mutant(JOINING, "remaining if whole else chunk", "chunk", TERM),
    Mutant(JOINING, "remaining if whole else chunk", "remaining", TERM),
    Mutant(JOINING, "need += (span.hi if span.hi < end else end) - span.lo", "need += span.hi - span.lo", TERM),
    Mutant(JOINING, "if not span.copies[0].holders:", "if True:", TERM),
    Mutant(JOINING, "if need > pool.free:", "if need >= pool.free:", COMPARISON),
    Mutant(JOINING, "if engine.sent_back or engine.prefilling:", "if engine.sent_back:", TERM),
    Mutant(JOINING, "if cap and decodes <= 1:", "if False:", TERM),
    Mutant(JOINING, "until = math.inf if left else None", "until = math.inf", TERM),
    Mutant(JOINING, "engine.answered, not pool.steady", "engine.answered, False", TERM),
    Mutant(JOINING, "until = math.inf if pool.steady else None", "until = math.inf", TERM),
    Mutant("course/engine/fast/tight.py", "or policy.budget_changes or", "or", TERM),
    Mutant(JOINING, "or not policy.enable_chunked_prefill", "", TERM),
    Mutant(METRICS, "found[first].sum() / known[first].sum()", "found.sum() / known.sum()", TERM),
    Mutant(
        FEASIBLE, "if size % cache.block_size and cache.block_size % size:", "if size < cache.block_size:", COMPARISON
    ),
    Mutant(SHARING, "shared = tuple(range(tokens // size))", "shared = tuple(range(-(-tokens // size)))", BOUNDARY),
)
