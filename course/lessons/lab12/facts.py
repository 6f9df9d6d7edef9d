"""The numbers in the texts of lab 12, from the recording that they speak of, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab12 import by_hand, capture, decision, one_step, python_part, sketch, tasks, ticket, who_waits
from course.lessons.lab12.on_device import DEPENDENT, GRAPH, LAUNCHES, PERSISTENT
from course.lessons.lab12.recorded import recording
from course.steptime.links import two_cards

SIZE = one_step.WORKS[0]
MANY = sketch.COUNTS[-1]
SLOW = 32
"""Launches of a step up to which the recording's program was slow: docs/benchmarks.md, "Launches"."""
BELL, BELL_LAUNCH, BELL_GRAPH = 4.0, 11.8, 8.3
"""Microseconds until a program has a step of one kernel, on an H200: docs/benchmarks.md, "A bell"."""
GIVEN = (by_hand.LAUNCH, by_hand.KERNEL, by_hand.BETWEEN, who_waits.BATCH)
LARGEST_COPY = 16 << 20
LARGE_VOCABULARY = 128_256  # of the 8B


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    return _steps() | _by_hand() | _exercises() | _services()


def _us(seconds: float) -> float:
    return 1e6 * seconds


def _by_pytorch(graphs: bool) -> float:
    """Milliseconds of the 8B's layers for who_waits.BATCH sequences on one card, with PyTorch's kernels."""
    wanted = {"model": "llama-3.1-8b", "tp": 1, "tokens": who_waits.BATCH, "graphs": graphs}
    (row,) = (row for row in two_cards()["steps"] if wanted.items() <= row.items())
    return 1e-3 * float(row["us_a_layer"][0]) * int(row["layers"])


def _steps() -> dict[str, Any]:
    card, counted = recording(), [recording().of_count(LAUNCHES, count) for count in (1, MANY)]
    fp32 = card.small("fp32", LAUNCHES)
    best = card.small("bf16", DEPENDENT)
    return {
        "alone_us": sketch.ALONE_US,
        "many_launches": MANY,
        "many_us": _us(counted[1].wall),
        "each_us": _us(counted[1].wall - counted[0].wall) / (MANY - 1),
        "call_us": _us(counted[1].host) / MANY,
        "slow_launches": SLOW,
        "call_slow_us": _us(card.of_count(LAUNCHES, SLOW).host) / SLOW,
        "graph_us": one_step.one_step(DEPENDENT, SIZE).wall,
        "persistent_us": one_step.one_step(PERSISTENT, SIZE).wall,
        "persistent_turn_us": _us(card.each(PERSISTENT, SIZE)),
        "graph_turn_us": _us(card.each(DEPENDENT, SIZE)),
        "gap_us": _us(card.each(GRAPH, SIZE)) - one_step.one_step(GRAPH, SIZE).kernel,
        "fused_kernels": card.kernels("bf16"),
        "library_kernels": card.kernels("fp32"),
        "vocabulary": python_part.VOCABULARY,
        "large_vocabulary": LARGE_VOCABULARY,
        "vocabularies": LARGE_VOCABULARY / python_part.VOCABULARY,
        "busy": tasks.BUSY,
        "nearly_all": tasks.ALL,
        "small_gain": fp32.wall / best.wall,
        "graph_alone_gain": fp32.wall / card.small("fp32", GRAPH).wall,
        "token_us": _us(card.persistent()),
        "queued_us": _us(best.queued),
        "eight_us": _us(card.persistent(8)),
        "choose_us": _us(card.host(8)["token chosen here"] - card.host(8)["token chosen on the card"]),
        "pageable_ms": 1e3 * card.copy("pageable", LARGEST_COPY)["call"],
        "pinned_us": _us(card.copy("pinned", LARGEST_COPY)["call"]),
        "copy_mib": LARGEST_COPY >> 20,
        "bell_us": BELL,
        "bell_launch_us": BELL_LAUNCH,
        "bell_graph_us": BELL_GRAPH,
        "eight_queued_us": _us(card.small("bf16", DEPENDENT, 8).queued),
    }


