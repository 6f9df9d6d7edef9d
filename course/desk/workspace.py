"""`make lab` and `course lab`: copy the labs that a learner lacks and open JupyterLab on the copies.

Where a JupyterHub starts it, as `c.Spawner.cmd = ["course", "lab", "--"]`, it does the same as that hub's server.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from course.base import interrupt
from course.base.quick import without_grammar
from course.base.streams import forgiving
from course.desk import home
from course.desk.copies import copy_labs
from course.desk.jupyter_options import OF_ANY_SERVER, OWN, value_of, with_others
from course.desk.places import WorkspaceError, folders

ROOT, FIRST_PAGE = "--ServerApp.root_dir", "--LabApp.default_url"
HUB = "JUPYTERHUB_SERVICE_URL"
"""What a hub tells the servers that it starts: where to listen."""


def jupyter_arguments(mine: Path, extra: Sequence[str] = (), start: Path | None = None) -> list[str]:
    """The arguments for JupyterLab opened on `mine`; `extra` comes last and wins.

    start: a page to open first, if it lies in the folder that JupyterLab shows.
    """
    options = with_others([*(OF_ANY_SERVER if HUB in os.environ else OWN), f"{ROOT}={mine}"], extra)
    root = Path(value_of(ROOT, options) or mine).absolute()
    if start is not None and value_of(FIRST_PAGE, options) is None and start.is_relative_to(root):
        options.insert(0, f"{FIRST_PAGE}=/lab/tree/{quote(start.relative_to(root).as_posix())}")
    return options


def main(arguments: Sequence[str] | None = None, name: str = "python -m course.desk.workspace") -> int:
    """Copy what is missing, say what changed, open JupyterLab (with any options it does not know itself)."""
    parser = argparse.ArgumentParser(prog=name, description="Open the labs in JupyterLab.", allow_abbrev=False)
    parser.add_argument("--labs", help="the handed-out labs (default: labs, or those that came with the course)")
    parser.add_argument("--to", help="your copies (default: MY_LABS, or my-labs)")
    parser.add_argument("--copy-only", action="store_true", help="make the copies and stop")
    options, extra = parser.parse_known_args(arguments)
    forgiving()
    try:
        labs, mine = folders(options.labs, options.to)
        copied = copy_labs(labs, mine)
        start, remarks = _start_page(labs, mine, not options.copy_only)
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 1
    for line in [*copied.report(mine), *remarks]:
        print(line)
    if options.copy_only:
        return 0
    print("Starting JupyterLab. It opens in your browser, or at the address below; Ctrl-C here stops it.", flush=True)
    # Imported here: copying must work, and say what is wrong, without waiting for JupyterLab to load.
    try:
        with without_grammar():
            if HUB in os.environ:
                from jupyterhub.singleuser.extension import main as jupyterlab
            else:
                from jupyterlab.labapp import main as jupyterlab

        os.chdir(mine)
    except (ImportError, OSError) as error:
        print(f"JupyterLab cannot be started ({error}): `course doctor` says what is missing.", file=sys.stderr)
        return 1
    _set_up(labs, mine)
    interrupt.outlive_connections()
    arguments = jupyter_arguments(mine, extra, start)
    if HUB in os.environ:  # a hub's server asks for its first page here, and a hub that names one is not overruled
        os.environ.setdefault("JUPYTERHUB_DEFAULT_URL", value_of(FIRST_PAGE, arguments) or "/lab")
    return jupyterlab(arguments) or 0


def _start_page(labs: Path, mine: Path, opens: bool) -> tuple[Path | None, list[str]]:
    """The start page, written anew, and what there is to say. A home that cannot be written is replaced before."""
    from course.desk.pages import write_pages

    moved, sentence = home.elsewhere(mine) if opens else ({}, "")
    os.environ.update(moved)
    start, remarks = write_pages(labs, mine)
    return start, [sentence, *remarks] if sentence else remarks


def _set_up(labs: Path, mine: Path) -> None:
    """What the server and its kernels and terminals find in their environment."""
    # Kernels then do not send each move of a slider back to the browser that sent it: one message less to wait for.
    os.environ.setdefault("JUPYTER_WIDGETS_ECHO", "0")
    os.environ |= {"COURSE_LABS": str(labs), "COURSE_COPIES": str(mine), "MY_LABS": str(mine)}
    # `course reset 03` in a terminal of JupyterLab, whichever way this was started.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, *filter(None, [os.environ.get("PATH")])])


if __name__ == "__main__":
    interrupt.listen()
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before JupyterLab has taken over, which ends without a traceback by itself
        print(interrupt.STOPPED, file=sys.stderr)
        sys.exit(interrupt.STATUS)
