"""Lab 00: what it asks and says, and what its figures show."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab00",)
ASKS, FACTS, TASKS, FIGURES, TOGETHER, TRAFFIC = (
    f"course/lessons/lab00/{name}"
    for name in ("asks.yaml", "facts.py", "tasks.py", "figures.py", "together.py", "traffic.py")
)
DRAWN = ("tests/lessons/test_misconceptions.py",)
TEXT = "solutions/00_how_a_model_answers.py"

MUTANTS = (
    Mutant("course/lessons/lab00/sketch.py", "given={1: 5.0}", "given={1: 8.0}", CONSTANT, DRAWN),
    Mutant("course/lessons/lab00/sketch.py", "y[4] > 40", "y[4] > 4", COMPARISON, DRAWN),
    Mutant(ASKS, '    right: b\n    why: "{{above', '    right: a\n    why: "{{above', KEY),
    Mutant(ASKS, "    solution: answer_s\n", "    solution: one_more_s\n", TERM),
    Mutant(ASKS, "      minute_people: ", "      second_people: ", TERM),
    Mutant(ASKS, "reading the weights: They", "looking at the weights: They", KEY),
    Mutant(FACTS, '"each_prefill_s": PROMPT * prefill', '"each_prefill_s": PROMPT * decode', TERM),
    Mutant(FACTS, '"check_p99_ms": 1e3 * calm.percentile(99)', '"check_p99_ms": 1e3 * calm.percentile(95)', PERCENTILE),
    Mutant(
        FIGURES, "together.on_h100(int(size)) / alone for", "1.01 * together.on_h100(int(size)) / alone for", NUMBER
    ),
    Mutant(FIGURES, "sizes[: result.sequences]", "sizes[: result.sequences + 1]", BOUNDARY),
    Mutant(FIGURES, 'middles, counts, "waiting"', 'middles, 2 * counts, "waiting"', CONSTANT),
    Mutant(FIGURES, 'result.arrivals, "modelled"', '1.01 * result.arrivals, "modelled"', NUMBER),
    Mutant(TOGETHER, "CONTEXT = 512", "CONTEXT = 1024", CONSTANT),
    Mutant(TRAFFIC, "SLOTS, BUDGET = 32, 2048", "SLOTS, BUDGET = 64, 2048", CONSTANT),
    Mutant(TASKS, "GAIN = 10", "GAIN = 20", CONSTANT, EXPLORERS),
    Mutant(TEXT, "{{prefill_ms:.1f}} ms and", "14.4 ms and", NUMBER),
)
