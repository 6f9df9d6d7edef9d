"""How much the tests notice: plants single wrong changes, one after the other, and runs the tests of their room.

    PYTHONPATH=. .venv/bin/python tests/bench/strength.py                      every room
    PYTHONPATH=. .venv/bin/python tests/bench/strength.py queueing lab03 -j 16 two rooms, sixteen mutants at a time
    PYTHONPATH=. .venv/bin/python tests/bench/strength.py --only sharing       mutants of files with this in their path

The changes are listed in tests/bench/mutants, a file a room. Each is made in a copy of the tree in a temporary folder,
where the tests run up to their first failure. Noticed is what makes a test fail, and what makes the tests run for
longer than the time limit. A change whose old text is not there exactly once is an error: the code has moved on, and
the list must follow. Exit status 1 where less than 95% is noticed, and for any error. Ctrl-C and SIGTERM end it with
the table so far.

Needs a system that forks (Linux, macOS): NumPy, SciPy and Plotly are imported once, and each mutant gets a fork.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from tests.bench.mutants import Mutant

ROOT = Path(__file__).resolve().parents[2]
ENOUGH = 0.95  # of the changes that are not marked as equivalent
LEFT_OUT = (".*", "my-labs", "accept", "dist", "build")
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
OVER = 1_000  # in place of an exit status: the time limit was over
PYTHONPATH = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
RUNNING: set[int] = set()  # forks, ended with this process whatever ends it


@dataclass
class Attempt:
    """The tests of a room, with one mutant or without any, and the limit of their seconds."""

    room: str
    mutant: Mutant | None
    limit: float
    # While it runs: its copy of the tree, its process, when it began, and the file as it was with its time [ns].
    tree: Path = ROOT
    pid: int = 0
    began: float = 0.0
    before: tuple[bytes, int] = (b"", 0)

    def said(self) -> str:
        """What its tests have printed."""
        return self.tree.with_suffix(".log").read_text(encoding="utf-8", errors="replace")


def rooms() -> list[str]:
    """The names of the lists, which are those of the rooms."""
    return sorted(path.stem for path in (ROOT / "tests/bench/mutants").glob("[a-z]*.py"))


def copies_of_the_tree(folder: Path, number: int) -> list[Path]:
    """Copies that mutants may spoil, compiled once, so that each fork compiles the changed file only."""
    trees = [folder / f"tree{i}" for i in range(number)]
    shutil.copytree(ROOT, trees[0], ignore=shutil.ignore_patterns(*LEFT_OUT, "__pycache__"))
    compileall.compile_dir(trees[0] / "course", quiet=2, workers=number)
    for tree in trees[1:]:  # what is compiled counts in them too: they keep the times of the files
        shutil.copytree(trees[0], tree)
    return trees


def run_tests(tree: Path, tests: tuple[str, ...], log: Path) -> int:
    """In a fork, the tests of this tree; never returns. The exit status is pytest's."""
    status = 3
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        here = str(ROOT)
        sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", here, str(ROOT / "tests/bench")))]
        path = os.pathsep.join([str(tree), *(place for place in PYTHONPATH if Path(place).resolve() != ROOT)])
        os.environ |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COURSE_TESTS": "all"}
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
            status = pytest.main([*options, *shlex.split(place)])
            if status != 0:
                break
    finally:
        os._exit(int(status))


def change(tree: Path, mutant: Mutant) -> str:
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


