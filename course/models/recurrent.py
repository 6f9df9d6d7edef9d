"""The recurrent state of a layer: what it keeps of a sequence whatever its length.

Shapes as in vLLM's mamba_utils.py. The convolution keeps its width - 1 last inputs. Types: that of the checkpoint's 16
bits, unless a key gives the state another.
"""

from math import prod

from course.base.settings import quote
from course.models.keys import HEADS, WIDTH, Keys
from course.models.layers import Part

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
HALF = 2
MAMBA_HEADS = ("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
MAMBA_HEAD_DIM = ("mamba_d_head", "mamba_head_dim", "mamba_headdim")
MAMBA_GROUPS = ("mamba_n_groups", "mamba_ngroups", "n_groups")
STATE_SIZE = ("mamba_d_state", "ssm_state_size", "state_size")
CONV_WIDTH = ("mamba_d_conv", "conv_kernel", "d_conv")
EXPAND = ("mamba_expand", "expand")
STATE_TYPE = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
LIGHTNING = ("attn_type_list", "linear_attn_alpha_factor", "layernorm_linear_attention_alpha", "layer_group_size")
MARKS = (*STATE_SIZE, *LIGHTNING, "linear_num_value_heads", "linear_num_heads", "linear_attn_config", "conv_L_cache")
RWKV = ("rwkv", "rwkv5", "rwkv6")


def has_recurrence(keys: Keys) -> bool:
    """Whether the file has the dimensions of a recurrence."""
    return keys.family in RWKV or "lru_width" in keys or any(_on(keys, name) for name in MARKS)


def _on(keys: Keys, name: str) -> bool:
    """Whether the key is there and says something: a layer_group_size of 1 has attention in every layer."""
    return name in keys and (name != "layer_group_size" or keys.values[name] not in (0, 1))


def has_attention(keys: Keys) -> bool:
    """Whether the file has attention heads beside it. Mamba's own `num_heads` are none."""
    return any(name in keys for name in HEADS if name != "num_heads" or not any(s in keys for s in STATE_SIZE))


def parts(keys: Keys) -> tuple[Part, ...]:
    """The state of one layer. ValueError if the file does not say its shape."""
    if keys.family in RWKV:
        return _rwkv(keys)
    if "linear_num_value_heads" in keys:
        return _gated_delta(keys)
    if "linear_num_heads" in keys or "linear_attn_config" in keys:
        return _kimi_delta(keys)
    if any(name in keys for name in STATE_SIZE):
        return _mamba(keys)
    if "conv_L_cache" in keys:
        width = keys.needed("the width of the convolution", "conv_L_cache", low=2)
        channels = keys.size("conv_dim") or keys.needed("the width of the model", *WIDTH)
        return (Part("convolution channels", channels, (width - 1) * HALF),)
    if "lru_width" in keys:
        channels = keys.needed("the width of the recurrence", "lru_width")
        width = keys.needed("the width of the convolution", "conv1d_width", low=2)
        return (
            Part("recurrence channels", channels, BYTES["float32"]),
            Part("convolution channels", channels, (width - 1) * HALF),
        )
    if any(_on(keys, name) for name in LIGHTNING):
        heads = keys.needed("the number of heads", *HEADS)
        each = keys.size("head_dim") or keys.needed("the width of the model", *WIDTH) // heads
        return (Part("heads of linear attention", heads, each * each * HALF),)
    raise keys.refusal(
        "a layer has a recurrence, but the size of its state cannot be told: the keys of its heads and dimensions, "
        "such as mamba_d_state or linear_num_value_heads, are needed"
    )


def _state_bytes(keys: Keys) -> int:
    name = keys.raw(*STATE_TYPE)
    if name is None:
        return HALF
    if not isinstance(name, str) or name not in (*BYTES, "auto"):
        raise keys.refusal(f"the type of the recurrent state, {quote(name)}, is not known: {', '.join(BYTES)} are")
    return BYTES.get(name, HALF)


def _recurrence(keys: Keys, what: str, units: int, elements: int) -> Part:
    """The tensor whose type --mamba-ssm-cache-dtype sets: `elements` of each unit."""
    return Part(what, units, elements * _state_bytes(keys), elements=elements)


def _conv(keys: Keys, *names: str) -> int:
    """Bytes a channel of the convolution's last inputs."""
    return (keys.needed("the width of the convolution", *names, low=2) - 1) * HALF


def _mamba(keys: Keys) -> tuple[Part, ...]:
    """Mamba 2 (arXiv 2405.21060) if there are heads, else Mamba (2312.00752)."""
    state = keys.needed("the size of the recurrent state", *STATE_SIZE)
    conv = _conv(keys, *CONV_WIDTH)
    own, own_dim = ((), ()) if has_attention(keys) else (("num_heads",), ("head_dim",))
    heads, each = _unless_auto(keys, *MAMBA_HEADS, *own), _unless_auto(keys, *MAMBA_HEAD_DIM, *own_dim)
    expanded = None
    if any(name in keys for name in EXPAND):
        factor = keys.raw(*EXPAND)
        width = keys.needed("the width of the model", *WIDTH)
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= 1000:
            raise keys.refusal(f"expand must be a number above 0 and at most 1000, not {quote(factor)}")
        expanded = int(factor * width)
    inner = keys.size("mamba_d_ssm") or (heads * each if heads and each else expanded)
    if not inner:
        raise keys.refusal("the width of the recurrence cannot be told: mamba_expand or mamba_n_heads is needed")
    if heads is None or (each is None and keys.family == "zamba"):
        return (_recurrence(keys, "recurrence channels", inner, state), Part("channels", inner, conv))
    each = each or inner // heads
    if heads * each != inner:
        raise keys.refusal(f"{heads} heads of {each} do not make up the width of the recurrence, {inner}")
    groups = keys.size(*MAMBA_GROUPS) or 1
    return (
        _recurrence(keys, "recurrence heads", heads, each * state),
        Part("convolution channels", inner, conv, draft_bytes=HALF),
        Part("state groups", groups, 2 * state * conv, copied=True, draft_bytes=2 * state * HALF),
    )


def _unless_auto(keys: Keys, *names: str) -> int | None:
    """The size under these names, None if it is left to the class."""
    return keys.size(*(name for name in names if keys.values.get(name) != "auto"))


def _gated_delta(keys: Keys) -> tuple[Part, ...]:
    """Gated DeltaNet (arXiv 2412.06464), as in Qwen3-Next."""
    sizes = ("linear_num_key_heads", "linear_key_head_dim", "linear_num_value_heads", "linear_value_head_dim")
    key_heads, key_dim, heads, value_dim = (keys.needed("the recurrent state", name) for name in sizes)
    conv = _conv(keys, "linear_conv_kernel_dim")
    return (
        _recurrence(keys, "linear value heads", heads, key_dim * value_dim),
        Part("linear value heads", heads, value_dim * conv, draft_bytes=value_dim * HALF),
        Part("linear key heads", key_heads, 2 * key_dim * conv, draft_bytes=2 * key_dim * HALF),
    )


def _kimi_delta(keys: Keys) -> tuple[Part, ...]:
    """Kimi Delta Attention (arXiv 2510.26692): q, k and v through a convolution, the state in 32 bits."""
    inside = keys.inner("linear_attn_config")
    heads = keys.size("linear_num_heads") or inside.needed("the recurrent state", "num_heads")
    each = keys.size("linear_head_dim") or inside.needed("the recurrent state", "head_dim")
    if "linear_conv_kernel_dim" in keys or "short_conv_kernel_size" in keys:
        conv = _conv(keys, "linear_conv_kernel_dim", "short_conv_kernel_size")
    else:
        conv = _conv(inside, "short_conv_kernel_size")
    return (
        Part("linear heads", heads, prod((each, each, BYTES["float32"]))),
        Part("linear heads", heads, 3 * each * conv),
    )


def _rwkv(keys: Keys) -> tuple[Part, ...]:
    """RWKV: the token before, for both halves of a block, and in 32 bits what attention keeps.

    RWKV-4 (arXiv 2305.13048): numerator, denominator and maximum of each channel. RWKV-5 and 6 (2404.05892): a matrix
    of head_size x head_size for each head.
    """
    width = keys.needed("the width of the model", *WIDTH)
    inner = keys.size("attention_hidden_size") or width
    before = Part("channels", width, 2 * HALF)
    if keys.family == "rwkv":
        return (before, Part("recurrence channels", inner, 3 * BYTES["float32"]))
    each = keys.first("head_size", "head_dim") or 64
    if inner % each:
        raise keys.refusal(f"heads of {each} do not make up attention_hidden_size, {inner}")
    return (before, Part("recurrence heads", inner // each, each * each * BYTES["float32"]))
