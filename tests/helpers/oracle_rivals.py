"""What the oracle needs of paging's rivals: pieces of memory block by block, and blocks on a host. Nothing from course.

Every block of a `Pieces` has an owner or None; holes are found by walking over all of them.
"""

from itertools import groupby


class Pieces:
    """`num_blocks` blocks, each with the number of its owner, or None."""

    def __init__(self, num_blocks, compaction=None, fit="best"):
        self.owner, self.compaction, self.fit, self.moved = [None] * num_blocks, compaction, fit, 0

    def holes(self):
        """(length, start) of each."""
        found, start = [], 0
        for owner, run in groupby(self.owner):
            length = len(list(run))
            found += [(length, start)] if owner is None else []
            start += length
        return found

    def fits(self, blocks):
        if self.compaction is not None:
            return self.owner.count(None) >= blocks
        return any(length >= blocks for length, _ in self.holes())

    def put(self, who, blocks):
        """The smallest hole that holds them, of equals the first, or the first; if none does, all others move up."""
        if not any(length >= blocks for length, _ in self.holes()):
            together = [owner for owner in self.owner if owner is not None]
            for owner in set(together):
                if self.owner.index(owner) != together.index(owner):
                    self.moved += together.count(owner)
            self.owner = together + [None] * self.owner.count(None)
        large = [hole for hole in self.holes() if hole[0] >= blocks]
        _, start = min(large) if self.fit == "best" else large[0]
        self.owner[start : start + blocks] = [who] * blocks

    def free(self, who):
        self.owner = [None if owner == who else owner for owner in self.owner]


def reserved_tokens(reserve, max_model_len, prompt, guess):
    """Tokens of a piece: for the longest, the next power of two of the answer, or the answer, as it is guessed."""
    if reserve == "longest" or guess is None:
        return max_model_len
    answer = int(guess) if guess == int(guess) else int(guess) + 1
    if reserve == "power of two":
        power = 1
        while power < answer:
            power *= 2
        answer = power
    return min(max_model_len, prompt + answer)


class Host:
    """Room for so many blocks of those that lost their slot."""

    def __init__(self, num_blocks):
        self.num_blocks, self.held, self.moved = num_blocks, {}, 0

    def keeps(self, who, blocks):
        """Whether there is room for what it had; then it is there."""
        room = 0 < blocks <= self.num_blocks - sum(self.held.values())
        if room:
            self.held[who] = blocks
            self.moved += blocks
        return room

    def gives_back(self, who):
        """Whether it was there."""
        there = who in self.held
        self.moved += self.held.pop(who, 0)
        return there
