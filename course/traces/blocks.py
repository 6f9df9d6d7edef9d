"""What Mooncake and Qwen-Bailian share: JSON lines in which every prompt comes with the ids of its blocks.

The two have the same keys. They differ in the unit of time, in the size of a block, and in the keys that only one has,
so the content is asked and not the name of the file.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.base.textfiles import json_lines
from course.traces import rows

TIME, PROMPT, OUTPUT, BLOCKS = "timestamp", "input_length", "output_length", "hash_ids"
SAMPLE = 200  # rows of a file that are asked what format it is


def sample(path: Path, content: str) -> list[dict]:
    """The first rows, of those that are objects; a broken line ends it, and is refused later with its number."""
    rows: list[dict] = []
    with suppress(ValueError):
        rows.extend(row for _, row in islice(json_lines(path, content), SAMPLE) if isinstance(row, dict))
    return rows


def looks_like(row: Mapping) -> bool:
    """Whether a row has the keys that both formats have."""
    return {TIME, PROMPT, OUTPUT} <= set(row)


def fits(row: Mapping, block_tokens: int) -> bool:
    """Whether the prompt fills as many blocks of that size as the row has ids."""
    length, ids = row.get(PROMPT), row.get(BLOCKS)
    return isinstance(length, int) and isinstance(ids, list) and len(ids) > 0 and len(ids) == -(-length // block_tokens)


class Reader:
    """Rows and what they say, for blocks of `block_tokens` and times in units of so many picoseconds.

    slack: how many ids a row may lack; the last, partial block has no id in every file.
    """

    note = ""
    block_tokens: int
    unit: int
    slack = 0
    class_key = ""

    def __init__(self, path: Path, content: str):
        self.rows: Iterator[tuple[int, Any]] = json_lines(path, content)

    def parse(self, row: Any) -> rows.Row:
        """The request of a row; `BrokenRow` if there is none."""
        if not isinstance(row, dict):
            raise rows.BrokenRow(f"it is {quote(row)}, not an object in braces", "no object")
        time = rows.picoseconds(TIME, rows.of_json(TIME, row), self.unit)
        prompt = rows.prompt(PROMPT, rows.of_json(PROMPT, row))
        output = rows.count(OUTPUT, rows.of_json(OUTPUT, row))
        label = row.get(self.class_key) if self.class_key else None
        return rows.Row(
            time, prompt, output, class_=None if label is None else str(label), prefix=self._ids(row, prompt)
        )

    def _ids(self, row: Mapping, prompt: int) -> tuple[int | str, ...] | None:
        ids = row.get(BLOCKS)
        if ids is None:
            return None
        if not isinstance(ids, list):
            raise rows.BrokenRow(f"{BLOCKS} is {quote(ids)}, not a list", f"broken {BLOCKS}")
        for block in ids:
            if isinstance(block, float):  # 64-bit ids written by a tool that made floats of them
                raise rows.BrokenRow(f"a block id is {block!r}: a float has lost its last digits", f"broken {BLOCKS}")
            if isinstance(block, bool) or not isinstance(block, int | str):
                raise rows.BrokenRow(f"a block id is {quote(block)}, not a whole number", f"broken {BLOCKS}")
        full = -(-prompt // self.block_tokens)
        if not full - self.slack <= len(ids) <= full:
            raise rows.BrokenRow(
                f"it has {len(ids)} {BLOCKS}, but {prompt} tokens at {self.block_tokens} per block make {full}",
                f"the wrong number of {BLOCKS}",
            )
        return tuple(ids)
