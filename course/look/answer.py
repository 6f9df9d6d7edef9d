"""From a pasted text to an answer: limits with their evidence, numbers computed again, and what cannot be told."""

from dataclasses import dataclass
from pathlib import Path

from course.look import checks, limits, reading, told
from course.look.checks import Check
from course.look.limits import Named
from course.look.reading import Paste
from course.models import ModelSpec
from course.models.gpus import GPU
from course.results import Result, client, reports


@dataclass(frozen=True)
class Answer:
    """What a paste shows. engine: vLLM, SGLang, TensorRT-LLM, or "" if no line says. lines: (read, all).

    limits: rows with limit, evidence, next, flag and lab.
    """

    engine: str
    limits: tuple[dict[str, str], ...]
    checks: tuple[Check, ...]
    cannot_tell: tuple[str, ...]
    notes: tuple[str, ...]
    lines: tuple[int, int]


def look(text: str, spec: ModelSpec | None = None, gpu: GPU | None = None) -> Answer:
    """What a log, some periodic lines, a printed result or a metrics page shows.

    spec: the model, if its KV cache is to be computed again. gpu: the card, whose default slots count if the paste says
    none. Raises ValueError for a text in which no line is known, and for a printed result that is cut.
    """
    paste = reading.read(text, gpu)
    found = reports(Path("paste"), reading.ESCAPES.sub("", text))
    results = [run for _, run in found]
    if not paste.rows and not results:
        told.read(paste, text)
    named = limits.at_the_start(paste)
    running = limits.running(paste)
    named = limits.first_of_each([*named, *running, *(Named(*one) for one in client.limits(results))])
    if not (named or paste.rows or results):
        told.words(paste, text)
        named = limits.at_the_start(paste)
    if not (paste.read or paste.unqueued or paste.notes or results):
        raise ValueError(reading.WORDS["cannot_tell"]["anything"])
    made = [*checks.of_start(paste), *checks.of_requests(paste), *checks.of_pool(paste, spec)]
    unknown = dict.fromkeys(one.evidence for one in running if not one.limit)
    missing = (*unknown, *_missing(paste, spec, named, results))
    notes = tuple(dict.fromkeys((*paste.notes, *(note for run in results for note in run.notes))))
    rows = tuple(limits.row(one, paste.engine) for one in named)
    lines = min(paste.read + sum(len(document) for document, _ in found), paste.all)
    return Answer(paste.engine, rows, (*made, *checks.of_results(found)), missing, notes, (lines, paste.all))


def _missing(paste: Paste, spec: ModelSpec | None, named: list[Named], results: list[Result]) -> list[str]:
    """What the paste does not hold, each with the line that would."""
    nothing = not named and not paste.rows
    holds = {
        "queue": paste.unqueued and not paste.rows,
        "server": nothing and results,
        "running": nothing and not results and not paste.unqueued,
        "load": any(run.loop == "" for run in results),
        "model": spec is None and {"kv_gib", "trt_gib"} & paste.facts.keys(),
        "memory": nothing and "smi_used" in paste.facts,
        "starts": len(set(paste.facts.get("tokens", ()))) > 1,
    }
    return [reading.WORDS["cannot_tell"][name] for name, missing in holds.items() if missing]
