"""Lab 03: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, Mutant

TESTS = ("tests/lessons/lab03/test_texts.py", "tests/lessons/lab03", "tests/lessons/test_every_lab.py")
ASKS, QUIZ, ENGINE = (f"course/lessons/lab03/{name}.py" for name in ("exercises", "quiz", "one_engine"))
FIGURES, TEXT = "course/lessons/lab03/figures.py", "solutions/03_littles_law.py"

MUTANTS = (
    Mutant(ASKS, '"d",\n            "From 35 ms to 1,018 ms', '"c",\n            "From 35 ms to 1,018 ms', KEY),
    Mutant(ASKS, '"d",\n            "From 29 ms', '"a",\n            "From 29 ms', KEY),
    Mutant(ASKS, '"c",\n            "In the window', '"b",\n            "In the window', KEY),
    Mutant(ASKS, "From 35 ms to 1,018 ms", "From 35 ms to 1,108 ms", NUMBER),
    Mutant(ASKS, "E2E from 1.60 to 1.90 s", "E2E from 1.60 to 1.09 s", NUMBER),
    Mutant(ASKS, "at 14 one request in four did", "at 14 one request in five did", NUMBER),
    Mutant(ASKS, "20 others gave 253 to 1,858 ms", "20 others gave 253 to 1,588 ms", NUMBER),
    Mutant(ASKS, "one of 100,000 gave 1,124 ms", "one of 100,000 gave 1,142 ms", NUMBER),
    Mutant(ASKS, "the p95 of TTFT was 29 ms", "the p90 of TTFT was 29 ms", PERCENTILE),
    Mutant(ASKS, "more than a hundred times", "more than fifty times", NUMBER),
    Mutant(ASKS, "they differ by 24.1%", "they differ by 14.2%", NUMBER),
    Mutant(ASKS, "one in ten by more than 15%", "one in ten by more than 17%", NUMBER),
    Mutant(ASKS, "The SLO is on the p99, which", "The SLO is on the p95, which", PERCENTILE),
    Mutant(ASKS, "Rounded to 0.1 requests/s", "Rounded to 0.5 requests/s", NUMBER),
    Mutant(
        ASKS,
        "(output / slots - 1) * plain + mixed)\n\n\ndef _without",
        "(output / slots) * plain + mixed)\n\n\ndef _without",
        BOUNDARY,
    ),
    Mutant(ASKS, "low, high = (middle, high) if meets_slo", "low, high = (low, middle) if meets_slo", ORDER),
    Mutant(
        ASKS,
        "forecast.ttft_percentile_s(0.99) <= SLO_S)\n_single",
        "forecast.ttft_percentile_s(0.95) <= SLO_S)\n_single",
        PERCENTILE,
    ),
    Mutant(ASKS, "SERVICE_S, SINGLE_RATE = 0.050, 16.0", "SERVICE_S, SINGLE_RATE = 0.050, 15.0", CONSTANT),
    Mutant(QUIZ, '),\n        "b",\n    ),', '),\n        "a",\n    ),', KEY),
    Mutant(QUIZ, '),\n        "a",\n    ),', '),\n        "b",\n    ),', KEY),
    Mutant(QUIZ, '),\n        "d",\n    ),', '),\n        "a",\n    ),', KEY),
    Mutant(QUIZ, 'all arrivals."),\n        ),\n        "c"', 'all arrivals."),\n        ),\n        "d"', KEY),
    Mutant(
        QUIZ, 'variation of 0.25."),\n        ),\n        "c"', 'variation of 0.25."),\n        ),\n        "a"', KEY
    ),
    Mutant(QUIZ, '("2.5 s", "W = L / rate = 40 / 16', '("2.8 s", "W = L / rate = 40 / 16', NUMBER),
    Mutant(QUIZ, "2 x 3,600 = 7,200 requests", "2 x 3,600 = 7,400 requests", NUMBER),
    Mutant(QUIZ, "about 400 s", "about 200 s", NUMBER),
    Mutant(QUIZ, "here between 11 and 12 requests/s", "here between 12 and 13 requests/s", NUMBER),
    Mutant(QUIZ, '("0.0625", "1 / 4^2', '("0.125", "1 / 4^2', NUMBER),
    Mutant(QUIZ, "from 4 s to 2 s", "from 8 s to 4 s", NUMBER),
    Mutant(ENGINE, "SLOTS, BUDGET = 32, 2048", "SLOTS, BUDGET = 32, 1024", CONSTANT),
    Mutant(
        ENGINE,
        "return _rates(max_num_seqs, kind, step_time)[-1]",
        "return _rates(max_num_seqs, kind, step_time)[-2]",
        BOUNDARY,
    ),
    Mutant(ENGINE, ">= run.policy.max_num_seqs).mean()", "> run.policy.max_num_seqs).mean()", COMPARISON),
    Mutant(
        ENGINE,
        'run.response), run.arrival, side="right")',
        'run.response), run.arrival, side="left")',
        BOUNDARY,
        equivalent="nobody arrives at the very moment of an answer",
    ),
    Mutant(
        ENGINE,
        "p95, p99 = np.percentile(run.ttft, (95, 99))",
        "p95, p99 = np.percentile(run.ttft, (90, 99))",
        PERCENTILE,
    ),
    Mutant(
        ENGINE,
        "known.mean_ttft_s, known.ttft_percentile_s(0.95), known.ttft_percentile_s(0.99)",
        "known.mean_ttft_s, known.ttft_percentile_s(0.99), known.ttft_percentile_s(0.95)",
        ORDER,
    ),
    Mutant(ENGINE, "share = round(product / law.L - 1, 3)", "share = round(law.L / product - 1, 3)", ORDER),
    Mutant(ENGINE, "start, start + length)", "start, length)", TERM),
    Mutant(
        ENGINE,
        "np.array([f.ttft_percentile_s(0.99) for f in known])",
        "np.array([f.ttft_percentile_s(0.9) for f in known])",
        PERCENTILE,
    ),
    Mutant(TEXT, "19 ms on average, 35 ms at the 99th", "19 ms on average, 53 ms at the 99th", NUMBER),
    Mutant(
        TEXT,
        "sustains 0.77 requests/s, and 32 slots sustain 16",
        "sustains 0.47 requests/s, and 32 slots sustain 16",
        NUMBER,
    ),
    Mutant(
        TEXT, "and Erlang says that 6% of the requests wait", "and Erlang says that 16% of the requests wait", NUMBER
    ),
    Mutant(TEXT, "here 11.7 of 16.3 requests/s", "here 12.7 of 16.3 requests/s", NUMBER),
    Mutant(TEXT, "TPOT levels off at 7.6 ms", "TPOT levels off at 6.7 ms", NUMBER),
    Mutant(TEXT, "from about 3 requests/s on, a fifth", "from about 3 requests/s on, a third", NUMBER),
)
