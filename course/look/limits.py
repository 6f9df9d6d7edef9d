"""Which limit holds a server, by what it printed; "cannot be told" is the answer where two limits fit.

A limit is named for a queue that stands over several lines, never for one line: a queue of one line is an arrival,
unless the pool is full and more wait than run.
"""

from collections import Counter
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from math import nan
from typing import Any, NamedTuple

import yaml

from course.look.reading import Paste, Row
from course.results import Result

MOST = 0.6  # of the lines with a queue
FULL = 0.95  # of the pool: watermarks and rounding leave the last few percent
SGLANG_FULL = 0.9  # it reserves for what running requests may still write
SLOW = 2.0  # tokens/s a request that runs all the time: people read about five
SLOW_WITH_PROMPTS = 1.0  # where prompts come in between: a short answer runs for a part of its interval
SEVERAL = 3  # lines
HIGH, RISE = 0.8, 0.01  # of the pool: a usage that may fill it soon, and one that moves
FEW_HITS = 0.1  # of prompt tokens in the prefix cache: with more, what one sequence holds is no cost of the next
ALIKE = 0.9  # of the largest: prompt tokens of a batch, or read in a second, that a budget holds
SAME = 0.99  # of the largest: what a full budget reads in a second, in most lines of a queue
SMALLEST_BUDGET = 256  # tokens: nobody sets less
QUEUE = 0.25  # of the run: the mean TTFT of a queue, which is half of it where all were sent at once
OTHERS = 0.2  # of a card, in other processes: less may be the driver's and this program's own
GAIN = 1.25  # times as many answers a second: with fewer, twice as many in flight did not help
SENT = 0.1  # of the run, in which all requests were sent: the rest is what a queue of all would show
BURST = 0.45  # of all requests in flight on average: of those sent at once and served in order it is half


@cache
def table() -> dict[str, dict[str, Any]]:
    """Every limit by its id: symptom, cause, next, the flag of vLLM and SGLang, lab ("" if none teaches it), start."""
    return yaml.safe_load((files("course.data") / "limits.yaml").read_text(encoding="utf-8"))


class Named(NamedTuple):
    """A limit that was found, with the numbers that say so. next: the next measurement, where not that of the table."""

    limit: str
    evidence: str
    next: str = ""


def row(named: Named, engine: str) -> dict[str, str]:
    """A limit with what the table says of it, for an engine."""
    one = table()[named.limit]
    return {
        **named._asdict(),
        "next": named.next or one["next"],
        "flag": one.get(engine, one["vLLM"]),
        "lab": one["lab"],
    }


def at_the_start(paste: Paste) -> list[Named]:
    """Limits that a start or a refusal names: those of the table whose `start` has facts that the paste has."""
    last = {name: numbers[-1].value for name, numbers in paste.facts.items()}
    if "graph_share_before" in last:
        last["taken"] = last["graph_share"] - last["graph_share_before"]
        last |= {"card": last["graphs"] / last["taken"]} if "graphs" in last and last["taken"] > 0 else {}
    if "wanted" in last and last["total"] > 0:
        last["fits"] = int(100 * last["free"] / last["total"]) / 100
        last |= {"nothing": 1.0} if not last["fits"] else {}
    if not last.get("longer", 0.0) > last.get("allowed", 0.0):
        last.pop("longer", None)
    if "mine" in last:
        others = last["capacity"] - last["mine"] - last.get("left_gib", 0.0)
        last |= {"others": others} if others > OTHERS * last["capacity"] else {}
    found = []
    for limit, one in table().items():
        texts = next((texts for facts, *texts in one.get("start", ()) if set(facts.split()) <= last.keys()), None)
        if texts is not None:
            found.append(Named(limit, *(text.format(**last) for text in texts)))
    return [one for one in found if one.limit != "card_memory"] or found  # the engine's own words say more


def running(paste: Paste) -> tuple[list[Named], list[str]]:
    """Limits of the periodic lines of each engine, and what they cannot tell."""
    found: dict[str, Named] = {}
    unknown: dict[str, None] = {}
    slots = paste.settings.get("max_num_seqs")
    for rows in paste.rows.values():
        answer = _larger_than_the_pool(paste, rows) or _of_engine(rows, int(slots) if slots else None, paste.engine)
        if isinstance(answer, str):
            unknown[answer] = None
        else:
            found = {one.limit: one for one in ([answer] if isinstance(answer, Named) else answer)} | found
    silent = ["whether anybody waits: the lines end before #queue-req"] if paste.unqueued and not paste.rows else []
    return list(found.values()), [*unknown, *silent]


def _of_engine(rows: list[Row], slots: int | None, engine: str) -> Named | list[Named] | str:
    """The limits, or a sentence on why they cannot be told."""
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
    if len(busy) > 1:
        return _without_a_queue(busy, engine)
    return _one_line(busy[0], engine)


