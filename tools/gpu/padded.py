"""A step of any chunks and decodes up to a size: the rest is padding, so that one captured graph serves many steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.ops import append, most_likely, sampling, work_list
from course.gpu.ops.prefill_attention import checked_chunks
from course.gpu.transformer.inputs import Inputs
from course.gpu.transformer.llama import Llama
from course.gpu.transformer.step import BLOCK, Step


class PaddedStep(Step):
    """A step for up to `chunk_tokens` prompt tokens in up to `chunks` chunks, and up to `decodes` decodes.

    longest: tokens of the longest sequence that will come. typical: of an ordinary one, for which attention is cut up;
    half of the longest by default. Padded rows go through the products like any others; their keys and values are kept
    nowhere, and no attention is computed of padded prompt tokens. A padded decode attends to one token. The step ends
    with greedy decoding, or with drawing by the settings that `write_parts` is given if it is `sampled`: `chosen` has
    the token of each sequence.

    Raises ValueError as Step does, and for more chunks than tokens.
    """

    def __init__(
        self,
        llama: Llama,
        *,
        chunk_tokens: int,
        chunks: int,
        decodes: int,
        longest: int,
        typical: int | None = None,
        form: str = "auto",
        sampled: bool = False,
    ) -> None:
        tokens, chunks = whole("chunk_tokens", chunk_tokens, low=0), whole("chunks", chunks, low=0)
        decodes, longest = whole("decodes", decodes, low=0), whole("longest", longest, high=llama.max_positions)
        if chunks > tokens or (tokens > 0) != (chunks > 0):
            raise ValueError(
                f"{chunks} chunks of {tokens} prompt tokens together are impossible: give each at least one token"
            )
        self.longest, self.prompt_rows, self.sampled = longest, tokens, sampled
        self._typical = -(-longest // 2) if typical is None else whole("typical", typical, high=longest)
        # However the tokens are shared out, they need no more tiles than one long chunk and the others of one token.
        listed = [(tokens - chunks + 1, 0)] + [(1, 0)] * (chunks - 1) if chunks else []
        super().__init__(llama, chunks=listed, lengths=[longest] * decodes, max_blocks=-(-longest // BLOCK), form=form)
        self._chosen = llama.ints(self.sequences)
        how: dict[str, Any] = {"kind": llama.kind, "chained": True}
        if not sampled:
            self.launches.append(most_likely.prepare(self.queue, self._logits, self._chosen, **how))
            return
        self._greedy = sampling.settings(1, temperature=0, columns=llama.shape.vocabulary)
        settings, rounds = self.inputs.there["settings"].view(np.float32), llama.ints(self.sequences)
        self.launches.append(sampling.prepare(self.queue, self._logits, settings, self._chosen, rounds, **how))

    def _plan_attention(self, listed: list[tuple[int, int, int, int]], lengths: Sequence[int]) -> None:
        """As if one prompt of typical length came in chunks of all the tokens: places to spare hold no work."""
        one = [(0, self.prompt_rows, max(0, self._typical - self.prompt_rows), 0)] if listed else []
        super()._plan_attention(one, [self._typical] * len(lengths))

    def _make_inputs(self, listed: list) -> None:
        super()._make_inputs(listed)
        if self.sampled:
            sizes = {name: array.shape for name, array in self.inputs.here.items()}
            self.inputs = Inputs(self.queue, sizes | {"settings": (self.sequences, 4)})

    def write_parts(
        self,
        ids: Any,
        tables: Sequence[Any],
        *,
        chunks: Sequence[tuple[int, int]] = (),
        lengths: Sequence[int] = (),
        asked: Sequence[int] | None = None,
        settings: np.ndarray | None = None,
    ) -> None:
        """What the next run computes: ids and block tables, of the chunks first.

        chunks: (tokens, tokens cached before) of each. lengths: of each decode, its new token included. asked: the
        token of each chunk whose answer is wanted, counted from 1: the last, unless padding comes behind it. settings:
        of each sequence, as `sampling.settings` gives them, for a step that is sampled; greedy by default.
        Raises ValueError for more than was prepared for, and as `Step.write` does.
        """
        here, places, rows = self.inputs.here, len(self.chunk_tokens), self.prompt_rows
        total, decodes = sum(tokens for tokens, _ in chunks), len(lengths)
        if total > rows or len(chunks) > places or decodes > self.decodes:
            raise ValueError(
                f"{total} prompt tokens in {len(chunks)} chunks and {decodes} decodes: this step was prepared for "
                f"{rows} in {places} and {self.decodes}"
            )
        ids = self._checked_ids(ids, total + decodes, tables, len(chunks) + decodes)
        known = np.ones(self.decodes, np.int64)
        if decodes:
            known[:decodes] = work_list.checked_lengths(lengths, self.longest)
        self._write_tables(tables, chunks, known[:decodes])

        # Rows: prompt tokens, padding, decodes, padding.
        table, end = here["table"], rows + decodes
        slots = [np.zeros(0, np.int64)]
        here["ids"].fill(0)
        here["positions"].fill(0)
        here["slots"].fill(-1)
        here["ends"].fill(0)
        listed, first = [], 0
        for i, (tokens, cached) in enumerate(chunks):
            positions = np.arange(cached, cached + tokens)
            here["positions"][first : first + tokens] = positions
            slots.append(table[i, positions // BLOCK].astype(np.int64) * BLOCK + positions % BLOCK)
            listed.append((first, tokens, cached, i))
            first += tokens
            here["ends"][i] = first - 1 if asked is None else first - tokens + asked[i] - 1
        last = known[:decodes] - 1
        here["positions"][rows:end] = last
        slots.append(table[np.arange(places, places + decodes), last // BLOCK].astype(np.int64) * BLOCK + last % BLOCK)
        here["ids"][:total], here["ids"][rows:end] = ids[:total], ids[total:]
        used = append.checked_slots(np.concatenate(slots), self.llama.blocks)
        here["slots"][:total], here["slots"][rows:end] = used[:total], used[total:]
        here["ends"][places:] = np.arange(rows, self.tokens)
        if self.sampled:
            drawn = here["settings"].view(np.float32)
            drawn[:] = self._greedy
            if settings is not None:
                drawn[: len(chunks)], drawn[places : places + decodes] = np.split(settings, [len(chunks)])
        if self.decodes:
            self._write_work(known)
        if places:
            here["chunks"].fill(0)
            here["tiles"][:] = 0, self.tokens  # behind the end of the first chunk: nothing to do
            if chunks:
                here["chunks"][: len(chunks)] = checked_chunks(listed, rows, self.columns)
                tiles = self.llama.prefill_attention.tiles(listed, self._slabs)
                here["tiles"][: len(tiles)] = tiles
        self.inputs.send()

    def _checked_ids(self, ids: Any, count: int, tables: Sequence[Any], sequences: int) -> np.ndarray:
        ids, vocabulary = np.asarray(ids), self.llama.shape.vocabulary
        if ids.shape != (count,) or ids.dtype.kind not in "iu" or len(tables) != sequences:
            raise ValueError(
                f"this takes {count} whole numbers as ids and {sequences} block tables, not {quote(ids)} and "
                f"{len(tables)} tables"
            )
        if count and (ids.min() < 0 or ids.max() >= vocabulary):
            wrong = ids[(ids < 0) | (ids >= vocabulary)][0]
            raise ValueError(f"token {wrong} is outside the vocabulary of {vocabulary:,}")
        return ids

    def _write_tables(self, tables: Sequence[Any], chunks: Sequence[tuple[int, int]], lengths: np.ndarray) -> None:
        """Block tables, those of the chunks first. Raises ValueError for one that is too short, too long or wrong."""
        here, places, blocks = self.inputs.here["table"], len(self.chunk_tokens), self.llama.blocks
        ends = [tokens + cached for tokens, cached in chunks] + lengths.tolist()
        here.fill(0)
        for s, (end, table) in enumerate(zip(ends, tables, strict=True)):
            if len(table) > self.columns:
                raise ValueError(f"sequence {s} has {len(table)} blocks, and its table has room for {self.columns}")
            if end > self.longest or -(-end // BLOCK) > len(table):
                raise ValueError(
                    f"sequence {s} has {end} tokens, {len(table)} blocks of {BLOCK}, and this step was prepared for "
                    f"sequences of {self.longest}: too few"
                )
            here[s if s < len(chunks) else places + s - len(chunks), : len(table)] = table
        if here.min() < 0 or here.max() >= blocks:
            work_list.table_of(tables, self.columns, blocks)  # says which

    def chosen(self) -> np.ndarray:
        """int32 (sequences,): the next token of each, once the last run is done."""
        with self.queue.here():
            return self.queue.device.to_numpy(self._chosen)

    def answers(self, values: np.ndarray, chunks: int, decodes: int) -> np.ndarray:
        """Of one row a sequence, as `logits` and `chosen` give them: those of so many chunks, then decodes."""
        places = len(self.chunk_tokens)
        return np.concatenate([values[:chunks], values[places : places + decodes]])
