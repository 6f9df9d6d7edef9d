"""The numbers in the texts of lab 10's deeper notebook, over five seeds, and what must hold beside them."""

from __future__ import annotations

from typing import Any

from course.lessons.lab10 import documents, forked, replicas
from course.lessons.lab10.one_prompt import BLOCK_SIZE

SEEDS = range(5)
IN_ORDER, LONGEST, AGED = documents.ORDERS


def _between(values: list[float], form: str) -> str:
    low, high = (format(value, form) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def facts() -> dict[str, Any]:
    """Every number that the notebook shows; those of several seeds as a range."""
    runs = {order: [documents.answered(order, seed=seed) for seed in SEEDS] for order in documents.ORDERS}
    means = {order: _between([one.run.ttft.mean() for one in found], ".1f") for order, found in runs.items()}
    hits = {order: _between([one.hit_rate for one in found], ".0%") for order, found in runs.items()}
    fleets = {
        route: _between([replicas.hit_rate(replicas.routed(route, seed)) for seed in SEEDS], ".0%")
        for route in replicas.ROUTES
    }
    agents, alone, salted = forked.forked(), forked.one_question(False), forked.one_question(True)
    fall = replicas.hit_rate(alone) - replicas.hit_rate(salted)
    return {
        "docs": documents.DOCUMENTS, "pages": documents.PAGES, "docs_rate": documents.RATE,
        "docs_fit": documents.BLOCKS // (documents.PAGES // BLOCK_SIZE), "docs_popular": documents.POPULAR,
        "lpf_hits": hits[LONGEST], "fcfs_hits": hits[IN_ORDER],
        "lpf_ttft": means[LONGEST], "fcfs_ttft": means[IN_ORDER],
        "lpf_ratio": _between([one.mean(False) / one.mean(True) for one in runs[LONGEST]], ".1f"),
        "lpf_rare": _between([one.mean(False) for one in runs[LONGEST]], ".1f"),
        "ageing": documents.AGEING, "aged_ttft": means[AGED],
        "tenants": replicas.TENANTS, "tenant_prompt": replicas.PROMPT, "fleet_rate": replicas.RATE,
        "replicas": replicas.REPLICAS, "tenants_fit": replicas.BLOCKS // (replicas.PROMPT // BLOCK_SIZE),
        "robin_hits": fleets["round robin"], "prefix_hits": fleets["by prefix"],
        "large_hits": large_hits(),
        "fork_system": forked.SYSTEM, "fork_text": forked.TEXT, "fork_answer": forked.ANSWER,
        "fork_branches": forked.BRANCHES, "fork_found": forked.found(agents, True),
        "fork_spared": int(agents.steps.shared.max()),
        "salted": forked.SALTED, "salt_points": 100 * fall,
        "salt_times": int(salted.steps.blocks.max()) / int(alone.steps.blocks.max()),
    }  # fmt: skip


def large_hits() -> float:
    """The hit rate of round robin where each replica has room for all prompts."""
    return replicas.hit_rate(replicas.routed("round robin", blocks=replicas.REPLICAS * replicas.BLOCKS))


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    return {
        "sixty documents: the longest prefix first is far ahead with each seed": all(
            4 * documents.answered(LONGEST, seed=seed).run.ttft.mean()
            < documents.answered(AGED, seed=seed).run.ttft.mean()
            for seed in SEEDS
        ),
        "ageing takes nearly all of the gain": all(
            (there.run.ttft.mean() - aged.run.ttft.mean()) < 0.15 * (there.run.ttft.mean() - best.run.ttft.mean())
            for there, best, aged in (
                [documents.answered(order, seed=seed) for order in documents.ORDERS] for seed in SEEDS
            )
        ),
        "rare documents wait less than anybody did in order": all(
            4 * documents.answered(LONGEST, seed=seed).mean(False) < documents.answered(IN_ORDER, seed=seed).mean(True)
            for seed in SEEDS
        ),
        "pools four times as large find less than a router does": large_hits()
        < replicas.hit_rate(replicas.routed("by prefix")),
    }
