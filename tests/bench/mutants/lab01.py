"""Lab 01: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, PERCENTILE, TERM, UNIT, Mutant

EXPLORERS = ("tests/lessons/test_every_explorer.py -k lab01",)
ASKS, FACTS = "course/lessons/lab01/asks.yaml", "course/lessons/lab01/facts.py"
CHAT, TASKS = "course/lessons/lab01/chat.py", "course/lessons/lab01/tasks.py"
PAGE, READER = "course/lessons/lab01/result_file.py", "course/lessons/lab01/reader.py"
REPLICAS, HERE = "course/lessons/lab01/replicas.py", "course/lessons/lab01/part_by_part.py"
FIGURES, FURTHER = "course/lessons/lab01/figures.py", "course/lessons/lab01/further.py"
TEXT = "solutions/01_the_first_token.py"

MUTANTS = (
    Mutant("course/lessons/lab01/sketch.py", "CROWD, CROWDED = 100, 54.5", "CROWD, CROWDED = 100, 50.5", CONSTANT),
    Mutant(ASKS, "    right: a\n    why: \"All", "    right: c\n    why: \"All", KEY),
    Mutant(FACTS, "return ttft + (tokens - 1) * tpot", "return ttft + tokens * tpot", BOUNDARY),
    Mutant(FACTS, "return ttft - outside - window - prefill", "return ttft - outside - window", TERM),
    Mutant(CHAT, "end = arrival[first] + window", "end = arrival[first] + window / 2", TERM),
    Mutant(CHAT, "released[first:last], first = end, last", "released[first:last], first = end, first + 1", BOUNDARY),
    Mutant(CHAT, "window * (1 + more / 2) / (1 + more)", "window * (1 + more / 2)", TERM),
    Mutant(CHAT, '"window": self.run.arrival - self.sent', '"window": self.run.admitted - self.sent', TERM),
    Mutant(CHAT, "self.outside + (self.run.first_computed - self.sent)", "self.run.first_computed - self.sent", TERM),
    Mutant(CHAT, "(percent / 100 + side * AROUND)", "(percent / 110 + side * AROUND)", PERCENTILE),
    Mutant(CHAT, "np.median(self.run.workload.output_tokens / self.e2e)",
           "np.median(self.run.workload.output_tokens / self.ttft)", TERM),
    Mutant(READER, "(len(tokens) - 1), e2e, max(gaps)", "len(tokens), e2e, max(gaps)", BOUNDARY),
    Mutant(PAGE, '["mean_ttft_ms"]) / 1e3', '["mean_ttft_ms"])', UNIT),
    Mutant(PAGE, "if users(delay, **where) <= goal", "if users(delay, **where) >= goal", COMPARISON),
    Mutant(PAGE, "chat.mean_window_wait(delay_us / 1e6, rate)", "chat.mean_window_wait(delay_us / 1e3, rate)", UNIT),
    Mutant(PAGE, "GOAL = 0.135", "GOAL = 0.155", CONSTANT),
    Mutant(REPLICAS, "np.mean([np.percentile(run.ttft, 99)", "np.mean([np.percentile(run.ttft, 95)", PERCENTILE),
    Mutant(REPLICAS, "(self.ttft > PROMISE).mean()", "(self.ttft < PROMISE).mean()", COMPARISON),
    Mutant(TASKS, "FAST, TIMES = 0.100, 2.0", "FAST, TIMES = 0.300, 2.0", CONSTANT, EXPLORERS),
    Mutant(HERE, "return found | {\"text\": clock() - began}", "return {\"text\": clock() - began}", TERM),
    Mutant(HERE, "for done in range(1, answer))", "for done in range(answer))", BOUNDARY),
    Mutant(FIGURES, "lengths = [1e3 * value for", "lengths = [value for", UNIT),
    Mutant(FURTHER, "run.ttft - run.queue_wait]", "run.ttft]", TERM),
    Mutant(TEXT, "{{fourth_first:g}} s, its decode", "4 s, its decode", NUMBER),
)  # fmt: skip
