"""The columns of a workload, checked: each refusal names the first request that is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from course.base.settings import MAX_REQUESTS, MAX_SECONDS, MAX_TOKENS, flag, quote, reason, whole


def column(name: str, values: Any) -> np.ndarray:
    """`values` as a fresh one-dimensional array of numbers; else a ValueError naming the request."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values, whose numbers are missing: drop those requests first")
    if isinstance(values, list | tuple):
        for row, value in enumerate(values):  # [True, 5] would otherwise become [1, 5]
            if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
                raise ValueError(f"{name} of request {row} must be a number, not {quote(value)}")
    try:
        array = np.array(values)
    except Exception as error:  # a stranger's __array__ may raise anything
        raise ValueError(f"{name} must be a sequence of numbers, one per request: {reason(error)}") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be a one-dimensional sequence, one number per request, not {quote(values)}")
    if array.dtype.kind == "O":  # Python integers that do not fit int64, or things that are no numbers at all
        for row, value in enumerate(array):
            if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
                raise ValueError(f"{name} of request {row} must be a number, not {quote(value)}")
        try:
            array = array.astype(np.float64)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"{name} holds a number too large to use: the most is {MAX_TOKENS:.0e}") from None
    if array.size and array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be numbers, one per request, not {quote(array[0].item())} (request 0)")
    return array


def times(name: str, values: Any, *, allow_nan: bool = False) -> np.ndarray:
    """`values` as float64 seconds from 0 to MAX_SECONDS (or NaN, if allowed); else a ValueError."""
    array = column(name, values).astype(np.float64) + 0.0  # adding 0.0 turns -0.0 into 0.0
    bad = ~((array >= 0) & (array <= MAX_SECONDS))
    if allow_nan:
        bad &= ~np.isnan(array)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} of request {row} must be from 0 to {MAX_SECONDS:g} seconds, not {array[row].item()!r}"
        )
    return array


def tokens(name: str, values: Any) -> np.ndarray:
    """`values` as int64 token counts from 1 to MAX_TOKENS; else a ValueError naming the request."""
    array = column(name, values)
    bad = ~((array >= 1) & (array <= MAX_TOKENS))
    if array.dtype.kind == "f":
        bad |= array != np.floor(array)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} of request {row} must be a whole number from 1 to {MAX_TOKENS:,}, not {array[row].item()!r}"
        )
    return array.astype(np.int64)


def guesses(values: Any) -> np.ndarray | None:
    """`values` as float64 tokens from 1 to MAX_TOKENS, NaN for requests without a guess; None if there are none."""
    if values is None:
        return None
    array = column("guess", values).astype(np.float64)
    bad = ~(((array >= 1) & (array <= MAX_TOKENS)) | np.isnan(array))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"guess of request {row} must be a number of tokens from 1 to {MAX_TOKENS:,}, or NaN for no guess, not "
            f"{array[row].item()!r}"
        )
    return array


def patience(values: Any) -> np.ndarray | None:
    """`values` as float64 seconds above 0, NaN for who waits for ever; None if there are none. Else a ValueError."""
    if values is None:
        return None
    array = times("patience", values, allow_nan=True)
    if (array == 0).any():
        row = int(np.argmax(array == 0))
        raise ValueError(
            f"patience of request {row} must be above 0 seconds, or NaN for one that never leaves, not 0.0"
        )
    return array


def references(name: str, values: Any) -> np.ndarray:
    """`values` as int64 request numbers, or -1; `check_order` looks at where they point."""
    array = column(name, values)
    bad = ~(np.abs(array) <= MAX_REQUESTS)
    bad |= array != np.floor(array)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} of request {row} must be the number of an earlier request or -1, not {array[row].item()!r}"
        )
    return array.astype(np.int64)


def labels(name: str, values: Any) -> np.ndarray | None:
    """`values` as an int64 or str array, None if there are none; else a ValueError."""
    if values is None:
        return None
    try:
        array = np.array(values)
    except Exception:  # rows of unequal length, or a stranger's __array__
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iuU" or (array.dtype.kind == "u" and array.dtype.itemsize == 8):
        raise ValueError(
            f"{name} must be a sequence of whole numbers or of strings, one per request, not {quote(values)}"
        )
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def prefixes(values: Any) -> tuple[tuple, ...] | None:
    """`values` as a tuple of tuples of block hashes, None if there are none; else a ValueError."""
    if values is None:
        return None
    try:
        rows = [_blocks(row) for row in values]
    except TypeError:
        raise ValueError(
            f"prefix must be a sequence of block-hash sequences, one per request, not {quote(values)}"
        ) from None
    return tuple(rows)


def _blocks(row: Any) -> tuple:
    """One request's block hashes. TypeError if they are none: text, or what cannot be hashed."""
    if isinstance(row, str):
        raise TypeError
    blocks = tuple(row)
    hash(blocks)
    return blocks


