"""Several ranks: tensor, pipeline, context and data parallelism, against layers and tokens dealt out by hand."""

from math import ceil

import pytest

from course import memory
from course.memory.drafts import drafts
from course.memory.ranks import stages_of
from course.models import ModelSpec, model
from tests.helpers.model_configs import dense

GIB = 2**30
LLAMA = model("llama-3.1-8b")
LAYER = 2 * 8 * 128 * 2  # bytes a token and layer
MIXED = ModelSpec.from_config(
    dense(6, 256, 8, 4, head_dim=32, vocab_size=1000, num_experts=16, num_experts_per_tok=2, moe_intermediate_size=128)
    | {"max_position_embeddings": 4096}
)
EXPERTS = 6 * 16 * 3 * 256 * 128 * 2  # bytes
LATENT = ModelSpec.from_config(
    dense(4, 512, 8, 8, model_type="deepseek_v3", kv_lora_rank=64, qk_rope_head_dim=16, qk_nope_head_dim=32)
    | {"vocab_size": 1000, "intermediate_size": 512, "max_position_embeddings": 4096}
)
WINDOWED = ModelSpec.from_config(
    dense(12, 256, 4, 2, head_dim=64, sliding_window=64, layer_types=["sliding_attention", "full_attention"] * 6)
    | {"vocab_size": 1000, "intermediate_size": 512, "max_position_embeddings": 4096}
)


@pytest.mark.parametrize(
    ("number", "pp", "sizes"),
    [(32, 1, [32]), (32, 2, [16, 16]), (32, 3, [11, 11, 10]), (61, 4, [15, 15, 16, 15]), (7, 7, [1] * 7)],
)
def test_layers_are_dealt_out_as_the_engine_does(number, pp, sizes):
    """What is left over goes to the stages before the last, from its neighbour backwards."""
    stages = stages_of(number, pp)
    assert [len(stage) for stage in stages] == sizes
    assert [layer for stage in stages for layer in stage] == list(range(number))


def test_a_stage_holds_its_layers_and_the_smallest_pool_decides():
    pool = memory.pool(LLAMA, [10 * GIB, 8 * GIB, 9 * GIB], pp=3)
    assert pool.num_blocks == 8 * GIB // (11 * 16 * LAYER) and pool.kv_bytes == 8 * GIB
    # Two ranks of tensor parallelism in each stage: half the heads each.
    ranks = [10 * GIB, 9.5 * GIB, 9 * GIB, 10 * GIB]
    assert memory.pool(LLAMA, ranks, pp=2, tp=2).num_blocks == int(9 * GIB) // (16 * 16 * LAYER // 2)


def test_windows_over_stages_are_grouped_by_the_whole_model():
    """Six layers of either kind in two groups; each stage has three of either."""
    one, two = memory.pool(WINDOWED, GIB), memory.pool(WINDOWED, GIB, pp=2)
    assert [group.num_layers for group in two.groups] == [6, 6]
    assert one.bytes_per_block == 2 * two.bytes_per_block == 6 * 16 * 2 * 2 * 64 * 2
    assert two.blocks_for(1000) == one.blocks_for(1000)


