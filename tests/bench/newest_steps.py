"""Whole steps with split products, clusters and drafts, each beside what it replaces: for `kernels.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from course.gpu import step_profile
from course.gpu.ops import split_gemm
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.transformer import Llama, Shape, Step
from course.models import model
from tests.bench.newest import BEST, FASTER

STEPS = (
    *((many, drafts) for many in (1, 2, 4) for drafts in (1, 2, 3)),
    *((1, 7), (8, 1), (8, 2), (8, 3), (16, 1), (16, 3), (32, 1), (64, 1), (64, 3)),
)
NAMES = {"heads": "qkv", "silu": "gate-up", "rows": "gate-up"}


def best(groups: int, tiles: int, columns: int) -> dict[str, int]:
    """The fastest form of this product alone, or of one that is like it."""
    near = [at for at in BEST if at[2] == columns]
    if not near:
        return {}
    return BEST[min(near, key=lambda at: (abs(at[0] - groups), abs(np.log(at[1] / tiles))))][1]


@contextmanager
def form(plan: Any = None, cluster: Any = None, faster: Callable[..., bool] | None = None) -> Iterator[None]:
    """Steps in another form: what DecodeAttention's `plan` and `cluster` return, and where split products are taken."""
    given = split_gemm.prepare

    def prepare(queue: Any, x: Any, w: Any, *args: Any, **more: Any) -> Any:
        how = best(int(x.shape[1]), int(w.shape[0]), 32 * int(x.shape[0]))
        return given(queue, x, w, *args, **{**how, **more})

    own = DecodeAttention.plan, DecodeAttention.cluster, split_gemm.faster
    with (
        patch.object(DecodeAttention, "plan", (lambda *args, **more: plan) if plan else own[0]),
        patch.object(DecodeAttention, "cluster", (lambda *args: cluster) if cluster else own[1]),
        patch.object(split_gemm, "faster", faster or own[2]),
        patch.object(split_gemm, "prepare", prepare if BEST else given),
    ):
        yield


def never(*args: Any) -> bool:
    """No split product at all."""
    return False


def some(queue: Any, rows: int, finish: str, columns: int) -> bool:
    """Those that were faster alone."""
    name = NAMES.get(finish) or ("o" if columns == 4_096 else "down")
    return rows > 32 or (-(-rows // 8), columns, name) in FASTER


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
    """Whole steps whose parts of a sequence merge in one way or another: cNwM, N blocks of M warps; iMbK, items."""
    llama = loaded(b)
    for sequences in (1, 2, 3, 4, 6, 8, 12):
        for rows in (1, 2, 4) if sequences <= 8 else (1,):
            row: dict[str, Any] = {}
            first = None
            for cluster, warps in ((1, 0), (2, 8), (4, 4), (4, 8), (8, 4), (8, 8), (16, 4), (1, 0)):
                if cluster > 1 and not 128 <= 8 * cluster * warps * sequences <= 1_600:
                    continue
                with form(cluster=(cluster, warps), faster=never):
                    step = partial(verifying, llama, sequences, rows - 1)
                    ms, logits, _ = timed(b, step)
                first = logits if first is None else first
                name = f"c{cluster}w{warps}" if cluster > 1 else "items" if "items" not in row else "again"
                row[name] = ms
                row["apart"] = max(row.get("apart", 0.0), float(np.linalg.norm(logits - first) / np.linalg.norm(first)))
            b.keep("merges", sequences=sequences, newest=rows, **row)


def ways(b: Any) -> None:
    """Whole steps of an 8B: as they were, as they are, and with the split products that were faster alone."""
    llama = loaded(b)
    weights, kv = llama.shape.step_weight_bytes("bf16"), llama.shape.kv_bytes_per_token("bf16")
    forms: dict[str, dict[str, Any]] = {
        "before": {"cluster": (1, 0), "faster": never},
        "now": {"faster": some},
        "split": {"faster": lambda queue, rows, *args: rows > 8},
    }
    for batch in (1, 2, 4, 8, 16, 17, 24, 32, 48, 64):
        floor = 1e3 * (weights + batch * 1_024 * kv) / b.bandwidth
        first = None
        for name, how in forms.items():
            if name == "split" and not 8 < batch <= 32:
                continue
            with form(**how), patch.object(split_gemm, "serves", split_gemm.serves if name != "before" else never):
                try:
                    ms, logits, kind = timed(b, partial(verifying, llama, batch, 0))
                except Exception as error:
                    b.say("ways", batch, name, str(error)[:300])
                    continue
            first = logits if first is None else first
            apart_by = float(np.linalg.norm(logits - first) / np.linalg.norm(first))
            b.keep("ways", batch=batch, form=name, kind=kind, ms=ms, ratio=ms / floor, logits=apart_by)


def drafted(b: Any) -> None:
    """Steps that verify, beside a plain one of as many sequences and beside rows that are decodes of their own."""
    llama = loaded(b)
    for sequences, drafts in STEPS:
        with form(cluster=(1, 0), faster=never), patch.object(split_gemm, "serves", never):
            before = timed(b, partial(verifying, llama, sequences, 0))[0]
            rows, right, _ = timed(b, partial(apart, llama, sequences, drafts))
        with form(faster=some):
            plain = timed(b, partial(verifying, llama, sequences, 0))[0]
            now, logits, kind = timed(b, partial(verifying, llama, sequences, drafts))
        b.keep(
            "drafted", sequences=sequences, drafts=drafts, kind=kind, plain_before=before, apart=rows, plain=plain,
            now=now, ratio_before=rows / before, ratio=now / plain,
            logits=float(np.linalg.norm(logits - right) / np.linalg.norm(right)),
        )  # fmt: skip
