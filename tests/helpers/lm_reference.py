"""The language model once more, as plainly as it can be said: one sequence, float64, one token after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from course.lm import Config


def reference(config: Config, weights: Mapping[str, np.ndarray], tokens: Sequence[int]) -> np.ndarray:
    """Logits after each token, float64 [tokens, vocabulary], from the weights by Hugging Face's names."""

    def weight(name: str) -> np.ndarray:
        return weights[f"model.{name}.weight"].astype(np.float64)

    def normed(vector: np.ndarray, name: str) -> np.ndarray:
        return vector / np.sqrt(np.mean(vector**2) + config.rms_norm_eps) * weight(name)

    def turned(vector: np.ndarray, position: int) -> np.ndarray:
        half = config.head_dim // 2
        angle = position * config.rope_theta ** -(np.arange(half) / half)
        one, two = vector[:half], vector[half:]
        return np.concatenate([one * np.cos(angle) - two * np.sin(angle), two * np.cos(angle) + one * np.sin(angle)])

    dim, shared = config.head_dim, config.num_attention_heads // config.num_key_value_heads
    stream = [weight("embed_tokens")[token] for token in tokens]
    for number in range(config.num_hidden_layers):
        at = f"layers.{number}."
        query, key, value, out = (weight(f"{at}self_attn.{part}_proj") for part in "qkvo")
        gate, up, down = (weight(f"{at}mlp.{part}_proj") for part in ("gate", "up", "down"))
        keys: list[np.ndarray] = []
        values: list[np.ndarray] = []
        for position, x in enumerate(stream):
            y = normed(x, at + "input_layernorm")
            keys.append(np.array([turned(head, position) for head in (key @ y).reshape(-1, dim)]))
            values.append((value @ y).reshape(-1, dim))
            mixed = []
            for head, vector in enumerate((query @ y).reshape(-1, dim)):
                own = head // shared
                scores = np.array([turned(vector, position) @ seen[own] for seen in keys]) / np.sqrt(dim)
                shares = np.exp(scores - scores.max())
                mixed.append(shares / shares.sum() @ np.array([seen[own] for seen in values]))
            x = x + out @ np.concatenate(mixed)
            y = normed(x, at + "post_attention_layernorm")
            raised = gate @ y
            stream[position] = x + down @ (raised / (1 + np.exp(-raised)) * (up @ y))
    return np.array([weight("embed_tokens") @ normed(x, "norm") for x in stream])
