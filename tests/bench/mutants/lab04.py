"""Lab 04: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/test_facts.py", "tests/lessons/lab04", "tests/lessons/test_every_lab.py")
ASKS, FACTS = "course/lessons/lab04/asks.yaml", "course/lessons/lab04/facts.py"
REFILL, TASKS = "course/lessons/lab04/refill.py", "course/lessons/lab04/tasks.py"
THREE, SIDE = "course/lessons/lab04/three_batchers.py", "course/lessons/lab04/side_by_side.py"
OTHER, NIGHT = "course/lessons/lab04/other_loads.py", "course/lessons/lab04/night.py"
SPEAK, BESIDE = "course/lessons/lab04/live_words.py", "course/explore/words_beside.py"
LIVE = ("tests/lessons/test_live_words.py",)
GAME, SKETCH = "course/lessons/lab04/game.py", "course/lessons/lab04/sketch.py"
TEXT = "solutions/04_static_dynamic_continuous.py"

MUTANTS = (
    Mutant(ASKS, "    right: b\n    why: A batch runs", "    right: c\n    why: A batch runs", KEY),
    Mutant(GAME, "SIX = ((0, 2), (0, 7)", "SIX = ((0, 2), (0, 6)", CONSTANT),
    Mutant(GAME, "    best=14 / 3,", "    best=29 / 6,", CONSTANT),
    Mutant(GAME, "PROMPTS = (3, 4, 5, 3, 4, 5)", "PROMPTS = (1, 1, 1, 1, 1, 1)", CONSTANT),
    Mutant(SKETCH, "0.8 * max(y)", "1.2 * max(y)", COMPARISON, ("tests/lessons/test_misconceptions.py",)),
    Mutant(SKETCH, "flat(y) > 1.5", "flat(y) > 1.1", BOUNDARY, ("tests/lessons/test_misconceptions.py",)),
    Mutant(ASKS, "{{gain_few:.1f}} with", "{{drawn:.1f}} with", NUMBER),
    Mutant(ASKS, "{{gain:.1f}} with 32", "{{gain:.1f}} with 16", NUMBER),
    Mutant(ASKS, '"{{gain:.0f}} times the', '"8 times the', NUMBER),
    Mutant(ASKS, "    solution: waste\n", "    solution: waste_twin\n", TERM),
    Mutant(FACTS, "len(answers) * max(answers) - sum(answers)", "len(answers) * max(answers)", TERM),
    Mutant(FACTS, "max(answers) * len(answers) / sum(answers)", "max(answers) / sum(answers)", TERM),
    Mutant(FACTS, ">= arrive * CHAT.output_tokens.mean()", ">= arrive * CHAT.prompt_tokens.mean()", TERM),
    Mutant(FACTS, "ARRIVE, ARRIVE_TWIN = 20, 28", "ARRIVE, ARRIVE_TWIN = 25, 30", CONSTANT),
    Mutant(FACTS, '"night_s": dark.median[QUIET].mean()', '"night_s": dark.median[0]', TERM),
    Mutant(FACTS, '"fill_more": SLOTS - 1', '"fill_more": SLOTS', BOUNDARY),
    Mutant(ASKS, "flag: --max-num-seqs", "flag: --max-num-batched-tokens", CONSTANT),
    Mutant(THREE, "CLAIM = (1.2, 1.3)", "CLAIM = (1.4, 1.5)", CONSTANT, ("tests/lessons/test_every_explorer.py",)),
    Mutant(
        TASKS,
        'int(runs["static"].steps.wasted.sum()) == 0',
        'int(runs["static"].steps.wasted.sum()) >= 0',
        COMPARISON,
        ("tests/lessons/test_every_explorer.py",),
    ),
    Mutant(REFILL, "    free = slots - len(running)\n", "    free = slots - len(running) - 1\n", BOUNDARY),
    Mutant(REFILL, "known = {request.index + 1: request", "known = {request.index: request", BOUNDARY),
    Mutant(
        THREE,
        "return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=1), seed)",
        "return Workload.poisson(rate, num_requests, 512, lengths.lognormal(256, cv=0.9), seed)",
        CONSTANT,
    ),
    Mutant(THREE, "BY_HAND = (6, 1, 2, 3)", "BY_HAND = (6, 2, 1, 4)", CONSTANT),
    Mutant(OTHER, "MOST_IMAGES = 16", "MOST_IMAGES = 32", CONSTANT),
    Mutant(OTHER, "image_run(rate, delay_ms / 1e3)", "image_run(rate, delay_ms)", UNIT),
    Mutant(OTHER, "E2E_SLO = 10.0", "E2E_SLO = 20.0", CONSTANT),
    Mutant(
        OTHER, 'delays = {"static": 0.0, "dynamic": max_queue_delay', 'delays = {"static": 0.0, "dynamic": 0.0', TERM
    ),
    Mutant(OTHER, 'f"{len(run) / len(run.steps):.1f} images"', 'f"{len(run.steps) / len(run):.1f} images"', ORDER),
    Mutant(NIGHT, "HOUR = 3_600", "HOUR = 1_800", CONSTANT),
    Mutant(BESIDE, "both[0] / both[1]", "both[1] / both[0]", ORDER, LIVE),
    Mutant(BESIDE, "if one.run.words == first.run.words", "if one.run.words != first.run.words", COMPARISON, LIVE),
    Mutant(BESIDE, "sum(words != prompt.answer", "sum(words == prompt.answer", COMPARISON, LIVE),
    Mutant(BESIDE, 'f"{scale * value:,}"', 'f"{value:,}"', TERM, LIVE),
    Mutant(
        BESIDE, "as_workload(prompts, play.questions.arrival)", "as_workload(prompts, [0.0] * len(prompts))", TERM, LIVE
    ),
    Mutant(SPEAK, "poisson(ASKED, rate, SEED)", "poisson(ASKED, 2, SEED)", TERM, LIVE),
    Mutant(SPEAK, "policy_of(policy, max_num_seqs))", "policy_of(policy, SLOTS))", TERM, LIVE),
    Mutant(SPEAK, "RATE, SLOTS, SEED = 128, 4, 1", "RATE, SLOTS, SEED = 16, 4, 1", CONSTANT, LIVE),
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
    Mutant(SIDE, "PERCENTILES = (50, 95, 99)", "PERCENTILES = (50, 90, 99)", PERCENTILE),
    Mutant(SIDE, "due = min(due, arrival[last - 1])", "due = max(due, arrival[last - 1])", COMPARISON),
    Mutant(TEXT, "{{static_rate:.0f}} requests/s", "5 requests/s", NUMBER),
    Mutant(TEXT, "| 32 |", "| 64 |", NUMBER),
)
