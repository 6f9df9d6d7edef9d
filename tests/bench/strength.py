"""How much the tests notice: plants single wrong changes, one after the other, and runs the tests of their room.

    PYTHONPATH=. .venv/bin/python tests/bench/strength.py                      every room
    PYTHONPATH=. .venv/bin/python tests/bench/strength.py queueing lab03 -j 2  two rooms, two mutants at a time
    PYTHONPATH=. .venv/bin/python tests/bench/strength.py --only sharing       mutants of files with this in their path

The changes are listed in tests/bench/mutants, a file a room. Each is made in a copy of the tree in a temporary folder,
where the tests run up to their first failure. Noticed is what makes a test fail, and what makes the tests run for
longer than the time limit. A change whose old text is not there exactly once is an error: the code has moved on, and
the list must follow. Exit status 1 where less than 95% is noticed, and for any error.

Needs a system that forks (Linux, macOS): NumPy, SciPy and Plotly are imported once, and each mutant gets a fork.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENOUGH = 0.95  # of the changes that are not marked as equivalent
LEFT_OUT = (".*", "__pycache__", "my-labs", "accept", "dist", "build")
# What takes time to import and belongs to no room.
IMPORTED_ONCE = (
    "pytest",
    "hypothesis",
    "numpy",
    "scipy.special",
    "scipy.optimize",
    "plotly.graph_objects",
    "ipywidgets",
    "nbformat",
)
NOTICED, HUNG, SURVIVED, ERROR = "noticed", "hung", "survived", "error"


@dataclass
class Attempt:
    """One mutant under test: its process, its copy of the tree, and when its time is over."""

    mutant: object
    tree: Path
    pid: int
    began: float
    limit: float
    before: tuple[bytes, int] = (b"", 0)


def rooms() -> list[str]:
    """The names of the lists, which are those of the rooms."""
    return sorted(path.stem for path in (ROOT / "tests/bench/mutants").glob("[a-z]*.py"))


def copy_of_the_tree(folder: Path) -> Path:
    """A copy that a mutant may spoil, compiled, so that each fork compiles the changed file only."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    compileall.compile_dir(folder / "course", quiet=2)
    return folder


def run_tests(tree: Path, tests: tuple[str, ...], log: Path) -> int:
    """In a fork, the tests of this tree; never returns. The exit status is pytest's."""
    status = 3
    try:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        here = str(ROOT)
        sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", here, str(ROOT / "tests/bench")))]
        os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "course", "conftest")]:
            del sys.modules[name]
        hypothesis = importlib.import_module("hypothesis")
        # The first example that fails will do: to make it small takes a minute.
        phases = [phase for phase in hypothesis.Phase if phase.name in ("explicit", "generate")]
        hypothesis.settings.register_profile("strength", phases=phases, database=None)
        hypothesis.settings.load_profile("strength")
        pytest = importlib.import_module("pytest")
        plain = ["-o", "addopts=", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval"]
        options = ["-x", "-q", "--tb=line", "--hypothesis-seed=0", *plain]
        for place in tests:  # one after the other: what comes later need not even be collected
            status = pytest.main([*options, place])
            if status != 0:
                break
    finally:
        os._exit(int(status))


def change(tree: Path, mutant) -> str:
    """Make the change; a sentence where it cannot be made."""
    path = tree / mutant.file
    if not path.is_file():
        return f"{mutant.file} is not there"
    text = path.read_text(encoding="utf-8")
    times = text.count(mutant.old)
    if times != 1:
        return f"{mutant.file} has {mutant.old!r} {times} times, and once is needed"
    if mutant.old == mutant.new:
        return f"{mutant.old!r} is no change"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return ""


def put_back(attempt: Attempt) -> None:
    """The file as it was, with its time, so that what was compiled from it still counts."""
    path, (content, when) = attempt.tree / attempt.mutant.file, attempt.before
    path.write_bytes(content)
    os.utime(path, ns=(when, when))


def start(tree: Path, mutant, tests: tuple[str, ...], limit: float, log: Path) -> Attempt:
    """A fork that runs the tests."""
    pid = os.fork()
    if not pid:
        run_tests(tree, tests, log)
    return Attempt(mutant, tree, pid, time.monotonic(), limit)


def status_of(attempt: Attempt) -> int | None:
    """pytest's exit status, -1 where the limit is over, None while it runs."""
    pid, status = os.waitpid(attempt.pid, os.WNOHANG)
    if pid:
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() - attempt.began < attempt.limit:
        return None
    try:
        os.killpg(attempt.pid, signal.SIGKILL)  # its session, so that what the tests started ends as well
    except ProcessLookupError:
        os.kill(attempt.pid, signal.SIGKILL)
    os.waitpid(attempt.pid, 0)
    return -1


def outcome(status: int) -> str:
    """What an exit status of pytest says of a mutant."""
    if status == 0:
        return SURVIVED
    # 1: a test failed. 2: a file of tests could not be imported, since what it imports refused to be.
    return {-1: HUNG, 1: NOTICED, 2: NOTICED}.get(status, ERROR)


def attempts(room: str, mutants: list, tests: tuple[str, ...], limit: float, trees: list[Path]) -> Iterator:
    """(mutant, outcome, sentence or last lines, seconds) as they end; as many at a time as there are trees."""
    waiting, free, running = list(mutants), list(trees), []
    while waiting or running:
        while waiting and free:
            mutant, tree = waiting.pop(0), free.pop()
            path = tree / mutant.file
            before = (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else (b"", 0)
            problem = change(tree, mutant)
            if problem:
                free.append(tree)
                yield mutant, ERROR, problem, 0.0
                continue
            log = tree.with_suffix(".log")
            running.append(start(tree, mutant, (*mutant.tests, *tests), limit, log))
            running[-1].before = before
        for attempt in list(running):
            status = status_of(attempt)
            if status is None:
                continue
            running.remove(attempt)
            put_back(attempt)
            free.append(attempt.tree)
            lines = attempt.tree.with_suffix(".log").read_text(encoding="utf-8", errors="replace").splitlines()
            failed = [line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))] or lines
            said = failed[0] if failed else ""
            yield attempt.mutant, outcome(status), said, time.monotonic() - attempt.began
        time.sleep(0.05)


