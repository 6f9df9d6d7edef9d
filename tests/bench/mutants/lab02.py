"""Lab 02: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, NUMBER, ORDER, TERM, UNIT, Mutant

EXPLORERS, CURVES = ("tests/lessons/test_every_explorer.py -k lab02",), ("tests/steptime/test_curve.py",)
ASKS, FACTS, STEP, CURVE, TASKS, LOG, CARDS, HERE, FIGURES, FURTHER = (
    f"course/lessons/lab02/{name}" for name in
    ("asks.yaml", "facts.py", "one_step.py", "one_curve.py", "tasks.py", "engine_log.py", "two_cards.py",
     "on_device.py", "figures.py", "further.py")
)  # fmt: skip
FIT, LIVE, TIMING = "course/steptime/curve.py", "course/explore/live.py", "course/gpu/timing.py"
TEXT = "solutions/02_the_memory_wall.py"

MUTANTS = (
    Mutant(
        "course/lessons/lab02/sketch.py", "y[7] > 150 * ALONE", "y[7] > 50 * ALONE", CONSTANT,
        ("tests/lessons/test_misconceptions.py",),
    ),
    Mutant(ASKS, "{{knee_1k:.0f}} to {{knee_4k:.0f}}", "{{knee_4k:.0f}} to {{knee_1k:.0f}} or 26", NUMBER),
    Mutant(FACTS, "return (t0 / c) ** (1 / alpha)", "return (t0 / c) ** alpha", TERM),
    Mutant(STEP, "return max(self.reading_weights, self.computing) + self.reading_kv + self.attention",
           "return self.reading_weights + self.computing + self.reading_kv + self.attention", TERM),
    Mutant(STEP, "return WEIGHTS + KV_TOKEN * self.decodes * self.context",
           "return WEIGHTS + KV_TOKEN * self.context", TERM),
    Mutant(STEP, "pairs = prompt * (prompt + 1) // 2", "pairs = prompt * prompt", TERM),
    Mutant(CURVE, "return price / 3_600 * step / batch * 1e6", "return price / 60 * step / batch * 1e6", UNIT),
    Mutant(CURVE, "return self.batches <= self.most", "return self.batches < self.most", BOUNDARY),
    Mutant(LOG, "if step(running) <= promise", "if step(running) >= promise", COMPARISON),
    Mutant(LOG, "float(steps.decodes[here].sum() + first.sum())", "float(steps.decodes[here].sum())", TERM),
    Mutant(CARDS, "max(theory.weights / 2, _products", "max(theory.weights, _products", TERM),
    Mutant(TASKS, "return found.largest > 2 * found.recorded_largest", "return found.largest > found.recorded_largest",
           COMPARISON, EXPLORERS),
    Mutant(TASKS, "return found.computing > found.reading\n",
           "return found.computing < found.reading\n", ORDER, EXPLORERS),
    Mutant(HERE, "batch * self._kv(context) <= MOST_HERE", "self._kv(context) <= MOST_HERE", COMPARISON),
    Mutant(HERE, "(key in self._known and not now)", "key in self._known", COMPARISON),
    Mutant(HERE, "least=LEAST, before", "least=1, before", CONSTANT),
    Mutant(LIVE, "            self._pieces.close()\n", "", TERM, ("tests/explore/test_live.py",)),
    Mutant(TIMING, "sum(seconds for seconds, _ in found)", "max(seconds for seconds, _ in found)", TERM),
    Mutant(FIGURES, "[found.reached / 1e12]", "[found.flops / 1e12]", TERM),
    Mutant(FURTHER, "return WEIGHTS / (KV_TOKEN * CONTEXT)", "return WEIGHTS / KV_TOKEN", TERM),
    Mutant(FIT, "(student**2 * spread *", "(student * spread *", TERM, CURVES),
    Mutant(TEXT, "Running: 128 reqs, Waiting: 641 reqs", "Running: 128 reqs, Waiting: 614 reqs", NUMBER),
)  # fmt: skip
