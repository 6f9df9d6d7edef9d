"""From a pasted text to an answer: limits with their evidence, numbers computed again, and what cannot be told."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.look import checks, limits, reading
from course.look.checks import Check
from course.look.limits import Named
from course.look.reading import Paste
from course.models import ModelSpec
from course.results import Result, printed, sglang_bench, vllm_bench


@dataclass(frozen=True)
class Answer:
    """What a paste shows. engine: vLLM, SGLang, TensorRT-LLM, or "" if no line says."""

    engine: str
    limits: tuple[Named, ...]
    checks: tuple[Check, ...]
    cannot_tell: tuple[str, ...]
    notes: tuple[str, ...]
    lines: tuple[int, int]

    def as_json(self) -> dict[str, Any]:
        """The answer in plain lists and texts."""
        return {
            "limits": [one.as_json(self.engine) for one in self.limits],
            "checks": [one.as_json() for one in self.checks],
            "cannot_tell": list(self.cannot_tell),
            "notes": list(self.notes),
            "lines": list(self.lines),
        }


def look(text: str, spec: ModelSpec | None = None) -> Answer:
    """What a log, some periodic lines, a printed result or a metrics page shows.

    spec: the model, if its KV cache is to be computed again. Raises ValueError for a text in which no line is known.
    """
    paste = reading.read(text)
    results, documents, blocks = _results(text)
    known = paste.read + blocks
    if not known or not (paste.facts or paste.rows or paste.settings or results or paste.notes or paste.version):
        raise ValueError(
            f"none of the {paste.all:,} lines is one that vLLM, SGLang or TensorRT-LLM prints: paste lines of the start "
            "(memory, KV cache size), periodic lines (Running, Waiting), or the printed result of a benchmark"
        )
    found = limits.at_the_start(paste)
    several, unknown = limits.running(paste)
    names = {one.limit for one in found}
    found += [one for one in (*several, *limits.printed(results)) if one.limit not in names]
    made = [*checks.of_start(paste), *checks.of_pool(paste, spec), *checks.of_results(documents, results)]
    return Answer(
        paste.engine,
        tuple(found),
        tuple(made),
        (*unknown, *_missing(paste, spec, found, results)),
        (*paste.notes, *(note for run in results for note in run.notes)),
        (known, paste.all),
    )


def _results(text: str) -> tuple[list[Result], list[dict[str, Any]], int]:
    """Printed results through the readers of result files, their documents, and how many lines they are."""
    if not printed.is_report(text):
        return [], [], 0
    path = Path("paste")
    found = printed.report(path, reading.ESCAPES.sub("", text))
    readers = [sglang_bench if sglang_bench.matches(one.value) else vllm_bench for one in found]
    results = [reader.read(path, [one])[0] for reader, one in zip(readers, found, strict=True)]
    return results, [one.value for one in found], sum(len(one.value) for one in found)


def _missing(paste: Paste, spec: ModelSpec | None, found: list[Named], results: list[Result]) -> list[str]:
    """What the paste does not hold, and the line that would."""
    missing = []
    if not paste.rows and not results and not found:
        missing.append("which limit holds the running server: paste periodic lines (Running, Waiting, KV cache usage)")
    if results and not found and not paste.rows:
        missing.append("what limits the server: the client's numbers do not say; paste its periodic lines of that time")
    for run in results:
        if run.loop == "":
            missing.append("how the load was made: the line with the request rate or the concurrency is missing")
    if spec is None and ("kv_gib" in paste.facts or "trt_gib" in paste.facts):
        missing.append("whether the KV cache has the size that it should: name the model with --config")
    if "kv_gib" in paste.facts and "tokens" in paste.facts and len(set(paste.facts["tokens"])) > 1:
        missing.append(
            "which start these lines are of: several with different sizes are in the paste; give one at a time"
        )
    return missing
