"""Which limit holds a server, by what it printed; "cannot be told" is the answer where two limits fit.

A limit is named for a queue that stands over several lines, never for one line: a queue of one line is an arrival,
unless the pool is full and more wait than run.
"""

from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

import yaml

from course.look.reading import Paste, Row
from course.results import Result

MOST = 0.6  # of the lines with a queue
FULL = 0.95  # of the pool: watermarks and rounding leave the last few percent
SGLANG_FULL = 0.9  # it reserves for what running requests may still write
SLOW = 1.0  # token/s a request: what no reader waits for
SEVERAL = 3  # lines
ALIKE = 0.9  # of the largest: prompt tokens of a batch, or read in a second, that a budget holds
SMALLEST_BUDGET = 256  # tokens: nobody sets less
BURST = 0.45  # of all requests in flight on average: of those sent at once and served in order it is half


@cache
def table() -> dict[str, dict[str, Any]]:
    """Every limit by its id: symptom, cause, next, the flag of vLLM and SGLang, lab ("" if none teaches it), start."""
    return yaml.safe_load((files("course.data") / "limits.yaml").read_text(encoding="utf-8"))


class Named(NamedTuple):
    """A limit that was found, with the numbers that say so."""

    limit: str
    evidence: str


def row(named: Named, engine: str) -> dict[str, str]:
    """A limit with what the table says of it, for an engine."""
    one = table()[named.limit]
    flag = one["SGLang" if engine == "SGLang" else "vLLM"]
    return {**named._asdict(), "next": one["next"], "flag": flag, "lab": one["lab"]}


def at_the_start(paste: Paste) -> list[Named]:
    """Limits that a start or a refusal names: those of the table whose `start` has facts that the paste has."""
    last = {name: numbers[-1].value for name, numbers in paste.facts.items()}
    if "graph_share_before" in last:
        last["taken"] = last["graph_share"] - last["graph_share_before"]
        last |= {"card": last["graphs"] / last["taken"]} if "graphs" in last and last["taken"] > 0 else {}
    if "wanted" in last and last["total"] > 0:
        last["fits"] = int(100 * last["free"] / last["total"]) / 100
        last |= {"nothing": 1.0} if not last["fits"] else {}
    found = []
    for limit, one in table().items():
        evidence = next((text for facts, text in one.get("start", ()) if set(facts.split()) <= last.keys()), None)
        if evidence is not None:
            found.append(Named(limit, evidence.format(**last)))
    return [one for one in found if one.limit != "card_memory"] or found  # the engine's own words say more


def running(paste: Paste) -> tuple[list[Named], list[str]]:
    """Limits of the periodic lines of each engine, and what they cannot tell."""
    found: dict[str, Named] = {}
    unknown: dict[str, None] = {}
    slots = paste.settings.get("max_num_seqs")
    for rows in paste.rows.values():
        answer = _of_engine(rows, int(slots) if slots else None, paste.engine)
        if isinstance(answer, Named):
            found.setdefault(answer.limit, answer)
        else:
            unknown[answer] = None
    silent = ["whether anybody waits: the lines end before #queue-req"] if paste.unqueued and not paste.rows else []
    return list(found.values()), [*unknown, *silent]


def _of_engine(rows: list[Row], slots: int | None, engine: str) -> Named | str:
    """The limit, or a sentence on why it cannot be told."""
    busy = [row for row in rows if row.seats or row.waiting]
    queued = [row for row in busy if row.waiting]
    if not busy:
        return "what limits it under load: the lines are of an idle engine; paste some from the load that is slow"
    if len(queued) >= 2 and len(queued) > MOST * len(busy) and not any(row.seats for row in queued):
        return Named("stuck", f"0 running, {_most(queued)}")
    queued = [row for row in queued if row.seats]
    if len(queued) >= 2 and len(queued) > MOST * len(busy):
        return _of_a_queue(queued, slots, engine)
    if len(busy) == 1 and queued and _no_room(queued[0], engine) and queued[0].waiting >= queued[0].running:
        return _blocks(queued, engine)
    return _without_a_queue(busy)


def _most(queued: list[Row]) -> str:
    return f"up to {max(row.waiting for row in queued):,} waiting in {len(queued)} line{'s' * (len(queued) > 1)}"


