"""PyTorch's attention, for `kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.bench.cards import GIB, Bench


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
