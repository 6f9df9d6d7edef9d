"""Lab 08: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab08/test_texts.py", "tests/lessons/lab08", "tests/lessons/test_every_lab.py")
ASKS, QUIZ = "course/lessons/lab08/exercises.py", "course/lessons/lab08/quiz.py"
POOL, CARD = "course/lessons/lab08/kv_pool.py", "course/lessons/lab08/card_memory.py"

MUTANTS = (
    Mutant(ASKS, '"c",\n            "The 5.05 is', '"a",\n            "The 5.05 is', KEY),
    Mutant(ASKS, '"a",\n            "From 826', '"b",\n            "From 826', KEY),
    Mutant(ASKS, '"c",\n            "0.31 s', '"b",\n            "0.31 s', KEY),
    Mutant(ASKS, "41,408 / 1,536 is 27", "41,408 / 1,536 is 29", NUMBER),
    Mutant(ASKS, "up to 26 ran ", "up to 62 ran ", NUMBER),
    Mutant(ASKS, "From 826 to 820 tokens/s", "From 826 to 802 tokens/s", NUMBER),
    Mutant(ASKS, "preemptions from 63 to 907", "preemptions from 63 to 970", NUMBER),
    Mutant(ASKS, "computed again: a quarter", "computed again: a third", NUMBER),
    Mutant(ASKS, "The p95 of TTFT was 202 s", "The p99 of TTFT was 202 s", PERCENTILE),
    Mutant(ASKS, '"0.31 s, and no', '"0.13 s, and no', NUMBER),
    Mutant(ASKS, "Leave two standard deviations.", "Leave three standard deviations.", NUMBER),
    Mutant(
        ASKS,
        'return 2 * config["num_hidden_layers"] * (config.get',
        'return config["num_hidden_layers"] * (config.get',
        TERM,
    ),
    Mutant(
        ASKS,
        "while (n + 1) * mean + 2 * sqrt(n + 1) * deviation <= num_blocks",
        "while (n + 1) * mean + 2 * sqrt(n + 1) * deviation < num_blocks - mean",
        BOUNDARY,
    ),
    Mutant(
        ASKS,
        "_residents = round(kv_pool.TOKENS / _resident)",
        "_residents = round(kv_pool.TOKENS / _resident) + 1",
        BOUNDARY,
    ),
    Mutant(ASKS, "_fits = _card.max_sequences(LENGTH)", "_fits = _card.max_sequences(LENGTH) + 1", BOUNDARY),
    Mutant(
        QUIZ,
        'for each request.",\n            ),\n        ),\n        "c"',
        'for each request.",\n            ),\n        ),\n        "a"',
        KEY,
    ),
    Mutant(
        QUIZ,
        'goes up by one.",\n            ),\n        ),\n        "d"',
        'goes up by one.",\n            ),\n        ),\n        "b"',
        KEY,
    ),
    Mutant(QUIZ, 'of fewer heads."),\n        ),\n        "a"', 'of fewer heads."),\n        ),\n        "c"', KEY),
    Mutant(QUIZ, 'more room for it."),\n        ),\n        "b"', 'more room for it."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, 'change the clock."),\n        ),\n        "a"', 'change the clock."),\n        ),\n        "b"', KEY),
    Mutant(
        QUIZ,
        'sequences are long.",\n            ),\n        ),\n        "c"',
        'sequences are long.",\n            ),\n        ),\n        "a"',
        KEY,
    ),
    Mutant(QUIZ, "for 32,768 tokens per request: 1.26x", "for 32,768 tokens per request: 2.16x", NUMBER),
    Mutant(QUIZ, "about 27, if there are slots", "about 72, if there are slots", NUMBER),
    Mutant(QUIZ, "1,000 tokens come to 39 MiB", "1,000 tokens come to 93 MiB", NUMBER),
    Mutant(QUIZ, "It is eleven times as much", "It is four times as much", NUMBER),
    Mutant(QUIZ, 'four times "\n        "smaller', 'eight times "\n        "smaller', NUMBER),
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
