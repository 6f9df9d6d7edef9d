"""The model in plain NumPy, without cache, blocks or kernels: what every other form is checked against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from course.gpu.transformer.shape import Shape
from course.gpu.transformer.weights import sizes


def random_arrays(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    """Normal float32 weights for a tiny model, with norms around one."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, size in sizes(shape).items():
        if len(size) == 1:
            found[name] = rng.uniform(0.5, 1.5, size).astype(np.float32)
        else:
            spread = 1.0 if name == "embedding" else size[1] ** -0.5
            found[name] = (rng.standard_normal(size) * spread).astype(np.float32)
    return found


def forward(
    shape: Shape,
    arrays: Mapping[str, Any],
    ids: Any,
    precision: Any = np.float32,
    kept: Callable[[np.ndarray], np.ndarray] = lambda numbers: numbers,
) -> np.ndarray:
    """Logits (tokens, vocabulary) of every token of one sequence, computed at once in float32 or float64.

    kept: what a cache makes of keys and of values.
    """
    weight = {name: np.asarray(value, dtype=precision) for name, value in arrays.items()}
    count, width, group = len(ids), shape.width, shape.heads // shape.kv_heads
    angles = np.arange(count)[:, None] * shape.theta ** (-np.arange(0, width, 2) / width)
    cosine, sine = (part(angles).astype(precision)[:, None] for part in (np.cos, np.sin))

    def normalised(x, by):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + precision(shape.epsilon)) * by

    def turned(x):
        first, second = np.split(x, 2, -1)
        return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)

    x = weight["embedding"][np.asarray(ids)]
    for i in range(shape.layers):
        of = {
            name: weight[f"layers.{i}.{name}"] for name in ("attention_norm", "qkv", "o", "mlp_norm", "gate_up", "down")
        }
        qkv = (normalised(x, of["attention_norm"]) @ of["qkv"].T).reshape(count, -1, width)
        q, k, v = np.split(qkv, [shape.heads, shape.heads + shape.kv_heads], 1)
        q, k, v = turned(q), kept(turned(k)), kept(v)
        scores = np.einsum("qhgd,thd->hgqt", q.reshape(count, shape.kv_heads, group, width), k) / np.sqrt(
            precision(width)
        )
        scores[..., np.arange(count) > np.arange(count)[:, None]] = -np.inf
        share = np.exp(scores - scores.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        x = x + np.einsum("hgqt,thd->qhgd", share, v).reshape(count, -1) @ of["o"].T
        gate, up = np.split(normalised(x, of["mlp_norm"]) @ of["gate_up"].T, 2, -1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ of["down"].T
    return normalised(x, weight["norm"]) @ weight["embedding" if shape.tied else "head"].T
