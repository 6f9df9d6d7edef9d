"""A step time read off a recording: decodes by batch and context, prompt chunks by size and cached tokens, and both."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from course.base.settings import quote, reason
from course.engine.step import SHORTEST, Step, StepTimeModel
from course.steptime import files, points
from course.steptime.points import COUNTS, KERNEL

SMALLEST = 128  # tokens: a card that computes so few of them still waits for its memory, as for a single one


class Recorded(files.Recording, StepTimeModel):
    """Seconds of a step between the points of a recording, which `recorded` finds by name.

    Decodes alone follow a straight line in their context for each batch, fitted to the recorded contexts. A step with a
    chunk is read off by its decodes, its tokens and the tokens cached before it, and the decodes' context comes on top
    as in a step without a chunk. Where a chunk was not recorded beside so many decodes, each of them counts as one more
    prompt token in the matrix products, which treat both alike. Several chunks count as one with as many tokens and
    query-key pairs, and those smaller than the smallest recorded one, of SMALLEST tokens at most, take as long as that.

    Between points all is read off straight lines, which never fall as the batch (at the same context each), the
    context, the chunk or its cached tokens grow: if the recording falls, the middle is taken.

    Beyond the points the step time goes on from where they end, by a model fitted to them. A decode more than the
    largest batch counts as one more prompt token in the matrix products, and reads its context at that batch's rate.
    Context and cached tokens go on along their last lines. More prompt tokens than the largest chunk take as long as
    so many chunks of that size with as many pairs each. `beyond` says of a step whether it is out there.

    misfit: the largest relative distance from a recorded point, of "decodes", "prompts" and "mixed" steps each.
    left_out: points that are not used, since a recording was stopped before the second one that a line needs.
    provenance, card, badge: where it comes from. Raises ValueError for a file that is no such recording.
    """

    source = "recorded"
    sound = True

    def __init__(self, name: str, recording: Mapping[str, Any]):
        self.name = name
        found = points.checked(name, recording)
        self.model, self.provenance = recording["model"], recording["provenance"]
        self.sizes = recording.get("sizes", {})  # of the model, by name
        usable = points.usable(found)
        both = ((found["chunk"][usable] > 0) == kind for kind in (False, True))
        if all(one.any() for one in both):  # else what follows says what is missing
            found = {key: values[usable] for key, values in found.items()}
        self.left_out = len(usable) - len(found["chunk"])
        decodes, context, chunk, cached = (found[key] for key in COUNTS)
        self._most = {
            "decodes": int(decodes.max()),
            "tokens of context": int(context.max()),
            "tokens of a sequence": min(int((context / np.maximum(decodes, 1)).max()), int((chunk + cached).max())),
            "prompt tokens of a step": int(chunk.max()),
        }
        base, slope = self._decode_lines(found)
        beside = self._chunk_tables(found, base[0], slope)
        # A batch's line, and between which recorded numbers of decodes beside a chunk it stands.
        every = np.arange(len(base))
        below = np.minimum(np.searchsorted(beside, every, "right"), len(beside) - 1) - 1
        share = (every - beside[below]) / (beside[below + 1] - beside[below])
        columns = (one.tolist() for one in (base, slope, below, share))
        self._batches = list(zip(*columns, strict=True))
        self.misfit = self._misfit(found)

    def __repr__(self) -> str:
        parts = ", ".join(f"{kind} within {misfit:.1%}" for kind, misfit in self.misfit.items())
        left_out = f", {self.left_out} left out" if self.left_out else ""
        return f"Recorded({self.name!r}, {parts}{left_out})"

    def _decode_lines(self, found: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(base, slope) in seconds, and seconds a token of context, for each number of decodes from 0 on."""
        here = found["chunk"] == 0
        batches, place = np.unique(found["decodes"][here], return_inverse=True)
        context, seconds = found["decode_context"][here].astype(float), found["seconds"][here]
        lines = []
        for i, batch in enumerate(batches):
            x, y = context[place == i], seconds[place == i]
            if len(np.unique(x)) < 2:
                raise points.bad(self.name, f"batch {batch:,} was recorded with one context, and a line needs two")
            slope, base = np.polyfit(x, y, 1, w=1 / y)
            lines.append((max(base, SHORTEST), max(slope, 0) * batch))
        every = np.arange(batches[-1] + 1)
        base, each = (np.interp(every, batches, _rising(column)) for column in np.array(lines).T)
        return base, each / np.maximum(every, 1)  # a token of one, from a token of each

    def _chunk_tables(self, found: Mapping[str, np.ndarray], least: float, slope: np.ndarray) -> np.ndarray:
        """Tables of seconds by tokens, without the decodes' context; returns the numbers of decodes that they are for.

        least: seconds of the shortest step. slope: seconds a token of context, by decodes.
        """
        here = found["chunk"] > 0
        decodes, context, chunk, cached = (found[key][here] for key in COUNTS)
        beside, sizes, levels = np.union1d([0, len(slope) - 1], decodes), np.unique(chunk), np.unique(cached)
        grid = np.full((len(beside), len(sizes), len(levels)), np.nan)
        place = np.searchsorted(beside, decodes), np.searchsorted(sizes, chunk), np.searchsorted(levels, cached)
        grid[place] = found["seconds"][here] - slope[decodes] * context
        known = ~np.isnan(grid[0])
        if sizes[0] > SMALLEST:
            why = f"its smallest chunk has {sizes[0]:,} tokens, and shorter prompts need one of at most {SMALLEST}"
            raise points.bad(self.name, why)
        if len(sizes) < 2:
            raise points.bad(self.name, f"all its chunks have {sizes[0]:,} tokens, and a line needs two sizes")
        if levels[0] or not known[:, 0].all() or (known.sum(axis=1) < 2).any():
            raise points.bad(self.name, "each chunk needs a point with nothing cached and another one, without decodes")
        for line, there in zip(grid[0], known, strict=True):
            line[:] = _along(levels, levels[there], line[there])
        grid[0] = _rising(grid[0])
        # What is left without any attention: down the first line to no pairs at all.
        products = grid[0, :, 0] - (grid[0, :, 1] - grid[0, :, 0]) / levels[1] * (sizes + 1) / 2
        products = _rising(np.maximum(products, least))
        self._products = sizes, products
        for i in range(1, len(beside)):
            more = _along(sizes + beside[i], sizes, products) - _along(sizes + beside[i - 1], sizes, products)
            law = grid[i - 1] + more[:, None]
            grid[i] = law + _spread(grid[i] - law, sizes, levels)
        grid = _rising(np.maximum(grid, SHORTEST))
        self._levels = levels.tolist()
        parts = [part.tolist() for part in grid]
        self._near = [_Sizes(sizes.tolist(), self._levels, *pair) for pair in itertools.pairwise(parts)]
        return beside

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: float, prefill_context: int) -> float:
        """See StepTimeModel."""
        try:
            base, slope, below, share = self._batches[decodes]
            if not tokens:
                return base + slope * decode_context
            fresh, few, step, more, slope_of_pairs, more_of_pairs = self._near[below][tokens]
        except IndexError:
            return self._far(decodes, decode_context, tokens, pairs)
        if pairs <= few:
            step += share * more + (slope_of_pairs + share * more_of_pairs) * (pairs - fresh)
        else:
            step = self._behind((pairs - fresh) / tokens, tokens, below, share)
        return (step if step > base else base) + slope * decode_context

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        if decodes < len(self._batches):
            return self._batches[decodes][:2]
        base, slope = self._batches[-1][:2]
        return base + self._more_products(decodes, 0), slope

    def beyond(self, **step: int) -> str:
        """What of a step was not recorded, as in "modelled beyond 256 decodes"; "" if all was.

        step: decodes, context (of all decodes), sequence (tokens of the longest one), prompt (tokens of all chunks).
        """
        wanted = zip(("decodes", "context", "sequence", "prompt"), self._most.items(), strict=True)
        parts = [f"{most:,} {what}" for name, (what, most) in wanted if step.pop(name, 0) > most]
        if step:
            raise ValueError(f"a step has decodes, context, sequence and prompt, and nothing called {', '.join(step)}")
        return f"modelled beyond {' and '.join(parts)}" if parts else ""

    def _behind(self, cached: float, tokens: int, below: int, share: float) -> float:
        """Seconds of a chunk behind more cached tokens than the first line reaches to."""
        levels, (lower, upper) = self._levels, self._near[below].far[tokens]
        i = min(bisect_right(levels, cached), len(levels) - 1)
        start = lower[i - 1] + share * (upper[i - 1] - lower[i - 1])
        end = lower[i] + share * (upper[i] - lower[i])
        return start + (end - start) * (cached - levels[i - 1]) / (levels[i] - levels[i - 1])

    def _far(self, decodes: int, context: int, tokens: int, pairs: float) -> float:
        """Seconds of a step with more decodes, or more prompt tokens, than were recorded."""
        base, slope = self.decode_line(decodes)
        if not tokens:
            return base + slope * context
        near = min(decodes, len(self._batches) - 1)
        most = min(tokens, self._near[0].most)
        times = tokens / most
        step = times * self.seconds(near, 0, most, pairs / times, 0) + self._more_products(decodes, tokens)
        return max(step, base) + slope * context

    def _more_products(self, decodes: int, tokens: int) -> float:
        """Seconds of the matrix products of those decodes that are more than the largest batch, beside a chunk."""
        batch = len(self._batches) - 1
        if decodes <= batch:
            return 0.0
        few, many = _along(np.array([batch + tokens, decodes + tokens]), *self._products).tolist()
        return many - few

    def _misfit(self, rows_of: Mapping[str, np.ndarray]) -> dict[str, float]:
        found: dict[str, float] = {}
        rows = np.stack([rows_of[key] for key in (*COUNTS, "seconds")], axis=1).tolist()
        for n, context, chunk, cached, seconds in rows:
            kind = "mixed" if chunk and n else "decodes"
            if chunk and not n:
                kind = "prompts"
            step = self(Step(int(n), int(context), ((int(chunk), int(cached)),) if chunk else ()))
            found[kind] = max(abs(step / seconds - 1), found.get(kind, 0.0))
        return found


