"""From a path to results: which tool wrote the file, told by what is in it."""

from os import PathLike
from pathlib import Path
from types import ModuleType

from course.results import llmservingsim
from course.results.result import Result
from course.settings import shown, whole
from course.textfiles import MAX_JSON_BYTES, json_lines, path_of, text

READERS: dict[str, ModuleType] = {"llmservingsim": llmservingsim}


def read(path: str | PathLike, format: str | None = None, run: int | None = None) -> Result:
    """The result in a file of a benchmark tool; the last one where the file holds several, or number `run` from 0.

    format: the tool, by its key in `READERS`; told by the content where None. ValueError, with the place in the file,
    for one that no reader understands or that holds what cannot have been measured; OSError where it cannot be opened.
    """
    found = read_all(path, format)
    if run is not None:
        return found[whole("run", run, low=0, high=len(found) - 1)]
    return found[-1]


def read_all(path: str | PathLike, format: str | None = None) -> list[Result]:
    """Every run in the file, in its order: SGLang appends one a call, guidellm keeps one a rate. See `read`."""
    if format is not None and format not in READERS:
        raise ValueError(f"format must be one of {', '.join(READERS)}, not {shown(format)}")
    path = path_of(path, "a result file")
    content = text(path, "result", "JSON", MAX_JSON_BYTES)
    return READERS[format or _told(path, content)].read(path, content)


def _told(path: Path, content: str) -> str:
    first = next(json_lines(path, content), None)
    if first is None:
        raise ValueError(f"{path.name} is empty")
    for name, reader in READERS.items():
        if reader.matches(first[1]):
            return name
    raise ValueError(f"{path.name} is of no tool known here. Known are {', '.join(READERS)}")
