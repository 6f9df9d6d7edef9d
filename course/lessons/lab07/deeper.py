"""The tables of lab 07's optional notebook: theory beside the recording, what chunks cost, other orders and loads."""

from collections.abc import Iterable

import numpy as np
import plotly.graph_objects as go

from course import policies, traces
from course.engine.serving import serve
from course.exercises.cards import Card
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab07 import figures, long_prompt, prefill, prompt_chunks
from course.lessons.lab07.long_prompt import PROMPT as CONTRACT
from course.lessons.lab07.long_prompt import STEP, THEORY, WHOLE
from course.policies import Policy
from course.steptime import Step, StepTime

__all__ = [
    "attention_share", "both_sides", "chunking_off", "chunks_recorded", "claims", "readings", "seconds_by_chunk",
    "settings_in_theory", "settings_recorded", "small_caps", "the_trace", "throughput", "who_goes_first",
]  # fmt: skip

SETTINGS = ((WHOLE, 0), (8_192, 0), (2_048, 0), (1_024, 0), (512, 0), (256, 0), (128, 0), (2_048, 1_024), (2_048, 512),
            (2_048, 256))  # fmt: skip
"""Token budgets and caps."""
THEORY_BADGE = f"theory: roofline of an {THEORY.gpu.name}"


def both_sides() -> go.Figure:
    """Who waits for a first token and who for the next one, over all token budgets with a cap of 512."""
    return figures.trade(long_prompt.trade(8_192, 512))


def seconds_by_chunk() -> go.Figure:
    """A step and a whole prompt over the chunk size, recorded and in theory."""
    return prefill.by_chunk(STEP, THEORY, CONTRACT, prompt_chunks.CHUNKS)


def chunks_recorded() -> Table:
    """The longest step and the whole prompt by chunk, recorded and in theory."""
    rows: list[tuple[str, ...]] = [
        ("chunk", "steps", "longest: recorded", "in theory", "whole prompt: recorded", "in theory")
    ]
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (prompt_chunks.seconds_of_steps(CONTRACT, chunk, t) for t in (STEP, THEORY))
        times = (took.max(), theory.max(), took.sum(), theory.sum())
        rows.append((f"{chunk:,}", f"{len(took):,}", *(seconds(float(value)) for value in times)))
    return table(rows, f"{CONTRACT:,} tokens in chunks beside 32 decodes [{STEP.badge}]")


def settings_recorded() -> Table:
    """Who waits how long, on the recorded card."""
    return _settings(STEP, STEP.simulated)


def settings_in_theory() -> Table:
    """The same on the roofline."""
    return _settings(THEORY, THEORY_BADGE)


def _settings(step_time: StepTime, badge: str) -> Table:
    rows: list[tuple[str, ...]] = [("budget", "cap", *long_prompt.HEADS)]
    for budget, cap in SETTINGS:
        found = long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)
        rows.append((f"{budget:,}", f"{cap:,}" if cap else "none", *long_prompt.row(found)))
    return table(rows, f"Chats, classes, and long prompts every 20 s [{badge}]")


def attention_share() -> Table:
    """Matrix products and attention of whole prompts, in theory."""
    rows: list[tuple[str, ...]] = [("prompt", "matrix products", "attention", "attention / products")]
    for tokens in (2_048, 8_192, 32_768, 131_072):
        products, attention = THEORY.per_token * tokens, THEORY.per_pair * tokens * (tokens + 1) / 2
        rows.append((f"{tokens:,}", seconds(products), seconds(attention), f"{attention / products:.0%}"))
    return table(rows, f"A prompt in one step [{THEORY_BADGE}]")


def readings() -> Table:
    """What grows with the number of chunks, and what one pair takes."""
    rows: list[tuple[str, ...]] = [("chunk", "pairs", "weights read", "K and V read", "a pair: theory", "recorded")]
    for chunk in (64, 256, 512, 2_048, 8_192):
        steps = prompt_chunks.chunk_steps(CONTRACT, chunk)
        weights = len(steps) * THEORY.model.step_weight_bytes
        kv = sum(step.prefill_context for step in steps) * THEORY.model.kv_bytes_per_token
        pairs = sum(step.prefill_pairs for step in steps)
        times = (THEORY.per_pair, prompt_chunks.seconds_a_pair(chunk))
        sizes = (f"{value / 1e9:,.0f} GB" for value in (weights, kv))
        rows.append((f"{chunk:,}", f"{pairs / 1e6:.1f} M", *sizes, *(f"{t * 1e12:.0f} ps" for t in times)))
    return table(rows, f"{CONTRACT:,} tokens in chunks [{STEP.badge}]")