def _by_hand() -> dict[str, Any]:
    return {
        "hand_kernels": by_hand.KERNELS,
        "hand_launched": by_hand.launched().wall,
        "hand_graph": by_hand.graph().wall,
        "launch_us": recording().toy(LAUNCHES, SIZE).queued * 1e6 / recording().launches,
        "kernel_us": one_step.one_step(LAUNCHES, SIZE).kernel,
        "sixteen": recording().launches,
    }


def _exercises() -> dict[str, Any]:
    walls = [round(_us(recording().small(kind, LAUNCHES).wall)) for kind in ("fp32", "bf16")]
    cards = [round(_us(recording().small(kind, DEPENDENT).queued)) for kind in ("fp32", "bf16")]
    (wall, twin_wall), (card, twin_card) = walls, cards
    return {
        "share_wall_us": wall,
        "share_card_us": card,
        "share": 100 * (1 - card / wall),
        "share_kernels": 100 * card / wall,
        "share_ratio": wall / card,
        "share_more": 100 * (wall / card - 1),
        "twin_wall_us": twin_wall,
        "twin_card_us": twin_card,
        "share_twin": 100 * (1 - twin_card / twin_wall),
        "share_twin_kernels": 100 * twin_card / twin_wall,
        "share_twin_more": 100 * (twin_wall / twin_card - 1),
        "worked_batches": f"{capture.WORKED[0]}",
        "worked_sizes": f"{capture.WORKED[1]}",
        "worked_steps": f"{capture.loop(*capture.WORKED)}",
        **_pays("pays", "until", capture.PAYS),
        **_pays("pays_twin", "until_twin", capture.PAYS_TWIN),
    }


def _pays(name: str, answer: str, given: tuple[float, float, float]) -> dict[str, float]:
    launch, between, gain = given
    found = {f"{name}_launch": launch, f"{name}_between": between, f"{name}_gain": gain, answer: capture.until(*given)}
    found |= {f"{answer}_no_between": launch / gain, f"{answer}_no_gain": launch - between}
    if answer == "until":
        found |= {f"{answer}_multiplied": launch * gain - between, f"{answer}_both": (launch - between) / gain}
    return found


