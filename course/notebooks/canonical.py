"""One byte form for a notebook: the same source executed twice gives the same file. Pure functions."""

from __future__ import annotations

import re

import nbformat
from nbformat import NotebookNode

from course.notebooks.source import METADATA

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# What a run writes into texts that no other run would write. nbval.cfg has the same rules, so that nbval, which
# compares a fresh run with the stored text, sees no difference either.
VOLATILE = (
    (re.compile(r"/\S{1,200}/ipykernel_\d+/\d+\.py"), "IPYKERNEL_FILE"),
    (re.compile(r"at 0x[0-9a-f]+"), "at 0xADDR"),
    (re.compile(r"'uid': '[0-9a-f-]{36}'"), "'uid': 'UID'"),
)


def canonical(notebook: NotebookNode) -> NotebookNode:
    """A copy of `notebook` without anything that differs between two runs of the same source.

    Widget state goes (plotly.js alone is 5 MB), and so does the view that points into it: JupyterLab shows an error
    for a view without its state, and shows the text form when only that is stored. Execution counts become 1, 2, ...;
    consecutive pieces of one stream become one, since how a stream is cut is a matter of timing.
    """
    copy = nbformat.from_dict(notebook)
    copy.metadata = nbformat.from_dict(METADATA)
    count = 0
    for cell in copy.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = [clean(output, cell.execution_count) for output in joined_streams(cell.outputs)]
        cell.outputs = [output for output in cell.outputs if output.get("data", True)]
    return copy


def clean(output: NotebookNode, execution_count: int | None) -> NotebookNode:
    """`output` without widget views, with the cell's execution count and with volatile words replaced."""
    output = nbformat.from_dict(output)
    if output.output_type == "execute_result":
        output.execution_count = execution_count
    if "data" in output:
        output.metadata = {}
        output.data.pop(WIDGET_VIEW, None)
        for mime, value in output.data.items():
            if isinstance(value, str) and mime.startswith("text/"):
                output.data[mime] = steady(value)
    elif output.output_type == "stream":
        output.text = steady(output.text)
    return output


def joined_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """`outputs` with neighbouring pieces of the same stream joined."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(nbformat.from_dict(output))
    return joined


def steady(text: str) -> str:
    """`text` with addresses, kernel file names and figure ids replaced by fixed words."""
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return text


def to_bytes(notebook: NotebookNode) -> bytes:
    """The file's content: valid nbformat 4.5, indent 1, sorted keys, UTF-8, one newline at the end."""
    return (nbformat.writes(notebook, indent=1, sort_keys=True, ensure_ascii=False).rstrip("\n") + "\n").encode()
