"""The decision of lab 13: a metrics page with the counters of drafts, and how many of them to keep."""

from functools import cache

from course.lessons.lab13 import pays
from course.lessons.lab13.pays import Served

RUNNING, DRAFTS = 128, 4
NUMBERS = (0, 1, 2, 4, 7)
"""Drafts whose steps the page lists."""


@cache
def busy() -> Served:
    """The requests of the page."""
    return pays.served(RUNNING, DRAFTS)


def page() -> str:
    """What an engine's /metrics would show of it, with vLLM's names."""
    run = busy().run.step_time
    lines = [
        "# simulated, vLLM's names",
        f"vllm:num_requests_running {RUNNING}",
        "vllm:num_requests_waiting 0",
        f"vllm:spec_decode_num_drafts_total {run.drafts}",  # type: ignore[union-attr]
        f"vllm:spec_decode_num_draft_tokens_total {run.drafted}",  # type: ignore[union-attr]
        f"vllm:spec_decode_num_accepted_tokens_total {run.accepted}",  # type: ignore[union-attr]
    ]
    at = run.accepted_at[:DRAFTS].tolist()  # type: ignore[union-attr]
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    lines += [f'{name}{{position="{place}"}} {count}' for place, count in enumerate(at)]
    steps = ", ".join(f"{k}: {step_ms(k):.1f}" for k in NUMBERS)
    lines += [f"# a step by drafts [ms]: {steps}", f"# {pays.STEP.badge}, the head modelled"]
    return "\n".join(lines)


def acceptance() -> float:
    """The share of first drafts that were accepted."""
    run = busy().run.step_time
    return float(run.accepted_at[0] / run.drafts)  # type: ignore[union-attr]


def step_ms(k: int) -> float:
    """Milliseconds of a step with k drafts at this batch, drafting included."""
    if not k:
        return 1e3 * pays.pays(batch=RUNNING).plain
    found = pays.pays(k=k, batch=RUNNING)
    return 1e3 * (found.draft + found.verification)


def speed(k: int, accept: float) -> float:
    """Tokens/s of all with k drafts."""
    return RUNNING * (pays.expected(accept, k) if k else 1) / step_ms(k) * 1e3


def best() -> int:
    """The number of drafts with the most tokens/s."""
    return max(range(pays.MOST + 1), key=lambda k: speed(k, acceptance()))