def _services() -> dict[str, Any]:
    now, mended, quicker = ticket.now(), ticket.mended(), ticket.quicker_plan()
    return {
        "goal_ms": decision.GOAL_MS,
        "twin_goal_ms": decision.GOAL_TWIN_MS,
        "twin_plan_ms": decision.PLAN_TWIN_MS,
        "plan_ms": who_waits.PLAN_MS,
        "now_ms": 1e3 * decision.with_flag("").step,
        "async_ms": 1e3 * decision.with_flag(decision.ASYNC).step,
        "eager_ms": 1e3 * decision.with_flag(decision.GRAPHS).step,
        "torch_ms": _by_pytorch(graphs=False),
        "torch_graph_ms": _by_pytorch(graphs=True),
        "torch_gain": _by_pytorch(graphs=False) / _by_pytorch(graphs=True),
        "ticket_batch": ticket.BATCH,
        "ticket_busy": now.busy,
        "ticket_program": now.program,
        "ticket_step_us": _us(now.step),
        "ticket_start_us": _us(now.start),
        "ticket_card_us": _us(now.card),
        "mended_us": _us(mended.step),
        "mended_busy": mended.busy,
        "quicker_busy": quicker.busy,
    }


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true, from the recording; words where it is about no number."""
    ratio = one_step.one_step(PERSISTENT, SIZE).wall / one_step.one_step(DEPENDENT, SIZE).wall
    now, mended, quicker = ticket.now(), ticket.mended(), ticket.quicker_plan()
    return {
        "read-once": "reading the weights",
        "a-gap": "at least the step",
        "persistent": (ratio < 0.5, ratio > 2, 0.8 < ratio < 1.25),
        "cause": (False, now.program < 0.99, now.program > 0.99 and now.start > now.card),
        "measure": "from kernel to kernel",
        "repair": (quicker.busy > 0.9, mended.busy > 0.95 and mended.step < 0.7 * now.step, False),
        "util": "some kernel ran",
        "prompts": "sizes are many",
        "pinned": "the program fills the other",
        "choose": "a copy of all logits",
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    card, small = recording(), one_step.WORKS[:4]
    flags = (decision.GRAPHS, decision.ASYNC)
    kept = {flag: decision.with_flag(flag).step for flag in flags}
    twin = {flag: decision.with_flag(flag, decision.SMALL, decision.PLAN_TWIN_MS).step for flag in flags}
    return {
        "with small kernels a graph with dependent launch has the shortest step": all(
            one_step.shortest(work) == DEPENDENT for work in small
        ),
        "a turn of the persistent kernel is within a fifth of a kernel of that graph, at every size": all(
            0.95 < card.each(PERSISTENT, work) / card.each(DEPENDENT, work) < 1.2 for work in one_step.WORKS
        ),
        "a launch alone takes as long as is told to whoever draws": bool(
            abs(_us(card.of_count(LAUNCHES, 1).wall) / sketch.ALONE_US - 1) < 0.05
        ),
        "graph, dependent launch and fusing together gain more than three times": all(
            card.small("fp32", LAUNCHES, batch).wall > 3 * card.small("bf16", DEPENDENT, batch).wall
            for batch in (1, 8, 32)
        ),
        "our small model as one kernel takes less than its graph for up to four sequences, and more from eight on": all(
            (card.persistent(batch) < card.small("bf16", DEPENDENT, batch).queued) == (batch < 8)
            for batch in (1, 2, 4, 8, 16, 32)
        ),
        "up to 32 launches a call took longer, in the recording of counts": bool(
            all(card.of_count(LAUNCHES, count).host / count > 6.5e-6 for count in sketch.COUNTS if count <= SLOW)
            and all(card.of_count(LAUNCHES, count).host / count < 5e-6 for count in sketch.COUNTS if count > SLOW)
        ),
        "the program was slow for a while, whatever it started: sixteen kernels took it longer in every form": all(
            card.of_count(form, card.launches).host > 1.4 * card.toy(form, one_step.WORKS[0]).host
            for form in (LAUNCHES, GRAPH, DEPENDENT, PERSISTENT)
        ),
        "and from the persistent kernel of the last slow row on it was no longer": all(
            1.25 * card.of_count(PERSISTENT, count).host < card.of_count(PERSISTENT, SLOW // 2).host
            for count in sketch.COUNTS
            if count >= SLOW
        ),
        "with the 8B no form gains a twentieth": all(
            abs(card.large(form, batch).wall / card.large(LAUNCHES, batch).wall - 1) < 0.05
            for form in (GRAPH, DEPENDENT)
            for batch in (1, 8)
        ),
        "a copy from pinned memory returns at once, one of pageable memory when it is done": bool(
            card.copy("pinned", LARGEST_COPY)["call"] < 2e-5
            and card.copy("pageable", LARGEST_COPY)["call"] > 0.9 * card.copy("pageable", LARGEST_COPY)["wall"]
        ),
        "one flag alone keeps the decision's promise, and the other its twin's": bool(
            kept[decision.ASYNC] <= decision.GOAL_MS / 1e3 < kept[decision.GRAPHS]
            and twin[decision.GRAPHS] <= decision.GOAL_TWIN_MS / 1e3 < twin[decision.ASYNC]
        ),
        "the ticket's card computes for six tenths beside a core that never rests": bool(
            0.57 < ticket.now().busy < 0.63 and ticket.now().program > 0.99
        ),
    }