class _Sizes(dict):
    """By tokens of a step with a chunk, beside decodes from one recorded number to the next; filled as it is asked.

    (pairs of one prompt from its beginning, the same up to the first line's end, seconds, how much more beside the next
    number of decodes, seconds a pair, how much more of these). IndexError above the largest chunk.
    """

    def __init__(self, sizes: list[int], levels: list[int], lower: list[list[float]], upper: list[list[float]]):
        super().__init__()
        self.far = _Lines(self)
        self.most, self._sizes, self._levels, self._grids = sizes[-1], sizes, levels, (lower, upper)

    def __missing__(self, tokens: int) -> tuple[float, ...]:
        if tokens > self.most:
            raise IndexError
        (start, end, *_), (above, end_above, *_) = self.far[tokens]
        first = self._levels[1]
        pairs = first * tokens  # from no cached tokens to the first recorded number of them
        slope, more = (end - start) / pairs, (end_above - above) / pairs
        fresh = tokens * (tokens + 1) // 2
        self[tokens] = fresh, fresh + tokens * first, start, above - start, slope, more - slope
        return self[tokens]

    def lines(self, tokens: int) -> tuple[list[float], list[float]]:
        """Seconds behind each of the recorded numbers of cached tokens, beside fewer and beside more decodes."""
        i = min(max(bisect_right(self._sizes, tokens), 1), len(self._sizes) - 1)
        low, high = self._sizes[i - 1], self._sizes[i]
        share = max(tokens - low, 0) / (high - low)
        pairs = (zip(grid[i - 1], grid[i], strict=True) for grid in self._grids)
        lower, upper = ([a + share * (b - a) for a, b in pair] for pair in pairs)
        return lower, upper


