"""What an 8-bit KV cache does to the words of the small language model, in NumPy: answers that change, and right ones.

    python -m tests.bench.fp8_words [prompts of each kind]

Every key and value is rounded when it is written, as a cache of e4m3 would hold it, and all else stays float32. One
other token may change all that follow. Where tokens are drawn, each cache has the same draws.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from course import lm
from course.gpu.ops import e4m3, numbers
from course.lm.cache import PagedKV
from course.lm.sampling import GREEDY, Sampling
from course.lm.speaker import LanguageModel
from tools.lm.text import KINDS, of_kind

SEED = 11
WARM = Sampling(temperature=1.5, seed=3)


class Rounding(np.ndarray):
    """Keys or values of one layer, [blocks, block size, KV heads, width], which round what is written to them.

    scale: of each KV head, or None for another rounding: `kind`. most: the largest number written of each head.
    """

    scale: Any = None
    kind: str = "fp32"
    most: Any = 0.0

    def __setitem__(self, at: Any, values: Any) -> None:
        self.most = np.maximum(self.most, np.abs(values).max((0, 2)))
        if self.scale is not None:
            scale = self.scale[:, None]
            values = e4m3.decode(e4m3.encode(values / scale)) * scale
        else:
            values = numbers.decode(numbers.encode(values, self.kind), self.kind)
        super().__setitem__(at, values)


class Rounded(LanguageModel):
    """A language model whose cache rounds; its caches are kept, to see what was written to them."""

    scales: Any = None
    kind = "fp32"

    def paged_kv(self, num_blocks: int, block_size: int = 16) -> PagedKV:
        """See Model."""
        cache = PagedKV(self.config, num_blocks, block_size)
        for name in ("keys", "values"):
            layers = [one.view(Rounding) for one in getattr(cache, name)]
            for i, layer in enumerate(layers):
                layer.kind = self.kind
                layer.scale = None if self.scales is None else self.scales[name][i]
            setattr(cache, name, layers)
        self.last = cache
        return cache


def answers(model: LanguageModel, asked: list[Any], sampling: Sampling = GREEDY) -> list[str]:
    """The answers, 64 prompts at a time."""
    batches = [[one.turns for one in asked[i : i + 64]] for i in range(0, len(asked), 64)]
    return [text for turns in batches for text in model.answers(turns, sampling=sampling)]


def largest(model: Rounded, asked: list[Any]) -> dict[str, np.ndarray]:
    """The largest key and value of each layer and head over these prompts, (layers, KV heads)."""
    found: dict[str, Any] = {"keys": 0.0, "values": 0.0}
    for i in range(0, len(asked), 32):
        model.answers([one.turns for one in asked[i : i + 32]])
        for name in found:
            found[name] = np.maximum(found[name], np.array([layer.most for layer in getattr(model.last, name)]))
    return found


def changed_words(one: str, other: str) -> int:
    """Places at which two answers have another word."""
    first, second = one.split(), other.split()
    return sum(a != b for a, b in zip(first, second, strict=False)) + abs(len(first) - len(second))


def main() -> None:
    """A table: for each form of the cache, answers and words that change, and answers that are right."""
    each = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    plain = lm.load()
    model = Rounded.__new__(Rounded)
    model.__dict__.update(plain.__dict__)
    asked = {kind: of_kind(kind, SEED, each) for kind in KINDS}
    every = [one for some in asked.values() for one in some]
    right = {sampling: answers(plain, every, sampling) for sampling in (GREEDY, WARM)}
    seen = largest(model, [one for kind in KINDS for one in of_kind(kind, SEED + 1, 8)])
    said = {
        how: f"{sum(len(text.split()) for text in texts)} words, {good(texts, every)} right"
        for how, texts in right.items()
    }
    print(
        f"{len(every)} prompts of {len(KINDS)} kinds; in float32 {said[GREEDY]}; drawn at 1.5 {said[WARM]}", flush=True
    )
    for name, many in seen.items():
        print(f"largest {name}: {many.min():.2f} to {many.max():.2f} over layers and heads")
    forms: dict[str, Any] = {
        "e4m3, a scale for each head": {name: many / e4m3.MOST for name, many in seen.items()},
        "e4m3, scale 1": {name: np.ones_like(many) for name, many in seen.items()},
        "e4m3, scales 8 times too small": {name: many / e4m3.MOST / 8 for name, many in seen.items()},
        "bf16": "bf16",
    }
    print("| cache | tokens | answers changed | words changed | answers right |\n|---|---|--:|--:|--:|")
    for name, form in forms.items():
        model.scales, model.kind = (None, form) if isinstance(form, str) else (form, "fp32")
        for how, label in ((GREEDY, "most likely"), (WARM, "drawn at 1.5")):
            found = answers(model, every, how)
            other = [(a, b) for a, b in zip(right[how], found, strict=True) if a != b]
            moved = sum(changed_words(a, b) for a, b in other)
            print(f"| {name} | {label} | {len(other)} | {moved} | {good(found, every)} |", flush=True)


def good(found: list[str], every: list[Any]) -> int:
    """Answers that are right."""
    return sum(text == one.answer for text, one in zip(found, every, strict=True))


if __name__ == "__main__":
    main()
