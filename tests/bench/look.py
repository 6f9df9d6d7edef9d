"""How fast `course look` reads a log: CPU seconds for 50 MB, and beside splitting it into lines; medians of three runs.

    PYTHONPATH=. .venv/bin/python tests/bench/look.py

A server's log is mostly requests ("POST /v1/chat/completions"), of which the reader wants nothing; beside it stand one
of periodic lines alone, of which it wants everything, and one of a server that starts again and again.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from course.look import look

DATA = Path(__file__).parents[1] / "data" / "look" / "kinds"
MB, RUNS, WHOLE = 10, 3, 50
REQUEST = 'INFO:     10.0.{}.{}:4{:04} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
EACH = 2_000  # request lines in 4 files of kinds


def cpu(work: Callable[[str], object], text: str) -> float:
    """Median CPU seconds of a call."""
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        work(text)
        times.append(time.process_time() - begin)
    return median(times)


def main() -> None:
    """Print one line for each kind of log."""
    lines = "".join(
        (DATA / f"{name}.txt").read_text(encoding="utf-8") for name in ("slots", "start", "prefill", "filling")
    )
    requests = "".join(REQUEST.format(i % 250, i % 199, i % 9_000) for i in range(EACH))
    periodic = "".join(line for line in lines.splitlines(keepends=True) if "unning" in line)
    logs = {"a server's log": requests + lines, "periodic lines alone": periodic, "starts between them": lines}
    for name, text in logs.items():
        text *= int(MB * 1e6 / len(text))
        reading, splitting = cpu(look, text), cpu(str.splitlines, text)
        seconds = reading * WHOLE * 1e6 / len(text)
        print(f"{name}: {seconds:.1f} s for {WHOLE} MB, {reading / splitting:.0f} times as long as splitting it")


if __name__ == "__main__":
    main()
