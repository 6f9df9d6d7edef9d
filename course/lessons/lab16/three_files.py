"""Three result files with one flaw each, made for lab 16 in the schemas of the tools; no run of an engine made them.

`nightly.json` and `peak.json` are files of `vllm bench serve`, `gateway.jsonl` is one of SGLang's bench_serving.
"""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "results"
NAMES = {"nightly": "nightly.json", "gateway": "gateway.jsonl", "peak": "peak.json"}


def path(name: str) -> Path:
    """The file called "nightly", "gateway" or "peak". ValueError for another name."""
    if name not in NAMES:
        raise ValueError(f"there is no file {name!r}: choose from {', '.join(NAMES)}")
    return FOLDER / NAMES[name]


def contents(name: str) -> dict[str, Any]:
    """What the file says, as it is written there: times in milliseconds."""
    return json.loads(path(name).read_text(encoding="utf-8"))
