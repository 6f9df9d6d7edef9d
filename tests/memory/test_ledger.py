"""The memory ledger and the KV pool, by hand and against blocks counted one by one."""

import pytest

from course import memory
from course.models import ModelSpec, model
from tests.helpers.model_configs import HYBRID, WINDOWED, dense

GIB = 2**30
# Llama-3.1-8B: 32 layers, 8 KV heads of 128, 2 B an element; 8.03e9 parameters, norms left out
TOKEN = 2 * 32 * 8 * 128 * 2
WEIGHTS = 2 * (32 * (4096 * 128 * 2 * (32 + 8) + 3 * 4096 * 14336) + 2 * 128256 * 4096)
# gpt-oss-120b: 36 layers in turn with a window of 128 and without, 8 KV heads of 64
GPT_OSS = ModelSpec.from_config(
    dense(36, 2880, 64, 8, head_dim=64, sliding_window=128, vocab_size=201088, intermediate_size=2880)
    | {"layer_types": ["sliding_attention", "full_attention"] * 18, "num_local_experts": 128, "num_experts_per_tok": 4}
    | {"quantization_config": {"quant_method": "mxfp4"}, "max_position_embeddings": 131072}
)


def test_a_ledger_by_hand():
    card = memory.ledger(
        "llama-3.1-8b", memory_bytes=24 * GIB, max_model_len=8192, activation_bytes=GIB, other_bytes=GIB // 2
    )
    kv = int(0.9 * 24 * GIB) - WEIGHTS - GIB - GIB // 2
    assert (card.weights_bytes, card.kv_bytes) == (WEIGHTS, kv)
    assert card.num_blocks == kv // (16 * TOKEN)
    assert card.kv_tokens == 16 * card.num_blocks
    # vLLM keeps one block for itself: it counts among those that it prints, and no request gets it.
    assert card.longest_sequence == card.kv_tokens - 16
    assert card.max_sequences(8192) == (card.kv_tokens - 16) // 8192
    assert not card.problems
    names = ["total", "usable", "weights", "activation", "other", "KV", "blocks", "tokens", "sequences of 8,192"]
    assert [line.name for line in card.lines] == [*names, "longest sequence"]
    values = [card.total_bytes, card.usable_bytes, WEIGHTS, GIB, GIB // 2, kv]
    assert [line.bytes for line in card.lines][:7] == [*values, None]
    assert all(line.formula for line in card.lines)


@pytest.mark.parametrize(("blocks", "sequences", "longest"), [(32, 1, 496), (33, 2, 512), (1, 0, 0)])
def test_the_last_block_is_nobodys(blocks, sequences, longest):
    """Blocks of 16 tokens, sequences of 256: 32 blocks print as 2.00x, and the second has to wait."""
    pool = memory.pool(model("llama-3.1-8b"), blocks * 16 * TOKEN)
    assert (pool.num_blocks, pool.free_blocks) == (blocks, blocks - 1)
    assert (pool.max_sequences(256), pool.longest_sequence) == (sequences, longest)
    assert pool.concurrency(256) == blocks / 16


def test_two_ranks_have_half_the_weights_and_half_the_heads_each():
    one = memory.ledger("llama-3.1-8b", memory_bytes=80 * GIB, activation_bytes=0, other_bytes=0)
    two = memory.ledger("llama-3.1-8b", memory_bytes=80 * GIB, activation_bytes=0, other_bytes=0, tp=2)
    assert two.weights_bytes == one.weights_bytes // 2
    assert two.num_blocks == two.kv_bytes // (16 * TOKEN // 2)


def test_a_cache_of_8_bits_holds_twice_the_tokens():
    half, full = (memory.pool(model("llama-3.1-8b").with_kv_dtype(dtype), 10 * GIB) for dtype in ("fp8", None))
    assert half.num_blocks == 10 * GIB // (16 * TOKEN // 2)
    assert half.num_blocks // 2 == full.num_blocks


def test_the_smallest_rank_decides():
    spec = model("llama-3.1-8b")
    assert memory.pool(spec, [10 * GIB, 8 * GIB, 9 * GIB]) == memory.pool(spec, 8 * GIB)


def test_groups_of_a_model_with_windows():
    """Both kinds in 18 layers: a block of 16 tokens is 18 x 2 x 8 x 64 x 2 x 16 B, of either group.

    At 16,384 tokens the full group needs 1,024 blocks, the other (127 + 2,048) / 16 rounded up, and one more.
    """
    pool = memory.pool(GPT_OSS, 40 * GIB)
    assert pool.bytes_per_block == 18 * 2 * 8 * 64 * 2 * 16
    assert pool.blocks_for(16384) == 1024 + 136 + 1
    assert pool.num_tokens(16384) == 40 * GIB // pool.bytes_per_block // 2 * 16
    assert pool.concurrency(16384) == pool.num_blocks / 1161
    # Shorter than the window and a step: nothing slides.
    assert pool.blocks_for(100) == 7 + (7 + 1)
    everything = memory.pool(GPT_OSS, 40 * GIB, disable_hybrid_kv_cache_manager=True)
    assert everything.bytes_per_block == 36 * 2 * 8 * 64 * 2 * 16
    assert everything.blocks_for(16384) == 1024


def test_a_kind_is_cut_into_groups_as_large_as_the_rarer_one():
    """Gemma-3-27b: 10 full layers and 52 with a window, so 6 groups of 10 with 8 layers of padding, and one."""
    config, *_ = WINDOWED["gemma-3-27b"]
    pool = memory.pool(ModelSpec.from_config(config), 40 * GIB)
    assert sorted(group.kind for group in pool.groups) == ["full"] + 6 * ["window"]
    assert pool.bytes_per_block == 10 * 2 * 16 * 128 * 2 * 16
    assert pool.blocks_for(32768) == 2048 + 6 * (-(-(1023 + 2048) // 16) + 1)


def test_nearly_as_many_layers_are_padded_instead_of_cut():
    types = ["sliding_attention"] * 12 + ["full_attention"] * 13
    config = dense(25, 2880, 64, 8, head_dim=64, sliding_window=128, layer_types=types)
    assert [group.num_layers for group in memory.pool(ModelSpec.from_config(config), GIB).groups] == [13, 13]


def test_layers_with_fewer_bytes_a_token_get_longer_blocks():
    """Gemma-4-26B: 25 windowed layers of 8 x 256, 5 full ones of 2 x 512, half as large: 32 tokens a block there."""
    types = (["sliding_attention"] * 5 + ["full_attention"]) * 5
    config = dense(30, 2816, 16, 8, head_dim=256, layer_types=types, sliding_window=1024, attention_k_eq_v=True)
    config |= {"num_global_key_value_heads": 2, "global_head_dim": 512}
    pool = memory.pool(ModelSpec.from_config(config), 40 * GIB)
    assert pool.bytes_per_block == 5 * 2 * 8 * 256 * 2 * 16
    assert {(group.kind, group.block_size) for group in pool.groups} == {("window", 16), ("full", 32)}
    assert pool.blocks_for(32768) == 1024 + 5 * (-(-(1023 + 2048) // 16) + 1)


def test_a_state_makes_blocks_long():
    """Qwen3-Next: 12 full layers with 2,048 B a token, 36 with a state of 1,097,728 B: blocks of 544 tokens."""
    config, flat, state = HYBRID["qwen3-next-80b"]
    spec, each = ModelSpec.from_config(config), state // 36
    pool = memory.pool(spec, 40 * GIB)
    tokens = 16 * -(-each // (16 * flat // 12))
    assert tokens == 544
    assert pool.block_size == tokens and pool.bytes_per_block == tokens * flat
    assert pool.blocks_for(262144) == -(-262144 // tokens) + 3
    assert memory.pool(spec, 40 * GIB, mamba_cache_mode="align").blocks_for(262144) == -(-262144 // tokens) + 6


def test_states_alone_bound_sequences_not_tokens():
    config, _, state = HYBRID["mamba-2.8b"]
    pool = memory.pool(ModelSpec.from_config(config), GIB)
    assert pool.max_sequences(1) == pool.max_sequences(10**9) == GIB // state - 1  # one block is vLLM's own
    assert pool.longest_sequence is None and pool.num_tokens(4096) is None


def test_draft_layers_count_once_they_run():
    config = dense(61, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, num_nextn_predict_layers=1)
    spec = ModelSpec.from_config(config)
    assert memory.pool(spec, GIB).bytes_per_block == 61 * 576 * 2 * 16
    assert memory.pool(spec, GIB, num_speculative_tokens=1).bytes_per_block == 62 * 576 * 2 * 16


@pytest.mark.parametrize("block_size", [1, 3, 16])
@pytest.mark.parametrize("window", [1, 2, 5, 16, 40])
@pytest.mark.parametrize("step", [1, 7, 33])
def test_blocks_of_a_window_counted_one_by_one(window, block_size, step):
    """The most blocks that window - 1 kept and `step` new tokens touch, wherever they begin, are not underestimated."""
    group = memory.Group("window", 1, block_size, window, step)
    touched = max(
        len({token // block_size for token in range(start, start + window - 1 + step)}) for start in range(block_size)
    )
    assert touched <= group.blocks(10**6) <= touched + 1


def test_what_cannot_be_is_said():
    spec = model("llama-2-7b")
    small = memory.ledger(spec, memory_bytes=12 * GIB)
    assert small.kv_bytes < 0 and small.num_blocks == small.max_sequences(1) == 0
    assert small.problems[0].startswith("impossible: the weights, 12.55 GiB a card, do not fit")
    tight = memory.ledger(spec, memory_bytes=14 * GIB)
    assert tight.kv_bytes < 0 and "GiB are left for the KV cache" in tight.problems[0]
    # A claim once made for a card of 24 GB
    claimed = memory.ledger(spec, memory_bytes=24e9, num_gpu_blocks_override=8348)
    assert claimed.problems == ("impossible: 8,348 blocks are 65.22 GiB, more than the whole card's 22.35 GiB",)
    more = memory.ledger(spec, memory_bytes=24e9, num_gpu_blocks_override=1300)
    assert more.problems[0].startswith("impossible: 1,300 blocks are 10.16 GiB, and ")
    long = memory.ledger(spec, memory_bytes=24e9, max_model_len=100_000)
    assert long.problems[0].startswith("not one sequence of 100,000 tokens fits: the longest has ")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gpu": "H100", "tp": 3}, "32 query heads cannot be spread over 3 ranks"),
        ({"gpu": "H100", "tp": 0}, "tp must be a whole number"),
        ({"gpu": "H100", "gpu_memory_utilization": 1.5}, "gpu_memory_utilization must be"),
        ({"gpu": "H100", "gpu_memory_utilization": 0}, "gpu_memory_utilization must be"),
        ({"gpu": "H100", "kv_dtype": "fp3"}, "no KV cache type is called 'fp3'"),
        ({"gpu": "H100", "block_size": 0}, "block_size must be"),
        ({"gpu": "H100", "max_model_len": -1}, "max_model_len must be"),
        ({"gpu": "H100", "max_num_batched_tokens": float("nan")}, "max_num_batched_tokens must be"),
        ({"gpu": "H100", "mamba_cache_mode": "all"}, "mamba_cache_mode must be none or align"),
        ({"gpu": "H100", "weights_bytes": -1}, "weights_bytes must be"),
        ({"memory_bytes": float("inf")}, "memory_bytes must be"),
        ({"gpu": "H101"}, "no GPU is called 'H101'; did you mean H100"),
        ({}, "a ledger needs a GPU"),
    ],
)
def test_bad_settings_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        memory.ledger("llama-3.1-8b", **settings)


@pytest.mark.parametrize(
    ("hidden", "vocabulary", "tp", "printed"),
    [
        (1024, 151936, 1, 5.56),  # Qwen3-0.6B
        (4096, 128256, 1, 4.76),  # Llama-3.1-8B
        (5120, 151936, 1, 5.64),  # Qwen3-32B
        (8192, 128256, 2, 4.84),  # Llama-3.3-70B
        (2880, 201088, 1, 7.38),  # gpt-oss-20b
    ],
)
def test_the_estimate_of_activations_against_what_vllm_printed(hidden, vocabulary, tp, printed):
    """GiB on H100s with 1,024 sequences and 8,192 tokens a step: sampling is most of it. Fitted, so within 1.5%."""
    config = dense(2, hidden, 8, 8, head_dim=64, vocab_size=vocabulary, intermediate_size=hidden)
    spec = ModelSpec.from_config(config)
    card = memory.ledger(
        spec, memory_bytes=80 * GIB, max_model_len=4096, tp=tp, max_num_batched_tokens=8192, max_num_seqs=1024
    )
    assert card.activation_bytes / GIB == pytest.approx(printed, rel=0.015)


def test_a_pool_from_nothing_but_the_data_of_card_and_model():
    """Llama-3.1-8B on an RTX 4090 with vLLM 0.19: 2,588 blocks were printed. The estimates err to the safe side."""
    card = memory.ledger("llama-3.1-8b", "RTX 4090", max_model_len=32768)
    assert 0.95 * 2588 <= card.num_blocks <= 2588


def test_a_hybrid_counts_whole_sequences_and_keeps_a_state_more_for_each_draft():
    spec = ModelSpec.from_config(HYBRID["qwen3-next-80b"][0])
    pool = memory.pool(spec, 40 * GIB)
    assert pool.num_tokens(262144) == pool.num_blocks * 262144 // pool.blocks_for(262144)
    drafted = memory.pool(spec, 40 * GIB, num_speculative_tokens=2)
    states = [group.blocks(262144) for group in drafted.groups if group.kind == "state"]
    assert states and set(states) == {1 + 2}


def test_the_key_of_an_indexer_is_kept_beside_the_latent_row():
    """DeepSeek-V3.2: a row of 512 + 64 in 16 bits, and 128 dimensions in 8 bits with a scale of four bytes."""
    config = dense(61, 7168, 128, 128, kv_lora_rank=512, qk_rope_head_dim=64, index_head_dim=128)
    pool = memory.pool(ModelSpec.from_config(config), GIB)
    assert pool.bytes_per_block == 61 * (576 * 2 + 128 + 4) * 16


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize(("seqs", "tokens"), [(256, 2048), (2, 8192)])
def test_the_estimates_by_hand(seqs, tokens, tp):
    """Llama-3.1-8B, 16-bit hidden states of 4,096: two beside the sampler, three beside an MLP of 3 x 14,336."""
    sizes = {"max_num_seqs": seqs, "max_num_batched_tokens": tokens}
    card = memory.ledger("llama-3.1-8b", memory_bytes=80 * GIB, max_model_len=4096, tp=tp, **sizes)
    sampling = 38 * seqs * 128256 + 2 * 4096 * tokens * 2
    widest = (3 * 14336 // tp + 3 * 4096) * tokens * 2
    assert (sampling > widest) == (seqs == 256)
    assert card.activation_bytes == max(sampling, widest)
    assert card.other_bytes == int(0.13 * GIB) + (int(0.42 * GIB) if tp > 1 else 0)