def _larger_than_the_pool(paste: Paste, rows: list[Row]) -> Named | None:
    """Stuck by the last lines, or one, where a request may be longer than the pool: all behind it wait as well."""
    pool, longest = paste.each("tokens most_length")
    queued = list(takewhile(lambda row: row.waiting and not (row.seats or row.prompt_rate), reversed(rows)))
    if not (pool and longest and pool.high < longest.value and queued):
        return None
    sizes = f"the pool holds {pool.value:,.0f} tokens, and a request may have {longest.value:,.0f}"
    return Named("stuck", f"0 running, {_most(queued)}; {sizes}")


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
    if not any(row.usage is None or _no_room(row, engine, shared=0) for row in queued):
        room = f"{_most(queued)}, with room in the KV cache"
        stays = times > enough and seats == max(row.seats for row in queued) and any(row.running for row in queued)
        if slots is None and (piece := _pieces(queued)):
            return Named("prefill_budget", f"{piece}, {room}")
        if slots is None and stays and len(queued) >= SEVERAL:
            return Named("slots", f"running stays at {seats:,} in {times} of {len(queued)} lines, {room}")
        if not stays and (budget := _budget(queued)):
            return Named("prefill_budget", f"{budget}, {room}")
    return "which limit holds the queue: several fit; give more lines, and --max-num-seqs (command or its arguments)"


def _pieces(queued: list[Row]) -> str:
    """What shows that one prompt is read in pieces: batches of one size, after which no more run than before."""
    pairs = list(pairwise(queued))
    same = [a for a, b in pairs if a.new_tokens == b.new_tokens >= SMALLEST_BUDGET and a.running == b.running > 0]
    one = [row for row in same if row.seats == row.running + 1]
    return (
        f"a prompt in pieces of {one[0].new_tokens:,} tokens" if len(one) >= 2 and len(one) > MOST * len(pairs) else ""
    )


def _budget(queued: list[Row]) -> str:
    """What shows that prompts are read as fast as they may be: batches of one size, or one rate, while others wait."""
    rest = [row for row in queued if row.waiting > row.seats - row.running or row.pending >= row.new_tokens]
    chunks = [row.new_tokens for row in rest if row.new_tokens]
    largest = max(chunks, default=0)
    alike = sum(one >= ALIKE * largest for one in chunks)
    if len(chunks) >= 2 and alike > MOST * len(chunks) and largest >= SMALLEST_BUDGET:
        return f"up to {largest:,} prompt tokens in {alike} of {len(chunks)} prefill batches"
    rates = [row.prompt_rate for row in queued if row.prompt_rate is not None]
    most = max(rates, default=0.0)
    same = sum(rate >= SAME * most for rate in rates)
    if len(rates) >= SEVERAL and most >= SMALLEST_BUDGET and (min(rates) > ALIKE * most or same > MOST * len(rates)):
        return f"up to {most:,.0f} prompt tokens/s, as good as that in most of {len(rates)} lines"
    alone = sum(bool(row.prompt_rate) and row.output_rate == 0 for row in queued)
    if alone >= 2 and all(a.running < b.running and a.waiting > b.waiting for a, b in pairwise(queued)):
        return f"no token leaves in {alone} of {len(queued)} lines, while prompts are read and join those who run"
    return ""


def _blocks(queued: list[Row], engine: str) -> Named:
    """A full pool, by the line that is fullest."""
    usage, running, waiting = max((row.usage or 0, row.running, row.waiting) for row in queued if _no_room(row, engine))
    where = f" in the fullest of {len(queued)} lines" if len(queued) > 1 else ""
    size = f"KV usage {usage:.1%}, about {usage / running:.2%} a sequence"
    return Named("kv_blocks", f"{running:,} running, {waiting:,} waiting{where}, {size}: one more does not fit")


def _no_room(row: Row, engine: str, shared: float = 1.0) -> bool:
    """Whether one sequence more of the mean size does not fit, if this part of the cached tokens needs no new block."""
    if row.usage is None or not row.running:
        return False
    full = SGLANG_FULL if engine == "SGLang" else FULL
    hits = row.hits if row.running > 1 else float(row.hits > FEW_HITS)
    return row.usage >= full or row.usage * (1 + (1 - shared * hits) / row.running) > 1


def _one_line(row: Row, engine: str) -> str:
    """What one line suggests: it may be a moment."""
    again, tokens = [row] * SEVERAL, f", {row.new_tokens:,} prompt tokens" if row.new_tokens else ""
    fits = [one.limit for one in _without_a_queue(again, engine) if not isinstance(one, str)]
    if row.waiting:
        reads = row.new_tokens >= SMALLEST_BUDGET and _budget(again)
        full = _no_room(row, engine, shared=0)
        fits = ["stuck"] if not row.seats else ["kv_blocks"] if full else ["slots"] * (not reads) + ["prefill_budget"]
    line = f"{row.running:,} running, {row.waiting:,} waiting{tokens}" + f": like {' or '.join(fits)}" * bool(fits)
    return f"whether it is so all the time: one line ({line}) may be a moment; paste {SEVERAL}, ten seconds apart"


