"""Which limit holds a server, by what it printed; "cannot be told" is the answer where two limits fit.

A limit is named for a queue that stands over several lines, never for one line: a queue of one line is an arrival.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from course.look.reading import Paste, Row
from course.results import Result

MOST = 0.6  # of the lines with a queue
FULL = 0.95  # of the pool: watermarks and rounding leave the last few percent
SGLANG_FULL = 0.9  # it reserves for what running requests may still write
SLOW = 1.0  # token/s a request: what no reader waits for
SEVERAL = 3  # lines
BURST = 0.45  # of all requests in flight on average: of those sent at once and served in order it is half


@cache
def table() -> dict[str, dict[str, str]]:
    """Every limit: id -> symptom, cause, next, vLLM, SGLang (the flag that moves it) and lab ("" if none teaches it)."""
    return yaml.safe_load((files("course.data") / "limits.yaml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Named:
    """A limit that was found, with the numbers that say so."""

    limit: str
    evidence: str

    def as_json(self, engine: str) -> dict[str, Any]:
        """With what the table says of it, for an engine."""
        one = table()[self.limit]
        flag = one["SGLang" if engine == "SGLang" else "vLLM"]
        return {"limit": self.limit, "evidence": self.evidence, "next": one["next"], "flag": flag, "lab": one["lab"]}


def at_the_start(paste: Paste) -> list[Named]:
    """Limits that a start or a refusal names."""
    found = []
    fact = {name: numbers[-1] for name, numbers in paste.facts.items()}
    if "asked_slots" in fact:
        asked, there = fact["asked_slots"].value, fact["state_slots"].value
        found.append(Named("state_blocks", f"{asked:,.0f} slots asked for, state blocks for {there:,.0f}"))
    if "needed_gib" in fact:
        longest = f"; {fact['longest'].value:,.0f} tokens would fit" if "longest" in fact else ""
        found.append(Named("max_model_len", f"{fact['refused_length'].value:,.0f} tokens need "
                           f"{fact['needed_gib'].value:g} GiB, the pool has {fact['kv_gib'].value:g}{longest}"))  # fmt: skip
    elif "stored_tokens" in fact:
        found.append(Named("max_model_len", f"{fact['refused_length'].value:,.0f} tokens asked for, "
                           f"the pool holds {fact['stored_tokens'].value:,.0f}"))  # fmt: skip
    elif "no_blocks" in fact:
        found.append(Named("max_model_len", "no memory is left for a single block: weights and activations fill it"))
    if "graph_share_to_set" in fact:
        taken = fact["graph_share"].value - fact["graph_share_before"].value
        card = f"; {fact['graphs'].value:g} GiB / {taken:.3g} is a card of {fact['graphs'].value / taken:.1f} GiB" if (
            "graphs" in fact and taken > 0) else ""  # fmt: skip
        found.append(Named("cuda_graphs", f"graphs take {taken:.4g} of the card off the pool{card}"))
    if "wanted" in fact and fact["total"].value > 0:
        free, total = fact["free"].value, fact["total"].value
        found.append(Named("other_process", f"{free:g} of {total:g} GiB are free: a share of at most "
                           f"{int(100 * free / total) / 100:g} fits, {fact['share'].value:g} was asked for"))  # fmt: skip
    if "sampler" in fact:
        found.append(Named("sampler_memory", f"{fact['sampler'].value:,.0f} dummy requests did not fit"))
    if "preempted" in fact:
        found.append(Named("kv_blocks", "requests lost their blocks: the pool was full while they ran"))
    return found


def running(paste: Paste) -> tuple[list[Named], list[str]]:
    """Limits of the periodic lines, and what they cannot tell."""
    found: list[Named] = []
    unknown: list[str] = []
    slots = paste.settings.get("max_num_seqs")
    for rows in paste.rows.values():
        named, why = _of_engine(rows, int(slots) if isinstance(slots, int) else None, paste.engine)
        found += [one for one in named if one.limit not in {other.limit for other in found}]
        unknown += [one for one in why if one not in unknown]
    return found, unknown


def _of_engine(rows: list[Row], slots: int | None, engine: str) -> tuple[list[Named], list[str]]:
    busy = [row for row in rows if row.seats or row.waiting]
    queued = [row for row in busy if row.waiting]
    if not busy:
        return [], ["the lines are of an idle engine: paste some from the load that is slow"]
    if len(queued) >= 2 and len(queued) > MOST * len(busy) and not any(row.seats for row in queued):
        most = max(row.waiting for row in queued)
        return [Named("stuck", f"0 running and up to {most:,} waiting in {len(queued)} lines")], []
    queued = [row for row in queued if row.seats]
    if len(queued) < 2 or len(queued) <= MOST * len(busy):
        return _without_a_queue(busy, queued)
    return _of_a_queue(queued, slots, engine)


def _of_a_queue(queued: list[Row], slots: int | None, engine: str) -> tuple[list[Named], list[str]]:
    """Of lines in which requests run and others wait."""
    most = f"up to {max(row.waiting for row in queued):,} waiting in {len(queued)} lines"
    seats, times = Counter(row.seats for row in queued).most_common(1)[0]
    full = [row for row in queued if _no_room(row, engine)]
    if sum(row.state_usage >= FULL for row in queued) > MOST * len(queued):
        return [Named("state_blocks", f"{most}, the pool of states is full")], []
    if slots is not None and sum(row.seats >= slots for row in queued) > MOST * len(queued):
        return [Named("slots", f"{slots:,} of {slots:,} slots taken, {most}")], []
    if len(full) > MOST * len(queued):
        usage = max(row.usage or 0 for row in full)
        each = usage / max(1, full[0].running)
        return [Named("kv_blocks", f"{seats:,} running, {most}, KV usage {usage:.1%}, about {each:.2%} a sequence: "
                      "one more does not fit")], []  # fmt: skip
    roomy = not full and all(row.usage is not None for row in queued)
    if slots is None and roomy and len(queued) >= SEVERAL and times > MOST * len(queued) and seats == max(
        row.seats for row in queued
    ):  # fmt: skip
        return [Named("slots", f"running stays at {seats:,} in {times} of {len(queued)} lines, {most}, with room in the "
                      "KV cache")], []  # fmt: skip
    chunks = [row.new_tokens for row in queued if row.new_tokens]
    if roomy and len(chunks) >= SEVERAL and chunks.count(max(chunks)) > MOST * len(chunks) and max(chunks) >= 256:
        return [Named("prefill_budget", f"{max(chunks):,} prompt tokens in {chunks.count(max(chunks))} of {len(chunks)} "
                      f"prefill batches, {most}")], []  # fmt: skip
    return [], ["requests wait, and the lines fit more than one limit: give --max-num-seqs (the command, or the "
                "start-up line with the arguments) and some more lines"]  # fmt: skip


def _no_room(row: Row, engine: str) -> bool:
    """Whether one sequence more of the mean size does not fit."""
    if row.usage is None or not row.running:
        return False
    full = SGLANG_FULL if engine == "SGLang" else FULL
    return row.usage >= full or row.usage * (row.running + 1) / row.running > 1


def _without_a_queue(busy: list[Row], queued: list[Row]) -> tuple[list[Named], list[str]]:
    """Of lines in which nobody waits, or somebody in too few of them."""
    if len(busy) < 2:
        return [], [f"one line{' with a queue' if queued else ''} may be a moment: paste at least {SEVERAL}, ten "
                    "seconds apart"]  # fmt: skip
    usages = [row.usage for row in busy if row.usage is not None]
    speeds = [row.output_rate / row.running for row in busy
              if row.output_rate is not None and row.running and not row.prompt_rate]  # fmt: skip
    idle = sum(not row.waiting for row in busy)
    if not queued and len(speeds) > MOST * len(busy) and 0 < max(speeds) < SLOW:
        return [Named("step", f"{sorted(speeds)[len(speeds) // 2]:.2g} tokens/s a request, nobody waits")], []
    if not queued and speeds and max(speeds) == 0 and len(speeds) == len(busy):
        return [], ["requests run and no token leaves: look for an error before these lines, or wait for the next ones"]
    rising = len(usages) > SEVERAL and all(a < b for a, b in zip(usages, usages[1:], strict=False))
    if rising and usages[-1] >= 0.8 and usages[-1] - usages[0] >= 0.1:
        return [Named("kv_filling", f"KV usage from {usages[0]:.0%} to {usages[-1]:.0%} in {len(usages)} lines")], []
    if idle > MOST * len(busy) and len(busy) >= SEVERAL - 1:
        most = max(row.running for row in busy)
        return [Named("client", f"nobody waits in {idle} of {len(busy)} lines, at most {most:,} run")], []
    return [], ["requests wait in some lines and not in others: that may be arrivals; paste more lines of the load"]


def printed(results: list[Result]) -> list[Named]:
    """Limits of the client that a printed result shows."""
    found = []
    for run in results:
        flying, most, total = (
            run.totals.get(name, float("nan")) for name in ("in_flight", "max_concurrency", "requests")
        )
        if run.loop != "open" and flying >= 0.9 * most:
            found.append(Named("client_cap", f"{flying:.4g} in flight on average of {most:,.0f} allowed"))
        elif run.loop in ("burst", "") and total > 1 and BURST * total <= flying <= total and not most < total:
            found.append(Named("burst", f"{flying:.4g} of {total:,.0f} requests in flight on average"))
        elif run.loop == "open" and 0.9 * most <= flying and run.totals.get("requests_per_second", 0.0) < 0.95 * (
            run.totals.get("requested_rate", float("nan"))
        ):  # fmt: skip
            found.append(Named("client_cap", f"{flying:.4g} in flight on average of {most:,.0f} allowed"))
    return found
