"""How long a step of Llama-3.1-8B takes with a prompt chunk in it: recorded on an NVIDIA GPU, with PyTorch.

PYTHONPATH=. python tests/bench/prefill_chunks.py --profile h100_prefill_chunks.json      # about four minutes

All 32 layers with random bf16 weights, 32 decodes beside the chunk, captured as one CUDA graph a step. PyTorch is in no
lock file of the course: this script runs where a recording is made, and nowhere else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch.nn.functional import linear

from course.gpu import record
from course.models import model

CHUNKS = (32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
CACHED = (0, 4_096, 8_192, 16_384, 24_576)  # and as much as the end of the prompt has
PROMPT, DECODES, CONTEXT = 32_768, 32, 700
LLAMA = model("llama-3.1-8b")
HEADS, KV_HEADS, WIDTH = LLAMA.num_heads, LLAMA.num_kv_heads, LLAMA.head_dim
aten = torch.ops.aten


@torch.compile(dynamic=True)
def norm(x, weight):
    """RMSNorm of rows."""
    y = x.float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * weight


@torch.compile(dynamic=True)
def rotate(x, cos, sin):
    """Rotary embedding of (tokens, heads, width)."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


@torch.compile(dynamic=True)
def gate(x):
    """SiLU of the first half times the second half."""
    a, b = x.chunk(2, -1)
    return torch.nn.functional.silu(a.float()).to(x.dtype) * b


@torch.compile(dynamic=True)
def merge(a, weight_a, b, weight_b):
    """Two attentions over different keys as one, by their log-sum-exps: Milakov and Gimelshein, arXiv:1805.02867."""
    share = torch.sigmoid(weight_a.float() - weight_b.float())
    return (a.float() * share + b.float() * (1 - share)).to(a.dtype)


def flash(q, k, v, causal):
    """PyTorch's FlashAttention: (output, log-sum-exp); causal is aligned with the last key."""
    return aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[:2]


def cudnn(q, k, v, causal):
    """cuDNN's attention: (output, log-sum-exp); causal needs as many queries as keys."""
    out, sums = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal)[:2]
    return out, sums.reshape(out.shape[:3])


ATTENTION = {"flash": flash, "cudnn": cudnn}


def heads(x):
    """(batch, tokens, heads, width) as attention takes it."""
    return x.transpose(1, 2)


def chunk_attention(kind, q, k, v, cached):
    """Attention of (1, heads, tokens, width) to all keys up to each token; `cached` keys come before the chunk.

    flash: in one go. cudnn: to the chunk itself and to what is cached, then merged.
    """
    if kind == "flash":
        return flash(q, k, v, True)[0]
    own, own_sum = cudnn(q, k[:, :, cached:], v[:, :, cached:], True)
    if not cached:
        return own
    past, past_sum = cudnn(q, k[:, :, :cached], v[:, :, :cached], False)
    return merge(own, own_sum[..., None], past, past_sum[..., None])


