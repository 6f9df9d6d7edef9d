"""The checks, in the order of the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from course.desk.doctor import machine, repair, software
from course.desk.doctor.answer import Answer, problem
from course.desk.doctor.code import ITEMS


def examine(handed_out: str | None = None, to: str | None = None) -> Iterator[tuple[str, Answer]]:
    """Each item of ITEMS with its answer, as soon as it is known. Nothing is changed, and no network is used.

    handed_out, to: the folders of the labs and of the copies, as in `copies.folders`.
    """
    for question in (software.try_imports, machine.best, machine.on_the_cpu):
        question.cache_clear()
    from course.desk.copies import folders

    def labs() -> Path:
        return folders(handed_out, to, missing_ok=True)[0]

    def mine() -> Path:
        return folders(handed_out, to, missing_ok=True)[1]

    checks: dict[str, Callable[[], Answer]] = {
        "python": software.python,
        "packages": software.packages,
        "imports": software.imports,
        "widgets": software.widgets,
        "kernel": lambda: software.kernel(mine()),
        "labs": lambda: machine.labs(labs()),
        "copies": lambda: machine.copies(mine()),
        "progress": machine.progress,
        "space": lambda: machine.space(mine()),
        "compiler": machine.compiler,
        "gpu": machine.gpu,
        "decode step": machine.decode_step,
    }
    for name in ITEMS:
        yield name, _answer_of(checks[name])


def _answer_of(check: Callable[[], Answer]) -> Answer:
    try:
        return check()
    except ImportError as error:
        return problem(f"cannot be checked because a module is missing: {error}", repair.install())
    except OSError as error:  # the sentences of course.desk.copies among them
        named = f"{error.filename}: " if error.filename else ""
        return problem(f"{named}{error.strerror or error}")
    except Exception as error:  # whatever a broken installation does
        return problem(f"cannot be checked: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
