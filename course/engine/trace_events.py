"""A run as a timeline in the Trace Event Format, which ui.perfetto.dev and chrome://tracing read.

The format: "Trace Event Format", a document of the Chromium project. Times are microseconds there. Perfetto takes
the tracks 0 of all processes for one, and draws a track with the number of its process above the others. So tracks
count from 1, and processes from above all tracks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from course.engine.run import Run

Event = dict[str, Any]
COUNTED = {"running": ("running", "requests"), "queue": ("waiting", "requests"), "blocks": ("KV cache", "blocks")}
"""Columns of `Run.steps` that become counters, what these are called, and their units: viewers show both."""


def trace_events(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Runs by name as one document, to be written as JSON.

    Each run is two processes. The first has a track of steps, with what each is made of, and counters. The second has a
    track for each request: waiting, prompt (from the slot to the first token), answer, and waiting again where it was
    preempted. What is computed again is part of prompt or answer. Whoever went without an answer has its outcome at the
    end.
    """
    events, requests = list[Event](), max((len(run) for run in runs.values()), default=0)
    for name, run in runs.items():
        engine, requests = requests + 1, requests + 2
        events += _names(engine, f"{name}: engine", {1: "steps"})
        events += _steps(run, engine)
        events += _names(requests, f"{name}: requests", {row + 1: f"request {row}" for row in range(len(run))})
        events += _requests(run, requests)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _names(process: int, name: str, tracks: Mapping[int, str]) -> list[Event]:
    meta = {"ph": "M", "pid": process, "ts": 0}
    return [
        meta | {"name": "process_name", "tid": 0, "args": {"name": name}},
        *(meta | {"name": "thread_name", "tid": track, "args": {"name": said}} for track, said in tracks.items()),
    ]


def _micros(seconds: float) -> float:
    return round(1e6 * seconds, 3)


def _span(name: str, process: int, track: int, begin: float, end: float, **args: Any) -> Event:
    at = _micros(begin)
    where = {"ph": "X", "pid": process, "tid": track, "ts": at, "dur": round(_micros(end) - at, 3)}
    return {"name": name, **where, "args": args}


def _steps(run: Run, process: int) -> list[Event]:
    steps, events = run.steps, list[Event]()
    columns = {name: getattr(steps, name).tolist() for name in ("decodes", "prefill_tokens", "preemptions", *COUNTED)}
    for step, (begin, end) in enumerate(zip(steps.start.tolist(), steps.end.tolist(), strict=True)):
        made_of = {name: values[step] for name, values in columns.items()}
        kind = "mixed" if made_of["decodes"] and made_of["prefill_tokens"] else "decodes"
        events.append(_span(kind if made_of["decodes"] else "prompts", process, 1, begin, end, step=step, **made_of))
        for name in COUNTED:
            if not step or columns[name][step] != columns[name][step - 1]:
                counter = {"ph": "C", "pid": process, "tid": 1, "ts": _micros(begin)}
                said, unit = COUNTED[name]
                events.append({"name": said, **counter, "args": {unit: made_of[name]}})
    return events


def _requests(run: Run, process: int) -> list[Event]:
    log, events = run.log, list[Event]()
    stays = defaultdict(list)
    for row, first, last in log.stays.tolist():
        stays[row].append((float(run.steps.start[first]), float(log.clock[last])))
    outcomes, tokens = run.outcome.tolist(), run.workload.output_tokens.tolist()
    for row in range(len(run)):
        waits_since, response = float(run.arrival[row]), float(run.response[row])
        first_token = float(run.first_computed[row])
        for begin, end in sorted(stays[row]):
            events.append(_span("waiting", process, row + 1, waits_since, begin))
            middle = min(max(begin, first_token), end) if first_token == first_token else end
            if middle > begin:
                events.append(
                    _span("prompt", process, row + 1, begin, middle, tokens=int(run.workload.prompt_tokens[row]))
                )
            if end > middle:
                events.append(_span("answer", process, row + 1, middle, end, tokens=tokens[row]))
            waits_since = end
        if not run.answered[row]:
            if response > waits_since:
                events.append(_span("waiting", process, row + 1, waits_since, response))
            events.append(
                {"name": outcomes[row], "ph": "i", "s": "t", "pid": process, "tid": row + 1, "ts": _micros(response)}
            )
    return events