def _of_a_queue(queued: list[Row], slots: int | None, engine: str) -> Named | str:
    """Of lines in which requests run and others wait."""
    enough = MOST * len(queued)
    seats, times = Counter(row.seats for row in queued).most_common(1)[0]
    full = [row for row in queued if _no_room(row, engine)]
    if sum(row.state_usage >= FULL for row in queued) > enough:
        return Named("state_blocks", f"{_most(queued)}, the pool of states is full")
    if slots is not None and sum(row.seats >= slots for row in queued) > enough:
        return Named("slots", f"{slots:,} of {slots:,} slots taken, {_most(queued)}")
    if len(full) > enough:
        return _blocks(queued, engine)
    if not full and all(row.usage is not None for row in queued):
        room = f"{_most(queued)}, with room in the KV cache"
        stays = times > enough and seats == max(row.seats for row in queued)
        if slots is None and stays and len(queued) >= SEVERAL:
            return Named("slots", f"running stays at {seats:,} in {times} of {len(queued)} lines, {room}")
        budget = _budget(queued)
        if budget and not stays:
            return Named("prefill_budget", f"{budget}, {room}")
    return (
        "which limit holds the queue: the lines fit more than one; give --max-num-seqs (the command, or the start-up "
        "line with the arguments) and some more lines"
    )


def _budget(queued: list[Row]) -> str:
    """What shows that prompts are read as fast as they may be: batches of one size, or one rate, while others wait."""
    chunks = [row.new_tokens for row in queued if row.new_tokens and row.waiting > row.seats - row.running]
    largest = max(chunks, default=0)
    alike = sum(one >= ALIKE * largest for one in chunks)
    if len(chunks) >= 2 and alike > MOST * len(chunks) and largest >= SMALLEST_BUDGET:
        return f"up to {largest:,} prompt tokens in {alike} of {len(chunks)} prefill batches"
    rates = [row.prompt_rate for row in queued if row.prompt_rate is not None]
    if len(rates) >= SEVERAL and min(rates) > ALIKE * max(rates) and min(rates) >= SMALLEST_BUDGET:
        return f"{min(rates):,.0f} to {max(rates):,.0f} prompt tokens/s in every line"
    return ""


def _blocks(queued: list[Row], engine: str) -> Named:
    """A full pool, by the line that is fullest."""
    usage, running = max((row.usage or 0, row.running) for row in queued if _no_room(row, engine))
    size = f"KV usage {usage:.1%}, about {usage / running:.2%} a sequence"
    return Named("kv_blocks", f"{running:,} running, {_most(queued)}, {size}: one more does not fit")


def _no_room(row: Row, engine: str) -> bool:
    """Whether one sequence more of the mean size does not fit."""
    if row.usage is None or not row.running:
        return False
    full = SGLANG_FULL if engine == "SGLang" else FULL
    return row.usage >= full or row.usage * (row.running + 1) / row.running > 1


def _without_a_queue(busy: list[Row]) -> Named | str:
    """Of lines in which nobody waits, or somebody in too few of them."""
    idle = sum(not row.waiting for row in busy)
    if len(busy) < 2:
        return f"whether it is so all the time: one line may be a moment; paste at least {SEVERAL}, ten seconds apart"
    speeds = [row.output_rate / row.running for row in busy if row.output_rate is not None and row.running]
    usages = [row.usage for row in busy if row.usage is not None]
    if idle == len(busy) == len(speeds) and max(speeds) == 0:
        return "why no token leaves while requests run: look for an error before these lines, or wait for the next ones"
    if idle == len(busy) == len(speeds) and max(speeds) < SLOW and len(busy) >= SEVERAL:
        return Named("step", f"{sorted(speeds)[len(speeds) // 2]:.2g} tokens/s a request, nobody waits")
    rising = len(usages) > SEVERAL and all(a < b for a, b in pairwise(usages))
    if rising and usages[-1] >= 0.8 and (usages[-1] - usages[0] >= 0.1 or usages[0] >= 0.9):
        return Named("kv_filling", f"KV usage from {usages[0]:.0%} to {usages[-1]:.0%} in {len(usages)} lines")
    if idle > MOST * len(busy) and (not speeds or max(speeds) >= SLOW):
        most = max(row.running for row in busy)
        return Named("client", f"nobody waits in {idle} of {len(busy)} lines, at most {most:,} run")
    return "what limits it: requests wait in some lines and not in others, which may be arrivals; paste more lines"


def _amount(value: float) -> str:
    """Four digits, and never as a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def printed(results: list[Result]) -> list[Named]:
    """Limits of the client that a printed result shows."""
    found = []
    names = "in_flight max_concurrency requests peak_in_flight requests_per_second requested_rate"
    for run in results:
        flying, most, total, peak, done, asked = (run.totals.get(name, nan) for name in names.split())
        half = BURST * total <= flying <= total
        if flying >= 0.9 * most and not most >= total and (run.loop != "open" or done < 0.95 * asked):
            found.append(Named("client_cap", f"{_amount(flying)} in flight on average of {most:,.0f} allowed"))
        elif (
            (run.loop in ("burst", "") or most >= total) and total > 1 and (half or peak >= total) and not most < total
        ):
            how = f"{_amount(flying)} of {total:,.0f} requests in flight on average"
            found.append(Named("burst", how if half else f"all {total:,.0f} at once"))
    return found
