"""`python -m course.notebooks build [--check] [--no-run] [NN ...]`, started in the project's folder."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from course.base.streams import forgiving
from course.notebooks.build import build, sources


def main(arguments: list[str] | None = None) -> int:
    """Build or check; print every fault; 0 when there is none, 1 when there are some, 2 for a wrong call."""
    parser = argparse.ArgumentParser(
        prog="python -m course.notebooks", description="Build the labs from their sources."
    )
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "build", help="execute each source's two notebooks and store them"
    )
    command.add_argument("numbers", nargs="*", metavar="NN", help="lab numbers; without any, all labs")
    command.add_argument(
        "--check", action="store_true", help="write nothing: compare the stored notebooks with a fresh build"
    )
    command.add_argument(
        "--no-run", action="store_true", help="with --check: compare everything but the outputs, in a second"
    )
    command.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    command.add_argument(
        "--cell-timeout", type=float, default=120, metavar="S", help="seconds that a cell may run (default 120)"
    )
    command.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="notebooks executed at the same time (default 2)"
    )
    options = parser.parse_args(arguments)
    forgiving()
    if options.no_run and not options.check:
        parser.error("--no-run goes with --check: a notebook without outputs is not worth storing")
    if options.jobs < 1:
        parser.error(f"--jobs is {options.jobs}; give 1 or more")
    if not 0 < options.cell_timeout < float("inf"):
        parser.error(f"--cell-timeout is {options.cell_timeout:g}; give seconds, above 0")
    if not os.path.isdir(options.root / "solutions"):
        parser.error(f"no folder solutions/ in {options.root}; start this in the project's folder or give --root")
    try:
        count = len(sources(options.root, options.numbers))
        faults = build(
            options.root,
            options.numbers,
            write=not options.check,
            run=not options.no_run,
            cell_timeout=options.cell_timeout,
            jobs=options.jobs,
        )
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{2 * count} notebooks from {count} sources, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
