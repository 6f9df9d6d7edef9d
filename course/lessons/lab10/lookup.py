"""Exercise "lookup" of lab 10: what of a prompt is in the cache, by chained hashes of its blocks, and wrong ways."""

from __future__ import annotations

from collections.abc import Sequence

Key = tuple


def block_key(before, tokens):
    """What a full block is known by: the key of the block before it (None for the first), and its own tokens.

    Engines hash the two; a tuple of both is as good, and never the same for two different beginnings.
    """
    return (before, tuple(tokens))


def keys_of(tokens: Sequence[int], block_size: int) -> set[Key]:
    """The keys of all full blocks of a text."""
    keys, before = set(), None
    for start in range(0, len(tokens) - block_size + 1, block_size):
        before = block_key(before, tokens[start : start + block_size])
        keys.add(before)
    return keys


def lookup(prompt, cached, block_size):
    """Tokens of the prompt that are in the cache, by its leading full blocks and without its last token."""
    found, before = 0, None
    while found + block_size < len(prompt):
        before = block_key(before, prompt[found : found + block_size])
        if before not in cached:
            break
        found += block_size
    return found


def with_the_last_token(prompt, cached, block_size):
    """A prompt that is all there is computed not at all."""
    found, before = 0, None
    while found + block_size <= len(prompt):
        before = block_key(before, prompt[found : found + block_size])
        if before not in cached:
            break
        found += block_size
    return found


def goes_on_behind_a_gap(prompt, cached, block_size):
    """Blocks behind one that is missing count too."""
    found, before = 0, None
    for start in range(0, len(prompt) - block_size, block_size):
        before = block_key(before, prompt[start : start + block_size])
        found += block_size * (before in cached)
    return found


def without_the_chain(prompt, cached, block_size):
    """Each block is looked up by its own tokens alone."""
    found = 0
    while found + block_size < len(prompt):
        if block_key(None, prompt[found : found + block_size]) not in cached:
            break
        found += block_size
    return found


def in_blocks(prompt, cached, block_size):
    """Blocks in place of tokens."""
    return lookup(prompt, cached, block_size) // block_size


def whole_or_nothing(prompt, cached, block_size):
    """All of the prompt that can be found, or nothing."""
    found = lookup(prompt, cached, block_size)
    return found if found == (len(prompt) - 1) // block_size * block_size else 0


def missing(prompt, cached, block_size):
    """Tokens that are still to be computed: the twin."""
    return len(prompt) - lookup(prompt, cached, block_size)


def missing_with_the_last(prompt, cached, block_size):
    """The same wrong way in the twin."""
    return len(prompt) - with_the_last_token(prompt, cached, block_size)


_SYSTEM = list(range(100, 140))
_CHAT = [*_SYSTEM, *range(200, 260)]
_LONG = [*range(12), *range(50, 56)]
PROBES = (
    ([*_SYSTEM, 7, 8, 9], keys_of(_CHAT, 16), 16),  # 32 of 43
    (_CHAT[:96], keys_of(_CHAT, 16), 16),  # all of it is there: 80
    ([*_CHAT[:32], 1, *_CHAT[33:90]], keys_of(_CHAT, 16), 16),  # one other token in the third block
    ([*_CHAT, *range(300, 330)], keys_of(_CHAT, 8), 8),  # the next turn
    ([5, 5, 5, 5, 5, 5, 5, 5, 6], keys_of([5] * 4, 4), 4),  # the same tokens twice, the second time behind others
    ([1, 2, 3], keys_of(_CHAT, 16), 16),
    (_CHAT[:17], keys_of(_CHAT, 16), 16),  # one token behind the block
    (_LONG, keys_of(_LONG, 4) - (keys_of(_LONG[:12], 4) - keys_of(_LONG[:8], 4)), 4),  # the third of four is missing
)  # fmt: skip
"""(prompt, keys that are in the cache, block size)."""
