"""Random plausible config.json files, and random damage to them."""

from hypothesis import strategies as st

from tests.helpers.model_configs import GROUPED, HYBRID, LATENT, WINDOWED

POWERS = [1, 2, 4, 8, 16, 32]


@st.composite
def grouped(draw, most_layers=40):
    """Multi-head, grouped-query and multi-query attention with a head_dim of its own."""
    kv_heads, group = draw(st.sampled_from(POWERS)), draw(st.sampled_from([1, 2, 4, 8]))
    return {
        "num_hidden_layers": draw(st.integers(1, most_layers)),
        "hidden_size": 64 * draw(st.integers(1, 100)),
        "num_attention_heads": kv_heads * group,
        "num_key_value_heads": kv_heads,
        "head_dim": draw(st.sampled_from([64, 80, 96, 128, 256])),
        "intermediate_size": 64 * draw(st.integers(1, 300)),
        "vocab_size": draw(st.integers(100, 300_000)),
        "max_position_embeddings": 2 ** draw(st.integers(10, 20)),
    }


@st.composite
def latent(draw):
    config = draw(grouped())
    config |= {
        "kv_lora_rank": draw(st.sampled_from([128, 256, 512])),
        "qk_rope_head_dim": draw(st.sampled_from([32, 64])),
    }
    config |= {"qk_nope_head_dim": 128, "v_head_dim": 128}
    if draw(st.booleans()):
        config["index_head_dim"] = draw(st.sampled_from([64, 128]))
    if draw(st.booleans()):
        config["num_nextn_predict_layers"] = draw(st.integers(0, 3))
    return config


@st.composite
def windowed(draw):
    config = draw(grouped())
    kinds = ["sliding_attention", "full_attention"]
    config["layer_types"] = [draw(st.sampled_from(kinds)) for _ in range(config["num_hidden_layers"])]
    config["sliding_window"] = draw(st.sampled_from([1, 100, 128, 1024, 4096]))
    return config


@st.composite
def hybrid(draw):
    config = draw(grouped())
    kinds = ["linear_attention", "full_attention"]
    config["layer_types"] = [draw(st.sampled_from(kinds)) for _ in range(config["num_hidden_layers"])]
    heads = draw(st.sampled_from([8, 16, 32]))
    return config | {
        "linear_num_key_heads": heads,
        "linear_key_head_dim": draw(st.sampled_from([64, 128])),
        "linear_num_value_heads": heads * draw(st.sampled_from([1, 2])),
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": draw(st.integers(2, 4)),
    }


def plausible():
    return st.one_of(grouped(), latent(), windowed(), hybrid())


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [0, -1, 1, 2, 3, 7, 2**31, 10**12, 10**400, -(10**20), 0.5, 1e308, float("nan"), float("inf"), -0.0]
    ),
    st.sampled_from(["", "8", "full_attention", "mamba", "\ud800", "a" * 1000, "M*-E", "LLG"]),
    st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["full_attention", "conv", None, {}])), max_size=6),
    st.dictionaries(
        st.sampled_from(["num_heads", "0", "attn_type", "weights", "num_bits"]), st.integers(-1, 9), max_size=3
    ),
)
KEYS = sorted({key for config, *_ in (GROUPED | LATENT | WINDOWED | HYBRID).values() for key in config})
MORE = [
    "quantization_config",
    "per_layer_config",
    "text_config",
    "block_configs",
    "indexer_types",
    "tie_word_embeddings",
]


@st.composite
def damaged(draw):
    """A config of some family with keys changed, taken away and added."""
    published = [config for config, *_ in (GROUPED | LATENT | WINDOWED | HYBRID).values()]
    config = dict(draw(st.one_of(st.sampled_from(published), plausible())))
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.one_of(st.sampled_from(sorted(config) or ["x"]), st.sampled_from(KEYS + MORE)))
        if draw(st.booleans()):
            config[key] = draw(JUNK)
        else:
            config.pop(key, None)
    return config
