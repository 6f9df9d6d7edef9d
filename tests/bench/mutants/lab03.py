"""Lab 03: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, NUMBER, PERCENTILE, TERM, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab03",)
NAMES = ("facts", "one_engine", "full_batch", "metrics_page", "evening", "live_words")
ASKS = "course/lessons/lab03/asks.yaml"
FACTS, ENGINE, FULL, PAGE, EVENING, HERE = (f"course/lessons/lab03/{name}.py" for name in NAMES)
BESIDE, LIVE = "course/explore/words_beside.py", ("tests/lessons/test_live_words.py",)
TEXT, DEEPER = "solutions/03_littles_law.py", "solutions/03b_littles_law.py"

MUTANTS = (
    Mutant(
        "course/lessons/lab03/sketch.py", "growth(y) < 1.15,", "growth(y) < 1.7,", CONSTANT,
        ("tests/lessons/test_misconceptions.py",),
    ),
    Mutant(FACTS, '"in_system": len(run) / run.makespan', '"in_system": FULL', TERM),
    Mutant(FACTS, '"waiting_s": WAITING / FINISHED', '"waiting_s": (RUNS_HERE + WAITING) / FINISHED', TERM),
    Mutant(FACTS, "ahead = (QUIZ_RATE - QUIZ_CAPACITY) * HOUR", "ahead = QUIZ_RATE * HOUR", TERM),
    Mutant(FACTS, "MANY = 128", "MANY = 64", CONSTANT),
    Mutant(ENGINE, "128, 256, 512, 1_024)", "128)", CONSTANT, EXPLORERS),
    Mutant(FULL, "(output / slots - 1) * decode + mixed", "(output / slots) * decode + mixed", BOUNDARY),
    Mutant(FULL, "prompt, output - 1, context", "prompt, output, context", BOUNDARY),
    Mutant(PAGE, 'on_page(name, "after") - on_page(name, "before")', 'on_page(name, "after")', TERM),
    Mutant(PAGE, "(count / lasted) * (e2e_sum / count)", "count / lasted", TERM),
    Mutant(PAGE, "load().client_last.max()", "load().client_first.max()", TERM),
    Mutant(EVENING, "BEGIN, END, MINUTES = 10, 30, 55", "BEGIN, END, MINUTES = 10, 29, 55", CONSTANT),
    Mutant(HERE, "for prompt in PROMPTS], rate, SEED)", "for prompt in PROMPTS], 2 * rate, SEED)", TERM, LIVE),
    Mutant(BESIDE, "    @in_turn  # two runs at once would measure each other\n", "", TERM, LIVE),
    Mutant(ENGINE, "max_num_seqs, kind)[-1]", "max_num_seqs, kind)[-2]", BOUNDARY),
    Mutant(ENGINE, ">= run.policy.max_num_seqs).mean()", "> run.policy.max_num_seqs).mean()", COMPARISON),
    Mutant(ENGINE, "np.percentile(run.ttft, 99), run.e2e.mean()]", "np.percentile(run.ttft, 95), run.e2e.mean()]",
           PERCENTILE),
    Mutant(ENGINE, "np.array([f.ttft_percentile_s(0.99) for", "np.array([f.ttft_percentile_s(0.9) for", PERCENTILE),
    Mutant(ENGINE, "if held > room() else", "if held < room() else", COMPARISON),
    Mutant(ENGINE, "start, start + length)", "start, length)", TERM),
    Mutant(TEXT, "25.9     29.7    116.8", "25.9     29.7    118.6", NUMBER),
    Mutant(DEEPER, "that is {{keeps:.1f}} of", "that is 12.7 of", NUMBER),
)  # fmt: skip
