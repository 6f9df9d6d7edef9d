"""What the forward pass needs of a `config.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from course.lm.errors import LMError


@dataclass(frozen=True)
class Config:
    """The shape of a Llama model, under Hugging Face's names."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: float

    @classmethod
    def read(cls, path: str | Path) -> Config:
        """Read a config.json. LMError if it is missing, lacks a key, or is no Llama with tied embeddings and SiLU."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            config = cls(**{field.name: data[field.name] for field in fields(cls)})
            is_llama = data["model_type"] == "llama" and data["tie_word_embeddings"] and data["hidden_act"] == "silu"
        except OSError as error:
            raise LMError(f"The model's {path} cannot be read: {error.strerror or error}. Install it again.") from None
        except (ValueError, TypeError) as error:
            raise LMError(f"{path} is not a model's config.json: {error}.") from None
        except KeyError as error:
            raise LMError(f"{path} has no {error}, which the forward pass needs.") from None
        if not is_llama or config.num_attention_heads % config.num_key_value_heads:
            raise LMError(
                f"{path} describes an unknown kind of model: only Llama with tied embeddings and SiLU is known."
            )
        return config

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors of the model and their shapes, by the names in the file of weights."""
        width, inner = self.hidden_size, self.intermediate_size
        queries, keys = self.num_attention_heads * self.head_dim, self.num_key_value_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (self.vocab_size, width),
            "model.norm.weight": (width,),
        }
        for layer in range(self.num_hidden_layers):
            for name, shape in {
                "input_layernorm": (width,),
                "post_attention_layernorm": (width,),
                "self_attn.q_proj": (queries, width),
                "self_attn.k_proj": (keys, width),
                "self_attn.v_proj": (keys, width),
                "self_attn.o_proj": (width, queries),
                "mlp.gate_proj": (inner, width),
                "mlp.up_proj": (inner, width),
                "mlp.down_proj": (width, inner),
            }.items():
                shapes[f"model.layers.{layer}.{name}.weight"] = shape
        return shapes
