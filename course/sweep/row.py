"""One run of a sweep: what was set, what came out or why it was refused, and what it was computed with."""

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import find_spec
from math import isfinite
from typing import Any

import numpy as np

from course.base.settings import quote, reason
from course.base.threads import one_thread
from course.engine.run import Run
from course.sweep.fast import ENGINE, compiled
from course.sweep.grid import Setting, Settings

Design = Callable[..., Run | Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """One run. Equal rows are equal to the bit, but for the CPU seconds, which no two runs have in common.

    sweep: what was run, in words (see `name_of`). settings and seed: what it was called with. summary: the numbers that
    it returned, in the units of `metrics.summary`; None for what is no finite number; empty if refused. refused: the
    sentence with which it was refused, or None. failed: whether it was no ValueError but a bug, a missing file, a full
    memory: it is tried again where it is asked for again. versions: of the course, Python and NumPy. cpu_seconds: of
    the thread that ran it. loop: which served it, "engine" or "compiled" (see `course.sweep.compiled`), which differ in
    time alone; "compiled, engine" if both did, each some of its requests.
    """

    sweep: str
    settings: Settings
    seed: int
    summary: dict[str, Setting]
    refused: str | None
    failed: bool
    versions: dict[str, str]
    cpu_seconds: float = field(compare=False)
    loop: str = field(default=ENGINE, compare=False)

    @property
    def key(self) -> str:
        """What tells this run from the others of a file."""
        return key_of(self.sweep, self.settings, self.seed)

    def line(self) -> str:
        """The row as one line of JSON."""
        return json.dumps(asdict(self), allow_nan=False) + "\n"


def key_of(sweep: str, settings: Settings, seed: int) -> str:
    """The key of the run of these settings and this seed."""
    return json.dumps([sweep, sorted(settings.items()), seed])


def of_document(place: str, value: Any) -> Row:
    """The row that a line of JSON holds. ValueError, with the place, for anything else."""
    if not isinstance(value, dict) or {"loop", *value} != set(Row.__dataclass_fields__):
        raise ValueError(f"{place}: this is no row of a sweep")
    kinds = {
        "sweep": str,
        "settings": dict,
        "seed": int,
        "summary": dict,
        "versions": dict,
        "refused": str | None,
        "failed": bool,
        "loop": str,
    }
    value = {"loop": ENGINE, **value}  # which files have not said from the first
    wrong = next((name for name, kind in kinds.items() if not isinstance(value[name], kind)), None)
    if wrong is not None:
        raise ValueError(f"{place}: {wrong} must not be {quote(value[wrong])}")
    return Row(**value)


def name_of(design: Design) -> str:
    """What a design is called in its rows: its `label` if it has one, else where it is defined."""
    label = getattr(design, "label", None)
    if isinstance(label, str):
        return label
    inner = getattr(design, "func", design)  # of a partial
    name = getattr(inner, "__qualname__", None) or f"{type(inner).__qualname__}"
    return f"{inner.__module__}.{name}" if inner is design else f"{inner.__module__}.{name} {_rest(design)}"


def _rest(partial: Any) -> str:
    return f"of {partial.args!r} {partial.keywords!r}"


def run_one(name: str, design: Design, settings: Settings, seed: int, fast: bool = False) -> Row:
    """One run. What the design refuses, or stumbles over, is the sentence of the row and not the end of the sweep.

    name: by `name_of`, in the process that asks: in another one a script's functions are called otherwise. fast: in the
    compiled loop, where that can be and numba is there.
    """
    begin, summary, refused, failed = time.thread_time(), {}, None, False
    with compiled(fast and find_spec("numba") is not None) as loop:
        try:
            summary = _served(design, settings, seed)
        except ValueError as error:
            refused = " ".join(str(error).split()) or "it was refused without a sentence"
        except OSError as error:
            said = f"cannot read {error.filename}: {error.strerror}" if error.filename else reason(error)
            refused, failed = said, True
        except Exception as error:  # a stranger's code: two hundred other runs must not pay for it
            refused, failed = reason(error), True
    seconds = time.thread_time() - begin
    return Row(name, dict(settings), seed, summary, refused, failed, versions(), seconds, loop())


def _served(design: Design, settings: Settings, seed: int) -> dict[str, Setting]:
    with one_thread():  # several add up in another order: the last bit would say how many cores there are
        found = design(seed=seed, **settings)
        return _numbers(found.summary() if isinstance(found, Run) else found)


def _numbers(found: Any) -> dict[str, Setting]:
    """A summary as JSON has it: NaN, infinity and what is missing are None."""
    if not isinstance(found, Mapping):
        raise ValueError(f"a design must return a Run or a mapping of numbers, not {quote(found)}")
    numbers: dict[str, Setting] = {}
    for name, value in found.items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, bool | int | float | str | None):
            raise ValueError(f"{name} of a summary must be a number or a word, not {quote(value)}")
        numbers[str(name)] = None if isinstance(value, float) and not isfinite(value) else value
    return numbers


@cache
def versions() -> dict[str, str]:
    """Those of the course, Python and NumPy in this process."""
    from importlib.metadata import version

    return {"course": version("llm-batching-course"), "python": platform.python_version(), "numpy": np.__version__}