def test_weights_of_stages():
    """Embedding on the first, head on the last, layers by number; only the last one samples."""
    card = {"memory_bytes": 24 * GIB, "max_model_len": 4096}
    one = memory.ledger(LLAMA, **card)
    two = memory.ledger(LLAMA, **card, pp=2)
    assert two.weights_bytes == one.weights_bytes // 2
    three = memory.ledger(LLAMA, **card, pp=3)
    layers = one.weights_bytes - 2 * 2 * 128256 * 4096
    kv = [24 * GIB * 9 // 10 - three.other_bytes - layers * n // 32 for n in (11, 11, 10)]
    widest = (3 * 14336 + 3 * 4096) * 2048 * 2
    kv[0] -= 2 * 128256 * 4096 + widest
    kv[1] -= widest
    kv[2] -= 2 * 128256 * 4096 + 38 * 256 * 128256 + 2 * 4096 * 2048 * 2
    blocks = [has // (n * 16 * LAYER) for has, n in zip(kv, (11, 11, 10), strict=True)]
    assert three.num_blocks == pytest.approx(min(blocks), abs=1)  # bytes of layers are rounded


def test_replicas_share_experts_and_nothing_else():
    card = {"memory_bytes": 24 * GIB}
    one, two = (memory.ledger(MIXED, **card, dp=dp) for dp in (1, 2))
    assert one.weights_bytes - two.weights_bytes == EXPERTS // 2
    four = memory.ledger(MIXED, **card, dp=2, tp=2)
    assert four.weights_bytes == (one.weights_bytes - EXPERTS) // 2 + EXPERTS // 4
    assert four.lines[-1].name == "over 2 replicas"
    assert four.lines[-1].value == 2 * four.max_sequences(4096)
    # A dense model is copied whole.
    assert memory.ledger(LLAMA, **card, dp=4).weights_bytes == memory.ledger(LLAMA, **card).weights_bytes


def test_latent_rows_are_copied_to_every_rank_unless_tokens_are_shared():
    plain, copied, shared = (memory.pool(LATENT, GIB, tp=tp, dcp=dcp) for tp, dcp in ((1, 1), (4, 1), (4, 4)))
    assert plain.num_blocks == copied.num_blocks == shared.num_blocks
    assert shared.num_tokens(4096) == 4 * copied.num_tokens(4096)
    for length in (1, 63, 64, 65, 4096):
        assert shared.blocks_for(length) == ceil(ceil(length / 4) / 16)
    assert memory.pool(LATENT, GIB, tp=4, dcp=2, pcp=2).num_tokens(4096) == shared.num_tokens(4096)
    # The longest sequence is shared too.
    assert shared.longest_sequence == (shared.num_blocks - 1) * 16 * 4


def test_kv_heads_that_are_copied_may_share_tokens():
    """Llama with 8 KV heads on 16 ranks: each head on two, which take half of its tokens each."""
    copied, shared = (memory.pool(LLAMA, GIB, tp=16, dcp=dcp) for dcp in (1, 2))
    assert shared.num_blocks == copied.num_blocks and shared.num_tokens(4096) == 2 * copied.num_tokens(4096)
    for settings, said in (
        ({"tp": 8, "dcp": 2}, "dcp 2 is more than tp 8 / 8 KV heads"),
        ({"tp": 16, "dcp": 3}, "dcp 3 must divide tp 16"),
        ({"tp": 16, "dcp": 0}, "dcp must be a whole number"),
    ):
        with pytest.raises(ValueError, match=said):
            memory.pool(LLAMA, GIB, **settings)
    with pytest.raises(ValueError, match="context parallelism needs full attention in every layer"):
        memory.pool(WINDOWED, GIB, tp=2, dcp=2)


def test_lists_that_stages_cannot_share_are_refused():
    with pytest.raises(ValueError, match="kv_bytes has 3 ranks, which 2 stages cannot share evenly"):
        memory.pool(LLAMA, [GIB, GIB, GIB], pp=2)
    with pytest.raises(ValueError, match="kv_bytes must be a number of bytes, or one a rank, not an empty list"):
        memory.pool(LLAMA, [])
    with pytest.raises(ValueError, match="32 layers cannot be spread over 40 stages"):
        memory.pool(LLAMA, GIB, pp=40)


# What drafts


def test_an_eagle_head_is_one_layer_more():
    plain, eagle = (memory.pool(LLAMA, 40 * GIB, num_speculative_tokens=k) for k in (0, 3))
    assert plain.bytes_per_block == 32 * 16 * LAYER and eagle.bytes_per_block == 33 * 16 * LAYER
    three = memory.pool(LLAMA, 40 * GIB, num_speculative_tokens=3, speculative_method="eagle3", draft_layers=3)
    assert three.bytes_per_block == 35 * 16 * LAYER
    ngram = memory.pool(LLAMA, 40 * GIB, num_speculative_tokens=3, speculative_method="ngram")
    assert ngram == plain


def test_a_head_on_windows_goes_to_the_full_layers():
    """Six windowed layers and seven full ones: padded to seven of either (vLLM's comment on gpt-oss with EAGLE)."""
    pool = memory.pool(WINDOWED, GIB, num_speculative_tokens=2)
    assert [group.num_layers for group in pool.groups] == [7, 7]


def test_a_draft_model_keeps_all_its_layers_and_its_weights():
    draft = ModelSpec.from_config(dense(2, 128, 2, 1, head_dim=64, vocab_size=1000, intermediate_size=256))
    found = drafts(LLAMA, 4, draft_model=draft)
    assert found.layers == draft.layer_caches and found.weights_bytes == draft.weights_bytes
    card = {"memory_bytes": 24 * GIB, "max_model_len": 4096}
    plain, drafted = (
        memory.ledger(LLAMA, **card, **more) for more in ({}, {"num_speculative_tokens": 4, "draft_model": draft})
    )
    assert drafted.weights_bytes - plain.weights_bytes == draft.weights_bytes
    assert drafted.pool.bytes_per_block == 16 * (32 * LAYER + 2 * 2 * 64 * 2)
    # The embedding and the head of an EAGLE head are the model's: its layers and the projection of two states count.
    head = drafts(LLAMA, 4, "eagle", draft)
    assert head.weights_bytes == draft.weights.layer_bytes + 2 * 2 * 128**2


def test_who_drafts_without_a_method():
    mtp = ModelSpec.from_config(dense(4, 128, 2, 1, head_dim=64, num_nextn_predict_layers=1))
    assert drafts(mtp, 1).layers == mtp.draft_layers and "mtp" in drafts(mtp, 1).note
    assert len(drafts(LLAMA, 1).layers) == 1 and "eagle" in drafts(LLAMA, 1).note
    assert drafts(LLAMA, 0).layers == drafts(mtp).layers == ()
    for arguments, said in (
        ((LLAMA, 0, "eagle"), "speculative_method drafts nothing without num_speculative_tokens"),
        ((LLAMA, 1, "mtp"), "has no layers for multi-token prediction"),
        ((LLAMA, 1, "draft_model"), "needs draft_model, the config of the model that drafts"),
        ((LLAMA, 1, "oracle"), "speculative_method is mtp, eagle, .* or suffix, not 'oracle'"),
    ):
        with pytest.raises(ValueError, match=said):
            drafts(*arguments)
