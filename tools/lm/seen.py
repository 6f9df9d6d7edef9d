"""How many suffix drafts are accepted after so many answers of the same service: `python -m tools.lm.seen`.

It writes course/lessons/lab13/seen.json. The answers seen are held-out texts of the kinds that the committed prompts
are of, none of these prompts among them; the model gives them word by word. A minute on one core.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

from course.lessons.lab13 import deeper, spoken
from tools.lm.data import question
from tools.lm.text import SERVING, exchanges

NUMBERS = (0, 50, 300, 1_500)
SEED, K = 13, 4


def acceptance(numbers: Sequence[int] = NUMBERS, seed: int = SEED) -> dict[int, float]:
    """The share of drafts accepted over all committed prompts, by answers seen before each."""
    asked = {prompt.turns for prompt in spoken.ALL}
    fresh = (one for one in exchanges(seed, shares=SERVING) if tuple(one.turns) not in asked)
    tokenizer = spoken.tokenizer()
    seen = [question(tokenizer, one) for one in islice(fresh, max(numbers))]
    found = {}
    for number in numbers:
        table = spoken.Suffixes()
        for prompt, answer in seen[:number]:
            table.read([*prompt, *answer], len(prompt) + len(answer))
        answers = [spoken.with_suffixes(place, K, table.copy()) for place in range(len(spoken.ALL))]
        found[number] = sum(one.accepted for one in answers) / sum(one.drafted for one in answers)
    return found


if __name__ == "__main__":
    shares = {number: round(share, 4) for number, share in acceptance().items()}
    deeper.SEEN.write_text(json.dumps(shares) + "\n", encoding="utf-8")
    print(shares)
