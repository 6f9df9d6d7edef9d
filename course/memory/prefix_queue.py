"""The free blocks of a prefix cache, in the order in which they are reused, and what is still in them until then."""

from __future__ import annotations

from course.memory.block_pool import BlockPool
from course.memory.prefix_spans import Copy, Key, Queue, Span, split


class FreeBlocks(BlockPool):
    """Blocks that nobody holds are taken from the head of one queue, whatever is in them.

    Which ones is seldom asked: blocks are taken by count, and owed to the queue until somebody looks for what is in it.
    queue, blank: free blocks; how many at its head hold nothing. forgotten: blocks taken whose text others may know.
    """

    __slots__ = ("_lost", "_lost_blocks", "_owed", "_spans", "blank", "forgotten", "queue")

    # As in BlockPool, but never infinite.
    free: int
    num_blocks: int

    def __init__(self, num_blocks: int, block_size: int):
        super().__init__(num_blocks, block_size)
        self._spans: dict[Key, Span] = {}  # what can be found, by the key of its first block
        self.queue, self.blank = Queue(), num_blocks
        self._lost: list[tuple[int, Queue]] = []  # what victims of this step had, not in the queue yet
        self._lost_blocks = self._owed = self.forgotten = 0

    def take_blocks(self, blocks: int) -> None:
        """So many from the head of the queue; what was in them is gone."""
        while self._lost and blocks > self.free - self._lost_blocks:
            self.bring_home(1)
        self.free -= blocks
        self._owed += blocks

    def evict_owed(self) -> None:
        """Take the blocks that are owed from the head of the queue; what was in them cannot be found any more."""
        blocks, self._owed = self._owed, 0
        queue = self.queue
        while blocks > self.blank:
            blocks, self.blank = blocks - self.blank, 0
            node = queue.after
            if node is queue:
                return  # more than there are: the engine takes notice
            if type(node) is Copy:
                blocks -= self._evict(node, blocks)
            else:
                node.unlink()
                self.blank = node.blocks
        self.blank -= blocks

    def _evict(self, copy: Copy, most: int) -> int:
        """Forget up to `most` blocks of a free copy, the last ones; how many these are."""
        span = copy.span
        size = span.hi - span.lo
        if most < size:
            if len(span.copies) == 1:
                self._forget(span, most)
                span.hi -= most
                return most
            split(self._spans, span, span.hi - most)
            return self._evict(copy.before, most)  # type: ignore[arg-type]
        copy.unlink()
        self._forget(span, size)
        span.copies.remove(copy)
        if not span.copies:
            del self._spans[span.key]
        return size

    def _forget(self, span: Span, blocks: int) -> None:
        if span.lo < span.chain.shared:
            self.forgotten += blocks

    def bring_home(self, victims: int) -> None:
        """What the first of the victims had goes to the queue."""
        if not victims:
            return
        self.evict_owed()
        for blank, queue in self._lost[:victims]:
            self.blank += blank
            self._lost_blocks -= blank
            node = queue.after
            while node is not queue:
                self._lost_blocks -= node.blocks if not isinstance(node, Copy) else node.span.hi - node.span.lo
                node = node.after
            self.queue.extend(queue)
        del self._lost[:victims]
