"""`python -m course.desk.workspace` copies the labs that a learner lacks and opens JupyterLab on the copies."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from course.base.quick import without_grammar
from course.base.streams import forgiving
from course.desk.copies import WorkspaceError, copy_labs, folders

# On this machine only, with JupyterLab's random token, and with everything off that would reach for the network:
# news, the check for updates, and the extension catalogue. news_url alone leaves the question whether to fetch news;
# the settings folder answers it. Jupytext is for building the labs, not for taking
# them. --allow-root matters in containers only; -y stops at the first Ctrl-C instead of asking.
JUPYTER_OPTIONS = (
    "--ip=127.0.0.1",
    "--LabApp.news_url=None",
    f"--LabApp.app_settings_dir={Path(__file__).parent / 'lab_settings'}",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--ServerApp.jpserver_extensions=jupyterlab_jupytext=False",
    "--Application.log_level=WARN",
    "--allow-root",
    "-y",
)


def jupyter_arguments(mine: Path, extra: Sequence[str] = ()) -> list[str]:
    """The arguments for JupyterLab opened on `mine`; `extra` comes last and wins."""
    return [*JUPYTER_OPTIONS, f"--ServerApp.root_dir={mine}", *extra]


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy what is missing, say what changed, open JupyterLab (with any options it does not know itself)."""
    parser = argparse.ArgumentParser(prog="python -m course.desk.workspace", description="Open the labs in JupyterLab.")
    parser.add_argument("--labs", default="labs", help="the handed-out labs (default: labs)")
    parser.add_argument("--to", default="my-labs", help="your copies (default: my-labs)")
    parser.add_argument("--copy-only", action="store_true", help="make the copies and stop")
    options, extra = parser.parse_known_args(arguments)
    forgiving()
    try:
        labs, mine = folders(options.labs, options.to)
        copied = copy_labs(labs, mine)
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 1
    for line in copied.report(mine):
        print(line)
    if options.copy_only:
        return 0
    print("Starting JupyterLab. It opens in your browser, or at the address below; Ctrl-C here stops it.", flush=True)
    # Imported here: copying must work, and say what is wrong, without waiting for JupyterLab to load.
    try:
        with without_grammar():
            from jupyterlab.labapp import main as jupyterlab

        os.chdir(mine)
    except (ImportError, OSError) as error:
        print(f"JupyterLab cannot be started ({error}): `course doctor` says what is missing.", file=sys.stderr)
        return 1
    # Kernels then do not send each move of a slider back to the browser that sent it: one message less to wait for.
    os.environ.setdefault("JUPYTER_WIDGETS_ECHO", "0")
    return jupyterlab(jupyter_arguments(mine, extra)) or 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before JupyterLab has taken over, which ends without a traceback by itself
        sys.exit(130)
