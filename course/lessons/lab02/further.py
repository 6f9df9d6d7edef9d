"""The tables of lab 02's optional notebook."""

from __future__ import annotations

import numpy as np

from course import gpu
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab02 import on_device, one_curve, two_cards
from course.lessons.lab02.one_step import (
    CARD,
    CONTEXT,
    FLOOR,
    KV_TOKEN,
    MODEL,
    STEP,
    WEIGHTS,
    floor_of,
    one_step,
    points,
)
from course.models import gpus
from course.steptime import Curve, Moe, Roofline, Step, fit, recorded

__all__ = [
    "claims",
    "experts",
    "floor_and_recording",
    "narrow_weights",
    "read_here",
    "ridges",
    "small_model",
    "three_contexts",
    "two_bands",
]

CARDS = ("L4", "RTX-4090", "L40S", "A100", "H100", "H200", "B200", "MI300X")
BATCHES = (1, 8, 16, 32, 64, 128, 256)
PROMPTS = (64, 256, 512, 2_048, 8_192)
DRAWS = 200
PROBE = 3.13e12
"""Bytes/s of the fastest read pattern on the card of the recording (docs/benchmarks.md, "A whole step")."""
SIZES = tuple(2**power for power in (18, 20, 22, 24, 26, 28))
"""Bytes that are read again and again."""
EXPERTS, DENSE = Moe("qwen3-30b-a3b", "H200"), Roofline("llama-3.1-8b", "H200")
TOKENS = (1, 16, 64, 256)
"""Sequences that decode, each a token a step."""
SMALL, SMALL_KV = "h100_llama3_1b", 32_768
"""The recording of a model of 1 billion parameters, and its KV bytes a token."""


def ridge(card: str) -> float:
    """FLOP for each byte at which both take as long, by the data sheet: sequences, with weights of 2 bytes."""
    bandwidth, flops = two_cards.rates(card)
    return flops / bandwidth


def even() -> float:
    """Sequences of 1,024 tokens whose K and V are as large as the weights; no card is in it."""
    return WEIGHTS / (KV_TOKEN * CONTEXT)


def cost(model: Roofline, sequences: int) -> float:
    """How many times as long a decode step of so many sequences of 1,024 tokens takes as one of a single one."""
    one, many = (model(Step(each, each * CONTEXT, ())) for each in (1, sequences))
    return many / one


def experts() -> Table:
    """What a mixture of experts reads for more tokens, beside a dense model."""
    rows: list[tuple[str, ...]] = [("", "experts a layer", "weights read", "step / that of one", "dense 8B")]
    for tokens in TOKENS:
        read = EXPERTS.bytes_read(tokens)
        rows.append(
            (
                f"{tokens} sequences" if tokens > 1 else "1 sequence",
                f"{EXPERTS.touched(tokens):.0f} of {EXPERTS.experts}",
                f"{read / 1e9:.1f} GB, {read / EXPERTS.bytes_read(1):.1f}x",
                f"{cost(EXPERTS, tokens):.2f}",
                f"{cost(DENSE, tokens):.2f}",
            )
        )
    return table(rows, f"Qwen3-30B-A3B, {CONTEXT:,} tokens each [{EXPERTS.badge}]")


def ridges() -> Table:
    """Cards: where multiplying would be the limit, and the floor of a step of one and of `even` sequences."""
    many = round(even())
    rows: list[tuple[str, ...]] = [("", "TB/s", "TFLOP/s", "FLOP a byte", "step of 1", f"step of {many}", "times")]
    for card in CARDS:
        bandwidth, flops = two_cards.rates(card)
        one, all_of_them = (floor_of(gpus.gpu(card)).seconds(n, n * CONTEXT, 0, 0, 0) for n in (1, many))
        cells = (f"{bandwidth / 1e12:.2f}", f"{flops / 1e12:.0f}", f"{ridge(card):.0f}")
        rows.append((card, *cells, seconds(one), seconds(all_of_them), f"{all_of_them / one:.2f}"))
    return table(rows, "Data sheets, and floors of Llama-3.1-8B at 1,024 tokens [theory]")