class Llama:
    """Random weights in the shape of Llama-3.1-8B, KV caches of one long prompt and of the decodes beside it."""

    def __init__(self):
        torch.manual_seed(0)
        hidden, inner = LLAMA.hidden_size, LLAMA.intermediate_size
        qkv = (HEADS + 2 * KV_HEADS) * WIDTH
        self.layers = [
            SimpleNamespace(
                qkv=self.random(qkv, hidden), out=self.random(hidden, HEADS * WIDTH),
                up=self.random(2 * inner, hidden), down=self.random(hidden, inner),
                norms=torch.ones(2, hidden, dtype=torch.bfloat16, device="cuda"),
                long=self.random(2, PROMPT, KV_HEADS, WIDTH, scale=1.0),
                chats=self.random(2, DECODES, CONTEXT, KV_HEADS, WIDTH, scale=1.0),
            )
            for _ in range(LLAMA.num_layers)
        ]  # fmt: skip
        self.table, self.head = self.random(LLAMA.vocab_size, hidden), self.random(LLAMA.vocab_size, hidden)
        self.last_norm = torch.ones(hidden, dtype=torch.bfloat16, device="cuda")
        angles = (
            torch.arange(PROMPT, device="cuda")[:, None] / 500_000 ** torch.linspace(0, 1, WIDTH // 2 + 1)[:-1].cuda()
        )
        self.cos, self.sin = angles.cos()[:, None], angles.sin()[:, None]

    @staticmethod
    def random(*shape, scale=0.02):
        return torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_(0, scale)

    def step(self, ids, chunk, cached, kind):
        """Next tokens after one step: `chunk` tokens of the long prompt behind `cached` ones, and the decodes."""
        x = self.table[ids]
        cos, sin = (
            torch.cat((part[cached : cached + chunk], part[CONTEXT - 1 : CONTEXT].expand(DECODES, -1, -1)))
            for part in (self.cos, self.sin)
        )
        for layer in self.layers:
            qkv = linear(norm(x, layer.norms[0]), layer.qkv).view(len(ids), HEADS + 2 * KV_HEADS, WIDTH)
            turned = rotate(qkv[:, : HEADS + KV_HEADS], cos, sin)
            q, k, v = turned[:, :HEADS], turned[:, HEADS:], qkv[:, HEADS + KV_HEADS :]
            seen = torch.empty(len(ids), HEADS, WIDTH, dtype=x.dtype, device="cuda")
            if chunk:
                layer.long[0, cached : cached + chunk], layer.long[1, cached : cached + chunk] = k[:chunk], v[:chunk]
                keys, values = (heads(part[None, : cached + chunk]) for part in layer.long)
                seen[:chunk] = heads(chunk_attention(kind, heads(q[None, :chunk]), keys, values, cached))[0]
            layer.chats[0, :, -1], layer.chats[1, :, -1] = k[chunk:], v[chunk:]
            keys, values = (heads(part) for part in layer.chats)
            seen[chunk:] = heads(ATTENTION[kind](heads(q[chunk:, None]), keys, values, False)[0])[:, 0]
            x = x + linear(seen.view(len(ids), -1), layer.out)
            x = x + linear(gate(linear(norm(x, layer.norms[1]), layer.up)), layer.down)
        ends = x[max(chunk - 1, 0) :]  # the last token of the chunk and the decodes
        return linear(norm(ends, self.last_norm), self.head).argmax(-1)


def timed(llama, chunk, cached, kind, max_seconds=0.5):
    """Seconds of replays of one captured step: 10th percentile, median, 90th."""
    ids = torch.randint(LLAMA.vocab_size, (chunk + DECODES,), device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        llama.step(ids, chunk, cached, kind)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        llama.step(ids, chunk, cached, kind)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    found = []
    began = time.perf_counter()
    while len(found) < 5 or (len(found) < 32 and time.perf_counter() - began < max_seconds):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / 1e3)
    del graph
    return np.percentile(found[2:], (10, 50, 90)), len(found) - 2


def check():
    """Both attentions against float64, for a chunk of 96 behind 160 cached tokens; the largest differences."""
    q, k, v = (torch.randn(1, n, 256, WIDTH, dtype=torch.bfloat16, device="cuda") for n in (HEADS, KV_HEADS, KV_HEADS))
    q = q[:, :, 160:]
    wide = [part.double().repeat_interleave(HEADS // KV_HEADS, 1) for part in (k, v)]
    scores = q.double() @ wide[0].mT / WIDTH**0.5
    hidden = torch.arange(256, device="cuda") > torch.arange(160, 256, device="cuda")[:, None]
    right = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ wide[1]
    found = {kind: float((chunk_attention(kind, q, k, v, 160) - right).abs().max()) for kind in ATTENTION}
    if max(found.values()) > 0.02:  # bf16 keeps 8 bits: values near 1 are good to 0.004, sums to a few times that
        raise SystemExit(f"the attentions disagree with float64: {found}")
    return found


def main() -> None:
    """Record the grid of chunks and cached tokens, print it, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, help="write the recording to this file")
    asked = parser.parse_args()
    began = time.perf_counter()
    torch.set_grad_enabled(False)
    card = SimpleNamespace(
        name=torch.cuda.get_device_name(), kind="cuda",
        versions={"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())},
    )  # fmt: skip
    print("largest error of attention:", check(), flush=True)
    llama = Llama()
    grid = [(0, 0)] + [
        (chunk, cached) for chunk in CHUNKS for cached in sorted({*CACHED, PROMPT - chunk}) if cached + chunk <= PROMPT
    ]
    columns = {name: [] for name in ("chunk", "cached", "seconds", "low", "high", "attention", "other_seconds")}
    started = " ".join(["tests/bench/prefill_chunks.py", *(Path(part).name for part in sys.argv[1:])])
    fewest = 30
    for chunk, cached in grid:
        found = {}
        for kind in ATTENTION:
            found[kind], many = timed(llama, chunk, cached, kind)
            fewest = min(fewest, many)
        fast, slow = sorted(found, key=lambda kind: found[kind][1])
        low, middle, high = (float(f"{value:.4g}") for value in found[fast])
        row = (chunk, cached, middle, low, high, fast, float(f"{found[slow][1]:.4g}"))
        for name, value in zip(columns, row, strict=True):
            columns[name].append(value)
        print(f"{time.perf_counter() - began:6.1f} s", *row, flush=True)
        how = (
            f"one step of all {LLAMA.num_layers} layers as a CUDA graph, events around each replay, warm, median of "
            f"{fewest} to 30 replays; random bf16 weights; attention by PyTorch's FlashAttention or by cuDNN, "
            "whichever is faster"
        )
        recording = {
            "kernel": "prefill_chunks",
            "model": LLAMA.name,
            "decodes": DECODES,
            "decode_context": DECODES * CONTEXT,
            "provenance": record.provenance(card, started) | {"how": how},
            "points": columns,
        }
        if asked.profile:  # after each point: what is cut off keeps what it has
            asked.profile.write_text(json.dumps(recording, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
