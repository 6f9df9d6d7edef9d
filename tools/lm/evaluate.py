"""What the card says of the committed weights, in Markdown.

PYTHONPATH=. python -m tools.lm.evaluate

NumPy alone, a few minutes. Every answer is written by greedy decoding, in batches, by the code that the course runs.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import numpy as np

from course.lm.cache import PagedKV
from course.lm.forward import Model
from course.lm.loading import load
from course.lm.speaker import LanguageModel
from tools.lm.data import question
from tools.lm.text import KINDS, Exchange, exchanges, of_kind
from tools.lm.text.words import NAMES, PLACES

EACH = 150
PROPOSALS = 4  # tokens a draft proposes before the model checks them


def answers(model: LanguageModel, asked: list[Exchange]) -> list[str]:
    """The answers, 16 prompts at a time."""
    return [text for i in range(0, len(asked), 16) for text in model.answers([one.turns for one in asked[i : i + 16]])]


def logits(model: Model, tokens: list[int]) -> np.ndarray:
    """Logits of one sequence after each of its tokens."""
    cache = PagedKV(model.config, -(-len(tokens) // 16))
    return model.forward(tokens, [len(tokens)], [0], [range(cache.num_blocks)], cache, every=True)


def by_kind(model: LanguageModel, draft: LanguageModel) -> None:
    """Shares right beside chance, the smallest decision margin, and how many drafted tokens are accepted."""
    print("| kind | prompts | right | by chance | smallest margin | draft right | drafted tokens accepted |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    losses, all_accepted, all_drafted = [], 0, 0
    for kind in KINDS:
        asked = of_kind(kind, 11, EACH)
        right = [answer == one.answer for answer, one in zip(answers(model, asked), asked, strict=True)]
        drafts = [answer == one.answer for answer, one in zip(answers(draft, asked), asked, strict=True)]
        chance, margin, accepted, drafted = np.mean([1 / one.choices for one in asked]), np.inf, 0, 0
        for one in asked:
            before, answer = question(model.tokenizer, one)
            found = logits(model, before + answer)[len(before) - 1 : -1]
            top = np.sort(found, axis=-1)[:, -2:]
            margin = min(margin, float((top[:, 1] - top[:, 0]).min()))
            shifted = found.astype(float) - found.max(-1, keepdims=True)
            losses += list(np.log(np.exp(shifted).sum(-1)) - shifted[range(len(answer)), answer])
            same = logits(draft, before + answer)[len(before) - 1 : -1].argmax(-1) == found.argmax(-1)
            place = 0
            while place < len(same):
                run = same[place : place + PROPOSALS]
                good = len(run) if run.all() else int(run.argmin())
                accepted, drafted, place = accepted + good, drafted + len(run), place + good + 1
        all_accepted, all_drafted = all_accepted + accepted, all_drafted + drafted
        print(
            f"| {kind} | {len(asked)} | {np.mean(right):.1%} | {chance:.1%} | {margin:.2f} | {np.mean(drafts):.1%} "
            f"| {accepted / drafted:.1%} |"
        )
    print(f"\nHeld-out loss {np.mean(losses):.2e} nats a token, perplexity {np.exp(np.mean(losses)):.5f}")
    print(f"Drafted tokens accepted, all kinds: {all_accepted / all_drafted:.1%}")


def conversations(model: LanguageModel) -> None:
    """The last answer of held-out conversations of 2 to 8 exchanges, by how long they are."""
    draw, source = Random(3), exchanges(12)
    right: dict[int, list[bool]] = {}
    for _ in range(200):
        said: list[tuple[str, str]] = []
        for one in islice(source, draw.randint(2, 8)):
            last = (said, one)
            said = [*said, *one.earlier, (one.prompt, one.answer)]
        earlier, one = last
        asked = Exchange(one.kind, one.prompt, one.answer, one.choices, (*earlier, *one.earlier))
        length = len(model.tokenizer.prompt(asked.turns)) + len(model.tokenizer.encode(one.answer)) + 1
        if length <= model.config.max_position_embeddings:
            right.setdefault(min(length // 100, 4), []).append(model.answer(asked.turns) == one.answer)
    for hundreds, found in sorted(right.items()):
        print(
            f"conversations of {100 * hundreds} tokens and more: {len(found)}, last answers right: {np.mean(found):.1%}"
        )


def beyond(model: LanguageModel) -> None:
    """What was never trained: two facts of one sort, and larger numbers."""
    draw = Random(4)
    right: Counter[bool] = Counter()
    sums: Counter[bool] = Counter()
    for _ in range(100):
        (a, b), (x, y) = draw.sample(NAMES, 2), draw.sample(PLACES, 2)
        place = dict(((a, x), (b, y)))
        who = draw.choice((a, b))
        said = model.answer(f"{a} is in the {x}. {b} is in the {y}. Where is {who}?")
        right[said == f"{who} is in the {place[who]}."] += 1
        c, d = draw.randint(50, 99), draw.randint(51, 99)
        sums[model.answer(f"What is {c} plus {d}?") == f"{c + d}."] += 1
    print(f"two facts of one sort: {right[True]} of 100 right; sums above 100: {sums[True]} of 100 right")


def lengths(model: LanguageModel) -> None:
    """Lengths of the answers in the serving mix."""
    tokens = [len(model.tokenizer.encode(one.answer)) + 1 for one in islice(exchanges(0), 5_000)]
    print(
        f"answers of the serving mix: {np.mean(tokens):.1f} tokens, CV {np.std(tokens) / np.mean(tokens):.2f}, "
        f"from {min(tokens)} to {max(tokens)}"
    )


def main() -> None:
    """All of it."""
    model, draft = load(), load("draft")
    by_kind(model, draft)
    conversations(model)
    beyond(model)
    lengths(model)


if __name__ == "__main__":
    main()
