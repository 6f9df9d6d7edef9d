"""Lab 03: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab03", "tests/lessons/test_every_lab.py")
EXPLORERS = ("tests/lessons/test_every_explorer.py",)
NAMES = ("facts", "one_engine", "full_batch", "metrics_page", "evening", "tasks", "live_words")
ASKS = "course/lessons/lab03/asks.yaml"
FACTS, ENGINE, FULL, PAGE, EVENING, TASKS, HERE = (f"course/lessons/lab03/{name}.py" for name in NAMES)
BESIDE, LIVE = "course/explore/words_beside.py", ("tests/lessons/test_live_words.py",)
TEXT, DEEPER = "solutions/03_littles_law.py", "solutions/03_littles_law_deeper.py"

MUTANTS = (
    Mutant(ASKS, '    right: a\n    why: "From', '    right: b\n    why: "From', KEY),
    Mutant(ASKS, '    right: c\n    why: "{{off', '    right: b\n    why: "{{off', KEY),
    Mutant(ASKS, "{{queue_peak:,}} until {{over}}", "{{queue_peak:,}} until 18:25", NUMBER),
    Mutant(
        ASKS,
        '{{quiz_ahead:,}} are ahead of it, and {{quiz_capacity}} leave each second."\n    right: c',
        '{{quiz_ahead:,}} are ahead of it, and {{quiz_capacity}} leave each second."\n    right: b',
        KEY,
    ),
    Mutant(FACTS, '"in_system": len(run) / run.makespan', '"in_system": FULL', TERM),
    Mutant(FACTS, '"waiting_s": WAITING / FINISHED', '"waiting_s": (RUNNING + WAITING) / FINISHED', TERM),
    Mutant(FACTS, '"grows": evening.CAMPAIGN - most', '"grows": most - evening.USUAL', TERM),
    Mutant(FACTS, "ahead = (QUIZ_RATE - QUIZ_CAPACITY) * HOUR", "ahead = QUIZ_RATE * HOUR", TERM),
    Mutant(
        FULL, "return capacity(step_time, prompt, output - 1,", "return capacity(step_time, prompt, output,", BOUNDARY
    ),
    Mutant(ENGINE, "128, 256, 512, 1_024)", "128)", CONSTANT, EXPLORERS),
    Mutant(FACTS, "MANY = 128", "MANY = 64", CONSTANT),
    Mutant(FULL, "(output / slots - 1) * decode + mixed", "(output / slots) * decode + mixed", BOUNDARY),
    Mutant(
        FULL,
        "Step(slots - 1, (slots - 1) * context, ((prompt, 0),)))\n    return 1 / ((output / slots - 1) * decode",
        "Step(slots, slots * context, ((prompt, 0),)))\n    return 1 / ((output / slots - 1) * decode",
        BOUNDARY,
    ),
    Mutant(PAGE, "SCRAPES = (630, 930)", "SCRAPES = (600, 930)", CONSTANT),
    Mutant(PAGE, "done = run.response <= moment", "done = run.arrival <= moment", TERM),
    Mutant(PAGE, "(started > moment)", "(started <= moment)", COMPARISON),
    Mutant(EVENING, "USUAL, CAMPAIGN = 12, 20", "USUAL, CAMPAIGN = 12, 19", CONSTANT),
    Mutant(EVENING, "BEGIN, END, MINUTES = 10, 30, 55", "BEGIN, END, MINUTES = 10, 29, 55", CONSTANT),
    Mutant(TASKS, "TIMES = 10.0", "TIMES = 100.0", CONSTANT, EXPLORERS),
    Mutant(HERE, "int(np.argmax(side.run.response))", "int(np.argmin(side.run.response))", ORDER, LIVE),
    Mutant(HERE, "for prompt in PROMPTS], rate, SEED)", "for prompt in PROMPTS], 2 * rate, SEED)", TERM, LIVE),
    Mutant(BESIDE, "if key not in known:", "if key in known:", COMPARISON, LIVE),
    Mutant(BESIDE, "    @in_turn  # two runs at once would measure each other\n", "", TERM, LIVE),
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
    Mutant(TEXT, "by theory from {{leaves:.1f}} requests/s on", "by theory from 12.1 requests/s on", NUMBER),
    Mutant(TEXT, "16901.0     25263.4", "16901.0     25236.4", NUMBER),
    Mutant(DEEPER, "That is {{keeps:.1f}} of", "That is 12.7 of", NUMBER),
)
