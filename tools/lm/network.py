"""The network in PyTorch, for training: Llama with tied embeddings, its parts under Hugging Face's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


class Norm(nn.Module):
    """RMSNorm in float32."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        """As torch.nn.Module asks: the output for this input."""
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.heads, self.kv_heads, self.dim = (
            config[key] for key in ("num_attention_heads", "num_key_value_heads", "head_dim")
        )
        width = config["hidden_size"]
        self.q_proj = nn.Linear(width, self.heads * self.dim, bias=False)
        self.k_proj = nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(width, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """As torch.nn.Module asks: the output for this input."""
        rows, length, _ = x.shape
        q, k, v = (
            part(x).view(rows, length, -1, self.dim).transpose(1, 2) for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (rotate(part.float(), cos, sin).to(v.dtype) for part in (q, k))
        k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(mixed.transpose(1, 2).reshape(rows, length, -1))


class MLP(nn.Module):
    """SwiGLU."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """As torch.nn.Module asks: the output for this input."""
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention and SwiGLU, each after a norm and added to its input."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.input_layernorm, self.post_attention_layernorm = Norm(width, eps), Norm(width, eps)
        self.self_attn, self.mlp = Attention(config), MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """As torch.nn.Module asks: the output for this input."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Network(nn.Module):
    """The whole; `forward` gives the logits, float32 [rows, length, vocabulary]."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])
        for name, weight in self.named_parameters():
            if name.startswith("embed"):
                nn.init.normal_(weight, 0, 0.02)
            elif weight.dim() == 2:
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = 1 / math.sqrt(2 * len(self.layers)) if last else 0.8
                nn.init.normal_(weight, 0, scale / math.sqrt(weight.shape[1]))

    def forward(self, tokens: Tensor, document: Tensor) -> Tensor:
        """tokens, document: whole numbers [rows, length]; a token sees the earlier ones of its own document."""
        length, dim = tokens.shape[1], self.config["head_dim"]
        place = torch.arange(length, device=tokens.device)
        powers = torch.arange(0, dim, 2, device=tokens.device) / dim
        angles = place[:, None] * self.config["rope_theta"] ** -powers
        mask = (document[:, None, :, None] == document[:, None, None, :]) & (place[:, None] >= place)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), mask)
        return (self.norm(x) @ self.embed_tokens.weight.T).float()

    def stored(self) -> dict[str, np.ndarray]:
        """The weights as they are stored: float16, under Hugging Face's names."""
        return {f"model.{name}": value.detach().half().cpu().numpy() for name, value in self.state_dict().items()}

    def rounded(self) -> Network:
        """A copy that computes with the stored weights."""
        copy = Network(self.config)
        values = self.stored()
        copy.load_state_dict({name: torch.from_numpy(values[f"model.{name}"]).float() for name in copy.state_dict()})
        return copy.to(self.embed_tokens.weight.device)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: the first half of each head turned against the second."""
    one, two = x.chunk(2, -1)
    return torch.cat((one * cos - two * sin, two * cos + one * sin), -1)
