"""Data types of the KV cache by vLLM's names."""

from course.settings import shown

KV_BYTES = {
    "auto": 2,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "bf16": 2,
    "fp16": 2,
    "half": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
    "int8": 1,
}


def kv_bytes(dtype: str) -> int:
    """Bytes an element of a KV cache of that type. ValueError for a type that is not known."""
    try:
        return KV_BYTES[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"no KV cache type is called {shown(dtype)}; known are {', '.join(KV_BYTES)}") from None