def _without_a_queue(busy: list[Row], engine: str) -> list[Named] | str:
    """Of lines in which nobody waits, or somebody in too few of them."""
    idle = sum(not row.waiting for row in busy)
    speeds = [row.output_rate / row.running for row in busy if row.output_rate is not None and row.running]
    usages = [row.usage for row in busy if row.usage is not None]
    found: list[Named] = []
    if idle == len(busy) == len(speeds) and max(speeds) == 0:
        still = len(set(usages)) == 1 and not any(row.prompt_rate for row in busy)
        if still and len(busy) >= SEVERAL:
            most = max(row.running for row in busy)
            return [
                Named("stuck", f"{most:,} running in {len(busy)} lines, no token read or written, KV usage the same")
            ]
        return "why no token leaves while requests run: look for an error before these lines, or wait for the next ones"
    slow = SLOW_WITH_PROMPTS if any(row.prompt_rate for row in busy) else SLOW
    last = list(takewhile(lambda speed: speed < slow, reversed(speeds)))  # it may have been faster before
    if idle == len(busy) == len(speeds) and len(last) >= SEVERAL and len(last) > MOST * len(busy) and max(last) > 0:
        found.append(Named("step", f"{sorted(last)[len(last) // 2]:.2g} tokens/s a request, nobody waits"))
    if len(usages) > 1 and usages[-1] >= HIGH and usages[-1] == max(usages) and usages[-1] - usages[0] >= RISE:
        if _fills(usages):
            rise = f"KV usage from {usages[0]:.0%} to {usages[-1]:.0%} in {len(usages)} lines"
            found.append(Named("kv_filling", rise))
        elif not found:
            return f"what limits it: nobody waits, but KV usage rises to {usages[-1]:.1%}; paste the lines that follow"
    elif not found and usages and usages[-1] >= HIGH and idle == len(busy) and _no_room(busy[-1], engine):
        size = f"KV usage {usages[-1]:.1%}, about {usages[-1] / busy[-1].running:.2%} a sequence: one more does not fit"
        if len(busy) >= SEVERAL and all(a < b for a, b in pairwise(usages)):
            return [Named("kv_filling", f"{size}, and usage rises in {len(usages)} lines")]
        return f"what limits it: nobody waits, but {size}; paste the lines that follow"
    if not found and idle > MOST * len(busy) and (not speeds or max(speeds) >= slow):
        most = max(row.running for row in busy)
        found.append(Named("client", f"nobody waits in {idle} of {len(busy)} lines, at most {most:,} run"))
    return found or "what limits it: requests wait in some lines and not in others, as arrivals may; paste more lines"


def _fills(usages: list[float]) -> bool:
    """Whether a usage that rose to be high rises in every line, by much, or will be 100% after as many lines more."""
    lines, rise = len(usages), usages[-1] - usages[0]
    if lines < SEVERAL or not all(a < b for a, b in pairwise(usages)):
        return False
    return (lines > SEVERAL and (rise >= 0.1 or usages[0] >= 0.9)) or rise * lines / (lines - 1) >= 1 - usages[-1]


def _amount(value: float) -> str:
    """Four digits, and never as a power of ten."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _saturated(results: list[Result]) -> bool:
    """Whether a sweep shows that more in flight bring hardly more answers: the server is full, not the client."""
    caps = [(run.totals.get("max_concurrency", nan), run.totals.get("requests_per_second", nan)) for run in results]
    if not all(cap > 0 and done > 0 for cap, done in caps) or len({cap for cap, _ in caps}) < 2:
        return False
    few, many = min(caps)[0], max(caps)[0]
    best = {end: max(done for cap, done in caps if cap == end) for end in (few, many)}
    return many >= 2 * few and best[many] < GAIN * best[few]


def printed(results: list[Result]) -> list[Named]:
    """Limits of the client that a printed result shows."""
    if _saturated(results):
        return []
    found = []
    names = "in_flight max_concurrency requests peak_in_flight requests_per_second requested_rate"
    for run in results:
        flying, most, total, peak, done, asked = (run.totals.get(name, nan) for name in names.split())
        first = run.ours.get("ttft", {})
        queued = first.get("mean", first.get("p50", nan)) >= QUEUE * run.totals.get("duration", nan)
        at_once = run.loop in ("burst", "") or (most >= total and (run.loop != "open" or queued))
        half = BURST * total <= flying <= total
        at_once |= total / asked <= SENT * run.totals.get("duration", nan)  # a rate, by which all were sent early on
        if flying >= 0.9 * most and not most >= total and (run.loop != "open" or done < 0.95 * asked):
            found.append(Named("client_cap", f"{_amount(flying)} in flight on average of {most:,.0f} allowed"))
        elif at_once and total > 1 and (half or peak >= total or run.loop == "burst") and not most < total:
            how = f"{_amount(flying)} of {total:,.0f} requests in flight on average"
            found.append(Named("burst", how if half else f"all {total:,.0f} at once"))
    return list({one.limit: one for one in reversed(found)}.values())  # the first run of each