def start(attempt: Attempt, tree: Path) -> str:
    """Make the change in this tree and run the tests in a fork; a sentence where the change cannot be made."""
    tests, mutant = tests_of(attempt.room), attempt.mutant
    if mutant:
        tests, path = (*mutant.tests, *tests), tree / mutant.file
        attempt.before = (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else attempt.before
        problem = change(tree, mutant)
        if problem:
            return problem
    attempt.tree, attempt.pid, attempt.began = tree, os.fork(), time.monotonic()
    if not attempt.pid:
        run_tests(tree, tests, tree.with_suffix(".log"))
    RUNNING.add(attempt.pid)
    return ""


def put_back(attempt: Attempt) -> None:
    """The file as it was, with its time, so that what was compiled from it still counts."""
    if attempt.mutant:
        path, (content, when) = attempt.tree / attempt.mutant.file, attempt.before
        path.write_bytes(content)
        os.utime(path, ns=(when, when))


def status_of(attempt: Attempt) -> int | None:
    """pytest's exit status, OVER where the limit is over, None while it runs."""
    pid, status = os.waitpid(attempt.pid, os.WNOHANG)
    if pid:
        RUNNING.discard(pid)
        return os.waitstatus_to_exitcode(status)
    if time.monotonic() - attempt.began < attempt.limit:
        return None
    end(attempt)
    return OVER


def end(attempt: Attempt) -> None:
    """Kill the process and, by its session, what its tests have started."""
    try:
        os.killpg(attempt.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has not come to its session yet
        os.kill(attempt.pid, signal.SIGKILL)
    os.waitpid(attempt.pid, 0)
    RUNNING.discard(attempt.pid)


def outcome(status: int) -> str:
    """What an exit status of pytest says of a mutant."""
    if status == 0:
        return SURVIVED
    # 1: a test failed. 2: a file of tests could not be imported, since what it imports refused to be.
    return {OVER: HUNG, 1: NOTICED, 2: NOTICED}.get(status, ERROR)


@dataclass
class Score:
    """What was planted and noticed so far, by room and kind, and what is to be told at the end."""

    planted: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    noticed: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    survivors: list[str] = field(default_factory=list)
    equivalent: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, attempt: Attempt, found: str, said: str) -> None:
        """One mutant more, and a line about it."""
        room, mutant = attempt.room, attempt.mutant
        assert mutant
        seconds = time.monotonic() - attempt.began if attempt.began else 0
        why = "" if found == SURVIVED else f"   {said[:150]}"
        print(f"  {room} {found:9} {seconds:5.0f} s  {described(mutant)}{why}", flush=True)
        self.planted[room][mutant.kind] += 1
        self.noticed[room][mutant.kind] += found in (NOTICED, HUNG)
        if found == SURVIVED:
            self.survivors.append(f"{room}, {mutant.kind}: {described(mutant)}")
        if found == ERROR:
            self.errors.append(f"{room}: {described(mutant)}: {said}")

    @property
    def share(self) -> float:
        """Noticed of planted, 1 where nothing was planted."""
        planted = sum(row.total() for row in self.planted.values())
        return sum(row.total() for row in self.noticed.values()) / planted if planted else 1.0

    def table(self) -> list[str]:
        """noticed / planted for each room and kind."""
        kinds = sorted({kind for row in self.planted.values() for kind in row})
        width = max(map(len, self.planted), default=0) + 2
        lines = ["".ljust(width) + "".join(f"{kind:>16}" for kind in kinds) + f"{'all':>12}"]
        for room, row in self.planted.items():
            seen = self.noticed[room]
            cells = [f"{seen[kind]}/{row[kind]}" if row[kind] else "" for kind in kinds]
            lines.append(
                room.ljust(width) + "".join(f"{cell:>16}" for cell in cells) + f"{f'{seen.total()}/{row.total()}':>12}"
            )
        return lines

    def show(self) -> None:
        """The table, the survivors by name, and what went wrong."""
        print("", *self.table(), sep="\n")
        for title, lines in (
            ("Not noticed", self.survivors),
            ("Equivalent, not planted", self.equivalent),
            ("Errors", self.errors),
        ):
            if lines:
                print(f"\n{title}:", *lines, sep="\n  ")


def described(mutant: Mutant) -> str:
    """A mutant in a line."""
    return f"{mutant.file}: {mutant.old!r} -> {mutant.new!r}"


def of_room(room: str) -> ModuleType:
    """The list of a room."""
    return importlib.import_module(f"tests.bench.mutants.{room}")


def tests_of(room: str) -> tuple[str, ...]:
    """The tests of a room. A lab's are its own: no lesson imports another."""
    if not room.startswith("lab"):
        return of_room(room).TESTS
    facts, every = (f"tests/lessons/{name}.py -k {room[3:]}" for name in ("test_facts", "test_every_lab"))
    return facts, f"tests/lessons/{room}", every


def chosen_of(room: str, only: str) -> list[Mutant]:
    """The mutants of a room that have this text in them."""
    return [mutant for mutant in of_room(room).MUTANTS if only in f"{mutant.file}\n{mutant.old}\n{mutant.new}"]


def plant(names: list[str], only: str, limit: float, trees: list[Path], score: Score) -> None:
    """The mutants of these rooms, as many at a time as there are trees.

    Without a change the tests of a room must pass, or everything would count as noticed. limit: seconds; with 0 it is
    one that fits the room, and its mutants wait for those tests.
    """
    mutants: dict[str, list[Mutant]] = {}
    for room in names:
        score.equivalent += [f"{room}: {described(m)}: {m.equivalent}" for m in chosen_of(room, only) if m.equivalent]
        mutants[room] = [mutant for mutant in chosen_of(room, only) if not mutant.equivalent]
    waiting = deque(Attempt(room, None, 1800) for room in names if mutants[room])
    if limit:
        waiting.extend(Attempt(room, mutant, limit) for room in names for mutant in mutants[room])
    running: list[Attempt] = []
    free = list(trees)
    while waiting or running:
        while waiting and free:
            attempt = waiting.popleft()
            problem = start(attempt, free[-1])
            if problem:
                score.add(attempt, ERROR, problem)
            else:
                free.pop()
                running.append(attempt)
        for attempt in list(running):
            status = status_of(attempt)
            if status is None:
                continue
            running.remove(attempt)
            put_back(attempt)
            free.append(attempt.tree)
            if attempt.mutant:
                score.add(attempt, outcome(status), first_failure(attempt.said()))
            elif status != 0:
                score.errors.append(f"{attempt.room}: its tests fail without any change\n{attempt.said()[-2000:]}")
            else:
                room, seconds = attempt.room, time.monotonic() - attempt.began
                print(f"{room}: {len(mutants[room])} mutants; its tests alone take {seconds:.0f} s", flush=True)
                if not limit:
                    waiting.extend(Attempt(room, mutant, 60 + 5 * seconds) for mutant in mutants[room])
        time.sleep(0.05)


def first_failure(said: str) -> str:
    """The first line of pytest's that names a failure, or its first line."""
    lines = said.splitlines()
    return ([line for line in lines if line.startswith(("FAILED", "ERROR", "E  "))] or lines or [""])[0]


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
    began, score = time.monotonic(), Score()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="strength-") as folder:
        try:
            trees = copies_of_the_tree(Path(folder), max(1, chosen.j))
            plant(chosen.rooms or rooms(), chosen.only, chosen.limit, trees, score)
        finally:
            for pid in RUNNING:
                os.killpg(pid, signal.SIGKILL)
            score.show()
            print(f"\n{score.share:.1%} noticed, in {(time.monotonic() - began) / 60:.0f} minutes", flush=True)
    return 1 if score.errors or score.share < ENOUGH else 0


if __name__ == "__main__":
    sys.exit(main())
