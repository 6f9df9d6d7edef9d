"""Run a notebook from top to bottom in a fresh kernel of this environment."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from course.base import answers

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class ExecutionError(RuntimeError):
    """A notebook did not run to its end; the message is a sentence for the author."""


async def execute(
    notebook: NotebookNode, folder: Path, cell_timeout: float = 120, *, with_answers: bool = False
) -> NotebookNode:
    """Execute `notebook` in place with `folder` as working directory, and return it.

    A learner's stored progress and IPython profile would change outputs, so the kernel sees empty ones. A cell that
    raises does not stop the run: all errors stay in the outputs, to be reported together. Raises ExecutionError when
    a cell takes longer than `cell_timeout` seconds or the kernel dies.

    with_answers: whether texts are to hold the answers of tasks (`course.base.answers`).
    """
    with tempfile.TemporaryDirectory(prefix="course-build-") as scratch:
        env = dict(os.environ, COURSE_PROGRESS_DIR=scratch, IPYTHONDIR=os.path.join(scratch, "ipython"))
        env[answers.VARIABLE] = str(int(with_answers))
        # Two kernels that start together can pick the same TCP port; sockets in the scratch folder cannot collide.
        manager = AsyncKernelManager(
            kernel_name="python3",
            transport="ipc" if os.name == "posix" else "tcp",
            connection_file=os.path.join(scratch, "kernel.json"),
        )
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=cell_timeout,
            resources={"metadata": {"path": str(folder)}},
            allow_errors=True,
            record_timing=False,
        )
        try:
            await client.async_execute(env=env, cleanup_kc=True)
        except CellTimeoutError as error:
            raise ExecutionError(f"a cell ran longer than {cell_timeout:g} s") from error
        except DeadKernelError as error:
            raise ExecutionError(f"the kernel died: {error}") from error
        except (NoSuchKernel, RuntimeError) as error:
            raise ExecutionError(f"no kernel could be started: {error}") from error
    return notebook


def errors(notebook: NotebookNode) -> list[str]:
    """One line for each cell that raised, with the exception and the line of the cell it came from."""
    lines = []
    for index, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            if output.output_type == "error":
                arrows = [line for line in ANSI.sub("", "\n".join(output.traceback)).splitlines() if "-->" in line]
                where = f" at {arrows[0].strip(' ->')!r}" if arrows else ""
                lines.append(f"cell {index}: raised {output.ename}: {output.evalue}{where}")
    return lines
