"""Models that can be asked for by name."""

import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from course.base.settings import quote
from course.models.spec import ModelSpec

_MODELS = {
    spec.name: spec
    for spec in (
        ModelSpec(
            name="llama-3.1-8b",
            num_layers=32,
            hidden_size=4096,
            intermediate_size=14336,
            num_heads=32,
            num_kv_heads=8,
            head_dim=128,
            vocab_size=128256,
            source="config.json of meta-llama/Llama-3.1-8B",
            max_position_embeddings=131072,
        ),
        ModelSpec(
            name="llama-2-7b",
            num_layers=32,
            hidden_size=4096,
            intermediate_size=11008,
            num_heads=32,
            num_kv_heads=32,
            head_dim=128,
            vocab_size=32000,
            source="config.json of meta-llama/Llama-2-7b-hf",
            max_position_embeddings=4096,
        ),
    )
}


def model(name: str) -> ModelSpec:
    """The model of that name: one of the above, or of a config in course/data/configs.

    Raises ValueError with the known names otherwise.
    """
    if not isinstance(name, str) or name not in names():
        raise ValueError(f"no model is called {quote(name)}; known models: {', '.join(names())}")
    return _MODELS[name] if name in _MODELS else _from_data(name)


def named_or_read(text: str) -> ModelSpec:
    """The model of that name, unless a file is called so, or of that config.json.

    Raises ValueError: neither such a name nor such a file, or a config that is refused.
    """
    if Path(text).exists():
        return ModelSpec.from_config(text)
    if text in names():
        return model(text)
    raise ValueError(
        f"no model is called {quote(text)}, and there is no such file; known models: {', '.join(names())}; "
        "or give the path of a config.json"
    )


def names() -> list[str]:
    """The names that `model` knows."""
    return sorted(_MODELS.keys() | _configs())


@lru_cache
def _configs() -> frozenset[str]:
    return frozenset(
        path.name.removesuffix(".json") for path in (files("course") / "data" / "configs").iterdir()
        if path.name.endswith(".json")
    )  # fmt: skip


@lru_cache
def _from_data(name: str) -> ModelSpec:
    text = (files("course") / "data" / "configs" / f"{name}.json").read_text(encoding="utf-8")
    return ModelSpec.from_config(json.loads(text), name=name)
