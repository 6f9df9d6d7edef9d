"""Attention, for `kernels.py`: of decodes, equal and ragged, of prompt chunks, and of both."""

from __future__ import annotations

import numpy as np

from course.gpu.ops import rope, rope_append, work_list
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.prefill_attention import PrefillAttention
from tests.bench import mixes
from tests.bench.cards import Bench, Caches


def attend(
    b: Bench,
    caches: Caches,
    attention: DecodeAttention,
    lengths: np.ndarray,
    plan: tuple[int, int],
    in_step: bool = False,
) -> float:
    """Seconds of a launch; in_step: with RoPE before it and dependent launch, as a step has both."""
    put, sequences = b.q.device.to_device, len(lengths)
    q, out = (b.random(sequences, attention.heads, attention.width, seed=s) for s in (5, 6))
    warps, blocks = plan
    cut = work_list.cut(lengths, blocks)
    given = [put(one) for one in (lengths.astype(np.int32), cut.items, cut.spans)]
    qkv = b.random(sequences, attention.heads + 2 * attention.kv_heads, attention.width)
    turns, last = put(rope.turns(int(lengths.max()), attention.width)), lengths - 1
    launches: list = []
    for table in caches.tables(lengths):
        at = table.get()[np.arange(sequences), last // 16] * 16 + last % 16
        before = (q, caches.k, caches.v, turns, put(last.astype(np.int32)), put(at.astype(np.int32)))
        own = attention.prepare(q, caches.k, caches.v, table, *given, out, warps=warps, chained=in_step)
        launches += [rope_append.prepare(b.q, qkv, *before, chained=True), own] if in_step else [own]
    return b.each(launches * max(1, 4 // len(launches))) * (1 + in_step)


FORMS = {
    "tensor": {"tensor": True},
    "plain": {"tensor": False},
}


def attention(b: Bench) -> None:
    caches = Caches(b, 8)
    for group in (4, 8):
        for form, how in FORMS.items():
            one = DecodeAttention(b.q, heads=8 * group, kv_heads=8, width=128, max_items=4096, **how)
            for sequences, length in (
                (1, 1024),
                (1, 8192),
                (8, 1024),
                (8, 8192),
                (32, 1024),
                (32, 8192),
                (64, 4096),
                (128, 1024),
            ):
                lengths = np.full(sequences, length)
                moved = sequences * length * 4096
                chosen = one.plan(lengths)
                seconds = attend(b, caches, one, lengths, chosen)
                inside = attend(b, caches, one, lengths, chosen, in_step=True)
                best = (seconds, chosen)
                for parts in (1, 2, 4, 8, 16):
                    for warps in (4, 8) if one.tensor else (4,):
                        plan = warps, -(-length // 16 // parts)
                        if plan != chosen and 64 <= sequences * parts * 8 <= 4096:
                            best = min(best, (attend(b, caches, one, lengths, plan), plan))
                b.keep(
                    "attention", group=group, form=form, sequences=sequences, length=length, us=1e6 * seconds,
                    share=moved / seconds / b.bandwidth, in_step=moved / inside / b.bandwidth, plan=chosen,
                    best_us=1e6 * best[0], best_plan=best[1],
                    best_share=moved / best[0] / b.bandwidth,
                )  # fmt: skip


def ragged(b: Bench) -> None:
    caches, rng = Caches(b, 8), np.random.default_rng(5)
    cases = {
        "32 of 128 to 8,192": rng.integers(128, 8193, 32),
        "64 lognormal": np.clip(np.exp(rng.normal(6.5, 0.9, 64)).astype(int), 16, 16384),
        "63 of 512 and one of 32,768": np.array([32768] + [512] * 63),
        "7 of 1,024 and one of 16,384": np.array([16384] + [1024] * 7),
        "128 of 64 to 2,048": rng.integers(64, 2049, 128),
    }
    for form, how in FORMS.items():
        one = DecodeAttention(b.q, heads=32, kv_heads=8, width=128, max_items=4096, **how)
        for name, lengths in cases.items():
            chosen, moved = one.plan(lengths), int(lengths.sum()) * 4096
            plans = {
                chosen,
                *((warps, blocks) for blocks in (32, 64, 128) for warps in ((4, 8) if one.tensor else (4,))),
            }
            tried = {plan: attend(b, caches, one, lengths, plan) for plan in plans}
            best = min(tried, key=tried.__getitem__)
            b.keep(
                "ragged", case=name, form=form, share=moved / tried[chosen] / b.bandwidth, plan=chosen,
                in_step=moved / attend(b, caches, one, lengths, chosen, in_step=True) / b.bandwidth,
                best_share=moved / tried[best] / b.bandwidth, best_plan=best,
            )  # fmt: skip


def prefill(b: Bench) -> None:
    caches = Caches(b, 8)
    one = PrefillAttention(b.q, heads=32, kv_heads=8, width=128, max_parts=128)
    put = b.q.device.to_device
    for tokens, cached in (
        (1024, 0),
        (4096, 0),
        (8192, 0),
        (128, 2048),
        (128, 8192),
        (512, 0),
        (512, 3584),
        (2048, 0),
        (64, 8192),
    ):
        q, out = (b.random(tokens, 32, 128, seed=s) for s in (5, 6))
        table = put(caches.order[: -(-(tokens + cached) // 16)].reshape(1, -1))
        listed = [(0, tokens, cached, 0)]
        work = 4 * 32 * 128 * (tokens * cached + tokens * (tokens + 1) // 2)
        slabs = one.slabs(listed)
        chosen = (slabs, one.splits(listed, slabs))
        for slabs in (1, 2):
            for splits in (1, 2, 4, 8):
                tiles = one.tiles(listed, slabs)
                if splits > 1 and (slabs > 1 or len(tiles) * splits > 128):
                    continue
                launch = one.prepare(
                    q,
                    caches.k,
                    caches.v,
                    table,
                    put(np.array(listed, np.int32)),
                    put(tiles),
                    out,
                    slabs=slabs,
                    splits=splits,
                )
                seconds = b.each([launch] * 4, repeats=3)
                b.keep(
                    "prefill", tokens=tokens, cached=cached, slabs=slabs, splits=splits, us=1e6 * seconds,
                    tflops=work / seconds / 1e12, chosen=(slabs, splits) == chosen,
                )  # fmt: skip


def mixed(b: Bench) -> None:
    """A chunk and decodes: each alone, one after the other, on two branches of a graph, and in one launch."""
    caches = Caches(b, 8)
    for sizes in mixes.MIXES:
        mix = mixes.Mix(b, caches, *sizes)
        us = {f"{name}_us": 1e6 * seconds for name, seconds in mix.seconds().items()}
        gains = {"gain": us["two_us"] / us["one_us"], "on_branches": us["branches_us"] / us["one_us"]}
        b.keep("mixed", **mix.words(), **us, **gains, apart=mix.apart())
