"""One forward pass: prompt chunks and decodes together, as a list of launches that a graph can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from course.base.settings import quote, whole
from course.gpu.ops import append, numbers, skinny_gemm, work_list
from course.gpu.ops.prefill_attention import WARPS, checked_chunks
from course.gpu.ops.queue import Launch
from course.gpu.transformer.forms import fused, library
from course.gpu.transformer.inputs import Inputs
from course.gpu.transformer.llama import Llama

BLOCK = append.BLOCK
FORMS = ("auto", "fused", "library")


class Step:
    """A step of these token counts, prepared once: `write` its inputs, `run` it or replay `captured()`, take `logits`.

    chunks: (tokens, tokens already in the cache) of each prompt chunk; they come first in every order. lengths: of
    each decode, its new tokens included. Both say what to prepare for; `write` may bring other cached tokens and other
    lengths. max_blocks: columns of the block tables, enough for these by default.

    newest: new tokens of each decode, side by side: one, or a token and the drafts behind it that are verified, for
    which keys and values are read once. Steps with chunks verify nothing.

    form: "fused" folds everything between the products into them (decodes only, at most 32 tokens, 16-bit numbers);
    "library" leaves the products to a library, or to NumPy; "auto" takes the first where it can.

    Raises ValueError for a step that the model's memory has no room for.
    """

    def __init__(
        self,
        llama: Llama,
        *,
        chunks: Sequence[tuple[int, int]] = (),
        lengths: Sequence[int] = (),
        max_blocks: int | None = None,
        form: str = "auto",
        newest: int = 1,
    ) -> None:
        if form not in FORMS:
            raise ValueError(f"a step has the form {', '.join(FORMS)}, not {quote(form)}")
        self.llama, self.queue = llama, llama.queue
        self.chunk_tokens = [int(tokens) for tokens, _ in chunks]
        self.decodes = len(lengths)
        self.sequences = len(chunks) + self.decodes
        self.newest = whole("newest", newest)
        self.tokens = sum(self.chunk_tokens) + self.decodes * self.newest
        self.ends = len(chunks) + self.decodes * self.newest
        """Rows that get logits."""
        if not self.tokens:
            raise ValueError("a step needs a chunk or a decode")
        if llama.scaled and chunks:
            raise ValueError("a cache of 8-bit numbers serves decodes: chunks attend to 16-bit numbers only")
        if self.newest > 1 and chunks:
            raise ValueError(
                f"{self.newest} new tokens of each decode beside a chunk: drafts are verified without chunks"
            )
        if self.tokens > llama.max_tokens or self.ends > llama.max_sequences:
            raise ValueError(
                f"a step of {self.tokens} tokens of {self.sequences} sequences: the model was made for "
                f"{llama.max_tokens} and {llama.max_sequences}"
            )
        ends = [int(tokens) + int(cached) for tokens, cached in chunks] + [int(length) for length in lengths]
        self.columns = max_blocks or max(-(-end // BLOCK) for end in ends)
        self._splits = 1
        listed = self._listed([int(cached) for _, cached in chunks])
        self._plan_attention(listed, lengths)
        rows = len(work_list.cut(lengths, self._blocks_an_item).items) if self.decodes else 0
        most = llama.decode_attention.max_items // self.newest
        self._places = min(rows + max(4, self.decodes // 8), most) if rows else 0
        self._places = max(self._places, rows)
        self.form = self._form(form)
        self._make_inputs(listed)
        self._cached = [int(cached) for _, cached in chunks]
        self._lengths = [int(length) for length in lengths]
        there = self.inputs.there
        self.launches: list[Launch]
        if self.form == "fused":
            self.launches, self._logits = fused(llama, there, self.tokens, self._decode_attention)
        else:
            last = self.ends if self.chunk_tokens else None
            self.launches, self._logits = library(llama, there, self.tokens, self._attention, last)

    def _plan_attention(self, listed: list[tuple[int, int, int, int]], lengths: Sequence[int]) -> None:
        """How attention of these chunks and of decodes of these lengths is cut up."""
        llama = self.llama
        if listed:
            alone, mixed = llama.prefill_attention, llama.mixed_attention
            self._slabs = mixed.slabs(listed, lengths) if self.decodes else alone.slabs(listed)
            self._splits = (mixed if self.decodes else alone).splits(listed, self._slabs)
        if self.decodes:
            warps = (WARPS,) if listed else ()  # in one launch with a chunk they have its thread blocks
            attention = llama.decode_attention
            self._warps, self._blocks_an_item = attention.plan(lengths, warps, self.newest)
            self._cluster, warps_of_cluster, self._sharers = (
                (1, 0, 1) if listed else attention.cluster(lengths, self.newest)
            )
            self._warps = warps_of_cluster or self._warps

    def _form(self, form: str) -> str:
        fits = not self.chunk_tokens and self.tokens <= skinny_gemm.MOST_ROWS and bool(self.llama.weights.packed)
        fits = fits and (self.queue.tensor_cores or self.queue.plain or self.tokens <= 8)
        if form == "fused" and not fits:
            raise ValueError("the fused form takes 1 to 32 decodes (8 without tensor cores) and 16-bit packed weights")
        return "fused" if fits and form != "library" else "library"

    def _listed(self, cached: Sequence[int]) -> list[tuple[int, int, int, int]]:
        """(first row, tokens, cached, table row) of each chunk."""
        firsts = np.cumsum([0, *self.chunk_tokens]).tolist()
        return [
            (first, tokens, behind, i)
            for i, (first, tokens, behind) in enumerate(zip(firsts, self.chunk_tokens, cached, strict=False))
        ]

    def _make_inputs(self, listed: list) -> None:
        sizes: dict[str, tuple[int, ...]] = dict.fromkeys(("ids", "positions", "slots"), (self.tokens,))
        sizes |= {"ends": (self.ends,), "table": (self.sequences, self.columns)}
        if self.decodes:
            sizes |= {"lengths": (self.decodes,), "items": (self._places, 3), "spans": (self.decodes, 2)}
        if listed:
            sizes |= {
                "chunks": (len(listed), 4),
                "tiles": (len(self.llama.prefill_attention.tiles(listed, self._slabs)), 2),
            }
        self.inputs = Inputs(self.queue, sizes)

    # Inputs

    def write(
        self,
        ids: Any,
        tables: Sequence[Sequence[int]],
        *,
        cached: Sequence[int] | None = None,
        lengths: Sequence[int] | None = None,
    ) -> None:
        """What the next run computes: tokens, of the chunks first, and the block table of each sequence.

        cached: tokens before each chunk; lengths: of each decode, its new token included; those the step was prepared
        for by default.

        Raises ValueError for a token outside of the vocabulary, a table that is too short, too long or points outside
        of the cache, a length of zero, two tokens for one place of the cache, and more items of work than prepared.
        """
        llama = self.llama
        cached = self._cached if cached is None else [int(one) for one in cached]
        lengths = self._lengths if lengths is None else [int(one) for one in lengths]
        if len(cached) != len(self.chunk_tokens) or len(lengths) != self.decodes or len(tables) != self.sequences:
            raise ValueError(
                f"this step has {len(self.chunk_tokens)} chunks and {self.decodes} decodes, and was given "
                f"{len(cached)}, {len(lengths)} and {len(tables)} block tables"
            )
        ids = np.asarray(ids)
        if ids.shape != (self.tokens,) or ids.dtype.kind not in "iu":
            raise ValueError(f"ids must be {self.tokens} whole numbers, not {quote(ids)}")
        if ids.min() < 0 or ids.max() >= llama.shape.vocabulary:
            wrong = ids[(ids < 0) | (ids >= llama.shape.vocabulary)][0]
            raise ValueError(f"token {wrong} is outside the vocabulary of {llama.shape.vocabulary:,}")
        listed = self._listed(cached)
        table = work_list.table_of(tables, self.columns, llama.blocks)
        ends = [tokens + behind for _, tokens, behind, _ in listed]
        if self.decodes:
            ends += work_list.checked_lengths(lengths, llama.max_positions).tolist()
            if min(lengths) < self.newest:
                raise ValueError(f"a sequence of {min(lengths)} tokens cannot have {self.newest} new ones")
        positions = [np.arange(behind, behind + tokens) for _, tokens, behind, _ in listed]
        positions += [np.arange(length - self.newest, length) for length in lengths]
        slots = []
        for s, (end, where) in enumerate(zip(ends, positions, strict=True)):
            if end > llama.max_positions:
                raise ValueError(f"sequence {s} ends at token {end}: the model was made for {llama.max_positions}")
            if -(-end // BLOCK) > len(tables[s]):
                raise ValueError(f"sequence {s} has {end} tokens and {len(tables[s])} blocks of {BLOCK}: too few")
            slots.append(table[s, where // BLOCK].astype(np.int64) * BLOCK + where % BLOCK)
        here = self.inputs.here
        here["ids"][:] = ids
        here["positions"][:] = np.concatenate(positions)
        here["slots"][:] = append.checked_slots(np.concatenate(slots), llama.blocks)
        last_rows = [first + tokens - 1 for first, tokens, _, _ in listed]
        here["ends"][:] = [*last_rows, *range(self.tokens - self.decodes * self.newest, self.tokens)]
        here["table"][:] = table
        if self.decodes:
            self._write_work(np.array(lengths))
        if listed:
            here["chunks"][:] = checked_chunks(listed, self.tokens, self.columns)
            here["tiles"][:] = llama.prefill_attention.tiles(listed, self._slabs)
        self.inputs.send()

    def _write_work(self, lengths: np.ndarray) -> None:
        """Lengths and items of work of the decodes."""
        here = self.inputs.here
        cut = work_list.cut(lengths, self._blocks_an_item)
        if len(cut.items) > self._places:  # sequences have grown or become unequal: coarser items fit in any case
            cut = work_list.cut(lengths, -(-int(lengths.max()) // BLOCK))
        here["lengths"][:] = lengths
        here["items"][:] = cut.padded(self._places)
        here["spans"][:] = cut.spans

    # Running

    def run(self) -> None:
        """Launch everything, one by one."""
        for launch in self.launches:
            launch()

    def captured(self) -> Any:
        """The step as a graph: call it to replay. CUDA only; run once before, so that everything is loaded."""
        return self.queue.captured(self.launches, self)

    def logits(self) -> np.ndarray:
        """float32 (rows, vocabulary): what may follow the last token of each chunk, then each new token of a decode."""
        self.queue.wait()
        return numbers.decode(self.queue.device.to_numpy(self._logits), self.llama.kind)

    # What a step is made of

    def _decode_attention(self, layer: int, q: Any, out: Any, **how: Any) -> Launch:
        llama, there = self.llama, self.inputs.there
        return llama.decode_attention.prepare(
            q,
            llama.k[layer],
            llama.v[layer],
            there["table"],
            there["lengths"],
            there["items"],
            there["spans"],
            out,
            warps=self._warps,
            newest=self.newest,
            cluster=self._cluster,
            sharers=self._sharers,
            scales=llama.scales[layer],
            **how,
        )

    def _attention(self, layer: int, q: Any, out: Any) -> Launch:
        """Of chunks, of decodes, or of both in one launch."""
        llama, there = self.llama, self.inputs.there
        if not self.chunk_tokens:
            return self._decode_attention(layer, q, out, chained=True)
        # Not chained: it would start on the multiprocessors that are done early, three blocks on one and none on the
        # next, and a chunk of 512 tokens behind 24,576 was 10% slower on an H100.
        how: dict[str, Any] = {"slabs": self._slabs, "splits": self._splits}
        chunks = (q, llama.k[layer], llama.v[layer], there["table"], there["chunks"], there["tiles"])
        if not self.decodes:
            return llama.prefill_attention.prepare(*chunks, out, **how)
        return llama.mixed_attention.prepare(*chunks, there["lengths"], there["items"], there["spans"], out, **how)
