"""Types of weights and of the KV cache, from quantization_config or hf_quant_config.json, by vLLM's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from course.base.settings import quote
from course.models.keys import Keys

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
    "fp8_ds_mla": 1,  # with scales and a rotary key in 16 bits: see layers.Latent
    "int8": 1,
}

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "half", "float", "double", "fp16", "bf16", "fp32", "auto"),
    *("float8_e4m3fn", "float8_e5m2", "fp8", "int8", "uint8"),
)
"""Types of a tensor, as a checkpoint's config names them."""


def kv_bytes(dtype: str) -> int:
    """Bytes an element of a KV cache of that type. ValueError for a type that is not known."""
    try:
        return KV_BYTES[dtype]
    except (KeyError, TypeError):
        raise ValueError(f"no KV cache type is called {quote(dtype)}; known are {', '.join(KV_BYTES)}") from None


@dataclass(frozen=True)
class Quantisation:
    """How a checkpoint is stored. bits: of a quantised weight, scales included; None if nothing is quantised.

    method: the name it goes by. experts_only, attention_kept: what is left in 16 bits. understood: whether bits could
    be told. attention_bits: of attention and recurrences, if they differ from the rest. fp8: weights and what they
    are multiplied with are 8-bit floats, so that products run at that rate.
    """

    method: str | None = None
    bits: float | None = None
    experts_only: bool = False
    attention_kept: bool = False
    kv_cache_dtype: str | None = None
    understood: bool = True
    fp8: bool = False
    attention_bits: float | None = None


def check_dtype(keys: Keys) -> None:
    """Raise ValueError if `torch_dtype`, or `dtype` as newer files call it, is no type of a tensor.

    Of the known ones every engine makes 16 bits if no quantisation is named, so none of them is counted otherwise.
    """
    for name in ("torch_dtype", "dtype"):
        value = keys.values.get(name)
        if isinstance(value, str) and value.removeprefix("torch.") not in DTYPES:
            raise keys.refusal(f"{name} is {quote(value)}, which is no type of weights: known are {', '.join(DTYPES)}")


def read(keys: Keys, beside: Mapping[str, Any]) -> Quantisation:
    """What quantization_config and hf_quant_config.json say together; `beside` is the content of the latter."""
    config = keys.inner("quantization_config")
    if not config.values:
        config = keys.inner("text_config").inner("quantization_config") if "text_config" in keys else config
    apart = Keys(beside, "hf_quant_config.json").inner("quantization") if beside else Keys({}, "")
    kv = _kv(config.raw("kv_cache_scheme", "kv_cache_quant_algo"), config) or _kv(
        apart.raw("kv_cache_quant_algo", "kv_cache_scheme"), apart
    )
    method = config.raw("quant_method", "quant_algo") or apart.raw("quant_algo")
    if method is None and "bits" in config and "group_size" in config:  # MLX names no method
        size = config.needed("the group of a weight", "group_size", high=10**6)
        return Quantisation("mlx", config.needed("the bits", "bits", high=32) + 32 / size, kv_cache_dtype=kv)
    if method is None:
        return Quantisation(kv_cache_dtype=kv)
    name = str(method).lower()
    algorithm = str(config.raw("quant_algo") or apart.raw("quant_algo") or "").lower()
    bits, attention_bits = _bits(name, algorithm, config), None
    if bits is None and "config_groups" in config:
        bits, attention_bits = _mlp_and_attention_bits(config)
    excluded = config.raw("ignore", "modules_to_not_convert", "exclude_modules") or apart.raw("exclude_modules") or []
    attention_kept = isinstance(excluded, list) and any("attn" in one for one in excluded if isinstance(one, str))
    fp8 = _groups_in_fp8(config) if "config_groups" in config else "fp8" in f"{name} {algorithm}" and bits == 8
    return Quantisation(name, bits, name == "mxfp4", attention_kept, kv, bits is not None, fp8, attention_bits)


