"""What fits: the memory of a card as a ledger, and the sequences that its KV pool holds.

    from course import budget

    card = budget.ledger("llama-3.1-8b", "H100", max_model_len=8192)
    card.kv_bytes, card.kv_tokens, card.num_blocks
    card.max_sequences(8192), card.longest_sequence
    for line in card.lines:
        print(line.name, line.value, line.unit, line.formula)

The engine's arithmetic is vLLM V1's. A ledger that cannot be (weights larger than the card) is answered too, with
`problems` that say what is wrong.
"""

from course.memory.layout import Group, Pool, pool
from course.memory.ledger import Ledger, ledger
from course.memory.report import Line

__all__ = ["Group", "Ledger", "Line", "Pool", "ledger", "pool"]
