"""A step of any chunks and decodes up to a size: the rest is padding, so that one captured graph serves many steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.ops import append, work_list
from course.gpu.ops.prefill_attention import checked_chunks
from course.gpu.transformer.llama import Llama
from course.gpu.transformer.step import BLOCK, Step


class PaddedStep(Step):
    """A step for up to `chunk_tokens` prompt tokens in up to `chunks` chunks, and up to `decodes` decodes.

    longest: tokens of the longest sequence that will come. Padded rows go through the products like any others; their
    keys and values are kept nowhere, and no attention is computed of padded prompt tokens. A padded decode attends to
    one token.

    Raises ValueError as Step does, and for more chunks than tokens.
    """

    def __init__(
        self, llama: Llama, *, chunk_tokens: int, chunks: int, decodes: int, longest: int, form: str = "auto"
    ) -> None:
        tokens, chunks = whole("chunk_tokens", chunk_tokens, low=0), whole("chunks", chunks, low=0)
        decodes, longest = whole("decodes", decodes, low=0), whole("longest", longest, high=llama.max_positions)
        if chunks > tokens or (tokens > 0) != (chunks > 0):
            raise ValueError(f"{chunks} chunks of {tokens} prompt tokens together cannot be: give each a token or more")
        # However the tokens are shared out, they need no more tiles than one long chunk and the others of one token.
        first = tokens - chunks + 1
        listed = [(first, max(0, min(longest - first, longest // 2)))] + [(1, 0)] * (chunks - 1) if chunks else []
        super().__init__(llama, chunks=listed, lengths=[longest] * decodes, max_blocks=-(-longest // BLOCK), form=form)
        self.longest, self.prompt_rows = longest, tokens

    def write_parts(
        self,
        ids: Any,
        tables: Sequence[Sequence[int]],
        *,
        chunks: Sequence[tuple[int, int]] = (),
        lengths: Sequence[int] = (),
    ) -> None:
        """What the next run computes: ids and block tables, of the chunks first.

        chunks: (tokens, tokens cached before) of each. lengths: of each decode, its new token included.
        Raises ValueError for more than was prepared for, and as `Step.write` does.
        """
        llama, here = self.llama, self.inputs.here
        sizes, cached = [int(tokens) for tokens, _ in chunks], [int(behind) for _, behind in chunks]
        total, decodes, places = sum(sizes), len(lengths), len(self.chunk_tokens)
        if total > self.prompt_rows or len(chunks) > places or decodes > self.decodes:
            raise ValueError(
                f"{total} prompt tokens in {len(chunks)} chunks and {decodes} decodes: this step was prepared for "
                f"{self.prompt_rows} in {places} and {self.decodes}"
            )
        ids = np.asarray(ids)
        if ids.shape != (total + decodes,) or ids.dtype.kind not in "iu" or len(tables) != len(chunks) + decodes:
            raise ValueError(
                f"this takes {total + decodes} whole numbers as ids and {len(chunks) + decodes} block tables, not "
                f"{quote(ids)} and {len(tables)} tables"
            )
        if ids.size and (ids.min() < 0 or ids.max() >= llama.shape.vocabulary):
            wrong = ids[(ids < 0) | (ids >= llama.shape.vocabulary)][0]
            raise ValueError(f"token {wrong} is outside of the vocabulary of {llama.shape.vocabulary:,}")
        known = np.ones(self.decodes, np.int64)
        if decodes:
            known[:decodes] = work_list.checked_lengths(lengths, self.longest)
        firsts = np.cumsum([0, *sizes])[:-1].tolist()
        listed = [(first, *chunk, i) for i, (first, chunk) in enumerate(zip(firsts, chunks, strict=True))]
        rows = np.r_[0:total, self.prompt_rows : self.prompt_rows + decodes]  # those that are no padding
        table_rows = np.r_[0 : len(chunks), places : places + decodes]
        ends = np.r_[np.add(sizes, cached, dtype=np.int64) if chunks else [], known[:decodes]].astype(np.int64)
        for s, (end, table) in enumerate(zip(ends, tables, strict=True)):
            if end > self.longest or -(-int(end) // BLOCK) > len(table):
                raise ValueError(
                    f"sequence {s} has {end} tokens, {len(table)} blocks of {BLOCK}, and this step was prepared for "
                    f"sequences of {self.longest}: too few"
                )
        here["table"][:] = 0
        here["table"][table_rows] = work_list.table_of(tables, self.columns, llama.blocks)
        sequence = np.r_[np.repeat(np.arange(len(chunks)), sizes), places : places + decodes].astype(np.int64)
        positions = np.concatenate([*(np.arange(behind, behind + n) for n, behind in chunks), known[:decodes] - 1])
        slots = here["table"][sequence, positions // BLOCK].astype(np.int64) * BLOCK + positions % BLOCK
        for name, values, padding in (("ids", ids, 0), ("positions", positions, 0)):
            here[name][:] = padding
            here[name][rows] = values
        here["slots"][:] = -1
        here["slots"][rows] = append.checked_slots(slots, llama.blocks)
        here["ends"][:] = 0
        here["ends"][: len(chunks)] = np.array(firsts, np.int64) + sizes - 1 if chunks else 0
        here["ends"][places:] = np.arange(self.prompt_rows, self.tokens)
        if self.decodes:
            self._write_work(known)
        if places:
            here["chunks"][:] = 0
            here["tiles"][:] = 0, self.tokens  # behind the end of the first chunk: nothing to do
            if chunks:
                here["chunks"][: len(chunks)] = checked_chunks(listed, self.prompt_rows, self.columns)
                tiles = llama.prefill_attention.tiles(listed, self._slabs)
                here["tiles"][: len(tiles)] = tiles
        self.inputs.send()

    def answers(self, values: np.ndarray, chunks: int, decodes: int) -> np.ndarray:
        """Of one row a sequence as `logits` and `most_likely` give them: those of so many chunks, then decodes."""
        places = len(self.chunk_tokens)
        return values[np.r_[0:chunks, places : places + decodes]]
