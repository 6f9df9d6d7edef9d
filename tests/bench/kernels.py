"""How fast the kernels of a transformer's step are on this GPU, each against its floor.

PYTHONPATH=. python tests/bench/kernels.py --json kernels.json [--only probe,attention,gemm,prefill,step,peers]

All times are of CUDA graphs, warm, with inputs that are rotated past the second cache. The floor of what reads memory
is the fastest of several read patterns (the probe), of what multiplies a large matrix product by cuBLASLt. Peers
(PyTorch's attention, captured too) are measured where PyTorch is installed; it is no dependency of the course.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from course import gpu
from course.gpu import record
from course.gpu.ops import (
    append,
    fill,
    gather,
    packing,
    product,
    read_probe,
    rms_norm,
    rope,
    rope_append,
    silu,
    skinny_gemm,
    work_list,
)
from course.gpu.ops.decode_attention import DecodeAttention
from course.gpu.ops.prefill_attention import PrefillAttention
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape, Step
from course.models import model
from tests.bench import mixes

GIB = 1 << 30
SECTIONS = (
    "probe",
    "nodes",
    "rows",
    "attention",
    "ragged",
    "gemm",
    "prefill",
    "mixed",
    "mixed_steps",
    "matrix",
    "step",
    "peers",
)
BATCHES = (1, 8, 16, 32, 64, 128)


class Bench:
    """The device, and what was measured so far."""

    def __init__(self, out: Path | None) -> None:
        self.q: Any = queue(gpu.device("cuda"))
        self.out, self.found = out, {}
        self.bandwidth, self.flops = 3.1e12, 750e12
        self.began = time.perf_counter()

    def say(self, *words: Any) -> None:
        print(f"{time.perf_counter() - self.began:6.1f}", *words, flush=True)

    def keep(self, section: str, **row: Any) -> None:
        self.found.setdefault(section, []).append(
            {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}
        )
        self.say(section, " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))

    def save(self, command: str) -> None:
        if self.out:
            whole = {"provenance": record.provenance(self.q.device, command), **self.found}
            self.out.write_text(json.dumps(whole, indent=1) + "\n")

    def random(self, *shape: int, kind: str = "bf16", bound: float = 1.7, seed: int = 0) -> Any:
        array = self.q.device.empty(shape, {"bf16": np.uint16, "fp16": np.float16, "fp32": np.float32}[kind])
        fill.prepare(self.q, array, bound=bound, seed=seed, kind=kind)()
        self.q.wait()
        return array

    def each(self, launches: list, repeats: int = 5) -> float:
        """Seconds a launch, of these in one graph."""
        launches[0]()
        return float(np.median(self.q.seconds(self.q.captured(launches), repeats=repeats, warm=2))) / len(launches)


def probe(b: Bench) -> None:
    data = b.q.cupy.empty(2 * GIB // 4, np.uint32)
    fill.prepare(b.q, data.view(np.uint16), bound=1.0)()
    b.q.wait()
    best = 0.0
    for pattern, name in enumerate(read_probe.PATTERNS):
        for blocks in (132 * 2, 132 * 4, 132 * 8, 132 * 32, 132 * 128):
            out = b.q.device.empty(blocks, np.uint32)
            seconds = b.each([read_probe.prepare(b.q, data, out, pattern=pattern)] * 2, repeats=7)
            best = max(best, 2 * GIB / seconds)
            b.keep("probe", pattern=name, blocks=blocks, tb_s=2 * GIB / seconds / 1e12)
    b.bandwidth = best
    b.found["bandwidth"] = best


def matrix(b: Bench) -> None:
    x, w = b.random(8192, 8192), b.random(8192, 8192, seed=1)
    out = b.q.device.empty((8192, 8192), np.uint16)
    seconds = b.each([product.prepare(b.q, x, w, out)] * 5)
    b.flops = 2 * 8192**3 / seconds
    b.found["flops"] = b.flops
    b.keep("matrix", size=8192, tflops=b.flops / 1e12)


def nodes(b: Bench) -> None:
    for name, chained in (("empty", False), ("empty chained", True)):
        kernel = b.q.device.kernel("empty")
        launch = b.q.prepare(kernel, (1,), 32, (), chained=chained)
        b.keep("nodes", node=name, us=1e6 * b.each([launch] * 400))


def rows(b: Bench) -> None:
    """The small operations at 8,192 tokens of Llama-3-8B."""
    tokens, hidden, inner, heads, kv = 8192, 4096, 14336, 32, 8
    x, weight, y = b.random(tokens, hidden), b.random(hidden), b.random(tokens, hidden)
    gate_up, gated = b.random(tokens, 2 * inner), b.random(tokens, inner)
    qkv, q = b.random(tokens, heads + 2 * kv, 128), b.random(tokens, heads, 128)
    k, v = b.random(tokens // 16, kv, 16, 128), b.random(tokens // 16, kv, 16, 128)
    put = b.q.device.to_device
    turns, where = put(rope.turns(tokens, 128)), put(np.arange(tokens, dtype=np.int32))
    slots, ids = put(np.random.default_rng(0).permutation(tokens).astype(np.int32)), where
    cases = {
        "rms_norm": (rms_norm.prepare(b.q, x, weight, y, epsilon=1e-5), 2 * tokens * hidden * 2),
        "silu": (silu.prepare(b.q, gate_up, gated), 3 * tokens * inner * 2),
        "rope": (rope.prepare(b.q, qkv, turns, where, rotated=heads + kv), 2 * tokens * (heads + kv) * 256),
        "append": (append.prepare(b.q, qkv, k, v, slots), 2 * tokens * 2 * kv * 256),
        "rope_append": (
            rope_append.prepare(b.q, qkv, q, k, v, turns, where, slots), 2 * tokens * (heads + 2 * kv) * 256,
        ),
        "gather": (gather.prepare(b.q, x, ids, y), 2 * tokens * hidden * 2),
    }  # fmt: skip
    for name, (launch, moved) in cases.items():
        seconds = b.each([launch] * 10)
        b.keep("rows", operation=name, us=1e6 * seconds, share=moved / seconds / b.bandwidth)


class Caches:
    """Keys and values of 2 GiB, and tables of shuffled blocks that walk through them."""

    def __init__(self, b: Bench, kv_heads: int, width: int = 128) -> None:
        self.b, self.blocks = b, GIB // (kv_heads * 16 * width * 2)
        self.k, self.v = (b.random(self.blocks, kv_heads, 16, width, seed=s) for s in (0, 1))
        self.order = np.random.default_rng(0).permutation(self.blocks).astype(np.int32)

    def tables(self, lengths: np.ndarray, most: int = 8) -> list[Any]:
        need = -(-lengths // 16)
        total = int(need.sum())
        found = []
        for start in range(0, min(most * total, self.blocks - total + 1), total):
            table, at = np.zeros((len(lengths), int(need.max())), np.int32), start
            for s, many in enumerate(need):
                table[s, :many] = self.order[at : at + many]
                at += many
            found.append(self.b.q.device.to_device(table))
        return found


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


VARIANTS = ((4, 2, 1), (2, 3, 1), (2, 2, 1), (4, 1, 2))
"""(depth, resident, tiles a block)"""
SHAPES = {"qkv": (6144, 4096), "o": (4096, 4096), "gate-up": (28672, 4096), "down": (4096, 14336)}


def gemm(b: Bench) -> None:
    for name, (many, columns) in SHAPES.items():
        copies = max(2, int(400e6 / (2 * many * columns)))
        plain = [b.random(many, columns, bound=0.05, seed=s) for s in range(copies)]
        packed = [packing.packed_weights(one) for one in plain]
        moved = 2 * many * columns
        for count in (1, 8, 16, 24, 32, 64):
            x, out = b.random(count, columns), b.random(count, many)
            seconds = b.each([product.prepare(b.q, x, w, out) for w in plain])
            row = {"cublaslt": 1e6 * seconds}
            if count <= 32:
                groups = skinny_gemm.groups_for(count)
                px = b.random(*packing.shape(groups, columns))
                norm = 1e-5 if name in ("qkv", "gate-up") else None
                for depth, resident, tiles in VARIANTS:
                    if (columns // 32) % depth or (groups < 3 and tiles > 1):
                        continue
                    how = {"depth": depth, "resident": resident, "tiles_a_block": tiles}
                    launches = [
                        skinny_gemm.prepare(b.q, px, w, out, count, norm=norm, chained=True, **how) for w in packed
                    ]
                    row[f"d{depth}r{resident}t{tiles}"] = 1e6 * b.each(launches)
                launches = [skinny_gemm.prepare(b.q, px, w, out, count) for w in packed]
                row["unchained"] = 1e6 * b.each(launches)
            if count in (1, 8):
                px = b.random(*packing.shape(1, columns))
                launches = [skinny_gemm.prepare(b.q, px, w, out, count, tensor=False) for w in packed]
                row["plain"] = 1e6 * b.each(launches)
            b.keep("gemm", shape=name, rows=count, floor=1e6 * moved / b.bandwidth, **row)
        del plain, packed


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


class TwoLaunches(Step):
    """A step whose chunks and decodes attend one after the other, each cut up as if it were alone."""

    def _plan_attention(self, listed: list, lengths: Any) -> None:
        self._slabs = self.llama.prefill_attention.slabs(listed)
        self._splits = self.llama.prefill_attention.splits(listed, self._slabs)
        self._warps, self._blocks_an_item = self.llama.decode_attention.plan(lengths)

    def _attention(self, layer: int, q: Any, out: Any) -> Any:
        llama, there, rows, first = self.llama, self.inputs.there, self.tokens - self.decodes, len(self.chunk_tokens)
        caches = llama.k[layer], llama.v[layer]
        work = there["lengths"], there["items"], there["spans"]
        of_chunks = (q, *caches, there["table"], there["chunks"], there["tiles"], out)
        of_decodes = (q[rows:], *caches, there["table"][first:], *work, out[rows:])
        chunks = llama.prefill_attention.prepare(*of_chunks, slabs=self._slabs, splits=self._splits)
        decodes = llama.decode_attention.prepare(*of_decodes, warps=self._warps)

        def launch() -> None:
            chunks()
            decodes()

        return launch


def mixed_steps(b: Bench) -> None:
    """Whole steps of a chunk and decodes, which attend in one launch, and in two; in turns, three times."""
    from course.gpu import step_profile

    sizes = Shape.of(model("llama-3.1-8b"))
    llama = Llama(b.q, sizes, blocks=16_384, max_tokens=2_112, max_sequences=128, max_positions=16_384)
    llama.fill_cache()
    for tokens, cached, decodes, length in mixes.MIXES:
        found: dict[Any, list[float]] = {Step: [], TwoLaunches: []}
        logits = []
        for _ in range(3):
            for make, seconds in found.items():
                one = step_profile.step_at(llama, (decodes, length, tokens, cached), np.random.default_rng(0), make)
                seconds.append(float(np.median(step_profile.replayed(one)[0])))
                logits.append(one.logits())
        ms = [1e3 * float(np.median(seconds)) for seconds in found.values()]
        apart = float(np.linalg.norm(logits[0] - logits[1]) / np.linalg.norm(logits[1]))
        b.keep("mixed_steps", chunk=tokens, cached=cached, decodes=decodes, length=length, one_ms=ms[0], two_ms=ms[1],
               gain=ms[1] / ms[0], apart=apart)  # fmt: skip


def step(b: Bench, layers: int = 32) -> None:
    """A decode step of Llama-3-8B at 1,024 tokens against (weights without the embedding table + KV) / probe."""
    from course.gpu import step_profile

    sizes = Shape.of(model("llama-3.1-8b"))
    llama = Llama(b.q, sizes, blocks=8_192, max_tokens=2_048, max_sequences=128, max_positions=8_192)
    llama.fill_cache()
    b.say("model in memory")
    rng = np.random.default_rng(0)
    for batch in BATCHES:
        floor = (sizes.step_weight_bytes("bf16") + batch * 1024 * sizes.kv_bytes_per_token("bf16")) / b.bandwidth
        for form in ("fused", "library"):
            if form == "fused" and batch > 32:
                continue
            one = Step(llama, lengths=[1024] * batch, form=form)
            tables = rng.permutation(8192)[: 64 * batch].reshape(batch, 64).tolist()
            one.write(rng.integers(0, sizes.vocabulary, batch), tables)
            one.run()
            logits = one.logits()
            replay = one.captured()
            seconds = b.q.seconds(replay, repeats=15, warm=3)
            same = True
            for _ in range(5):
                one._logits.fill(0xFFFF)
                b.q.cupy.cuda.Stream.null.synchronize()
                replay()
                same &= bool(np.array_equal(one.logits(), logits))
            eager = b.q.seconds(one.run, repeats=5, warm=1)
            b.keep(
                "step", batch=batch, form=form, ms=1e3 * float(np.median(seconds)), floor_ms=1e3 * floor,
                ratio=float(np.median(seconds)) / floor, eager_ms=1e3 * float(np.median(eager)),
                finite=bool(np.isfinite(logits).all()), same_bits=same,
            )  # fmt: skip
    for chunk, cached in ((2048, 0), (512, 0), (512, 4096)):
        seconds, _ = step_profile.seconds_at(llama, (0, 0, chunk, cached), rng)
        work = 2 * sizes.layer_parameters * chunk + 4 * 32 * 4096 * (chunk * cached + chunk * (chunk + 1) // 2)
        b.keep(
            "step",
            chunk=chunk,
            cached=cached,
            ms=1e3 * float(np.median(seconds)),
            share=work / float(np.median(seconds)) / b.flops,
        )


def peers(b: Bench) -> None:
    """PyTorch's attention, by FlashAttention and by cuDNN, captured, over contiguous keys and values."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.set_grad_enabled(False)
    names = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}

    def timed(launches: list) -> float:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            launches[0]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            for one in launches:
                one()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        found = []
        with torch.cuda.stream(side):
            for _ in range(7):
                begin.record()
                graph.replay()
                end.record()
                end.synchronize()
                found.append(begin.elapsed_time(end) / 1e3)
        return float(np.median(found[2:])) / len(launches)

    cases = [
        (s, length, 1)
        for s, length in ((1, 1024), (1, 8192), (8, 1024), (8, 8192), (32, 1024), (32, 8192), (64, 4096), (128, 1024))
    ]
    cases += [(1, 1024, 1024), (1, 4096, 4096), (1, 8192, 8192)]
    for name, backend in names.items():
        for sequences, length, tokens in cases:
            sets = max(1, min(8, int(GIB // (sequences * length * 4096))))
            draw = {"dtype": torch.bfloat16, "device": "cuda"}
            kv = [torch.randn(2, sequences, 8, length, 128, **draw) for _ in range(sets)]
            q = torch.randn(sequences, 32, tokens, 128, **draw)

            def run(pair: Any, q: Any = q, tokens: int = tokens, backend: Any = backend) -> Any:
                with sdpa_kernel(backend):
                    return torch.nn.functional.scaled_dot_product_attention(
                        q, pair[0], pair[1], is_causal=tokens > 1, enable_gqa=True
                    )

            try:
                seconds = timed([lambda pair=pair: run(pair) for pair in kv] * max(1, 4 // sets))
            except RuntimeError as error:
                b.say("peers", name, sequences, length, "failed:", str(error)[:100])
                continue
            row = (
                {"tflops": 4 * 32 * 128 * tokens * (tokens + 1) / 2 * sequences / seconds / 1e12} if tokens > 1 else {}
            )
            b.keep("peers", kernel=name, sequences=sequences, length=length, tokens=tokens, us=1e6 * seconds,
                   share=sequences * length * 4096 / seconds / b.bandwidth, **row)  # fmt: skip


def main() -> None:
    """Measure the sections asked for; one that fails is told, and the next goes on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default=",".join(SECTIONS))
    asked = parser.parse_args()
    b = Bench(asked.json)
    for section in asked.only.split(","):
        try:
            globals()[section](b)
        except Exception:
            traceback.print_exc()
        b.q.cupy.get_default_memory_pool().free_all_blocks()
        b.save(f"tests/bench/kernels.py --only {asked.only}")


if __name__ == "__main__":
    main()
