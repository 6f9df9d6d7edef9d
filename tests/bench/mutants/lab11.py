"""Lab 11: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab11/asks.yaml", "course/lessons/lab11/facts.py"
BATCH, DEVICE = "course/lessons/lab11/batch.py", "course/lessons/lab11/on_device.py"
PACK, SHAPES = "course/lessons/lab11/pack.py", "course/lessons/lab11/shapes.py"
DECISION, TENANT = "course/lessons/lab11/decision.py", "course/lessons/lab11/tenant.py"

MUTANTS = (
    Mutant(ASKS, "The rows were computed before.\n    right: b", "The rows were computed before.\n    right: c", KEY),
    Mutant(ASKS, "Most prompts are there.\n", "Few prompts are there.\n    right: a\n", KEY),
    Mutant(FACTS, "WASTE, WASTE_TWIN = (120, 400, 680)", "WASTE, WASTE_TWIN = (120, 400, 690)", NUMBER),
    Mutant(FACTS, 'f"{name}_more": square / sum(lengths) - 1', 'f"{name}_more": square / sum(lengths)', TERM),
    Mutant(FACTS, "total**2 / (2 * pairs)", "total**2 / pairs", TERM),
    Mutant(BATCH, "more = spread * mean * REQUESTS / (REQUESTS - 1) ** 0.5", "more = spread * mean * REQUESTS", TERM),
    Mutant(BATCH, "np.sqrt(np.log1p(spread**2))", "np.log1p(spread**2)", TERM),
    Mutant(BATCH, "next(edge for edge in edges if edge >= length)", "next(edge for edge in edges if edge > length)",
           BOUNDARY),
    Mutant(BATCH, "return sum(n * (n + 1) // 2 for group", "return sum(n * n for group", TERM),
    Mutant(DEVICE, "return [0, *accumulate(prompts)]", "return [0, *accumulate(prompts)][1:]", BOUNDARY),
    Mutant(DEVICE, "np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)",
           "np.triu(np.full((tokens, tokens), -np.inf, np.float32), 2)", BOUNDARY),
    Mutant(DEVICE, "zip(groups, offsets(rows), offsets(blocks), strict=False)",
           "zip(groups, offsets(rows), offsets(rows), strict=False)", ORDER),
    Mutant(SHAPES, "PRODUCTS = 2 * MODEL.layer_parameters", "PRODUCTS = MODEL.layer_parameters", UNIT),
    Mutant(PACK, "edge if length <= edge else longest for length in lengths)\n\n    return",
           "edge if length < edge else longest for length in lengths)\n\n    return", COMPARISON),
    Mutant(PACK, "rows.append(end - 1 if tokens > 0 else -1)", "rows.append(end - 1)", TERM),
    Mutant(DECISION, "size for size in sizes if size >= batch", "size for size in sizes if size > batch", BOUNDARY),
    Mutant(DECISION, "AROUND, LINES, CONTEXT = 100,", "AROUND, LINES, CONTEXT = 60,", CONSTANT),
    Mutant(TENANT, "SHARE = 0.03", "SHARE = 0.3", CONSTANT),
    Mutant(TENANT, "tokens_a_second() * self.tokens / self.computed", "tokens_a_second()", TERM),
)  # fmt: skip
