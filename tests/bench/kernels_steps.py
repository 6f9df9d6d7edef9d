"""Whole steps, for `kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.gpu import step_profile
from course.gpu.transformer import Llama, Shape, Step
from course.models import model
from tests.bench import mixes
from tests.bench.cards import Bench

BATCHES = (1, 8, 16, 32, 64, 128)


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
