"""Which limit holds a server, by what it printed; "cannot be told" is the answer where two limits fit.

A limit is named for a queue that stands over several lines, never for one line: a queue of one line is an arrival,
unless the pool is full and more wait than run.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import yaml

from course.look.reading import WORDS, Paste, Row

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
SMALL_CARD = 8192  # MiB, where nvidia-smi does not say: no smaller one serves
SMALLEST_BUDGET = 256  # tokens: nobody sets less
OTHERS = 0.2  # of a card, in other processes: less may be the driver's and this program's own


@cache
def table() -> dict[str, dict[str, Any]]:
    """Every limit by its id: symptom, cause, next, the flag of vLLM and SGLang, lab ("" if none teaches it), start."""
    return yaml.safe_load((files("course.data") / "limits.yaml").read_text(encoding="utf-8"))


class Named(NamedTuple):
    """A limit that was found, with the numbers that say so; "" where none can be told, and why.

    next: the next measurement, where not that of the table.
    """

    limit: str
    evidence: str
    next: str = ""


def first_of_each(found: Sequence[Named]) -> list[Named]:
    """Each limit once, as it was found first, without what cannot be told."""
    known = [one for one in found if one.limit]
    return [one for place, one in enumerate(known) if one.limit not in {other.limit for other in known[:place]}]


def _untold(name: str, **values: object) -> Named:
    return Named("", WORDS["cannot_tell"][name].format(**values))


def row(named: Named, engine: str) -> dict[str, str]:
    """A limit with what the table says of it, for an engine."""
    one = table()[named.limit]
    flag = one.get(engine, one["vLLM"])
    return {**named._asdict(), "next": named.next or one["next"], "flag": flag, "lab": one["lab"]}


def at_the_start(paste: Paste) -> list[Named]:
    """Limits that a start or a refusal names: those of the table whose `start` has facts that the paste has."""
    last = {name: numbers[-1].value for name, numbers in paste.facts.items()}
    if "graph_share_before" in last:
        last["taken"] = last["graph_share"] - last["graph_share_before"]
        last |= {"card": last["graphs"] / last["taken"]} if "graphs" in last and last["taken"] > 0 else {}
    if "wanted" in last and last["total"] > 0:
        fits = int(100 * last["free"] / last["total"]) / 100
        last["fits" if fits else "nothing"] = fits
    if not last.get("longer", 0.0) > last.get("allowed", 0.0):
        last.pop("longer", None)
    if "mine" in last:
        others = last["capacity"] - last["mine"] - last.get("left_gib", 0.0)
        last |= {"others": others} if others > OTHERS * last["capacity"] else {}
    speed = max((one.value for one in paste.facts.get("answer_speed", ())), default=SLOW)
    last |= {"slow": speed} if speed < SLOW_WITH_PROMPTS else {}
    on, held = ([one.value for one in paste.facts.get(name, ())] for name in ("smi_on", "smi_held"))
    for card in set(on) if not paste.rows else ():
        sizes = sorted(size for where, size in zip(on, held, strict=True) if where == card)
        if sum(sizes[:-1]) > OTHERS * last.get("smi_card", max(sum(sizes), SMALL_CARD)):
            last["beside"] = sum(sizes[:-1])
    starts = [(limit, facts, texts) for limit, one in table().items() for facts, *texts in one.get("start", ())]
    found = first_of_each([Named(limit, *(text.format(**last) for text in texts))
                           for limit, facts, texts in starts if set(facts.split()) <= last.keys()])  # fmt: skip
    return [one for one in found if one.limit != "card_memory"] or found  # the engine's own words say more


def running(paste: Paste) -> list[Named]:
    """Limits of the periodic lines of each engine, and what they cannot tell."""
    slots = int(paste.settings.get("max_num_seqs", 0)) or None
    return [one for rows in paste.rows.values()
            for one in _larger_than_the_pool(paste, rows) or _of_engine(rows, slots, paste.engine)]  # fmt: skip


def _of_engine(rows: list[Row], slots: int | None, engine: str) -> list[Named]:
    busy = [row for row in rows if row.seats or row.waiting]
    queued = [row for row in busy if row.waiting]
    served = [row for row in queued if row.seats]
    if not busy:
        return [_untold("idle")]
    if len(busy) == 1:
        return [_one_line(busy[0], engine)]
    if not served and len(queued) > MOST * len(busy):
        return [Named("stuck", f"0 running, {_most(queued)}")]
    if len(served) > MOST * len(busy):
        return [_of_a_queue(served, slots, engine)]
    return _without_a_queue(busy, engine)


def _larger_than_the_pool(paste: Paste, rows: list[Row]) -> list[Named]:
    """Stuck by the last lines, or one, where a request may be longer than the pool: all behind it wait as well."""
    pool, longest = paste.each("tokens most_length")
    queued = list(takewhile(lambda row: row.waiting and not (row.seats or row.prompt_rate), reversed(rows)))
    if not (pool and longest and pool.high < longest.value and queued):
        return []
    sizes = f"the pool holds {pool.value:,.0f} tokens, and a request may have {longest.value:,.0f}"
    return [Named("stuck", f"0 running, {_most(queued)}; {sizes}")]


def _most(queued: list[Row]) -> str:
    return f"up to {max(row.waiting for row in queued):,} waiting in {len(queued)} line{'s' * (len(queued) > 1)}"


def _of_a_queue(queued: list[Row], slots: int | None, engine: str) -> Named:
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
    return _untold("several")


def _pieces(queued: list[Row]) -> str:
    """What shows that one prompt is read in pieces: batches of one size, after which no more run than before."""
    pairs = list(pairwise(queued))
    same = [a for a, b in pairs if a.new_tokens == b.new_tokens >= SMALLEST_BUDGET and a.running == b.running > 0]
    one = [row for row in same if row.seats == row.running + 1]
    often = len(one) >= 2 and len(one) > MOST * len(pairs)
    return f"a prompt in pieces of {one[0].new_tokens:,} tokens" if often else ""


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


def _one_line(row: Row, engine: str) -> Named:
    """What one line suggests: it may be a moment, unless the pool is full and more wait than run."""
    if row.waiting >= max(row.running, 1) and _no_room(row, engine):
        return _blocks([row], engine)
    again, tokens = [row] * SEVERAL, f", {row.new_tokens:,} prompt tokens" if row.new_tokens else ""
    fits = [one.limit for one in _without_a_queue(again, engine) if one.limit]
    if row.waiting:
        reads = row.new_tokens >= SMALLEST_BUDGET and _budget(again)
        full = _no_room(row, engine, shared=0)
        fits = ["stuck"] if not row.seats else ["kv_blocks"] if full else ["slots"] * (not reads) + ["prefill_budget"]
    line = f"{row.running:,} running, {row.waiting:,} waiting{tokens}" + f": like {' or '.join(fits)}" * bool(fits)
    return _untold("moment", line=line, lines=SEVERAL)


def _without_a_queue(busy: list[Row], engine: str) -> list[Named]:
    """Of lines in which nobody waits, or somebody in too few of them."""
    idle, lines, most = sum(not row.waiting for row in busy), len(busy), max(row.running for row in busy)
    speeds = [row.output_rate / row.running for row in busy if row.output_rate is not None and row.running]
    usages = [row.usage for row in busy if row.usage is not None]
    prompts = any(row.prompt_rate for row in busy)
    all_run = idle == lines == len(speeds)
    if all_run and max(speeds) == 0:
        if len(set(usages)) == 1 and not prompts and lines >= SEVERAL:
            return [Named("stuck", f"{most:,} running in {lines} lines, no token read or written, KV usage the same")]
        return [_untold("silent")]
    found: list[Named] = []
    slow = SLOW_WITH_PROMPTS if prompts else SLOW
    last = list(takewhile(lambda speed: speed < slow, reversed(speeds)))  # it may have been faster before
    if all_run and len(last) >= SEVERAL and len(last) > MOST * lines and max(last) > 0:
        found.append(Named("step", f"{sorted(last)[len(last) // 2]:.2g} tokens/s a request, nobody waits"))
    if len(usages) > 1 and usages[-1] >= HIGH and usages[-1] == max(usages) and usages[-1] - usages[0] >= RISE:
        if _fills(usages):
            found.append(Named("kv_filling", f"KV usage from {usages[0]:.0%} to {usages[-1]:.0%} in {lines} lines"))
        elif not found:
            return [_untold("rises", usage=usages[-1])]
    elif not found and usages and usages[-1] >= HIGH and idle == lines and _no_room(busy[-1], engine):
        size = f"KV usage {usages[-1]:.1%}, about {usages[-1] / busy[-1].running:.2%} a sequence: one more does not fit"
        if _rises(usages):
            return [Named("kv_filling", f"{size}, and usage rises in {len(usages)} lines")]
        return [_untold("full", size=size)]
    if not found and idle > MOST * lines and (not speeds or max(speeds) >= slow):
        found.append(Named("client", f"nobody waits in {idle} of {lines} lines, at most {most:,} run"))
    return found or [_untold("arrivals")]


def _rises(usages: list[float]) -> bool:
    return len(usages) >= SEVERAL and all(a < b for a, b in pairwise(usages))


def _fills(usages: list[float]) -> bool:
    """Whether a usage that rose to be high rises in every line, by much, or will be 100% after as many lines more."""
    lines, rise = len(usages), usages[-1] - usages[0]
    soon = lines > SEVERAL and (rise >= 0.1 or usages[0] >= 0.9)
    return _rises(usages) and (soon or rise * lines / (lines - 1) >= 1 - usages[-1])
