"""Lab 05: what it asks and says, what its explorers compute, and what it launches."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, UNIT, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab05",)
ASKS, FACTS = "course/lessons/lab05/asks.yaml", "course/lessons/lab05/facts.py"
SERVED, TOY = "course/lessons/lab05/served.py", "course/lessons/lab05/toy.py"
CARD, TASKS = "course/lessons/lab05/on_a_card.py", "course/lessons/lab05/tasks.py"
RULE, ADAPTIVE = "course/lessons/lab05/rule.py", "course/lessons/lab05/adaptive.py"
VISION, NIGHT = "course/lessons/lab05/vision.py", "course/lessons/lab05/night.py"
KNOBS, SKETCH = "course/lessons/lab05/knobs.py", "course/lessons/lab05/sketch.py"
MACHINE = "course/lessons/lab05/machine.py"
TEXT = "solutions/05_admission_window.py"

MUTANTS = (
    Mutant(ASKS, "    right: b\n    why: Both deliver", "    right: a\n    why: Both deliver", KEY),
    Mutant(ASKS, "    right: c\n  bulk:", "    right: a\n  bulk:", KEY),
    Mutant(RULE, "window * (1 + more / 2) / (1 + more)", "window * (1 + more) / (1 + more)", TERM),
    Mutant(RULE, "more = rate * window / 1e3", "more = rate * window", UNIT),
    Mutant(RULE, "slo - (t0 + each * batch) - margin", "slo - t0 - margin", TERM),
    Mutant(SERVED, "/ self.computing", "/ self.run.makespan", TERM),
    Mutant(SERVED, "np.percentile(self.run.ttft, 95)", "np.percentile(self.run.ttft, 99)", PERCENTILE),
    Mutant(SERVED, 'side="left") - 1', 'side="left")', BOUNDARY),
    Mutant(SERVED, "(end[before] < self.run.arrival)", "(end[before] > self.run.arrival)", COMPARISON),
    Mutant(TOY, "POINTS[0][1] - C * POINTS[0][0]", "POINTS[0][1]", TERM),
    Mutant(TOY, "window = window_ms / 1e3", "window = window_ms / 1e6", UNIT),
    Mutant(CARD, "return self.waits.p95 - self.never.p95", "return self.waits.ttft - self.never.ttft", PERCENTILE),
    Mutant(CARD, "return self.never.busy - self.waits.busy", "return self.waits.busy - self.never.busy", TERM),
    Mutant(TASKS, "found.window / 4 + found.step_of_a_token", "found.window / 4 + found.step", TERM, EXPLORERS),
    Mutant(TASKS, "PROMISE, FINE, ENDLESS = 0.005", "PROMISE, FINE, ENDLESS = 0.5", CONSTANT, EXPLORERS),
    Mutant(ADAPTIVE, "found += weight * (gap - found)", "found += weight * gap", TERM),
    Mutant(ADAPTIVE, "1e3 * (request.arrival - self._latest)", "(request.arrival - self._latest)", UNIT),
    Mutant(ADAPTIVE, "self.window = milliseconds / 1e3", "self.window = milliseconds", UNIT),
    Mutant(VISION, "served(delay, rate).p95 <= goal", "served(delay, rate).ttft <= goal", PERCENTILE),
    Mutant(VISION, "policies.Dynamic(LARGEST, delay_us / 1e6)", "policies.Dynamic(LARGEST, delay_us / 1e3)", UNIT),
    Mutant(VISION, "EACH_MS * (1 + rate * delay_us / 1e6)", "EACH_MS * (rate * delay_us / 1e6)", BOUNDARY),
    Mutant(NIGHT, "run.steps.seconds[begun == h].sum() / PART", "run.steps.seconds[begun == h].mean()", TERM),
    Mutant(NIGHT, "np.percentile(run.ttft[hour == h], 95)", "np.percentile(run.ttft[hour == h], 50)", PERCENTILE),
    Mutant(MACHINE, "last * self.steps[first] / self.steps[last]", "self.steps[first] / self.steps[last]", TERM),
    Mutant(MACHINE, "1 - self.runs[SHORT_MS].p95 / self", "self.runs[SHORT_MS].p95 / self", TERM),
    Mutant(MACHINE, "self.took < UNDER", "self.took > UNDER", COMPARISON),
    Mutant(KNOBS, "np.interp(decodes + tokens,", "np.interp(decodes,", TERM),
    Mutant(KNOBS, "found.gap if batch < FULL else", "found.gap if batch > FULL else", COMPARISON),
    Mutant(SKETCH, "AT_NONE = 55.5", "AT_NONE = 65.5", CONSTANT),
    Mutant(FACTS, '"quarter_ms": toy.WINDOW_MS / 4', '"quarter_ms": toy.WINDOW_MS / 2', TERM),
    Mutant(TEXT, "{{hand_steps}} steps", "5 steps", NUMBER),
)  # fmt: skip
