"""The answers as a code that can be read out in a room: D1-, four characters for the items, one to check them.

Each character stands for three items in the order of ITEMS, ok 0, note 1, problem 2, as 9 a + 3 b + c in Crockford's
base 32 (no I, L, O, U), of which the first 27 digits are used. The last one is the sum of the four, weighted by 1, 2,
4 and 5, modulo 27: none of the weights is divisible by 3, so any single character heard wrongly is noticed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

VERSION = "D1"
ITEMS = (
    *("python", "packages", "imports"),
    *("widgets", "kernel", "labs"),
    *("copies", "progress", "space"),
    *("compiler", "gpu", "decode step"),
)
"""Never reordered: a new item, or another order, is a new VERSION."""
STATUSES = ("ok", "note", "problem")
DIGITS = "0123456789ABCDEFGHJKMNPQRST"
WEIGHTS = (1, 2, 4, 5)
LOOKALIKES = str.maketrans({"O": "0", "I": "1", "L": "1"})


def in_code(statuses: Sequence[str]) -> str:
    """The code of one status an item, in the order of ITEMS; all ok is D1-00000."""
    marks = [STATUSES.index(status) for status in statuses]
    values = [9 * a + 3 * b + c for a, b, c in zip(*(iter(marks),) * 3, strict=True)]
    if len(marks) != len(ITEMS):
        raise ValueError(f"{len(ITEMS)} items have a status, not {len(marks)}")
    return f"{VERSION}-{''.join(DIGITS[value] for value in (*values, _check(values)))}"


def statuses_of(code: str) -> Mapping[str, str]:
    """The status of each item in a code as it was heard: small letters, spaces and O for 0 do no harm.

    Raises ValueError for what is no code, or one with a character heard wrongly.
    """
    heard = "".join(letter for letter in code.upper() if letter.isalnum()).translate(LOOKALIKES)
    version, digits = heard[: len(VERSION)], heard[len(VERSION) :]
    letters = code.strip()[:30]
    if version != VERSION.translate(LOOKALIKES) or len(digits) != len(WEIGHTS) + 1:
        raise ValueError(f"{letters!r} is not a code: a code looks like {in_code(['ok'] * len(ITEMS))}")
    if not set(digits) <= set(DIGITS):
        raise ValueError(f"{letters!r} has a character that no code has: ask for the code again")
    *values, check = (DIGITS.index(digit) for digit in digits)
    if check != _check(values):
        raise ValueError(f"{letters!r} does not add up, so a character was misheard: ask for the code again")
    marks = [mark for value in values for mark in (value // 9, value // 3 % 3, value % 3)]
    return dict(zip(ITEMS, (STATUSES[mark] for mark in marks), strict=True))


def _check(values: Sequence[int]) -> int:
    return sum(weight * value for weight, value in zip(WEIGHTS, values, strict=True)) % len(DIGITS)
