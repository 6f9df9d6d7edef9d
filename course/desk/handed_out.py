"""What a learner gets of a notebook in `labs/`: everything but the outputs that give answers away.

The stored text of an explorer has the answers of its tasks, and a recap says what the lab showed: nbval compares them,
and readers who cannot run a notebook need them. In a learner's copy they would stand there before any cell has run.
"""

from __future__ import annotations

import json
from typing import Any

# As `course.explore.tasks` and `course.exercises` write them; importing those would bring plotly.
MARKS = ("\n  Answer: ", "The lab showed")


def handed_out(content: bytes) -> bytes:
    """Return the notebook without those outputs; what is no notebook, or gives nothing away, as it is, to the byte."""
    try:
        notebook = json.loads(content)
        cells = [cell for cell in notebook["cells"] if any(map(_tells, cell.get("outputs", ())))]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content
    if not cells:
        return content
    for cell in cells:
        cell["outputs"], cell["execution_count"] = [], None
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _tells(output: Any) -> bool:
    """Whether an output has the answer of a task or what a recap says."""
    data = output.get("data", {})
    texts = ["".join(text) for text in (data.get("text/plain", ""), data.get("text/html", ""))]
    return any(mark in text for text in texts for mark in MARKS)
