"""Lab 04: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, TERM, Mutant

EXPLORERS, LIVE = ("tests/lessons/test_every_explorer.py -k lab04",), ("tests/lessons/test_live_words.py",)
ASKS, FACTS, REFILL, TASKS, THREE, SIDE, OTHER, NIGHT, SPEAK, VLLM, FIGURES = (
    f"course/lessons/lab04/{name}" for name in
    ("asks.yaml", "facts.py", "refill.py", "tasks.py", "three_batchers.py", "side_by_side.py", "other_loads.py",
     "night.py", "live_words.py", "as_vllm.py", "figures.py")
)  # fmt: skip
GAME, SKETCH = "course/lessons/lab04/game.py", "course/lessons/lab04/sketch.py"
BESIDE, TEXT = "course/explore/words_beside.py", "solutions/04_static_dynamic_continuous.py"

MUTANTS = (
    Mutant(ASKS, "    right: b\n    why: A batch runs", "    right: c\n    why: A batch runs", KEY),
    Mutant(GAME, "SIX = ((0, 2), (0, 7)", "SIX = ((0, 2), (0, 6)", CONSTANT),
    Mutant(GAME, "    best=14 / 3,", "    best=29 / 6,", CONSTANT),
    Mutant(GAME, "PROMPTS = (3, 4, 5, 3, 4, 5)", "PROMPTS = (1, 1, 1, 1, 1, 1)", CONSTANT),
    Mutant(SKETCH, "0.8 * max(y)", "1.2 * max(y)", COMPARISON, ("tests/lessons/test_misconceptions.py",)),
    Mutant(SKETCH, "flat(y) > 1.5", "flat(y) > 1.1", BOUNDARY, ("tests/lessons/test_misconceptions.py",)),
    Mutant(FACTS, "len(answers) * max(answers) - sum(answers)", "len(answers) * max(answers)", TERM),
    Mutant(FACTS, ">= arrive * CHAT.output_tokens.mean()", ">= arrive * CHAT.prompt_tokens.mean()", TERM),
    Mutant(FACTS, "ARRIVE, ARRIVE_TWIN = 20, 28", "ARRIVE, ARRIVE_TWIN = 25, 30", CONSTANT),
    Mutant(THREE, "CLAIM = (1.2, 1.3)", "CLAIM = (1.4, 1.5)", CONSTANT, EXPLORERS),
    Mutant(TASKS, 'steps.wasted.sum()) == 0', 'steps.wasted.sum()) >= 0', COMPARISON, EXPLORERS),
    Mutant(REFILL, "    free = slots - len(running)\n", "    free = slots - len(running) - 1\n", BOUNDARY),
    Mutant(OTHER, '"dynamic": max_queue_delay', '"dynamic": 0.0', TERM),
    Mutant(BESIDE, "both[0] / both[1]", "both[1] / both[0]", ORDER, LIVE),
    Mutant(BESIDE, "if one.run.words == first.run.words", "if one.run.words != first.run.words", COMPARISON, LIVE),
    Mutant(SPEAK, "policy_of(policy, max_num_seqs))", "policy_of(policy, SLOTS))", TERM, LIVE),
    Mutant(VLLM, "if last[request] == k - 1", "if last[request] == k", BOUNDARY),
    Mutant(VLLM, "if request not in begun", "if request not in step", TERM),
    Mutant(VLLM, "found.arrival <= found.looks[k]", "found.due <= found.looks[k]", TERM),
    Mutant(VLLM, "found.output_tokens.sum() / len", "found.prompt_tokens.sum() / len", TERM),
    Mutant(SIDE, "steps.end <= end].sum()) / end", "steps.end <= end].sum()) / run.makespan", TERM),
    Mutant(SIDE, "return self.continuous / self.static", "return self.static / self.continuous", ORDER),
    Mutant(SIDE, "(run.e2e <= e2e_slo).sum()", "(run.ttft <= e2e_slo).sum()", TERM),
    Mutant(FIGURES, "max(highest, highest_bound)", "min(highest, highest_bound)", ORDER),
    Mutant(TEXT, "{{static_rate:.0f}} requests/s", "5 requests/s", NUMBER),
)  # fmt: skip
