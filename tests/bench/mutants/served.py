"""What the HTTP server says of its requests in /metrics: each value off by 1%, or that of another one."""

from tests.bench.mutants import NUMBER, ORDER, TERM, Mutant

TESTS = ("tests/lm/http/test_metrics.py", "tests/lm/http/test_answers.py")
METRICS, SERVICE = "course/lm/http/metrics.py", "course/lm/http/service.py"

MUTANTS = (
    Mutant(METRICS, "self._ttft.observe(now - ticket.created)", "self._ttft.observe(now - ticket.started)", ORDER),
    Mutant(
        METRICS, "self._ttft.observe(now - ticket.created)", "self._ttft.observe(1.01 * (now - ticket.created))", NUMBER
    ),
    Mutant(METRICS, "self._itl.observe(now - ticket.last)", "self._itl.observe(1.01 * (now - ticket.last))", NUMBER),
    Mutant(
        METRICS,
        "self._queue.observe(ticket.started - ticket.created)",
        "self._queue.observe(1.01 * (ticket.started - ticket.created))",
        NUMBER,
    ),
    Mutant(
        METRICS,
        "self._queue.observe(ticket.started - ticket.created)",
        "self._queue.observe(ticket.first - ticket.created)",
        ORDER,
    ),
    Mutant(
        METRICS,
        "(ticket.last - ticket.first) / (ticket.emitted - 1)",
        "(ticket.last - ticket.first) / ticket.emitted",
        TERM,
    ),
    Mutant(
        METRICS,
        "self._e2e.observe(ticket.last - ticket.created)",
        "self._e2e.observe(ticket.last - ticket.started)",
        ORDER,
    ),
    Mutant(METRICS, "self._usage.set(usage)", "self._usage.set(1.01 * usage)", NUMBER),
    Mutant(METRICS, "self._waiting.set(waiting)", "self._waiting.set(running)", ORDER),
    Mutant(METRICS, "self._prompt.inc(len(ticket.tokens))", "self._prompt.inc(len(ticket.tokens) + 1)", NUMBER),
    Mutant(SERVICE, "usage=1 - free", "usage=free", TERM),
    Mutant(SERVICE, "waiting=len(self._here) - sum(", "waiting=len(self._here) + 0 * sum(", TERM),
    Mutant(
        SERVICE,
        "len(work.decodes) + sum(tokens for _, tokens in work.chunks)",
        "len(work.decodes) + len(work.chunks)",
        TERM,
    ),
)