def prefix_blocks(
    size: Any,
    answers: Any,
    prefix: tuple[tuple, ...] | None,
    prompts: np.ndarray,
    outputs: np.ndarray,
    number: int = 0,
) -> tuple[int | None, bool]:
    """Tokens of a block that a hash stands for, and whether hashes go on over the answer; else a ValueError.

    So it is for hashes of more blocks than a request has. number: of the first request.
    """
    answers = flag("prefix_answers", answers)
    if size is None:
        if answers:
            raise ValueError("prefix_answers needs prefix_block_size, the tokens of a block that a hash stands for")
        return None, False
    size = whole("prefix_block_size", size, high=MAX_TOKENS)
    if prefix is None:
        raise ValueError("prefix_block_size says what the hashes in prefix stand for, and there is no prefix")
    tokens = prompts + outputs if answers else prompts
    for row, (ids, most) in enumerate(zip(prefix, (-(-tokens // size)).tolist(), strict=False)):
        if len(ids) > most:
            raise ValueError(
                f"request {number + row} has hashes of {len(ids)} blocks of {size} tokens, and its {int(tokens[row])} "
                f"tokens are at most {most}: shorten its prefix{'' if answers else ', or say prefix_answers'}"
            )
    return size, answers


def tags(values: Any) -> tuple[Mapping[str, Any] | tuple, ...] | None:
    """`values` as a tuple of read-only mappings and tuples of labels, None if there are none; else a ValueError."""
    if values is None:
        return None
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"tags must be a sequence of mappings or of tuples, one per request, not {quote(values)}")
    found: list[Mapping[str, Any] | tuple] = []
    for row, value in enumerate(values):
        if isinstance(value, Mapping):
            found.append(MappingProxyType(dict(value)))
        elif isinstance(value, tuple | list | set | frozenset):
            found.append(tuple(value))
        else:
            raise ValueError(
                f"tags of request {row} must be a mapping, such as {{'user': 7}}, or a tuple of labels, not "
                f"{quote(value)}"
            )
    return tuple(found)


def label(name: Any) -> str:
    """The name of a workload; ValueError unless it is text."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a workload must be text, not {quote(name)}")
    return str(name)


def sentences(notes: Any) -> tuple[str, ...]:
    """Notes as a tuple of strings; ValueError for one string, whose letters would be taken for notes."""
    if isinstance(notes, str) or not isinstance(notes, list | tuple) or not all(isinstance(n, str) for n in notes):
        raise ValueError(f"notes must be a tuple of sentences, such as ('from a trace',), not {quote(notes)}")
    return tuple(notes)


def check_sizes(columns: Mapping[str, Sequence]) -> None:
    """ValueError unless all columns are as long as `arrival`, with at least one request and at most MAX_REQUESTS."""
    n = len(columns["arrival"])
    for name, values in columns.items():
        if len(values) != n:
            raise ValueError(f"arrival has {n:,} requests but {name} has {len(values):,}: give one value per request")
    if not n:
        raise ValueError("a workload needs at least one request, but there are none")
    if n > MAX_REQUESTS:
        raise ValueError(f"a workload holds at most {MAX_REQUESTS:,} requests, not {n:,}: use a part of it")


def check_order(arrival: np.ndarray, after: np.ndarray | None, think_time: np.ndarray | None) -> None:
    """ValueError unless arrivals never go back, and every `after` names an earlier request."""
    rows = np.arange(len(arrival))
    if after is not None:
        bad = (after < -1) | (after >= rows)
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(f"request {i} follows request {after[i]}: it may only follow an earlier one, or none (-1)")
        bad = np.isnan(arrival) != (after >= 0)
        if bad.any():
            i = int(np.argmax(bad))
            rule = (
                "must be NaN, since it follows an answer" if after[i] >= 0 else "is missing, and it follows no answer"
            )
            raise ValueError(f"arrival of request {i} {rule} (after is {after[i]}), not {arrival[i].item()!r}")
        thinks = np.zeros(len(after)) if think_time is None else think_time
        bad = (after < 0) & (thinks != 0)
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(f"request {i} has a think time of {thinks[i]:g} s but follows no answer (after is -1)")
        rows = np.flatnonzero(after < 0)
    early = np.flatnonzero(np.diff(arrival[rows]) < 0)
    if early.size:
        i, before = rows[early[0] + 1], rows[early[0]]
        raise ValueError(
            f"request {i} arrives at {arrival[i]:.9g} s, before request {before} at {arrival[before]:.9g} s: "
            "sort the requests by arrival first"
        )


def same(a: Any, b: Any) -> bool:
    """Whether two columns hold the same; NaN equals NaN here."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return a is b or (isinstance(a, tuple) and a == b)
