"""The best that a hand can reach on a board with a pool of blocks, found without the engine: every set is tried."""

from __future__ import annotations

from functools import cache
from itertools import combinations

from course.explore.board import Game


def fits(game: Game, rows: tuple[int, ...], emitted: tuple[int, ...]) -> bool:
    """Whether these can all compute one step: a request holds blocks for its prompt and what it has said."""
    blocks = sum(-(-(game.asks[row].prompt + emitted[row]) // game.cache.block_size) for row in rows)
    return len(rows) <= game.max_num_seqs and blocks <= game.cache.num_blocks


def best(game: Game, may_send_away: bool = True) -> float:
    """The least mean time to an answer."""
    asks = game.asks

    @cache
    def least(time: int, emitted: tuple[int, ...], running: tuple[int, ...]) -> float:
        """The least sum of the times at which all can be answered from here. A step lasts one, whatever is in it."""
        if all(said == ask.answer for said, ask in zip(emitted, asks, strict=True)):
            return 0.0
        here = [row for row, ask in enumerate(asks) if emitted[row] < ask.answer and ask.arrival <= time]
        if not here:
            return least(time + 1, emitted, ())
        stay = () if may_send_away else tuple(row for row in running if emitted[row] < asks[row].answer)
        found, others = float("inf"), [row for row in here if row not in stay]
        for count in range(len(others) + 1):
            for more in combinations(others, count):
                rows = tuple(sorted(stay + more))
                if not rows or not fits(game, rows, emitted):
                    continue
                after = tuple(said + (row in rows) for row, said in enumerate(emitted))
                done = sum(after[row] == asks[row].answer for row in rows) * (time + 1)
                found = min(found, done + least(time + 1, after, () if may_send_away else rows))
        return found

    return (least(0, (0,) * len(asks), ()) - sum(ask.arrival for ask in asks)) / len(asks)
