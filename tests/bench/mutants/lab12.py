"""Lab 12: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, TERM, UNIT, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab12",)
ASKS, FACTS = "course/lessons/lab12/asks.yaml", "course/lessons/lab12/facts.py"
ONE, WHO, TASKS = (f"course/lessons/lab12/{name}.py" for name in ("one_step", "who_waits", "tasks"))
CAPTURE, DECISION, TICKET = (f"course/lessons/lab12/{name}.py" for name in ("capture", "decision", "ticket"))
HAND, SKETCH, DEVICE = (f"course/lessons/lab12/{name}.py" for name in ("by_hand", "sketch", "on_device"))

MUTANTS = (
    Mutant(ASKS, "    right: c\n    why: \"It takes", "    right: a\n    why: \"It takes", KEY),
    Mutant(ASKS, "      right: b\n  setting:", "      right: a\n  setting:", KEY),
    Mutant(ONE, "np.median(np.diff(np.array(self.kernels).sum(1)))", "np.median(np.array(self.kernels)[:, 1])", TERM),
    Mutant(ONE, "min(FORMS, key", "max(FORMS, key", COMPARISON),
    Mutant(WHO, "plan + found.host) if ahead", "plan) if ahead", TERM),
    Mutant(WHO, "else (found.wall, plan)", "else (found.queued, plan)", TERM),
    Mutant(WHO, "plan_ms / 1e3", "plan_ms / 1e6", UNIT),
    Mutant(WHO, "(self.plan + self.start) / self.step", "self.plan / self.step", TERM),
    Mutant(TASKS, "return 1e3 * (result.step - result.card)", "return 1e3 * result.card", TERM, EXPLORERS),
    Mutant(TASKS, "BUSY, ALL, HALF = 0.9", "BUSY, ALL, HALF = 0.999", CONSTANT, EXPLORERS),
    Mutant(TASKS, "return result.every - result.kernel", "return result.kernel", TERM, EXPLORERS),
    Mutant(CAPTURE, "launch / gain - between", "launch / gain + between", TERM),
    Mutant(CAPTURE, "lambda batch: bisect_left(sorted(sizes), batch))\n\n\ndef _counted",
           "lambda batch: bisect_left(sorted(sizes), batch + 1))\n\n\ndef _counted", BOUNDARY),
    Mutant(DECISION, "GOAL_MS, GOAL_TWIN_MS = 4.1", "GOAL_MS, GOAL_TWIN_MS = 3.1", CONSTANT),
    Mutant(DECISION, "DURING if flag == ASYNC else AFTER", "AFTER if flag == ASYNC else DURING", COMPARISON),
    Mutant(TICKET, "PLAN_MS, BATCH = 0.02", "PLAN_MS, BATCH = 0.2", CONSTANT),
    Mutant(HAND, "max((number + 1) * LAUNCH, ended)", "max(number * LAUNCH, ended)", BOUNDARY),
    Mutant(SKETCH, "ALONE_US = 18", "ALONE_US = 28", CONSTANT),
    Mutant(DEVICE, "range(repeats + 3)", "range(repeats + 2)", TERM),
    Mutant(FACTS, "        \"share\": 100 * (1 - card / wall),", "        \"share\": 100 * card / wall,", TERM),
)  # fmt: skip
