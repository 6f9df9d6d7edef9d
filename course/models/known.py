"""Models that can be asked for by name."""

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
    """The model of that name. Raises ValueError with the known names otherwise."""
    try:
        return _MODELS[name]
    except (KeyError, TypeError):
        raise ValueError(f"no model is called {name!r}; known models: {', '.join(names())}") from None


def names() -> list[str]:
    """The names that `model` knows."""
    return sorted(_MODELS)
