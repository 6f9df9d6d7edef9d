"""Records steps as engines have them: the attention of prompts by PyTorch's FlashAttention or by cuDNN.

PYTHONPATH=. python tests/bench/engine_steps.py --out h200_llama3_8b_flash.json      # about five minutes

A step of Llama-3.1-8B as `course.gpu.step_profile` records it, but for this attention: at each size of a chunk the
faster of the two, timed by itself before. Decodes attend by the course's kernel, behind the chunk. PyTorch is in no
lock file of the course: this script runs where a recording is made, and nowhere else.

PyTorch takes keys and values that lie side by side, one copy of a prompt for each layer. A step is first run once with
the copying, so that the replays, which leave it out as an engine with a paged kernel does, compute the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from course import gpu
from course.gpu import step_profile
from course.gpu.ops import numbers
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape, Step
from course.models import model

BLOCK = step_profile.BLOCK
CHUNKS = (16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
CACHED = (0, 2_048, 8_192, 24_576, 65_536)
BESIDE = {1: (0, 8_192), 8: (0, 8_192), 128: (0, 8_192), 256: (0, 8_192)}
"""Decodes beside chunks of up to 2,048 tokens, and what is cached; none and 32 stand beside all chunks."""
WHOLE = ((0, 0, 32_768, 0), (32, 1_024, 32_768, 0), (0, 0, 32_768, 2_048), (0, 0, 65_536, 0), (0, 0, 65_536, 2_048))
"""Long prompts in one step, as in the recording of the course's own kernels."""
LONGEST = CACHED[-1] + CHUNKS[-1]
MOST_TOKENS = 65_536 + 256
HOW = (
    "; attention of chunks by PyTorch's FlashAttention or by cuDNN, the faster at each size (form says which), over "
    "keys and values that lie side by side, copied there before; then that of decodes by the course's kernel; products "
    "by cuBLASLt, or by the course's for up to 32 decodes alone"
)
aten = torch.ops.aten
torch._dynamo.config.recompile_limit = 64  # beyond it the merge would run uncompiled


@torch.compile(dynamic=True)
def merge_into(out: Any, a: Any, weight_a: Any, b: Any, weight_b: Any) -> None:
    """Two attentions over different keys as one, by their log-sum-exps: Milakov and Gimelshein, arXiv:1805.02867."""
    share = torch.sigmoid(weight_a.float() - weight_b.float())
    out.copy_((a.float() * share + b.float() * (1 - share)).to(out.dtype))


def flash(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """PyTorch's FlashAttention: (output, log-sum-exp); causal is aligned with the last key."""
    return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[:2]


def cudnn(q: Any, k: Any, v: Any, causal: bool) -> tuple[Any, Any]:
    """cuDNN's attention: (output, log-sum-exp); causal needs as many queries as keys."""
    out, sums = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)[:2]
    return out, sums.reshape(out.shape[:3])


def attend(kind: str, q: Any, keys: Any, values: Any, cached: int, out: Any) -> None:
    """Attention of a chunk to all keys up to each of its tokens, into `out`; `cached` keys come before the chunk.

    q, out: (tokens, heads, width). keys, values: (cached + tokens, KV heads, width). flash: in one go. cudnn: to the
    chunk itself and to what is cached, then merged.
    """
    q, keys, values, seen = (part[None].transpose(1, 2) for part in (q, keys, values, out))
    if kind == "flash":
        seen.copy_(flash(q, keys, values, True)[0])
        return
    own, own_sum = cudnn(q, keys[:, :, cached:], values[:, :, cached:], True)
    if not cached:
        seen.copy_(own)
        return
    past, past_sum = cudnn(q, keys[:, :, :cached], values[:, :, :cached], False)
    merge_into(seen, own, own_sum[..., None], past, past_sum[..., None])


KINDS = ("flash", "cudnn")


def tensor(array: Any) -> Any:
    """A tensor over the memory of a CuPy array that holds bf16."""
    return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)


