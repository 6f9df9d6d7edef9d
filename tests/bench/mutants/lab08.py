"""Lab 08: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab08/test_texts.py", "tests/lessons/lab08", "tests/lessons/test_every_lab.py")
ASKS, QUIZ = "course/lessons/lab08/exercises.py", "course/lessons/lab08/quiz.py"
SLOTS, DECISION = "course/lessons/lab08/slots.py", "course/lessons/lab08/decision.py"
TICKET, TASKS = "course/lessons/lab08/ticket.py", "course/lessons/lab08/tasks.py"
POOL, CARD = "course/lessons/lab08/kv_pool.py", "course/lessons/lab08/card_memory.py"

MUTANTS = (
    Mutant(ASKS, '"c",\n            "A sequence holds', '"a",\n            "A sequence holds', KEY),
    Mutant(ASKS, '"a",\n            "Over 2,000', '"b",\n            "Over 2,000', KEY),
    Mutant(ASKS, "41,408 / 1,536 is 27", "41,408 / 1,536 is 29", NUMBER),
    Mutant(ASKS, "from 826 to 820 tokens/s", "from 826 to 802 tokens/s", NUMBER),
    Mutant(ASKS, "from 63 to 907 preemptions", "from 63 to 970 preemptions", NUMBER),
    Mutant(ASKS, "256 need nine such pools", "256 need six such pools", NUMBER),
    Mutant(SLOTS, "Leave two standard deviations.", "Leave three standard deviations.", NUMBER),
    Mutant(
        SLOTS,
        "while (n + 1) * mean + 2 * sqrt(n + 1) * deviation <= num_blocks",
        "while (n + 1) * mean + 2 * sqrt(n + 1) * deviation < num_blocks - mean",
        BOUNDARY,
    ),
    Mutant(DECISION, "SLOTS = kv_pool.BLOCKS // AT_ITS_END", "SLOTS = kv_pool.BLOCKS // AT_ITS_END + 1", BOUNDARY),
    Mutant(DECISION, "solution={FLAG: SLOTS}", "solution={FLAG: ON_AVERAGE}", KEY),
    Mutant(ASKS, "solution=FP8_POOL / (PROMPT + ANSWER)", "solution=FP8_POOL / (PROMPT + 2 * ANSWER)", TERM),
    Mutant(
        ASKS,
        "FP8_POOL, PROMPT, ANSWER, TWIN_PROMPT, TWIN_ANSWER = 2 *",
        "FP8_POOL, PROMPT, ANSWER, TWIN_PROMPT, TWIN_ANSWER = 4 *",
        CONSTANT,
    ),
    Mutant(ASKS, "Double the 41,408 tokens", "Double the 41,804 tokens", NUMBER),
    Mutant(TICKET, "The counter rose by 81", "The counter rose by 18", NUMBER),
    Mutant(TICKET, "went from 23 to 256", "went from 32 to 256", NUMBER),
    Mutant(QUIZ, "1.26x for 32,768 tokens", "2.16x for 32,768 tokens", NUMBER),
    Mutant(QUIZ, "about 27 of them", "about 72 of them", NUMBER),
    Mutant(QUIZ, "a KV cache four times smaller", "a KV cache eight times smaller", NUMBER),
    Mutant(TASKS, "_printed(result) >= 10", "_printed(result) >= 4", COMPARISON),
    Mutant(TASKS, "NEARLY = 0.95", "NEARLY = 0.8", CONSTANT),
    Mutant(POOL, "BLOCKS, BLOCK_SIZE = 2_588, 16", "BLOCKS, BLOCK_SIZE = 2_558, 16", CONSTANT),
    Mutant(POOL, "FP8: SPEC.kv_bytes_per_token // 2", "FP8: SPEC.kv_bytes_per_token // 4", CONSTANT),
    Mutant(POOL, "prefill=2 * SPEC.layer_parameters / FLOPS", "prefill=SPEC.layer_parameters / FLOPS", TERM),
    Mutant(POOL, "float(np.percentile(self.run.ttft, 95))", "float(np.percentile(self.run.ttft, 90))", PERCENTILE),
    Mutant(POOL, "float(steps.decodes.sum() + steps.prefill_tokens.sum())", "float(steps.decodes.sum())", TERM),
    Mutant(
        POOL, "said = moments - (ends[request] - load.output_tokens[request])", "said = ends[request] - moments", ORDER
    ),
    Mutant(POOL, "steps.running.max() < slots", "steps.running.max() <= slots", COMPARISON),
    Mutant(CARD, "model_spec.kv_bytes_after_window * length", "model_spec.kv_bytes_per_token * length", TERM),
    Mutant(
        CARD, "each * min(length, layer.attention.window)", "each * max(length, layer.attention.window)", COMPARISON
    ),
    Mutant(CARD, "GIB = 2**30", "GIB = 10**9", UNIT),
)