def table(counts: dict[str, Counter], planted: dict[str, Counter]) -> list[str]:
    """noticed / planted for each room and kind."""
    kinds = sorted({kind for row in planted.values() for kind in row})
    width = max(len(room) for room in planted) + 2
    lines = ["".ljust(width) + "".join(f"{kind:>18}" for kind in kinds) + f"{'all':>12}"]
    for room, row in planted.items():
        cells = [f"{counts[room][kind]}/{row[kind]}" if row[kind] else "" for kind in kinds]
        every = f"{counts[room].total()}/{row.total()}"
        lines.append(room.ljust(width) + "".join(f"{cell:>18}" for cell in cells) + f"{every:>12}")
    return lines


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description="Plant single wrong changes, and count those that tests notice.")
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(rooms())}; all by default")
    parser.add_argument("-j", type=int, default=1, help="mutants at a time")
    parser.add_argument("--only", default="", help="those whose file, old or new text has this in it")
    parser.add_argument("--limit", type=float, default=0, help="seconds a mutant; by default 60 and 5 times the room's")
    chosen = parser.parse_args()
    unknown = set(chosen.rooms) - set(rooms())
    if unknown:
        parser.error(f"no list of mutants is called {', '.join(sorted(unknown))}: there are {', '.join(rooms())}")
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # a fork of a process with threads may hang
    for name in IMPORTED_ONCE:
        importlib.import_module(name)
    began = time.monotonic()
    counts, planted = defaultdict(Counter), defaultdict(Counter)
    survivors, equal, errors = [], [], []
    with tempfile.TemporaryDirectory(prefix="strength-") as folder:
        trees = [copy_of_the_tree(Path(folder) / f"tree{i}") for i in range(max(1, chosen.j))]
        for room in chosen.rooms or rooms():
            listed = importlib.import_module(f"tests.bench.mutants.{room}")
            every = [m for m in listed.MUTANTS if chosen.only in f"{m.file}\n{m.old}\n{m.new}"]
            mutants = [mutant for mutant in every if not mutant.equivalent]
            equal += [(room, mutant) for mutant in every if mutant.equivalent]
            if not mutants:
                continue
            # Without a change the tests must pass, or everything would count as noticed.
            plain = start(trees[0], None, listed.TESTS, 1800, Path(folder) / "plain.log")
            while (status := status_of(plain)) is None:
                time.sleep(0.05)
            seconds = time.monotonic() - plain.began
            if status != 0:
                last = (Path(folder) / "plain.log").read_text(encoding="utf-8", errors="replace")[-2000:]
                errors.append(f"{room}: its tests fail without any change\n{last}")
                continue
            limit = chosen.limit or 60 + 5 * seconds
            print(f"{room}: {len(mutants)} mutants; its tests alone take {seconds:.0f} s", flush=True)
            for mutant, found, said, took in attempts(room, mutants, listed.TESTS, limit, trees):
                name = f"{mutant.file}: {mutant.old!r} -> {mutant.new!r}"
                planted[room][mutant.kind] += 1
                counts[room][mutant.kind] += found in (NOTICED, HUNG)
                print(f"  {found:9} {took:5.0f} s  {name}   {said[:150] if found != SURVIVED else ''}", flush=True)
                if found == SURVIVED:
                    survivors.append(f"{room}, {mutant.kind}: {name}")
                if found == ERROR:
                    errors.append(f"{room}: {name}: {said}")
    if planted:
        print("\n".join(["", *table(counts, planted)]))
    for title, lines in (
        ("Not noticed", survivors),
        ("Equivalent, not counted", [f"{room}: {m.file}: {m.old!r} -> {m.new!r}: {m.equivalent}" for room, m in equal]),
        ("Errors", errors),
    ):
        if lines:
            print(f"\n{title}:", *lines, sep="\n  ")
    all_planted = sum(row.total() for row in planted.values())
    noticed = sum(row.total() for row in counts.values())
    share = noticed / all_planted if all_planted else 1.0
    print(f"\n{noticed} of {all_planted} noticed ({share:.1%}) in {(time.monotonic() - began) / 60:.0f} minutes")
    return 1 if errors or share < ENOUGH else 0


if __name__ == "__main__":
    sys.exit(main())
