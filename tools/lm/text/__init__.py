"""The text that the model learned and is asked: prompts with the one right answer to each, from a seed.

from itertools import islice
from tools.lm.text import exchanges

for exchange in islice(exchanges(seed=0), 10):
    print(exchange.prompt, "->", exchange.answer)
"""

from tools.lm.text.exchange import Exchange
from tools.lm.text.mix import KINDS, SERVING, TRAINING, conversations, exchanges, held_out, of_kind

__all__ = ["KINDS", "SERVING", "TRAINING", "Exchange", "conversations", "exchanges", "held_out", "of_kind"]