def _kv(scheme: Any, keys: Keys) -> str | None:
    """The type that a scheme asks for, None for the 16 bits of the checkpoint. The scheme is a name or an object."""
    if scheme is None or scheme == {}:
        return None
    if isinstance(scheme, str):
        name = scheme.lower()
        return None if name in ("none", "auto", "fp16", "bf16", "float16", "bfloat16") else name
    if isinstance(scheme, Mapping) and isinstance(scheme.get("num_bits"), int):
        kind = {"float": "fp", "int": "int"}.get(scheme.get("type", "float"))
        if kind:
            return f"{kind}{scheme['num_bits']}"
    raise keys.refusal(f"the KV cache scheme {quote(scheme)} is not understood: num_bits and type are needed")


def _bits(name: str, algorithm: str, keys: Keys) -> float | None:
    """Bits of a stored weight with its scales, None if the method is not known."""
    both = f"{name} {algorithm}"
    if "nvfp4" in both or ("fp4" in both and "mx" not in both):
        return 4 + 8 / 16  # an 8-bit scale for 16 weights
    if "mxfp4" in both:
        return 4 + 8 / 32
    if name in ("awq", "gptq", "auto-round", "intel/auto-round") or "w4a16" in both:
        bits = keys.size("bits", "w_bit", high=32) or 4
        group = keys.size("group_size", "q_group_size", low=-1, high=10**6)
        return bits + (0 if group in (None, 0, -1) else (16 + bits) / group)  # a 16-bit scale and a zero point each
    if "bitsandbytes" in both:
        return 4 + 32 / 64 if keys.flag("load_in_4bit") or keys.flag("_load_in_4bit") else 8
    if name == "compressed-tensors" or "config_groups" in keys:
        return _of_groups(keys)
    if "fp8" in both or "int8" in both or "w8a8" in both:
        return 8
    return None


def _of_groups(keys: Keys) -> float | None:
    """compressed-tensors: the bits of each group of weights, if they agree."""
    groups = keys.raw("config_groups")
    bits = {_of_a_group(group) for group in (groups.values() if isinstance(groups, Mapping) else ())}
    return bits.pop() if len(bits) == 1 else None


def _of_a_group(group: Any) -> float | None:
    """Bits of a weight in one group, with its scales."""
    weights = group.get("weights") if isinstance(group, Mapping) else None
    bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
    size = weights.get("group_size") if isinstance(weights, Mapping) else None
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= 32:
        return None
    return bits + _scale_bits(bits, size)


def _mlp_and_attention_bits(keys: Keys) -> tuple[float | None, float | None]:
    """Bits of MLPs and of attention, if each group names modules of one of them alone; else None and None."""
    bits: dict[bool, set[float | None]] = {True: set(), False: set()}
    groups = keys.raw("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        targets = group.get("targets") if isinstance(group, Mapping) else None
        for target in targets if isinstance(targets, list) else ():
            bits["attn" in str(target)].add(_of_a_group(group))
    if len(bits[True]) != 1 or len(bits[False]) != 1 or None in bits[True] | bits[False]:
        return None, None
    return bits[False].pop(), bits[True].pop()


def _groups_in_fp8(keys: Keys) -> bool:
    """compressed-tensors: whether all groups have weights and activations in 8-bit floats."""
    groups = keys.raw("config_groups")
    in_fp8 = [
        isinstance(side, Mapping) and side.get("num_bits") == 8 and side.get("type") == "float"
        for group in (groups.values() if isinstance(groups, Mapping) else ())
        for side in ((group.get("weights"), group.get("input_activations")) if isinstance(group, Mapping) else (None,))
    ]
    return bool(in_fp8) and all(in_fp8)


def _scale_bits(bits: int, size: Any) -> float:
    """Bits a weight of the scales, one for a group of `size` weights; 0 if there are no groups."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 10**6:
        return 0
    return (8 if bits == 4 and size == 16 else 16) / size  # an 8-bit scale is NVFP4's