def floor_and_recording() -> Table:
    """Recorded over floor: decodes over the batch, and prompts over their length."""
    contexts = (256, 1_024)
    rows: list[tuple[str, ...]] = [("", *(f"{context:,} tokens each" for context in contexts), "", "one prompt")]
    prompts = [(f"{prompt:,} tokens", f"{over_floor(prompt):.2f}") for prompt in PROMPTS] + [("", "")] * 2
    for batch, (name, ratio) in zip(BATCHES, prompts, strict=True):
        steps = [one_step(batch, context) for context in contexts]
        rows.append((_decodes(batch), *(f"{step.recorded / step.floor:.2f}" for step in steps), name, ratio))
    return table(rows, f"Recorded / floor [{STEP.badge}, beside theory]")


def _decodes(batch: int) -> str:
    return f"{batch} decode{'s' * (batch > 1)}"


def over_floor(tokens: int) -> float:
    """Recorded over floor of a step with one prompt and nothing else."""
    pairs = tokens * (tokens + 1) // 2
    return STEP.seconds(0, 0, tokens, pairs, 0) / FLOOR.seconds(0, 0, tokens, pairs, 0)


def three_contexts() -> Table:
    """The curve of each context: constants with their intervals, the knee, and W / K."""
    rows: list[tuple[str, ...]] = [("tokens each", "t0 [ms]", "c [ms]", "alpha", "knee", "W / K")]
    for context in one_curve.CONTEXTS:
        curve = one_curve.one_curve(context).curve
        cells = (
            _between(curve.t0, curve.t0_interval, 1e3),
            _between(curve.c, curve.c_interval, 1e3),
            _between(curve.alpha, curve.alpha_interval, 1),
        )
        rows.append((f"{context:,}", *cells, f"{curve.knee:.0f}", f"{even() * CONTEXT / context:.0f}"))
    return table(rows, f"t0 + c b^alpha, with 95% intervals [{STEP.badge}, fitted]")


def _between(value: float, interval: tuple[float, float], times: float) -> str:
    low, high = (times * end for end in interval)
    return f"{times * value:.3g} ({low:.2g} to {high:.2g})"


def again(curve: Curve, batches: np.ndarray, seed: int = 0) -> list[Curve]:
    """Curves fitted to points drawn around it with the spread that the fit found: how its constants scatter."""
    rng = np.random.default_rng(seed)
    spread = rng.normal(1, curve.error, (DRAWS, len(batches)))
    return [fit(batches, curve.seconds(batches) * each) for each in spread]


def two_bands() -> Table:
    """The step of some batches: the band of the fit, and what fits to drawn points give."""
    curve, (batches, _) = one_curve.one_curve().curve, points(CONTEXT)
    drawn = again(curve, batches)
    rows: list[tuple[str, ...]] = [("", "curve", "band", f"{DRAWS} draws, 2.5 to 97.5%")]
    for batch in (1, 16, 64, 256):
        low, high = (float(end) for end in curve.band(batch))
        few, many = np.percentile([float(each.seconds(batch)) for each in drawn], (2.5, 97.5))
        rows.append((f"step of {batch}", seconds(float(curve.seconds(batch))), _span(low, high), _span(few, many)))
    few, many = np.percentile([each.knee for each in drawn], (2.5, 97.5))
    rows.append(("knee", f"{curve.knee:.0f}", "-", f"{few:.0f} to {many:.0f}"))
    return table(rows, f"How well {len(batches)} points know the curve [{STEP.badge}, fitted]")


def _span(low: float, high: float) -> str:
    return f"{1e3 * low:.3g} to {1e3 * high:.3g} ms"


