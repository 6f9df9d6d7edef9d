"""The settings of an engine that decide how much KV cache it has."""

from dataclasses import dataclass, fields

from course.base import settings
from course.models import engine_defaults

KV_CACHE_DTYPES = ("auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla")
MAX_BYTES = 10**15


@dataclass(frozen=True)
class KVSettings:
    """KV settings under vLLM's names, with the defaults of vLLM 0.19. None: left to the engine.

    Raises ValueError for values that vLLM refuses.
    """

    gpu_memory_utilization: float = engine_defaults.GPU_MEMORY_UTILIZATION
    kv_cache_dtype: str = engine_defaults.KV_CACHE_DTYPE
    block_size: int = engine_defaults.BLOCK_SIZE
    max_model_len: int | None = None
    tensor_parallel_size: int = 1
    num_gpu_blocks_override: int | None = None
    kv_cache_memory_bytes: int | None = None
    enable_prefix_caching: bool = True

    def __post_init__(self) -> None:
        settings.real("gpu_memory_utilization", self.gpu_memory_utilization, above=0, high=1)
        if self.kv_cache_dtype not in KV_CACHE_DTYPES:
            raise ValueError(
                f"kv_cache_dtype is one of {', '.join(KV_CACHE_DTYPES)}, not {settings.quote(self.kv_cache_dtype)}"
            )
        settings.flag("enable_prefix_caching", self.enable_prefix_caching)
        most = {"block_size": 2**20, "tensor_parallel_size": 4096, "kv_cache_memory_bytes": MAX_BYTES}
        for name in (
            "block_size", "tensor_parallel_size", "max_model_len", "num_gpu_blocks_override", "kv_cache_memory_bytes",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                high = most.get(name, settings.MAX_TOKENS)
                object.__setattr__(self, name, settings.whole(name, value, high=high))

    def changed(self) -> dict[str, object]:
        """The settings that are not vLLM's defaults."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
