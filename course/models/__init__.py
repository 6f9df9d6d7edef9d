"""What a model keeps in memory and what a step of it costs, from its config.json or by name.

    from course.models import ModelSpec, model

    spec = model("llama-3.1-8b")
    spec = ModelSpec.from_config("path/to/config.json")  # or a folder, or a dict
    spec.kv_bytes_per_token  # 131,072 for Llama-3.1-8B

What is not understood is refused with a ValueError that names the key; nothing is guessed.
"""

from course.models.known import model, named_or_read, names
from course.models.layers import Heads, Latent, Layer, Part
from course.models.spec import ModelSpec

__all__ = ["Heads", "Latent", "Layer", "ModelSpec", "Part", "model", "named_or_read", "names"]
