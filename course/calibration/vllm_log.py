"""What vLLM printed while the recordings of `vllm_live` were made: its start, and a line a second.

    (EngineCore) INFO 11-29 15:00:36 [kv_cache_utils.py:2327] CPU KV cache size: 5,440 tokens, Maximum concurrency ...
    (APIServer) INFO 11-29 15:01:03 [loggers.py:335] Engine 000: Avg prompt throughput: 91.8 tokens/s, ...

On a GPU the same lines begin with "GPU KV cache".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from course.base.settings import quote
from course.calibration.vllm_live import FOLDER, VllmRun

LINE = re.compile(
    r"\((?P<who>\w+)\) (?P<level>\w+) (?P<clock>\d\d-\d\d \d\d:\d\d:\d\d) \[(?P<place>[^\]]+)\] (?P<text>.*)"
)
SECOND = re.compile(
    r"Engine \d+: Avg prompt throughput: (?P<prompt_rate>[\d.]+) tokens/s, "
    r"Avg generation throughput: (?P<output_rate>[\d.]+) tokens/s, "
    r"Running: (?P<running>\d+) reqs, Waiting: (?P<waiting>\d+) reqs, "
    r"(?:Deferred: \d+ reqs, )?(?:Preemptions: \d+, )?"
    r"(?:GPU|CPU) KV cache usage: (?P<kv_usage>[\d.]+)%"
    r"(?:, Prefix cache hit rate: (?P<hit_rate>[\d.]+)%)?"
)


@dataclass(frozen=True)
class Second:
    """One line a second. clock: month-day and time. Rates in tokens/s since the line before, shares from 0 to 1.

    hit_rate: of the prefix cache, over its latest requests; None where it is off.
    """

    clock: str
    prompt_rate: float
    output_rate: float
    running: int
    waiting: int
    kv_usage: float
    hit_rate: float | None
    text: str


def servers() -> list[str]:
    """The recorded servers."""
    return sorted(path.stem.removeprefix("serve_") for path in FOLDER.glob("serve_*.log"))


def start_up(server: str) -> list[str]:
    """What the server printed before its first line of a second, without process, time and place."""
    lines = []
    for found in _lines(server):
        if SECOND.match(found["text"]):
            break
        lines.append(found["text"])
    return lines


def seconds(server: str) -> list[Second]:
    """Its lines of a second, in order."""
    found = []
    for line in _lines(server):
        if match := SECOND.match(line["text"]):
            rate = match["hit_rate"]
            found.append(
                Second(
                    clock=line["clock"],
                    prompt_rate=float(match["prompt_rate"]),
                    output_rate=float(match["output_rate"]),
                    running=int(match["running"]),
                    waiting=int(match["waiting"]),
                    kv_usage=float(match["kv_usage"]) / 100,
                    hit_rate=None if rate is None else float(rate) / 100,
                    text=line["text"],
                )
            )
    return found


def seconds_of(run: VllmRun) -> list[Second]:
    """The lines of the seconds in which a recorded load ran."""
    began, whole = run.engine["began"], float(run.done[-1])
    return [one for one in seconds(run.engine["server"]) if 0 <= _between(began, one.clock) <= whole + 1]


def _between(first: str, later: str) -> int:
    """Seconds from one clock to another of the same day."""
    (a, b, c), (x, y, z) = ([int(part) for part in clock.split()[1].split(":")] for clock in (first, later))
    return 3600 * (x - a) + 60 * (y - b) + z - c


def _lines(server: str) -> list[re.Match[str]]:
    if server not in servers():
        raise ValueError(f"there is no log of a server {quote(server)}: choose {', '.join(servers())}")
    text = (FOLDER / f"serve_{server}.log").read_text(encoding="utf-8")
    return [found for line in text.splitlines() if (found := LINE.match(line))]
