"""The files: which sources there are, where their notebooks go, and the order of work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.base import files
from course.exercises.names import NAME, is_deeper, of_lab
from course.notebooks import check, counts, facts, glossary, source
from course.notebooks.canonical import canonical, to_bytes
from course.notebooks.execute import ExecutionError, errors, execute

LARGEST = 100_000_000  # bytes of a stored notebook


@dataclass(frozen=True)
class Target:
    """One notebook to be built: the lab or the solution of one source."""

    path: Path
    notebook: NotebookNode
    text: str
    number: str

    @property
    def is_lab(self) -> bool:
        """Whether this is the notebook that is handed out, and not the solution."""
        return self.path.parent.name == "labs"


def sources(root: Path, numbers: Sequence[str] = ()) -> list[Path]:
    """The sources `solutions/NN_topic.py` and `NNb_topic.py` under `root`, all or those of the given labs.

    In order, what goes deeper behind its lab. Raises ValueError when a number has no source, two sources share one, or
    one goes deeper than a lab that is not there.
    """
    by_number: dict[str, Path] = {}
    found = [path for path in (root / "solutions").glob("*.py") if NAME.fullmatch(path.name)]
    for path in sorted(found, key=lambda path: path.stem):
        name = source.name_of(path)
        if name in by_number:
            raise ValueError(f"{path.name} and {by_number[name].name} have the same number; rename one")
        if is_deeper(path.name) and (core := of_lab(path.name)) != getattr(by_number.get(name[:2]), "name", None):
            raise ValueError(f"{path.name} goes deeper than {core}, which is not there; give them the same topic")
        by_number[name] = path
    cores = [name for name in by_number if not name.endswith("d")]
    wishes = list(dict.fromkeys(number.zfill(2) for number in numbers)) or cores
    missing = [number for number in wishes if number not in by_number]
    if missing:
        raise ValueError(f"no source solutions/{missing[0]}_*.py; there are {', '.join(cores) or 'none'}")
    return [by_number[name] for number in wishes for name in (number, f"{number}d") if name in by_number]


def targets(path: Path, text: str) -> list[Target]:
    """The two notebooks of the source at `path`, unexecuted, with facts filled in and terms linked to the glossary.

    Raises source.SourceError as source.notebooks does.
    """
    number, root = path.name[:2], path.parent.parent
    pair = source.notebooks(text, source.name_of(path), facts.under(root, number))
    terms, new = known_terms(root), counts.new_terms(number)
    return [
        Target(root / folder / f"{path.stem}.ipynb", glossary.linked(notebook, terms, new), text, number)
        for folder, notebook in (("labs", pair.lab), ("solutions", pair.solution))
    ]


def known_terms(root: Path) -> dict[str, str]:
    """The glossary's anchors by term; none if there is no glossary."""
    try:
        return glossary.entries(files.read(root / "docs" / glossary.PAGE, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        return {}


def orphans(root: Path) -> list[str]:
    """Faults for notebooks that no source builds."""
    stems = {path.stem for path in sources(root)}
    return [
        f"{folder}/{path.name}: no source solutions/{path.stem}.py builds it"
        for folder in ("labs", "solutions")
        for path in sorted((root / folder).glob("*.ipynb"))
        if path.stem not in stems
    ]


def stored_faults(target: Target) -> list[str]:
    """Faults of the notebook on disk that show without running it: missing, out of step with its source, or unfit."""
    try:
        raw = files.read(target.path, LARGEST)
        notebook = check.read(raw)
    except FileNotFoundError:
        return ["missing; `make notebooks` builds it"]
    except (OSError, ValueError) as error:
        return [getattr(error, "strerror", None) or str(error)]
    faults = check.notebook_faults(raw) + check.difference_faults(raw, target.notebook, outputs=False)
    if target.is_lab:
        faults += check.leak_faults(notebook, target.text)
    return faults


async def run_target(target: Target, write: bool, cell_timeout: float, say: Callable[[str], None]) -> list[str]:
    """Execute one notebook; write it when it ran without error, or compare it with the one on disk."""
    start = time.perf_counter()
    fresh = nbformat.from_dict(target.notebook)
    try:
        target.path.parent.mkdir(exist_ok=True)
        fresh = canonical(await execute(fresh, target.path.parent, cell_timeout, with_answers=not target.is_lab))
        raw, raised = to_bytes(fresh), errors(fresh)
    except OSError as error:
        return [f"cannot be executed: {error.strerror or error}: {error.filename or target.path.parent}"]
    except (ExecutionError, ValueError) as error:
        return [str(error)]
    say(f"{target.path.parent.name}/{target.path.name}: {len(raw):,} bytes in {time.perf_counter() - start:.1f} s")
    if raised:
        return raised
    try:
        if write:
            files.replace(target.path, raw)
            return stored_faults(target)
        stored = files.read(target.path, LARGEST)
    except (OSError, files.TooLarge) as error:
        return [f"cannot be written: {getattr(error, 'strerror', None) or error}"] if write else []
    # stored_faults has compared everything but the outputs already; only they can add something here.
    return [f for f in check.difference_faults(stored, fresh) if ": outputs differ" in f]


def build(
    root: Path,
    numbers: Sequence[str] = (),
    *,
    write: bool = True,
    run: bool = True,
    cell_timeout: float = 120,
    jobs: int = 2,
    say: Callable[[str], None] = print,
) -> list[str]:
    """Build the notebooks under `root` and return all faults, each "folder/file: what is wrong".

    `write=False` leaves the files alone and compares them with a fresh build; `run=False` as well leaves out the
    execution, so that everything but the outputs is compared. `jobs` notebooks run at the same time.
    """
    faults = orphans(root) if not numbers else []
    todo: list[Target] = []
    chosen = sources(root, numbers)
    if run:
        faults += facts.refresh(root, dict.fromkeys(path.name[:2] for path in chosen), write=write)
    for path in chosen:
        try:
            text = source.read(path)
        except source.SourceError as error:
            faults.append(f"solutions/{path.name}: {error}")
            continue
        found = check.source_faults(text, source.name_of(path), facts.under(root, path.name[:2]))
        faults += [f"solutions/{path.name}: {fault}" for fault in found]
        try:
            todo += targets(path, text)
        except source.SourceError:
            continue  # source_faults has named it
    if not write:
        for target in todo:
            faults += with_name(target, stored_faults(target))
    if run:
        results = asyncio.run(run_all(todo, write, cell_timeout, jobs, say))
        if write and (moved := counts.store(root, [target.path for target in todo if target.is_lab])):
            # A lab's first card says the counted minutes, so those notebooks say the old ones: once more.
            say(f"counted minutes have changed: {', '.join(moved)}")
            again = [target for target in todo if target.number in moved]
            later = asyncio.run(run_all(again, write, cell_timeout, jobs, say))
            renewed = {id(target): faults_ for target, faults_ in zip(again, later, strict=True)}
            results = [renewed.get(id(target), old) for target, old in zip(todo, results, strict=True)]
        for target, those in zip(todo, results, strict=True):
            faults += with_name(target, those)
    if write:
        counts.write_tables(root)
    return faults + counts.faults(root, [target.path for target in todo if target.is_lab])


async def run_all(
    todo: Sequence[Target], write: bool, cell_timeout: float, jobs: int, say: Callable[[str], None]
) -> list[list[str]]:
    """The faults of each target, with at most `jobs` kernels alive."""
    slots = asyncio.Semaphore(jobs)

    async def one(target: Target) -> list[str]:
        async with slots:
            return await run_target(target, write, cell_timeout, say)

    return await asyncio.gather(*(one(target) for target in todo))


def with_name(target: Target, faults: Sequence[str]) -> list[str]:
    """`faults` with the notebook's name in front."""
    return [f"{target.path.parent.name}/{target.path.name}: {fault}" for fault in faults]
