"""What the tests of result files share: the files, a changed one, and one of a test's own."""

import json

from course import results
from tests.helpers import places

DATA = places.DATA / "results"


def written(folder, *documents, **options):
    """The result of documents, or of text, written as lines."""
    path = folder / "result.json"
    path.write_text("\n".join(d if isinstance(d, str) else json.dumps(d) for d in documents))
    return results.read(path, **options)


def changed(name, line=-1, **changes):
    """A committed file with other values, those of Ellipsis taken out."""
    text = (DATA / name).read_text()
    doc = json.loads(text.splitlines()[line] if name.endswith("jsonl") else text) | changes
    return {key: value for key, value in doc.items() if value is not ...}


def said(found, part):
    """Whether a note says so."""
    return any(part in note for note in found.notes)
