"""Whole steps with split products, clusters and drafts, each beside what it replaces: for `kernels.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from course.gpu import step_profile
from course.gpu.ops import gather, skinny_gemm, split_gemm
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.transformer import Llama, Shape, Step
from course.models import model
from tests.bench.kernels_products import VARIANT

STEPS = (
    *((many, drafts) for many in (1, 2, 4) for drafts in (1, 2, 3)),
    *((1, 7), (8, 1), (8, 2), (8, 3), (16, 1), (16, 3), (32, 1), (64, 1), (64, 3)),
)
NAMES = {"heads": "qkv", "silu": "gate-up", "rows": "gate-up"}


@contextmanager
def form(cluster: Any = None, split: bool = True, variant: Any = None, squares: bool = True) -> Iterator[None]:
    """Steps in another form: what `DecodeAttention.cluster` and `skinny_gemm.variant` say, and with split products.

    squares: those of x are left by who adds to it; if not, each product computes them.
    """
    own = DecodeAttention.cluster, split_gemm.faster, skinny_gemm.variant

    def told(prepare: Callable[..., Any]) -> Callable[..., Any]:
        return prepare if squares else lambda *args, squares=None, **how: prepare(*args, **how)

    with (
        patch.object(gather, "prepare", told(gather.prepare)),
        patch.object(skinny_gemm, "prepare", told(skinny_gemm.prepare)),
        patch.object(split_gemm, "prepare", told(split_gemm.prepare)),
        patch.object(DecodeAttention, "cluster", (lambda *args: (*cluster, 1)) if cluster else own[0]),
        patch.object(split_gemm, "faster", own[1] if split else lambda *args: False),
        patch.object(skinny_gemm, "variant", variant or own[2]),
    ):
        yield


BEFORE: dict[str, Any] = {"cluster": (1, 0), "split": False, "squares": False}


def fastest(groups: int, finish: str, columns: int) -> tuple[int, int, int]:
    """The variant of `skinny_gemm` that was fastest alone."""
    name = NAMES.get(finish) or ("o" if columns == 4_096 else "down")
    return VARIANT[groups, name]


def timed(b: Any, make: Callable[[], Step]) -> tuple[float, np.ndarray, str]:
    """(milliseconds, logits, form) of a step."""
    step = make()
    step.run()
    logits = step.logits()
    return 1e3 * float(np.median(b.q.seconds(step.captured(), repeats=15, warm=3))), logits, step.form


def loaded(b: Any) -> Llama:
    """An 8B with random weights, once."""
    if not hasattr(b, "llama"):
        sizes = Shape.of(model("llama-3.1-8b"))
        b.llama = Llama(b.q, sizes, blocks=8_192, max_tokens=2_048, max_sequences=512, max_positions=8_192)
        b.llama.fill_cache()
    return b.llama


def verifying(llama: Llama, sequences: int, drafts: int) -> Step:
    """The step that verifies drafts; a plain one without."""
    return step_profile.verify_step_at(llama, (sequences, drafts, 1_024), np.random.default_rng(0))


def apart(llama: Llama, sequences: int, drafts: int) -> Step:
    """The same with each row a decode of its own."""
    rng, rows = np.random.default_rng(0), drafts + 1
    step = Step(llama, lengths=[1_024 - drafts + row for _ in range(sequences) for row in range(rows)])
    tables = step_profile._tables(llama, [64] * sequences, rng)
    step.write(rng.integers(0, llama.shape.vocabulary, step.tokens), [one for one in tables for _ in range(rows)])
    return step


def merges(b: Any) -> None:
    """Whole steps whose parts of a sequence merge as a cluster, cNwM: N blocks of M warps; or as items."""
    llama = loaded(b)
    for sequences, length in (*product((1, 2, 4, 8), (256, 2_048, 4_096)), (1, 7_680), (8, 7_680)):
        row: dict[str, Any] = {}
        for cluster, warps in ((1, 0), (2, 8), (4, 8), (8, 4), (8, 8), (16, 4), (1, 0)):
            if cluster > 1 and not 256 <= 8 * cluster * warps * sequences <= 1_600:
                continue
            with form(cluster=(cluster, warps)):
                point = sequences, length, 0, 0
                ms, _, _ = timed(b, partial(step_profile.step_at, llama, point, np.random.default_rng(0)))
            row[f"c{cluster}w{warps}" if cluster > 1 else "items" if "items" not in row else "again"] = ms
        b.keep("merges", sequences=sequences, length=length, **row)


def ways(b: Any) -> None:
    """Whole steps of an 8B: as they were, as they are, and with the products that were fastest alone."""
    llama = loaded(b)
    weights, kv = llama.shape.step_weight_bytes("bf16"), llama.shape.kv_bytes_per_token("bf16")
    forms: dict[str, dict[str, Any]] = {"before": BEFORE, "computed": {"squares": False}, "now": {}}
    if VARIANT:
        forms |= {"variant": {"variant": fastest}, "variant alone": {"variant": fastest, "split": False}}
    for batch in (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 64):
        floor = 1e3 * (weights + batch * 1_024 * kv) / b.bandwidth
        found: dict[str, float] = {}
        first = None
        for name, how in [*forms.items(), *forms.items()]:
            with form(**how):
                ms, logits, kind = timed(b, partial(verifying, llama, batch, 0))
            first = logits if first is None else first
            found[name] = min(found.get(name, ms), ms)
        apart_by = float(np.linalg.norm(logits - first) / np.linalg.norm(first))
        ratios = {f"{name} / floor": ms / floor for name, ms in found.items()}
        b.keep("ways", batch=batch, kind=kind, **found, **ratios, logits=apart_by)


def drafted(b: Any) -> None:
    """Steps that verify, beside a plain one of as many sequences and beside rows that are decodes of their own."""
    llama = loaded(b)
    for sequences, drafts in STEPS:
        with form(**BEFORE):
            before = timed(b, partial(verifying, llama, sequences, 0))[0]
            rows, right, _ = timed(b, partial(apart, llama, sequences, drafts))
        with form(variant=fastest if VARIANT else None):
            plain = timed(b, partial(verifying, llama, sequences, 0))[0]
            now, logits, kind = timed(b, partial(verifying, llama, sequences, drafts))
        b.keep(
            "drafted", sequences=sequences, drafts=drafts, kind=kind, plain_before=before, apart=rows, plain=plain,
            now=now, ratio_before=rows / before, ratio=now / plain,
            logits=float(np.linalg.norm(logits - right) / np.linalg.norm(right)),
        )  # fmt: skip
