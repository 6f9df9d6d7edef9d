"""Decode attention over a KV cache of 8-bit numbers on a GPU, beside the one of bf16: results and times.

    python -m tests.bench.fp8_cache fp8.json

Times are of launches in a CUDA graph over caches that take turns, Llama 3.1 8B's heads: 32 queries, 8 keys, 128 wide.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from course import gpu
from course.gpu.ops import decode_attention, e4m3, fill, numbers, work_list
from course.gpu.ops.decode_attention import BLOCK, DecodeAttention
from course.gpu.queues import queue

HEADS, KV_HEADS, WIDTH = 32, 8, 128
TOKEN = 2 * KV_HEADS * WIDTH * 2
"""Bytes of a token in bf16, of one layer."""
BATCHES = (
    (1, 1_024),
    (1, 8_192),
    (8, 1_024),
    (8, 8_192),
    (32, 1_024),
    (32, 8_192),
    (64, 4_096),
    (128, 1_024),
    (256, 1_024),
)
FORMS: dict[str, dict[str, int]] = {"4 warps": {"warps": 4}, "8 warps": {"warps": 8}}


def right(on: Any) -> dict[str, float]:
    """||found - float64|| / ||float64|| of each form, from the same 8-bit numbers, fp16 results; and of rounding."""
    rng = np.random.default_rng(0)
    lengths, blocks = [1, 16, 700, 2_049, 333], 220
    keys, values = (rng.normal(size=(blocks, KV_HEADS, BLOCK, WIDTH)) * size for size in (1.3, 0.7))
    scales = e4m3.scales_of(keys.swapaxes(1, 2), values.swapaxes(1, 2))
    k, v = (e4m3.encode(part / scale[:, None, None]) for part, scale in zip((keys, values), scales, strict=True))
    table = np.stack([rng.permutation(blocks)[:130] for _ in lengths]).astype(np.int32)
    q = numbers.encode(rng.normal(size=(len(lengths), HEADS, WIDTH)), "fp16")
    exact = decode_attention.reference(q, k, v, table, lengths, "fp16", scales=scales)
    found = {}
    for name, how in {**FORMS, "no tensor cores": {"tensor": False}}.items():
        for size in (200, 7):
            cut = work_list.cut(lengths, size)
            attention = DecodeAttention(
                on,
                heads=HEADS,
                kv_heads=KV_HEADS,
                width=WIDTH,
                kind="fp16",
                kv_cache_dtype="fp8_e4m3",
                **how,  # type: ignore[arg-type]
            )
            arrays = [q, k, v, table, np.array(lengths, np.int32), cut.items, cut.spans]
            out = on.device.to_device(np.full(q.shape, np.nan, np.float16))
            given = [on.device.to_device(one) for one in (*arrays, scales)]
            launch = attention.prepare(*given[:-1], out, scales=given[-1])
            for _ in range(2):  # counters are zero again
                launch()
            on.wait()
            apart = on.device.to_numpy(out).astype(float) - exact
            found[f"{name}, items of {size}"] = float(np.linalg.norm(apart) / np.linalg.norm(exact))
    whole = decode_attention.reference(
        q, keys.astype(np.float32), values.astype(np.float32), table, lengths, "fp32"
    )  # of the numbers that were rounded
    found["what rounding keys and values to e4m3 does"] = float(np.linalg.norm(exact - whole) / np.linalg.norm(whole))
    return found


class Caches:
    """Caches of one layer for a batch, so many that they do not stay in the second cache, taken in turn."""

    def __init__(self, on: Any, sequences: int, tokens: int) -> None:
        self.on, self.lengths = on, [tokens] * sequences
        need = -(-tokens // BLOCK) * sequences
        self.copies = max(1, -(-300_000_000 // (sequences * tokens * TOKEN // 2)))
        device, blocks = on.device, need * self.copies
        shape = (blocks, KV_HEADS, BLOCK, WIDTH)
        self.k, self.v = (device.empty(shape, np.uint16) for _ in range(2))
        for seed, cache in enumerate((self.k, self.v)):
            fill.prepare(on, cache, bound=1.7, seed=seed)()
        self.k8, self.v8 = (device.empty(shape, np.uint8) for _ in range(2))
        with on.here():  # any bytes but those of NaN are numbers of e4m3; these are below 16
            for cache in (self.k8, self.v8):
                cache[...] = on.cupy.random.randint(0, 256, shape, dtype=np.uint8) & 0xDF
        order = np.random.default_rng(1).permutation(blocks).reshape(self.copies, sequences, -1)
        self.tables = [device.to_device(one.astype(np.int32)) for one in order]
        self.there = device.to_device(np.array(self.lengths, np.int32))
        self.q = device.empty((sequences, HEADS, WIDTH), np.uint16)
        fill.prepare(on, self.q, bound=1.7, seed=9)()
        self.out = device.empty((sequences, HEADS, WIDTH), np.uint16)
        self.scales = device.to_device(np.full((2, KV_HEADS), 0.1, np.float32))

    def seconds(self, attention: Any, blocks: int, **how: Any) -> float:
        """Median seconds of a launch over items of so many blocks."""
        cut = work_list.cut(self.lengths, blocks)
        if len(cut.items) > attention.max_items:
            return float("nan")
        items, spans = (self.on.device.to_device(one) for one in (cut.items, cut.spans))
        caches = (self.k8, self.v8) if attention.scaled else (self.k, self.v)
        how |= {"scales": self.scales} if attention.scaled else {}
        one_round = [
            attention.prepare(self.q, *caches, table, self.there, items, spans, self.out, **how)
            for table in self.tables
        ]
        launches = one_round * max(1, -(-8 // len(one_round)))
        launches[0]()
        self.on.wait()
        graph = self.on.captured(launches, (items, spans))
        return float(np.median(self.on.seconds(graph, 5))) / len(launches)


def main() -> None:
    """All of it, as JSON and as a table."""
    on = queue(gpu.device("cuda"))
    found: dict[str, Any] = {"right": right(on), "bandwidth": on.read_bandwidth, "times": {}}
    print(json.dumps(found["right"], indent=1), flush=True)
    sizes: dict[str, Any] = {"heads": HEADS, "kv_heads": KV_HEADS, "width": WIDTH}
    for sequences, tokens in BATCHES:
        caches = Caches(on, sequences, tokens)
        usual = DecodeAttention(on, max_items=4_096, **sizes)
        warps, blocks = usual.plan(caches.lengths)
        whole = -(-tokens // BLOCK)
        cuts = sorted({blocks, *(max(1, -(-whole // parts)) for parts in (1, 2, 3, 4, 8, 16, 32))})
        times = {"bf16 as planned": caches.seconds(usual, blocks, warps=warps)}
        times |= {f"bf16 {w} warps, {cut}": caches.seconds(usual, cut, warps=w) for cut in cuts for w in (4, 8)}
        attention = DecodeAttention(on, max_items=4_096, kv_cache_dtype="fp8_e4m3", **sizes)
        warps, blocks = attention.plan(caches.lengths)
        times["fp8 as planned"] = caches.seconds(attention, blocks, warps=warps)
        if "--forms" in sys.argv:
            times |= {f"fp8 {w} warps, {cut}": caches.seconds(attention, cut, warps=w) for cut in cuts for w in (4, 8)}
        found["times"][f"{sequences} x {tokens}"] = times
        best = {
            kind: min(
                (seconds, name) for name, seconds in times.items() if name.startswith(kind) and seconds == seconds
            )
            for kind in ("bf16", "fp8")
        }
        planned, megabytes = times["bf16 as planned"], sequences * tokens * TOKEN / 1e6
        print(
            f"{sequences} x {tokens}, {megabytes:.0f} MB: planned {planned * 1e6:.1f}, "
            f"best {best['bf16'][0] * 1e6:.1f} ({best['bf16'][1]}), fp8 {best['fp8'][0] * 1e6:.1f} ({best['fp8'][1]}), "
            f"ratio {planned / best['fp8'][0]:.2f} and {best['bf16'][0] / best['fp8'][0]:.2f}, "
            f"{megabytes / 2e6 / best['fp8'][0] / (on.read_bandwidth / 1e12):.2f} of the probe",
            flush=True,
        )
        del caches
        on.cupy.get_default_memory_pool().free_all_blocks()
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
