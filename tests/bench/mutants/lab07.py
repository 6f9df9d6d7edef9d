"""Lab 07: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab07/test_texts.py", "tests/lessons/lab07", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, SHARE = (f"course/lessons/lab07/{name}.py" for name in ("exercises", "quiz", "share"))
LONG, CHUNKS = "course/lessons/lab07/long_prompt.py", "course/lessons/lab07/prompt_chunks.py"
TEXT = "solutions/07_chunked_prefill.py"

MUTANTS = (
    Mutant(ASKS, '"d",\n            "From 7.2', '"c",\n            "From 7.2', KEY),
    Mutant(ASKS, '"c",\n            "822 ms.', '"b",\n            "822 ms.', KEY),
    Mutant(ASKS, '"d",\n            "5% in the model', '"c",\n            "5% in the model', KEY),
    Mutant(ASKS, "From 7.2 to 13.9 ms", "From 7.2 to 19.3 ms", NUMBER),
    Mutant(ASKS, "fell from 954 to 21 ms", "fell from 954 to 12 ms", NUMBER),
    Mutant(
        ASKS,
        "In 64 chunks the same second makes 64 times",
        "In 64 chunks the same second makes a hundred times",
        NUMBER,
    ),
    Mutant(ASKS, "hits 14 chats once", "hits 41 chats once", NUMBER),
    Mutant(ASKS, "0.03% of all tokens", "0.3% of all tokens", NUMBER),
    Mutant(ASKS, "(long_prefill_token_threshold) does: 35 ms", "(long_prefill_token_threshold) does: 53 ms", NUMBER),
    Mutant(ASKS, "Their p99 TTFT was 795 ms", "Their p95 TTFT was 795 ms", PERCENTILE),
    Mutant(ASKS, "chunks of 512 take 22% longer", "chunks of 512 take 32% longer", NUMBER),
    Mutant(ASKS, "5 to 25% longer", "15 to 50% longer", NUMBER),
    Mutant(ASKS, "a budget of 12 tokens and a cap of 5; each", "a budget of 10 tokens and a cap of 5; each", NUMBER),
    Mutant(ASKS, "Try multiples of 64.", "Try multiples of 32.", NUMBER),
    Mutant(
        ASKS, "tokens * cached + tokens * (tokens + 1) // 2", "tokens * cached + tokens * (tokens - 1) // 2", BOUNDARY
    ),
    Mutant(
        ASKS,
        "total += step_time(Step(0, 0, ((min(chunk, prompt - cached), cached),)))",
        "total += step_time(Step(0, 0, ((min(chunk, prompt - cached), 0),)))",
        TERM,
    ),
    Mutant(
        ASKS,
        "((chunk, prompt - chunk),))) <= limit:\n            best",
        "((chunk, prompt),))) <= limit:\n            best",
        TERM,
    ),
    Mutant(
        QUIZ,
        'who noticed.",\n            ),\n        ),\n        "c"',
        'who noticed.",\n            ),\n        ),\n        "a"',
        KEY,
    ),
    Mutant(QUIZ, 'room in the step."),\n        ),\n        "b"', 'room in the step."),\n        ),\n        "a"', KEY),
    Mutant(
        QUIZ,
        'room for activations."),\n        ),\n        "b"',
        'room for activations."),\n        ),\n        "c"',
        KEY,
    ),
    Mutant(QUIZ, 'same or grows."),\n        ),\n        "b"', 'same or grows."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, 'one step too."),\n        ),\n        "b"', 'one step too."),\n        ),\n        "a"', KEY),
    Mutant(QUIZ, 'does nothing."),\n        ),\n        "b"', 'does nothing."),\n        ),\n        "c"', KEY),
    Mutant(QUIZ, "537 million pairs", "573 million pairs", NUMBER),
    Mutant(QUIZ, "takes 1.6 times as long in chunks of 256", "takes 2.6 times as long in chunks of 256", NUMBER),
    Mutant(QUIZ, "below some 280 tokens", "below some 820 tokens", NUMBER),
    Mutant(QUIZ, "leaves some 1,500 tokens of each", "leaves some 500 tokens of each", NUMBER),
    Mutant(
        QUIZ,
        "a quarter of the tokens/s in the model, and a third",
        "a third of the tokens/s in the model, and a quarter",
        ORDER,
    ),
    Mutant(SHARE, "CAP, SLOTS, BUDGET = 5, 5, 12", "CAP, SLOTS, BUDGET = 5, 5, 14", CONSTANT),
    Mutant(
        SHARE,
        'those that run first."""\n    tokens = {request: 1 for request in state.running if request.remaining == 1}',
        'those that run first."""\n    tokens = {request: 1 for request in state.running if request.remaining >= 1}',
        COMPARISON,
    ),
    Mutant(
        LONG,
        "times = np.arange(every / 2, chats.arrival[-1], every)",
        "times = np.arange(every, chats.arrival[-1], every)",
        CONSTANT,
    ),
    Mutant(LONG, "np.maximum.reduceat(gaps, edges)[::2]", "np.minimum.reduceat(gaps, edges)[::2]", COMPARISON),
    Mutant(LONG, "np.median(self.run.ttft[~self.chats])", "np.median(self.run.ttft[self.chats])", ORDER),
    Mutant(LONG, "(self.chat_gaps > limit).mean()", "(self.chat_gaps > limit).sum()", UNIT),
    Mutant(LONG, 'found.chat_ttft["p99"]), (found', 'found.chat_ttft["p95"]), (found', PERCENTILE),
    Mutant(LONG, "limit_ms / 1e3", "limit_ms", UNIT),
    Mutant(
        LONG,
        "weights[gaps > result.limit].sum() / weights.sum()",
        "weights[gaps > result.limit].sum() / len(weights)",
        TERM,
    ),
    Mutant(LONG, "np.percentile(found.chat_gaps, 99)", "np.percentile(found.chat_gaps, 95)", PERCENTILE),
    Mutant(LONG, "(run.token_times(0) <= ends[-1])", "(run.token_times(0) <= ends[0])", BOUNDARY),
    Mutant(CHUNKS, "(run.steps.useful + run.steps.prefill_tokens)[until]", "run.steps.useful[until]", TERM),
    Mutant(CHUNKS, "for r in state.running if not r.emitted", "for r in state.running if r.emitted", COMPARISON),
    Mutant(TEXT, "1,034 ms instead of 991 ms", "1,034 ms instead of 919 ms", NUMBER),
    Mutant(
        TEXT, "64 steps\n#   of 16 ms make 64 times as many", "64 steps\n#   of 16 ms make 100 times as many", NUMBER
    ),
    Mutant(TEXT, "reading them once [s] | 4.97 ms", "reading them once [s] | 5.97 ms", NUMBER),
    Mutant(TEXT, "takes 1.2 to 2.1 times as long", "takes 1.2 to 1.7 times as long", NUMBER),
    Mutant(TEXT, "\n# 62% longer than at 8,192", "\n# 26% longer than at 8,192", NUMBER),
)
