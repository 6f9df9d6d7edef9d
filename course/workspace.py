"""The learner's copies of the labs: `python -m course.workspace` makes them and opens JupyterLab on them.

`labs/` stays as handed out, so that pulling and testing never meet a learner's edits. The copies live in `my-labs/`
beside it. A copy is made once and never overwritten; a small file remembers which version it was made from, so that
the learner can be told when the handed-out lab has changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RECORD = ".handed-out.json"

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


class WorkspaceError(OSError):
    """The folder for the copies cannot be used; the message is a sentence for the learner."""


@dataclass(frozen=True)
class Copied:
    """What `copy_labs` found, as file names."""

    new: tuple[str, ...]
    kept: tuple[str, ...]
    changed: tuple[str, ...]
    """Those of `kept` whose handed-out version has changed since the copy was made."""

    def report(self, mine: Path) -> list[str]:
        """The lines to show to the learner."""
        lines = [f"New in {mine.name}/: {', '.join(self.new)}"] if self.new else []
        lines += [
            f"{name} has changed in labs/ since your copy was made. Yours is untouched; rename it and start again "
            "to get the new one."
            for name in self.changed
        ]
        return lines


def copy_labs(labs: Path, mine: Path) -> Copied:
    """Copy the notebooks of `labs` that `mine` lacks, and say which handed-out ones have changed since their copy.

    Never overwrites a file of the learner's. Raises WorkspaceError when `mine` cannot be written.
    """
    new, kept, changed = [], [], []
    try:
        mine.mkdir(parents=True, exist_ok=True)
        record = read_record(mine / RECORD)
        before = dict(record)
        for lab in sorted(labs.glob("*.ipynb")):
            content = lab.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            copy = mine / lab.name
            try:
                write_new(copy, content)
            except FileExistsError:
                kept.append(lab.name)
                if record.get(lab.name, digest) != digest:
                    changed.append(lab.name)
                elif lab.name not in record and copy.is_file() and copy.read_bytes() == content:
                    record[lab.name] = digest
            else:
                new.append(lab.name)
                record[lab.name] = digest
        if record != before:
            write_record(mine / RECORD, record)
    except OSError as error:
        raise WorkspaceError(
            f"Cannot keep your copies of the labs in {mine}: {error.strerror or error}. "
            "Name a folder that you can write, for example: make lab MY_LABS=~/my-labs"
        ) from error
    return Copied(tuple(new), tuple(kept), tuple(changed))


def write_new(path: Path, content: bytes) -> None:
    """Write a new file, whole or not at all. Raises FileExistsError where anything of that name exists."""
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:  # a full disk: half a lab would be taken for the learner's own from then on
            path.unlink()
            raise


def read_record(path: Path) -> dict[str, str]:
    """Digest of the handed-out version each copy was made from; empty when there is no readable record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): str(digest) for name, digest in record.items()} if isinstance(record, dict) else {}


def write_record(path: Path, record: dict[str, str]) -> None:
    """Replace the record in one step, so that a crash leaves the old or the new one."""
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def jupyter_arguments(mine: Path, extra: Sequence[str] = ()) -> list[str]:
    """The arguments for JupyterLab opened on `mine`; `extra` comes last and wins."""
    return [*JUPYTER_OPTIONS, f"--ServerApp.root_dir={mine}", *extra]


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy what is missing, say what changed, open JupyterLab (with any options it does not know itself)."""
    parser = argparse.ArgumentParser(prog="python -m course.workspace", description="Open the labs in JupyterLab.")
    parser.add_argument("--labs", type=Path, default=Path("labs"), help="the handed-out labs (default: labs)")
    parser.add_argument("--to", type=Path, default=Path("my-labs"), help="your copies (default: my-labs)")
    parser.add_argument("--copy-only", action="store_true", help="make the copies and stop")
    options, extra = parser.parse_known_args(arguments)
    try:
        mine = options.to.expanduser().absolute()
    except RuntimeError as error:
        print(f"{options.to} names no folder: {error}", file=sys.stderr)
        return 1
    if not options.labs.is_dir():
        print(f"No folder {options.labs} here: start this in the course's folder, or give --labs.", file=sys.stderr)
        return 1
    try:
        copied = copy_labs(options.labs, mine)
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 1
    for line in copied.report(mine):
        print(line)
    if options.copy_only:
        return 0
    print("Starting JupyterLab. It opens in your browser, or at the address below; Ctrl-C here stops it.", flush=True)
    # Imported here: copying must work, and say what is wrong, without waiting for JupyterLab to load.
    from jupyterlab.labapp import main as jupyterlab

    os.chdir(mine)
    # Kernels then do not send each move of a slider back to the browser that sent it: one message less to wait for.
    os.environ.setdefault("JUPYTER_WIDGETS_ECHO", "0")
    return jupyterlab(jupyter_arguments(mine, extra)) or 0


if __name__ == "__main__":
    sys.exit(main())