def narrow_weights() -> Table:
    """Floors with weights of 16 and of 8 bits, multiplied in 16: decodes, and one prompt."""
    rows: list[tuple[str, ...]] = [("", "16 bits", "8 bits", "times as fast")]
    half = WEIGHTS / 2 / CARD.read_bandwidth
    for batch in BATCHES:
        step = one_step(batch)
        narrow = max(half, step.computing) + step.reading_kv
        rows.append((_decodes(batch), *map(seconds, (step.floor, narrow)), f"{step.floor / narrow:.2f}"))
    for prompt in (256, 512, 2_048):
        pairs = prompt * (prompt + 1) // 2
        attention, products = FLOOR.per_pair * pairs, FLOOR.per_token * prompt
        wide, narrow = (max(reading, products) + attention for reading in (FLOOR.weights, half))
        rows.append((f"a prompt of {prompt:,}", *map(seconds, (wide, narrow)), f"{wide / narrow:.2f}"))
    return table(rows, "Floors on an H100, 1,024 tokens for each decode [theory]")


def small_model() -> Table:
    """Llama-3.1-8B beside a model of 1 billion parameters on the same card."""
    rows: list[tuple[str, ...]] = [("", "8B", "1B")]
    profiles = [recorded(name) for name in ("h100_llama3_8b", SMALL)]
    sizes = [WEIGHTS, small_weights()]
    curves = [fit(*points(CONTEXT, name)) for name in ("h100_llama3_8b", SMALL)]
    reading = [size / CARD.read_bandwidth for size in sizes]
    rows.append(("weights", *(f"{size / 1e9:.2f} GB" for size in sizes)))
    rows.append(("time to read them", *map(seconds, reading)))
    rows.append(("t0", *(seconds(curve.t0) for curve in curves)))
    rows.append(("t0 / reading", *(f"{c.t0 / r:.2f}" for c, r in zip(curves, reading, strict=True))))
    rows.append(("knee", *(f"{curve.knee:.0f}" for curve in curves)))
    costs = [[one_curve.dollars(b, float(c.seconds(b)), one_curve.PRICE) for c in curves] for b in (1, 64)]
    for batch, cost in zip((1, 64), costs, strict=True):
        rows.append((f"a million tokens, batch {batch}", *(f"{value:.3g} dollars" for value in cost)))
    return table(rows, f"1,024 tokens each [{profiles[1].badge}, fitted]")


def small_weights() -> int:
    """Bytes of weights that a step of the small model reads."""
    from course.steptime import files

    return int(files.read("llama_step", SMALL)["weight_bytes"])


def read_here(
    device: gpu.Device | None = None, *, sizes: tuple[int, ...] = SIZES, max_seconds: float = on_device.ENOUGH
) -> Table:
    """Rates of reading on this machine, over the size of what is read again and again."""
    device = device or gpu.device()
    rows: list[tuple[str, ...]] = [("", "read", "every 16th number")]
    for size in sizes:
        whole = on_device.read_rate(device, size, max_seconds=max_seconds)
        few = float("nan") if device.is_gpu else on_device.read_rate(device, size, 16, max_seconds=max_seconds)
        rows.append(
            (f"{size / 2**20:g} MiB", *(f"{rate / 1e9:.3g} GB/s" if rate > 0 else "-" for rate in (whole, few)))
        )
    return table(rows, f"{device.name} [measured]")


def claims() -> Table:
    """What is often said, beside what the recording says."""
    one, eight, many = (one_step(batch) for batch in (1, 8, 64))
    read = one.bytes / one.recorded
    launches = Roofline(MODEL, CARD).launch
    rows = [
        ("it is said", "recorded on the H100"),
        ("a batch of 8 uses 8% of the compute", f"{100 * eight.share:.1f}%"),
        ("one request leaves bandwidth unused", f"{read / 1e12:.2f} TB/s, {100 * read / PROBE:.0f}% of the probe's"),
        ("tokens/s = 1 / TPOT", f"at 64: {1 / many.recorded:.0f}, and {64 / many.recorded:,.0f} in truth"),
        ("launches make decodes slow", f"as one graph: 356 take {seconds(launches)} of {seconds(one.recorded)}"),
        ("data sheet: 3.35 TB/s", f"the best read probe: {PROBE / 1e12:.2f}"),
    ]
    return table([("", *rows[0][1:]), *rows[1:]], f"Claims [{STEP.badge}]")
