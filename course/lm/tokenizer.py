"""Text to token ids and back: byte-level byte-pair encoding, read from a Hugging Face `tokenizer.json`.

Every byte is a piece, so every text has tokens, and `decode` gives it back letter by letter. What stands between
`<|` and `|>` in a user's text stays text: only this module's callers put the special tokens in.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from course.lm.errors import LMError

USER, ASSISTANT, END = "<|user|>", "<|assistant|>", "<|end|>"


def byte_letters() -> list[str]:
    """The letter that stands for each of the 256 bytes in the file (GPT-2's table: printable bytes as themselves)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


class Tokenizer:
    """The pieces and merges of a `tokenizer.json` whose model is BPE over bytes.

    user, assistant, end: ids of the special tokens that open a prompt, open an answer and close it.
    LMError if the file is missing or is of another kind.
    """

    def __init__(self, path: str | Path):
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            vocab, merges = data["model"]["vocab"], data["model"]["merges"]
            special = {entry["content"]: entry["id"] for entry in data["added_tokens"]}
            self.user, self.assistant, self.end = special[USER], special[ASSISTANT], special[END]
            split = data["pre_tokenizer"]["pretokenizers"][0]
            self._words = re.compile(split["pattern"]["Regex"])
        except OSError as error:
            raise LMError(
                f"The tokenizer {path} cannot be read: {error.strerror or error}. Install it again."
            ) from None
        except (ValueError, KeyError, IndexError, TypeError, re.error):
            raise LMError(
                f"{path} is not a tokenizer.json of byte-level BPE with the special tokens {USER}, {ASSISTANT}, {END}."
            ) from None
        letters = byte_letters()
        byte_of = {letter: byte for byte, letter in enumerate(letters)}
        self._start = [vocab[letter] for letter in letters]
        ranks = {tuple(merge): rank for rank, merge in enumerate(merges)}
        self._merges = {(vocab[a], vocab[b]): (rank, vocab[a + b]) for (a, b), rank in ranks.items()}
        self._bytes = [b""] * (max(*vocab.values(), *special.values()) + 1)
        for piece, token in vocab.items():
            if piece not in special:
                self._bytes[token] = bytes(byte_of[letter] for letter in piece)
        self.special = frozenset(special.values())
        self._pieces = lru_cache(maxsize=16_384)(self._encode_word)

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str | bytes) -> list[int]:
        """The token ids of `text`. LMError for bytes that are not UTF-8 and for text with a lone surrogate."""
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as error:
                raise LMError(
                    f"The prompt is not text: byte {error.start} ({text[error.start]:#04x}) is not UTF-8."
                ) from None
        if not isinstance(text, str):
            raise LMError(f"The prompt must be text, not {type(text).__name__}.")
        tokens: list[int] = []
        try:
            for word in self._words.findall(text):
                tokens += self._pieces(word)
        except UnicodeEncodeError as error:
            bad = f"U+{ord(error.object[error.start]):04X}"
            raise LMError(f"The prompt is not text: {bad} is half of a character (a lone surrogate).") from None
        return tokens

    def prompt(self, turns: str | bytes | Iterable[str | bytes]) -> list[int]:
        """The tokens that ask for the next answer. `turns`: prompt, answer, prompt, ...; the last is a prompt.

        LMError if there is none, if the last is an answer, and if a prompt is empty.
        """
        turns = [turns] if isinstance(turns, str | bytes) or not isinstance(turns, Iterable) else list(turns)
        if len(turns) % 2 == 0:
            raise LMError(
                f"A conversation must end with a prompt: prompt, answer, ..., prompt. There are {len(turns)} turns."
            )
        tokens: list[int] = []
        for i, turn in enumerate(turns):
            inside = self.encode(turn)
            if not i % 2 and not turn.strip():
                raise LMError("The prompt is empty: write something that can be answered.")
            tokens += [self.assistant if i % 2 else self.user, *inside]
            if i % 2:
                tokens.append(self.end)
        return [*tokens, self.assistant]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; special tokens have none, bytes that are no text become U+FFFD."""
        return b"".join(self._piece(token) for token in tokens).decode(errors="replace")

    def stream(self) -> TextStream:
        """A decoder that takes one token after the other."""
        return TextStream(self)

    def _piece(self, token: int) -> bytes:
        if not 0 <= token < len(self._bytes):
            raise LMError(f"Token {token} is not one of the {len(self._bytes)} of the vocabulary.")
        return self._bytes[token]

    def _encode_word(self, word: str) -> tuple[int, ...]:
        """The pieces of one word: of all neighbours that merge, those first that were learned first."""
        tokens = [self._start[byte] for byte in word.encode()]
        while len(tokens) > 1:
            merges = [self._merges.get(pair) for pair in pairwise(tokens)]
            best = min((merge for merge in merges if merge), default=None)
            if best is None:
                break
            merged, i = [], 0
            while i < len(tokens):
                if i < len(merges) and merges[i] == best:
                    merged.append(best[1])
                    i += 2
                else:
                    merged.append(tokens[i])
                    i += 1
            tokens = merged
        return tuple(tokens)


class TextStream:
    """Text as its tokens come: a character that needs several tokens appears with the last of them."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        """The text that is complete now that `token` is there."""
        return self._decoder.decode(self._tokenizer._piece(token))

    def close(self) -> str:
        """What is left: U+FFFD if the last character was not complete."""
        return self._decoder.decode(b"", final=True)