class _Lines(dict):
    """The lines of those sizes, filled as they are asked for."""

    def __init__(self, sizes: _Sizes):
        super().__init__()
        self._sizes = sizes

    def __missing__(self, tokens: int) -> tuple[list[float], list[float]]:
        self[tokens] = self._sizes.lines(tokens)
        return self[tokens]


def recorded(name: str | Path) -> Recorded:
    """The step times of a card as they were recorded: of the course by name, or of your own by the path of its file.

    Raises ValueError with the known names for another name, and for a file that is no recording of steps.
    """
    if not isinstance(name, str | Path):
        raise ValueError(f"the name of a recording must be text, not {quote(name)}")
    path = Path(name)
    if path.suffix != ".json":
        return Recorded(str(name), files.read(KERNEL, str(name).replace("-", "_")))
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # no file, no text, no JSON, or lists within lists
        raise ValueError(f"{name} cannot be read as a recording: {reason(error)}") from None
    return Recorded(path.stem, found)


def _rising(values: np.ndarray) -> np.ndarray:
    """Values that never fall along any axis, and of these the nearest: the middle if they fall, as ratios."""
    above, below = values, values
    for axis in range(values.ndim):
        above = np.maximum.accumulate(above, axis)
        below = np.flip(np.minimum.accumulate(np.flip(below, axis), axis), axis)
    return np.sqrt(above * below)


def _spread(distance: np.ndarray, sizes: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Distances from a law at points that were recorded, NaN elsewhere: there on the line between neighbours."""
    rows = np.flatnonzero(~np.isnan(distance).all(axis=1))
    if not len(rows):
        return np.zeros_like(distance)
    for line in (distance[row] for row in rows):
        there = ~np.isnan(line)
        line[:] = np.interp(levels, levels[there], line[there])
    return np.stack([np.interp(sizes, sizes[rows], column[rows]) for column in distance.T], axis=1)


def _along(x: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at x on the straight lines through the points, beyond the last one on the line through the last two."""
    slope = (values[-1] - values[-2]) / (places[-1] - places[-2]) if len(places) > 1 else 0.0
    return np.interp(x, places, values) + max(slope, 0.0) * np.maximum(x - places[-1], 0)
