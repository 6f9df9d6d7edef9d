"""The recordings in profiles/, one JSON file each: which there are, and what each says of where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from course.base.settings import quote

FOLDER = resources.files("course.steptime") / "profiles"


class Recording:
    """What every recording says of itself, from its `provenance`: card, driver, versions, date, command."""

    provenance: Mapping[str, Any]

    @property
    def card(self) -> str:
        """The card, as its driver names it."""
        return self.provenance["card"]

    @property
    def badge(self) -> str:
        """Says where these numbers come from, in the form that figures and explorers take."""
        attention = self.provenance.get("prompts")  # of what, if it is not the course's own
        prompts = f", prompts by {attention}" if attention else ""
        return f"recorded: {self.card}, {self.provenance['date']}{prompts}"


def names(kernel: str) -> tuple[str, ...]:
    """The recordings there are of this kernel."""
    files = [path for path in FOLDER.iterdir() if path.name.endswith(".json")]
    ours = [path for path in files if json.loads(path.read_text(encoding="utf-8"))["kernel"] == kernel]
    return tuple(sorted(path.name.removesuffix(".json") for path in ours))


def read(kernel: str, name: str) -> dict[str, Any]:
    """The recording of that name, as it stands in its file. Raises ValueError with the known names otherwise."""
    known = names(kernel)
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none yet"
        raise ValueError(f"no recording of {kernel} is called {quote(name)}; {there}")
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
