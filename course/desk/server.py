"""What the course adds to a Jupyter server: what is saved, and a start page that keeps up.

A server extension. The wheel brings the file that switches it on (etc/jupyter/jupyter_server_config.d), so that any
Jupyter server of that Python has it, a hub's too; `course lab` names it itself. Who gets in is no matter of this file:
`course lab` asks for its token (course.desk.guard), a hub has rules of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
OURS = re.compile(r"^\s*(from|import) course\b", re.MULTILINE)
AGAIN = "Run > Run All Cells brings the sliders and buttons."


def strip_views(model: Mapping[str, Any], **_: Any) -> None:
    """Take the live widgets out of a notebook that is being saved; what they show as text stays, with a line below it.

    They belong to the kernel of this moment: opened again without it, JupyterLab would show "Error displaying widget:
    model not found" instead of the stored tables.

    model: the contents model that will be written. Its notebook is changed in place; other files are left alone.
    """
    content = model.get("content")
    if model.get("type") != "notebook" or not isinstance(content, dict):
        return
    content.get("metadata", {}).pop("widgets", None)
    for cell in content.get("cells", ()):
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if data.pop(WIDGET_VIEW, None) is not None:
                data["text/plain"] = _with_line(data.get("text/plain", ""))


def strip_ours(model: Mapping[str, Any], **_: Any) -> None:
    """`strip_views` for notebooks that import the course; others on the same server are not ours to change."""
    content = model.get("content")
    cells = content.get("cells", ()) if isinstance(content, dict) else ()
    if any(OURS.search("".join(cell.get("source", ""))) for cell in cells if cell.get("cell_type") == "code"):
        strip_views(model)


def _with_line(text: Any) -> str:
    stored = "".join(text) if isinstance(text, list) else str(text)
    return f"{stored}\n\n{AGAIN}" if stored else AGAIN


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "course.desk.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    contents = app.contents_manager
    labs, mine = (os.environ.get(name) for name in ("COURSE_LABS", "COURSE_COPIES"))
    contents.register_pre_save_hook(strip_views if mine else strip_ours)
    if not labs or not mine:
        return

    def refresh(os_path: str, **_: Any) -> None:
        """Show the newest progress on the start page, and open solutions, when a lab was saved."""
        from course.desk.pages import write_pages

        if not os_path.endswith(".ipynb"):
            return
        try:
            remarks = write_pages(Path(labs), Path(mine))[1]
        except Exception as error:  # a hook that fails would tell the learner that the lab was not saved
            remarks = [f"The start page cannot be written: {type(error).__name__}: {error}"]
        for remark in remarks:
            app.log.warning(remark)

    contents.register_post_save_hook(refresh)