class Prompt:
    """Keys and values of one long prompt side by side, for each layer; and what attention over them takes."""

    def __init__(self, llama: Llama, tokens: int) -> None:
        shape = llama.shape
        size = (2, tokens, shape.kv_heads, shape.width)
        self.kv = [torch.empty(size, dtype=torch.bfloat16, device="cuda").normal_() for _ in range(shape.layers)]
        self.stream = torch.cuda.ExternalStream(llama.queue.stream.ptr)
        self.llama, self._faster = llama, {}
        torch.cuda.synchronize()

    def take(self, layer: int, table: np.ndarray, tokens: int) -> None:
        """Copy the first tokens of a sequence with this block table."""
        blocks = torch.as_tensor(table[: -(-tokens // BLOCK)].astype(np.int64), device="cuda")
        for i, cache in enumerate((self.llama.k, self.llama.v)):
            rows = tensor(cache[layer])[blocks].transpose(1, 2).reshape(-1, *self.kv[layer].shape[2:])
            self.kv[layer][i, :tokens] = rows[:tokens]

    def captured(self, launches: list) -> Any:
        """These launches as a graph."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            graph.capture_begin(capture_error_mode="relaxed")
            for launch in launches:
                launch()
            graph.capture_end()

        def replay() -> None:
            with torch.cuda.stream(self.stream):
                graph.replay()

        return replay

    def faster(self, chunk: int, cached: int) -> tuple[str, dict[str, float]]:
        """The kind of attention that is faster at this size, and the seconds a layer of both."""
        if (chunk, cached) not in self._faster:
            shape, found = self.llama.shape, {}
            layers = self.kv[: 8 if chunk * (chunk + cached) < 1e8 else 2]
            q, out = (
                torch.randn(chunk, shape.heads, shape.width, dtype=torch.bfloat16, device="cuda") for _ in range(2)
            )
            torch.cuda.synchronize()
            for kind in KINDS:
                launches = [
                    partial(attend, kind, q, *(part[: cached + chunk] for part in kv), cached, out) for kv in layers
                ]
                with torch.cuda.stream(self.stream):
                    launches[0]()
                replay = self.captured(launches)
                seconds = self.llama.queue.seconds(replay, repeats=3, warm=1)
                found[kind] = float(np.median(seconds)) / len(layers)
                del replay
            torch.cuda.empty_cache()
            self._faster[chunk, cached] = min(found, key=found.__getitem__), found
        return self._faster[chunk, cached]


class EngineStep(Step):
    """A step with one chunk, which attends by PyTorch over a Prompt."""

    def __init__(self, llama: Llama, *, prompt: Prompt, kind: str, **how: Any) -> None:
        self._prompt, self._kind, self._copying = prompt, kind, True
        super().__init__(llama, **how)
        self.form = kind

    def _plan_attention(self, listed: list, lengths: Any) -> None:
        super()._plan_attention(listed, lengths)
        if self.decodes:  # which have a launch of their own
            self._warps, self._blocks_an_item = self.llama.decode_attention.plan(lengths)

    def _attention(self, layer: int, q: Any, out: Any) -> Any:
        llama, there = self.llama, self.inputs.there
        (chunk,), (cached,) = self.chunk_tokens, self._cached
        kv, end = self._prompt.kv[layer], cached + chunk
        its = tensor(q[:chunk]), kv[0, :end], kv[1, :end], cached, tensor(out[:chunk])
        decodes = None
        if self.decodes:
            decodes = llama.decode_attention.prepare(
                q[chunk:], llama.k[layer], llama.v[layer], there["table"][1:], there["lengths"], there["items"],
                there["spans"], out[chunk:], warps=self._warps,
            )  # fmt: skip

        def launch() -> None:
            with torch.cuda.stream(self._prompt.stream):
                if self._copying:
                    self._prompt.take(layer, self.inputs.here["table"][0], end)
                attend(self._kind, *its)
            if decodes:
                decodes()

        return launch

    def captured(self) -> Any:
        """The step as a graph, without the copying."""
        self._copying = False
        try:
            return self._prompt.captured(self.launches)
        finally:
            self._copying = True


def wanted(most_tokens: int) -> Iterator[step_profile.Point]:
    """The points: decodes as in `step_profile`, chunks alone and beside decodes, long prompts."""
    found = [point for point in step_profile.points(most_tokens, LONGEST) if not point[2]]
    for decodes in (0, 32, *BESIDE):
        for cached in BESIDE.get(decodes, CACHED):
            sizes = [chunk for chunk in CHUNKS if decodes in (0, 32) or chunk <= 2_048]
            found += [(decodes, 1_024 if decodes else 0, chunk, cached) for chunk in sizes]
    yield from dict.fromkeys((*found, *WHOLE))


def seconds_at(prompt: Prompt, llama: Llama, point: step_profile.Point, rng: Any) -> tuple[np.ndarray, str]:
    """As `step_profile.seconds_at`."""
    chunk, cached = point[2:]
    if not chunk:
        return step_profile.seconds_at(llama, point, rng, 0.2)
    try:
        kind, _ = prompt.faster(chunk, cached)
        return step_profile.seconds_at(llama, point, rng, 0.25, partial(EngineStep, prompt=prompt, kind=kind))
    except torch.OutOfMemoryError as error:
        raise gpu.KernelError(str(error)) from None
    finally:
        torch.cuda.empty_cache()  # what a graph that is gone has used


def norm(a: Any, b: Any) -> float:
    """How far a is from b, as a share of b."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def check(prompt: Prompt, llama: Llama) -> None:
    """Attention against float64; steps against the course's own, in the first layer's attention and the logits."""
    heads, kv_heads, width = llama.shape.heads, llama.shape.kv_heads, llama.shape.width
    q, k, v = (torch.randn(256, n, width, dtype=torch.bfloat16, device="cuda") for n in (heads, kv_heads, kv_heads))
    wide = [part.double().repeat_interleave(heads // kv_heads, 1).transpose(0, 1) for part in (k, v)]
    for cached in (160, 0):
        scores = q[cached:].double().transpose(0, 1) @ wide[0].mT / width**0.5
        hidden = torch.arange(256, device="cuda") > torch.arange(cached, 256, device="cuda")[:, None]
        right = (scores.masked_fill(hidden, -torch.inf).softmax(-1) @ wide[1]).transpose(0, 1)
        for kind in KINDS:
            out = torch.full_like(q[cached:], torch.nan)
            attend(kind, q[cached:], k, v, cached, out)
            error = float((out - right).abs().max())
            # bf16 keeps 8 bits: values near 1 are good to 0.004, sums to a few times that.
            print(f"{kind} behind {cached}: {error:.4f} from float64", flush=True)
            if not error < 0.02:
                raise SystemExit("that is too far")
    layer = 5  # launches up to the first attention: gather, norm, product, RoPE and append, attention
    for point in ((0, 0, 16, 0), (0, 0, 512, 8_192), (32, 1_024, 64, 2_048), (32, 1_024, 2_048, 0), (8, 300, 100, 48)):
        decodes, _, chunk, cached = point
        rows, found = chunk + decodes, {}
        for kind in ("own", *KINDS):
            make = Step if kind == "own" else partial(EngineStep, prompt=prompt, kind=kind)
            step = step_profile.step_at(llama, point, np.random.default_rng(5), make)
            room = llama.room("attended", rows, llama.shape.heads * llama.shape.width)
            room.fill(0x7FC0)  # NaN
            llama.queue.wait()
            for launch in step.launches[:layer]:
                launch()
            llama.queue.wait()
            first = numbers.decode(room.get(), llama.kind)
            step.run()
            logits = step.logits()
            replay = step.captured()
            llama.queue.wait()
            step._logits.fill(0x7FC0)
            llama.queue.wait()
            replay()
            found[kind] = first, logits, step.logits()
        first, logits, _ = found["own"]
        for kind in KINDS:
            far = norm(found[kind][0], first), norm(found[kind][1], logits), norm(found[kind][2], found[kind][1])
            print(f"{point} {kind}: attention {far[0]:.5f}, logits {far[1]:.4f}, replay {far[2]:.2g}", flush=True)
            # Two roundings of bf16 in the first layer, many on the way to logits; a replay does the same again.
            if not (far[0] < 0.006 and far[1] < 0.05 and far[2] < 1e-3):
                raise SystemExit("that is too far")


def main() -> None:
    """Check, then record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cache-tokens", type=int, default=638_976)
    parser.add_argument("--limit", type=float, default=480.0)
    parser.add_argument("--every", type=int, default=1, help="only every n-th point, for a trial")
    asked = parser.parse_args()
    began = time.perf_counter()
    torch.set_grad_enabled(False)
    device, spec = gpu.device("cuda"), model("llama-3.1-8b")
    device.versions = {
        **device.versions,
        "torch": torch.__version__,
        "cudnn": str(torch.backends.cudnn.version()),
        "prompts": "FlashAttention or cuDNN",  # for the badge
    }
    llama = Llama(
        queue(device),
        Shape.of(spec),
        blocks=asked.cache_tokens // BLOCK,
        max_tokens=MOST_TOKENS,
        max_sequences=max(step_profile.VERIFIED) * (max(step_profile.DRAFTS) + 1),
        max_positions=LONGEST,
    )
    llama.fill_cache()
    prompt = Prompt(llama, LONGEST)
    free = llama.queue.cupy.cuda.runtime.memGetInfo()[0]
    print(f"{time.perf_counter() - began:.1f} s: in memory, {free / 1e9:.1f} GB free", flush=True)
    check(prompt, llama)
    most = asked.cache_tokens
    recording = step_profile.record(
        device,
        spec,
        asked.out,
        command=" ".join(["tests/bench/engine_steps.py", *(Path(part).name for part in sys.argv[1:])]),
        cache_tokens=most,
        wanted=list(wanted(most))[:: asked.every],
        verify=(),  # tests/bench/verify_steps.py has those
        timed=partial(seconds_at, prompt),
        how=HOW,
        limit=asked.limit,
        told=lambda text: print(text, flush=True),
        llama=llama,
    )
    for size, (_, both) in prompt._faster.items():
        print(size, {kind: f"{1e6 * seconds:.1f} us" for kind, seconds in both.items()})
    print(f"{time.perf_counter() - began:.1f} s: {len(recording['points']['seconds'])} points")


if __name__ == "__main__":
    main()
