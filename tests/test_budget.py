"""The memory ledger, by hand from the sizes of Llama-3.1-8B."""

from course import budget
from course.models import model

GIB = 2**30
# Llama-3.1-8B: 32 layers, 8 KV heads of 128, 2 B an element; 8.03e9 parameters, norms left out
TOKEN = 2 * 32 * 8 * 128 * 2
WEIGHTS = 2 * (32 * (4096 * 128 * 2 * (32 + 8) + 3 * 4096 * 14336) + 2 * 128256 * 4096)


def test_a_ledger_by_hand():
    card = budget.ledger(
        "llama-3.1-8b", memory_bytes=24 * GIB, max_model_len=8192, activation_bytes=GIB, other_bytes=GIB // 2
    )
    kv = int(0.9 * 24 * GIB) - WEIGHTS - GIB - GIB // 2
    assert (card.weights_bytes, card.kv_bytes) == (WEIGHTS, kv)
    assert card.num_blocks == kv // (16 * TOKEN)
    assert card.kv_tokens == card.longest_sequence == 16 * card.num_blocks
    assert card.max_sequences(8192) == card.kv_tokens // 8192
    assert [line.name for line in card.lines][:6] == ["total", "usable", "weights", "activation", "other", "KV"]
    assert not card.problems


def test_weights_larger_than_the_card_are_a_problem_not_an_error():
    card = budget.ledger(model("llama-3.1-8b"), memory_bytes=12 * GIB)
    assert card.kv_bytes < 0 and card.num_blocks == card.max_sequences(1) == 0
    assert card.problems[0].startswith("the weights, 14.96 GiB a card, do not fit")
