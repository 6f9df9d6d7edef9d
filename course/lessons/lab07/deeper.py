"""The tables of lab 07's optional notebook: theory beside the recording, what chunks cost, other orders and loads."""

from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab07 import long_prompt, prompt_chunks
from course.lessons.lab07.long_prompt import PROMPT, STEP, THEORY, WHOLE

__all__ = ["chunks_recorded", "settings", "throughput"]

SETTINGS = ((WHOLE, 0), (8_192, 0), (2_048, 0), (1_024, 0), (512, 0), (256, 0), (128, 0), (2_048, 1_024), (2_048, 512),
            (2_048, 256))  # fmt: skip
"""Token budgets and caps."""


def settings() -> Table:
    """Who waits how long, by budget and cap."""
    heads = ("budget", "cap", "long TTFT", "chat p99 TTFT", "ITL p99", "longest gap", "chats stalled")
    rows: list[tuple[str, ...]] = [heads]
    for budget, cap in SETTINGS:
        found = long_prompt.served(budget, cap)
        times = (found.long_ttft, found.chat_ttft["p99"], found.itl["p99"], found.itl["max"])
        limits = (f"{budget:,}", f"{cap:,}" if cap else "none")
        rows.append((*limits, *map(seconds, times), f"{found.stalled():.1%}"))
    return table(rows, f"Chats, classes, and long prompts every 20 s [{STEP.simulated}]")


def chunks_recorded() -> Table:
    """The longest step and the whole prompt by chunk, recorded and in theory."""
    rows: list[tuple[str, ...]] = [
        ("chunk", "steps", "longest: recorded", "in theory", "whole prompt: recorded", "in theory")
    ]
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (prompt_chunks.seconds_of_steps(chunk, t) for t in (STEP, THEORY))
        times = (took.max(), theory.max(), took.sum(), theory.sum())
        rows.append((f"{chunk:,}", f"{len(took):,}", *(seconds(float(value)) for value in times)))
    return table(rows, f"{PROMPT:,} tokens in chunks beside 32 decodes [{STEP.badge}]")


def throughput() -> Table:
    """Tokens a second of the trace at saturation, over the budget."""
    rows: list[tuple[str, ...]] = [("budget", "theory", "recorded")]
    for budget in (8_192, 2_048, 1_024, 512, 256, 128):
        rows.append((f"{budget:,}", *(f"{rate:,.0f} tokens/s" for rate in prompt_chunks.throughput(budget))))
    return table(rows, "Prompt and answer tokens of the trace, all requests at once")
