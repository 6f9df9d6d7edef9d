"""Lab 04: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab04/test_texts.py", "tests/lessons/lab04", "tests/lessons/test_every_lab.py")
ASKS, REFILL = "course/lessons/lab04/exercises.py", "course/lessons/lab04/refill.py"
THREE, SIDE = "course/lessons/lab04/three_batchers.py", "course/lessons/lab04/side_by_side.py"
TEXT = "solutions/04_static_dynamic_continuous.py"

MUTANTS = (
    Mutant(ASKS, 'right="b",\n            why="A batch of 32', 'right="c",\n            why="A batch of 32', KEY),
    Mutant(ASKS, 'right="a",\n            why="Both get faster', 'right="c",\n            why="Both get faster', KEY),
    Mutant(ASKS, 'right="b",\n            why="Below saturation', 'right="c",\n            why="Below saturation', KEY),
    Mutant(
        ASKS,
        'fills them differs."),\n            ),\n            right="a"',
        'fills them differs."),\n            ),\n            right="b"',
        KEY,
    ),
    Mutant(
        ASKS,
        'time in the system."),\n            ),\n            right="c"',
        'time in the system."),\n            ),\n            right="a"',
        KEY,
    ),
    Mutant(
        ASKS,
        'a minute and more."),\n            ),\n            right="b"',
        'a minute and more."),\n            ),\n            right="c"',
        KEY,
    ),
    Mutant(
        ASKS,
        'with it the batch."),\n            ),\n            right="a"',
        'with it the batch."),\n            ),\n            right="c"',
        KEY,
    ),
    Mutant(
        ASKS,
        'latency rises."),\n            ),\n            right="b"',
        'latency rises."),\n            ),\n            right="a"',
        KEY,
    ),
    Mutant(ASKS, "2.6 times behind at 8 slots", "3.6 times behind at 8 slots", NUMBER),
    Mutant(ASKS, "4.0 at 32", "4.4 at 32", NUMBER),
    Mutant(ASKS, "that one is over four times the mean", "that one is over six times the mean", NUMBER),
    Mutant(ASKS, "about four times as many", "about eight times as many", NUMBER),
    Mutant(ASKS, "fourfold at a coefficient of", "threefold at a coefficient of", NUMBER),
    Mutant(ASKS, "a step takes 1 s and 0.2 s for every", "a step takes 1 s and 0.5 s for every", NUMBER),
    Mutant(ASKS, "The run has 4 slots", "The run has 6 slots", NUMBER),
    Mutant(ASKS, "solution=100,", "solution=80,", CONSTANT),
    Mutant(ASKS, "solution=sum(1 / i for i in range(1, 33))", "solution=sum(1 / i for i in range(1, 32))", BOUNDARY),
    Mutant(ASKS, "batches.max(axis=1).mean() / batches.mean()", "batches.max(axis=0).mean() / batches.mean()", ORDER),
    Mutant(ASKS, "lengths[: len(lengths) // slots * slots]", "lengths[-(len(lengths) // slots * slots) :]", ORDER),
    Mutant(REFILL, "prefill=0.2)", "prefill=0.3)", CONSTANT),
    Mutant(
        REFILL,
        "    for request in state.waiting[:free]:\n",
        "    for request in state.waiting[: free - 1]:\n",
        BOUNDARY,
    ),
    Mutant(
        THREE,
        "return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=1), seed)",
        "return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=0.9), seed)",
        CONSTANT,
    ),
    Mutant(THREE, "MOST_IMAGES = 16", "MOST_IMAGES = 32", CONSTANT),
    Mutant(THREE, "image_run(rate, delay_ms / 1e3)", "image_run(rate, delay_ms)", UNIT),
    Mutant(THREE, "E2E_SLO = 10.0", "E2E_SLO = 20.0", CONSTANT),
    Mutant(
        THREE, 'delays = {"static": 0.0, "dynamic": max_queue_delay', 'delays = {"static": 0.0, "dynamic": 0.0', TERM
    ),
    Mutant(THREE, 'f"{len(run) / len(run.steps):.1f} images"', 'f"{len(run.steps) / len(run):.1f} images"', ORDER),
    Mutant(SIDE, "steps.end <= end].sum()) / end", "steps.end <= end].sum()) / run.makespan", TERM),
    Mutant(
        SIDE,
        "useful / (useful + int(run.steps.wasted.sum()))",
        "useful / (useful + int(run.steps.running.sum()))",
        TERM,
    ),
    Mutant(SIDE, "return self.continuous / self.static", "return self.static / self.continuous", ORDER),
    Mutant(SIDE, "(run.e2e <= e2e_slo).sum()", "(run.ttft <= e2e_slo).sum()", TERM),
    Mutant(SIDE, "padding=1 - slot_utilisation(run)", "padding=slot_utilisation(run)", TERM),
    Mutant(SIDE, "PERCENTILES = (50, 95, 99)", "PERCENTILES = (50, 95, 98)", PERCENTILE),
    Mutant(SIDE, "due = min(due, arrival[last - 1])", "due = max(due, arrival[last - 1])", COMPARISON),
    Mutant(TEXT, "would stand 18 requests/s: three times this", "would stand 18 requests/s: four times this", NUMBER),
    Mutant(TEXT, "The static numbers are 8% apart", "The static numbers are 18% apart", NUMBER),
    Mutant(TEXT, "it could serve 2.7 times as many", "it could serve 1.7 times as many", NUMBER),
    Mutant(
        TEXT,
        "prompts of 1,161 tokens\n# on average, answers of 258",
        "prompts of 1,161 tokens\n# on average, answers of 285",
        NUMBER,
    ),
    Mutant(TEXT, "from 3 to 7,651\n", "from 3 to 6,751\n", NUMBER),
    Mutant(TEXT, "static is at 97% of its capacity", "static is at 79% of its capacity", NUMBER),
)
