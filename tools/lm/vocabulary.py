"""Learn the vocabulary and write `tokenizer.json`. Needs the package `tokenizers`; takes a few seconds.

python -m tools.lm.vocabulary course/lm/tokenizer.json
"""

from __future__ import annotations

import sys
from itertools import islice

from course.lm.tokenizer import ASSISTANT, END, USER
from tools.lm.text import conversations

SIZE, SEED, CONVERSATIONS = 2_048, 99, 40_000
# A word with the space before it, a number with it, a line end, other signs with it, a space alone: every character is
# in one of the five, and the classes mean the same in every engine of regular expressions.
WORDS = r" ?[A-Za-z]+| ?[0-9]+|\n| ?[^ \nA-Za-z0-9]+| "


def main() -> None:
    """Learn the merges from training conversations and save them to the path given."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=["<|pad|>", USER, ASSISTANT, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (text for said in islice(conversations(SEED), CONVERSATIONS) for turn in said for text in turn)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(sys.argv[1])
    print(f"{tokenizer.get_vocab_size()} pieces")


if __name__ == "__main__":
    main()
