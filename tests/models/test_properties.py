"""What must hold of any model: sums over layers, growth with each size, sharding; any file is a value or a sentence."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from course import memory
from course.models import ModelSpec, formula
from tests.helpers.model_strategies import damaged, grouped, hybrid, latent, plausible, windowed
from tests.helpers.strategies import examples

RANKS = st.sampled_from([1, 2, 4, 8])
GIB = 2**30


def read(config):
    return ModelSpec.from_config(config)


def per_rank(spec, tp):
    return sum(
        layer.attention.elements(tp) * spec.kv_bytes_per_element for layer in spec.layer_caches if layer.attention
    )


@given(grouped())
@examples(100)
def test_grouped_heads_in_closed_form(config):
    layers, kv_heads, head_dim = (config[key] for key in ("num_hidden_layers", "num_key_value_heads", "head_dim"))
    assert read(config).kv_bytes_per_token == 2 * layers * kv_heads * head_dim * 2


@given(plausible())
@examples(100)
def test_a_formula_is_what_it_says(config):
    """Each written formula, evaluated, is the number beside it."""
    spec = read(config)
    for name in ("kv_bytes_per_token", "kv_bytes_after_window", "window_bytes", "state_bytes"):
        text = getattr(formula, name)(spec).replace(" x ", " * ").replace(",", "")
        for word in (
            "layers",
            "layer",
            "KV heads",
            "KV head",
            "with a window",
            "tokens",
            "linear value heads",
            "linear key heads",
            "B",
        ):
            text = text.replace(word, "")
        assert eval(text) == getattr(spec, name)


@given(st.one_of(windowed(), hybrid(), grouped()), st.data())
@examples(100)
def test_layers_add_up(config, data):
    """A model cut in two has the bytes of both parts."""
    number = config["num_hidden_layers"]
    assume(number > 1)
    cut = data.draw(st.integers(1, number - 1))
    types = config.get("layer_types", ["full_attention"] * number)
    parts = [config | {"num_hidden_layers": len(one), "layer_types": one} for one in (types[:cut], types[cut:])]
    whole, (first, second) = read(config | {"layer_types": types}), map(read, parts)
    for name in ("kv_bytes_per_token", "kv_bytes_after_window", "window_bytes", "state_bytes"):
        assert getattr(whole, name) == getattr(first, name) + getattr(second, name)
    assert whole.weights.layers == first.weights.layers + second.weights.layers


@given(plausible(), st.sampled_from(["num_hidden_layers", "num_key_value_heads", "head_dim"]))
@examples(100)
def test_more_of_anything_is_never_less(config, key):
    larger = config | {key: 2 * config[key]}
    if key == "num_hidden_layers":
        larger["layer_types"] = 2 * config.get("layer_types", ["full_attention"] * config[key])
    if key == "num_key_value_heads":
        larger["num_attention_heads"] = 2 * config["num_attention_heads"]
    small, large = read(config), read(larger)
    assert large.kv_bytes_per_token >= small.kv_bytes_per_token
    assert large.weights_bytes >= small.weights_bytes
    assert small.kv_bytes_after_window <= small.kv_bytes_per_token
    assert small.with_kv_dtype("fp8").kv_bytes_per_token * 2 == small.kv_bytes_per_token


@given(plausible())
@examples(100)
def test_ranks_hold_at_least_the_whole_and_never_more_each(config):
    spec = read(config)
    whole, before = per_rank(spec, 1), None
    for tp in (1, 2, 4, 8, 16, 32):
        if config["num_attention_heads"] % tp:
            break
        here = per_rank(spec, tp)
        assert here * tp >= whole and (before is None or here <= before)
        if config["num_key_value_heads"] % tp == 0 and "kv_lora_rank" not in config:
            assert here * tp == whole
        if "kv_lora_rank" in config:
            assert here == whole
        before = here


@given(plausible(), st.integers(1, 40), st.integers(1, 200_000), RANKS, st.sampled_from([1, 16, 100, 128]))
@examples(200)
def test_a_pool_never_promises_what_it_has_not(config, gib, length, tp, block_size):
    spec = read(config)
    assume(all(spec_heads % tp == 0 for spec_heads in (spec.num_heads or tp, config.get("linear_num_key_heads", tp))))
    pool = memory.pool(spec, gib * GIB, tp=tp, block_size=block_size)
    assert pool.num_blocks * pool.bytes_per_block <= gib * GIB < (pool.num_blocks + 1) * pool.bytes_per_block
    sequences = pool.max_sequences(length)
    free = pool.num_blocks - 1  # one block is vLLM's own
    assert sequences * pool.blocks_for(length) <= max(0, free) < (sequences + 1) * pool.blocks_for(length)
    assert pool.blocks_for(length + 1) >= pool.blocks_for(length) >= pool.blocks_for(1) >= 1
    # Blocks hold at least the tokens themselves, in the layers that keep all of them, and the states.
    least = sum(
        length * layer.attention.elements(tp) * spec.kv_bytes_per_element
        for layer in spec.layer_caches
        if layer.attention and layer.attention.window is None
    )
    least += sum(layer.state_bytes(tp) for layer in spec.layer_caches)
    assert pool.blocks_for(length) * pool.bytes_per_block >= least
    longest = pool.longest_sequence
    if longest:
        assert pool.blocks_for(longest) <= free < pool.blocks_for(longest + 1)
    more = memory.pool(spec, 2 * gib * GIB, tp=tp, block_size=block_size)
    assert more.max_sequences(length) >= 2 * sequences


@given(latent(), st.integers(1, 3))
@examples(50)
def test_a_latent_row_is_the_same_on_every_rank(config, power):
    spec, tp = read(config), 2**power
    assume(config["num_attention_heads"] % tp == 0)
    assert memory.pool(spec, GIB, tp=tp) == memory.pool(spec, GIB)


@given(damaged())
@examples(600)
def test_a_damaged_config_is_a_value_or_a_sentence(config):
    try:
        spec = read(config)
        assert 0 <= spec.kv_bytes_after_window <= spec.kv_bytes_per_token
        assert spec.kv_bytes_per_token or spec.state_bytes
        assert spec.weights_bytes is None or spec.weights_bytes >= 0
        assert formula.kv_bytes_per_token(spec) and formula.state_bytes(spec) and formula.weights_bytes(spec)
        memory.ledger(spec, memory_bytes=80e9, max_model_len=4096, weights_bytes=1e9)
    except ValueError as error:
        assert 10 < len(str(error)) < 600


@given(st.text(alphabet='{}[]",:0123456789eE+-.truefalsnNaIity \n', max_size=200))
@examples(300)
def test_any_text_is_a_sentence(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError) as refusal:
        ModelSpec.from_config(path)
    assert "config.json" in str(refusal.value)


@given(plausible(), st.data())
@examples(100)
def test_a_cut_off_file_is_refused(tmp_path_factory, config, data):
    path = tmp_path_factory.getbasetemp() / "cut.json"
    text = json.dumps(config)
    path.write_text(text[: data.draw(st.integers(0, len(text) - 1))], encoding="utf-8")
    with pytest.raises(ValueError, match="this is not JSON"):
        ModelSpec.from_config(path)
