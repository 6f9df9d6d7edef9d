"""What fits: the memory of a card as a ledger, and the sequences that its KV pool holds.

    from course import memory

    card = memory.ledger("llama-3.1-8b", "H100", max_model_len=8192)
    card.kv_bytes, card.kv_tokens, card.num_blocks
    card.max_sequences(8192), card.longest_sequence
    for line in card.lines:
        print(line.name, line.value, line.unit, line.formula)

The engine's arithmetic is vLLM V1's. A ledger that cannot be (weights larger than the card) is answered too, with
`problems` that say what is wrong.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.memory.card import Ledger, ledger
    from course.memory.layout import Group, Pool, pool
    from course.memory.report import Line

__all__ = ["Group", "Ledger", "Line", "Pool", "ledger", "pool"]

# Fetched at first use (PEP 562): policies and the command line need the blocks, and not the models behind a ledger.
_HOMES = {
    **dict.fromkeys(("Group", "Pool", "pool"), "layout"),
    **dict.fromkeys(("Ledger", "ledger"), "card"),
    "Line": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_HOMES[name]}")
    # All that it holds, at once: importing the module `ledger` has just put it where the function belongs.
    globals().update({each: getattr(module, each) for each, home in _HOMES.items() if home == _HOMES[name]})
    return globals()[name]