def throughput() -> Table:
    """Tokens a second of the trace at saturation, over the budget."""
    trace = traces.read(traces.example())
    rows: list[tuple[str, ...]] = [("budget", "theory", "recorded")]
    for budget in (8_192, 2_048, 1_024, 512, 256, 128):
        engine = long_prompt.engine(budget)
        rates = (prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (THEORY, STEP))
        rows.append((f"{budget:,}", *(f"{rate:,.0f} tokens/s" for rate in rates)))
    return table(rows, "Prompt and answer tokens of the trace, all requests at once")


def the_trace() -> Table:
    """The trace at 8 requests/s: long and short prompts."""
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > 2_048
    rows: list[tuple[str, ...]] = [
        ("budget", "cap", "TTFT p99: long", "short", "ITL p99", "longest gap", "answers that stop > 50 ms")
    ]
    for budget, cap in ((8_192, 0), (2_048, 0), (1_024, 0), (512, 0), (2_048, 512)):
        found = long_prompt.outcome(trace.scaled(8), long_prompt.engine(budget, cap))
        waits = [float(np.percentile(found.run.ttft[group], 99)) for group in (long, ~long)]
        times = (seconds(value) for value in (*waits, found.itl["p99"], found.itl["max"]))
        rows.append((f"{budget:,}", f"{cap:,}" if cap else "none", *times, f"{(found.gaps > 0.05).mean():.0%}"))
    return table(rows, f"The trace at 8 requests/s [{STEP.simulated}]")


def who_goes_first() -> Table:
    """Chunks beside decodes, and chunks alone."""
    few = long_prompt.requests(num_chats=300)
    orders: dict[str, Policy] = {
        "vLLM's order, budget 2,048": long_prompt.engine(2_048),
        "prompts first, chunks of 2,048": prompt_chunks.PrefillFirst(64, 2_048),
        "prompts first, chunks of 512": prompt_chunks.PrefillFirst(64, 512),
    }
    rows: list[tuple[str, ...]] = [("", "longest step", "longest gap")]
    for name, order in orders.items():
        found = long_prompt.outcome(few, order)
        rows.append((name, seconds(float(found.run.steps.seconds.max())), seconds(found.itl["max"])))
    return table(rows, f"300 chats [{STEP.simulated}]")


def claims() -> Table:
    """What is often said, each beside a number."""
    four = prompt_chunks.prefill_seconds(STEP, 2_000, 512) / prompt_chunks.prefill_seconds(STEP, 2_000, 2_000)
    chunked = long_prompt.moment(512, 0)
    whole = long_prompt.moment(WHOLE, 0)
    begins, ends = chunked.chunk_steps
    steps = chunked.run.steps
    inside = (steps.start >= begins[0]) & (steps.end <= ends[-1])
    both = (steps.decodes > 0) & (steps.prefill_tokens > 0)
    halfway = STEP(Step(64, 64 * 700, ((16, CONTRACT // 2),))) * CONTRACT / 16
    counts = (f"{-(-10_000 // size)} at {size:,}" for size in (8_192, 2_048, 512))
    rows: Iterable[tuple[str, str]] = (
        ("people say", "what is computed"),
        ("2,000 tokens in chunks of 512 take four times as long", f"{four:.2f} times"),
        ("10,000 tokens take 50 iterations", f"by budget: {', '.join(counts)}"),
        ("chunks and decodes alternate", f"{(inside & both).sum()} of {inside.sum()} steps hold both"),
        (
            "chunks bring the answer of a long prompt earlier",
            f"{seconds(float(chunked.run.ttft[12]))} in chunks, {seconds(float(whole.run.ttft[12]))} in one step",
        ),
        (
            "keep prefill below 20% of the tokens of a step",
            f"16 tokens beside 64 decodes: {halfway:.0f} s for a contract",
        ),
        ("the scores of 10,000 tokens need 400 MB a head", f"a tile of 128 x 128 needs {128 * 128 * 4 // 1024} KiB"),
    )
    return table(list(rows), "What is often said")


def small_caps() -> Table:
    """Caps from 512 down, with a budget of 2,048."""
    rows: list[tuple[str, ...]] = [
        ("cap", "TTFT of a long prompt", "TTFT of a chat, p99", "longest gap", "steps of a long prompt")
    ]
    for cap in (512, 256, 128, 64, 16):
        found = long_prompt.outcome(long_prompt.requests(), long_prompt.engine(2_048, cap))
        times = (seconds(value) for value in (found.long_ttft, found.chat_ttft["p99"], found.itl["max"]))
        rows.append((f"{cap}", *times, f"{CONTRACT // cap:,}"))
    return table(rows, f"A budget of 2,048 [{STEP.simulated}]")


def chunking_off() -> Card:
    """What an engine says to a prompt that fits no step."""
    try:
        serve(long_prompt.requests(), policies.Continuous(64, 8_192, enable_chunked_prefill=False), STEP)
    except ValueError as error:
        return Card("The engine refuses.", [f"{str(error)[0].upper()}{str(error)[1:]}."])
    raise AssertionError("a prompt above the budget was served whole")
