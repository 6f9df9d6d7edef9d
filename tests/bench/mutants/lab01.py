"""Lab 01: what it asks and says, and what its explorers compute."""

from tests.bench.mutants import BOUNDARY, COMPARISON, CONSTANT, KEY, NUMBER, ORDER, PERCENTILE, TERM, UNIT, Mutant

TESTS = ("tests/lessons/lab01/test_texts.py", "tests/lessons/lab01", "tests/lessons/test_every_lab.py")
EXPLORERS = ("tests/lessons/test_every_explorer.py",)
ASKS, QUIZ = "course/lessons/lab01/exercises.py", "course/lessons/lab01/quiz.py"
CHAT, TASKS = "course/lessons/lab01/chat.py", "course/lessons/lab01/tasks.py"
PAGE, READER = "course/lessons/lab01/metrics_page.py", "course/lessons/lab01/reader.py"
REPLICAS, HERE = "course/lessons/lab01/replicas.py", "course/lessons/lab01/part_by_part.py"
FIGURES, FURTHER = "course/lessons/lab01/figures.py", "course/lessons/lab01/further.py"
TEXT, DEEPER = "solutions/01_the_first_token.py", "solutions/01_the_first_token_deeper.py"

MUTANTS = (
    Mutant(ASKS, '"c",\n            "92 ms', '"b",\n            "92 ms', KEY),
    Mutant(ASKS, '"a",\n            "All 100', '"c",\n            "All 100', KEY),
    Mutant(ASKS, "92 ms: five in six", "92 ms: four in six", NUMBER),
    Mutant(ASKS, "All 100 go well for 37%", "All 100 go well for 27%", NUMBER),
    Mutant(ASKS, "return ttft + (tokens - 1) * tpot", "return ttft + tokens * tpot", BOUNDARY),
    Mutant(ASKS, "return ttft - outside - window - prefill", "return ttft - outside - window", TERM),
    Mutant(QUIZ, "It is 0.3 s for A.", "It is 0.4 s for A.", NUMBER),
    Mutant(QUIZ, "the p99 is 35 ms", "the p99 is 65 ms", NUMBER),
    Mutant(QUIZ, "It rises from 6 to 8 ms", "It rises from 6 to 9 ms", NUMBER),
    Mutant(QUIZ, '("180 requests", "5 x', '("360 requests", "5 x', NUMBER),
    Mutant(CHAT, "end = arrival[first] + window", "end = arrival[first] + window / 2", TERM),
    Mutant(CHAT, "released[first:last], first = end, last", "released[first:last], first = end, first + 1", BOUNDARY),
    Mutant(CHAT, "window * (1 + more / 2) / (1 + more)", "window * (1 + more / 2)", TERM),
    Mutant(CHAT, '"window": self.run.arrival - self.sent', '"window": self.run.admitted - self.sent', TERM),
    Mutant(CHAT, "self.outside + (self.run.first_computed - self.sent)", "self.run.first_computed - self.sent", TERM),
    Mutant(CHAT, "round((percent / 100 + side * AROUND) * many)", "round((percent / 110 + side * AROUND) * many)",
           PERCENTILE),
    Mutant(CHAT, "np.median(self.run.workload.output_tokens / self.e2e)",
           "np.median(self.run.workload.output_tokens / self.ttft)", TERM),
    Mutant(CHAT, "Chat(rate, window_ms / 1e3, outside_ms / 1e3,", "Chat(rate, window_ms / 1e3, outside_ms,", UNIT),
    Mutant(CHAT, '"output": (4, 2, 3, 2)', '"output": (4, 3, 3, 2)', CONSTANT),
    Mutant(READER, "return ttft, (e2e - ttft) / (len(tokens) - 1), e2e, max(gaps)",
           "return ttft, (e2e - ttft) / len(tokens), e2e, max(gaps)", BOUNDARY),
    Mutant(PAGE, "SCRAPES = (60.0, 360.0)", "SCRAPES = (60.0, 330.0)", CONSTANT),
    Mutant(PAGE, "if users(delay, **where) <= goal", "if users(delay, **where) >= goal", COMPARISON),
    Mutant(PAGE, "chat.mean_window_wait(delay_us / 1e6, rate)", "chat.mean_window_wait(delay_us / 1e3, rate)", UNIT),
    Mutant(PAGE, "GOAL = 0.125", "GOAL = 0.145", CONSTANT),
    Mutant(REPLICAS, "RATES = (15.0, 6.0, 6.0)", "RATES = (14.0, 6.0, 6.0)", CONSTANT),
    Mutant(REPLICAS, "np.mean([np.percentile(run.ttft, 99)", "np.mean([np.percentile(run.ttft, 95)", PERCENTILE),
    Mutant(REPLICAS, "(self.ttft > PROMISE).mean()", "(self.ttft < PROMISE).mean()", COMPARISON),
    Mutant(TASKS, "FAST, TIMES = 0.100, 2.0", "FAST, TIMES = 0.300, 2.0", CONSTANT, EXPLORERS),
    Mutant(TASKS, "found.percentile(99) / found.percentile(50)", "found.percentile(50) / found.percentile(99)", ORDER,
           EXPLORERS),
    Mutant(TASKS, "result.longest_line >= LINE", "result.longest_line >= 0", COMPARISON, EXPLORERS),
    Mutant(HERE, "return found | {\"text\": clock() - began}", "return {\"text\": clock() - began}", TERM),
    Mutant(HERE, "for done in range(1, answer))", "for done in range(answer))", BOUNDARY),
    Mutant(FIGURES, "lengths = [1e3 * value for", "lengths = [value for", UNIT),
    Mutant(FURTHER, "late = ttft > np.percentile(ttft, 99)", "late = ttft > np.percentile(ttft, 95)", PERCENTILE),
    Mutant(TEXT, "gave 216 to 700 ms", "gave 116 to 700 ms", NUMBER),
    Mutant(TEXT, "| s | 4.5 | 1.77 | 1.77 |", "| s | 4.5 | 1.87 | 1.77 |", NUMBER),
    Mutant(TEXT, "Its prefill ends at 5 s", "Its prefill ends at 4 s", NUMBER),
    Mutant(DEEPER, "rests on 20 of them", "rests on 10 of them", NUMBER),
)  # fmt: skip
