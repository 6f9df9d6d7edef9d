"""Lab 07: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab07/test_texts.py", "tests/lessons/lab07", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, SHARE = (f"course/lessons/lab07/{name}.py" for name in ("exercises", "quiz", "share"))
LONG, CHUNKS = "course/lessons/lab07/long_prompt.py", "course/lessons/lab07/prompt_chunks.py"
TEXT = "solutions/07_chunked_prefill.py"

MUTANTS = (
    Mutant(ASKS, '"d",\n            "From 9.9', '"c",\n            "From 9.9', KEY),
    Mutant(ASKS, '"c",\n            "2,120 ms.', '"b",\n            "2,120 ms.', KEY),
    Mutant(ASKS, '"d",\n            "33%, 1.74 s', '"c",\n            "33%, 1.74 s', KEY),
    Mutant(ASKS, "From 9.9 to 29.5 ms", "From 9.9 to 25.9 ms", NUMBER),
    Mutant(ASKS, "fell from 1,744 to 56 ms", "fell from 1,744 to 65 ms", NUMBER),
    Mutant(
        ASKS,
        "In 64 chunks the same work makes 64 times",
        "In 64 chunks the same work makes a hundred times",
        NUMBER,
    ),
    Mutant(ASKS, "hits 15 chats once", "hits 51 chats once", NUMBER),
    Mutant(ASKS, "0.03% of all tokens", "0.3% of all tokens", NUMBER),
    Mutant(ASKS, "(long_prefill_token_threshold) does: 92 ms", "(long_prefill_token_threshold) does: 29 ms", NUMBER),
    Mutant(ASKS, "Their p99 TTFT was 1,616 ms", "Their p95 TTFT was 1,616 ms", PERCENTILE),
    Mutant(ASKS, "and 6% in theory", "and 16% in theory", NUMBER),
    Mutant(ASKS, "cut the token budget of a step to 512", "cut the token budget of a step to 215", NUMBER),
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
    Mutant(QUIZ, "takes 1.3 times as long in chunks of 256", "takes 2.6 times as long in chunks of 256", NUMBER),
    Mutant(QUIZ, "below some 280 tokens", "below some 820 tokens", NUMBER),
    Mutant(QUIZ, "leaves some 1,500 tokens of each", "leaves some 500 tokens of each", NUMBER),
    Mutant(
        QUIZ,
        "a third of the tokens/s on the recorded card, and a quarter",
        "a quarter of the tokens/s on the recorded card, and a third",
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
    Mutant(TEXT, "512 instead of 1,866 ms", "512 instead of 1,686 ms", NUMBER),
    Mutant(TEXT, "64 steps of 36 ms make 64 times as many", "64 steps of 36 ms make 100 times as many", NUMBER),
    Mutant(TEXT, "reading them once [s] | 4.97 ms", "reading them once [s] | 5.97 ms", NUMBER),
    Mutant(TEXT, "takes 1.04 to 2.6 times as long", "takes 1.04 to 1.6 times as long", NUMBER),
    Mutant(TEXT, "waits 34% longer than at 8,192", "waits 43% longer than at 8,192", NUMBER),
)
