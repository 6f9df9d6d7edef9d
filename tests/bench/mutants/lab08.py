"""Lab 08: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

ASKS, FACTS = "course/lessons/lab08/asks.yaml", "course/lessons/lab08/facts.py"
SLOTS, DECISION = "course/lessons/lab08/slots.py", "course/lessons/lab08/decision.py"
TASKS, TEXT = "course/lessons/lab08/tasks.py", "solutions/08_kv_budgeting.py"
POOL, CARD = "course/lessons/lab08/kv_pool.py", "course/lessons/lab08/card_memory.py"

MUTANTS = (
    Mutant(
        "course/lessons/lab08/sketch.py",
        "0 < level(y) < 9",
        "0 < level(y) < 60",
        CONSTANT,
        ("tests/lessons/test_misconceptions.py",),
    ),
    Mutant(ASKS, '    right: a\n    why: "Over 2,000', '    right: b\n    why: "Over 2,000', KEY),
    Mutant(ASKS, "41,408 / {{held:,.0f}} is", "41,408 / 1,536 is", NUMBER),
    Mutant(ASKS, "256 need nine such", "256 need 9.4 such", NUMBER),
    Mutant(ASKS, "    solution: at_once\n", "    solution: at_once_half\n", TERM),
    Mutant(ASKS, "computed again.\n    right: d", "computed again.\n    right: b", KEY),
    Mutant(FACTS, "FP8_POOL / (prompt + answer),", "FP8_POOL / (prompt + 2 * answer),", TERM),
    Mutant(FACTS, "FP8_POOL = 2 * TOKENS", "FP8_POOL = 4 * TOKENS", CONSTANT),
    Mutant(FACTS, "(1 + kv_pool.ANSWER_CV**2) / 2", "(1 + kv_pool.ANSWER_CV**2)", TERM),
    Mutant(FACTS, '"lost_24": few.preemptions', '"lost_24": many.preemptions', ORDER),
    Mutant(FACTS, '"ticket_gap_s": today.longest_gap', '"ticket_gap_s": before.longest_gap', ORDER),
    Mutant(SLOTS, "sqrt(n + 1) * deviation <= num_blocks", "sqrt(n + 1) * deviation < num_blocks - mean", BOUNDARY),
    Mutant(DECISION, "SLOTS = FREE // AT_ITS_END", "SLOTS = BLOCKS // AT_ITS_END", BOUNDARY),
    Mutant(TASKS, "TEN = 10  #", "TEN = 4  #", CONSTANT),
    Mutant(TASKS, "NEARLY = 0.95", "NEARLY = 0.8", CONSTANT),
    Mutant(POOL, "BLOCKS, BLOCK_SIZE = 2_588, 16", "BLOCKS, BLOCK_SIZE = 2_558, 16", CONSTANT),
    Mutant(POOL, "FP8: SPEC.kv_bytes_per_token // 2", "FP8: SPEC.kv_bytes_per_token // 4", CONSTANT),
    Mutant(POOL, "prefill=2 * SPEC.layer_parameters / FLOPS", "prefill=SPEC.layer_parameters / FLOPS", TERM),
    Mutant(POOL, "float(np.percentile(self.run.ttft, 95))", "float(np.percentile(self.run.ttft, 90))", PERCENTILE),
    Mutant(POOL, "float(steps.decodes.sum() + steps.prefill_tokens.sum())", "float(steps.decodes.sum())", TERM),
    Mutant(POOL, "BYTES[kind]) - 1, BLOCK_SIZE)", "BYTES[kind]), BLOCK_SIZE)", BOUNDARY),
    Mutant(POOL, "steps.running.max() < slots", "steps.running.max() <= slots", COMPARISON),
    Mutant(CARD, "model_spec.kv_bytes_after_window * length", "model_spec.kv_bytes_per_token * length", TERM),
    Mutant(CARD, "each * min(length, ", "each * max(length, ", COMPARISON),
    Mutant(CARD, "GIB = 2**30", "GIB = 10**9", UNIT),
    Mutant(TEXT, "{{with_prefixes:.0f}} would fit", "41 would fit", NUMBER),
    Mutant("course/lessons/lab08/game.py", "KVCache(12, block_size=4)", "KVCache(13, block_size=4)", CONSTANT),
    Mutant("course/lessons/lab08/game.py", "    best=7.4,", "    best=7.6,", CONSTANT),
)
