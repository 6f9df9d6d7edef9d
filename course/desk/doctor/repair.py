"""How a broken installation is repaired: by what is installed, since `make lab` looks at a stamp and does nothing."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE = "llm-batching-course"
FOLDER = Path(__file__).resolve().parents[3]


def version_of(name: str) -> str | None:
    """The version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def install() -> str:
    """What installs packages that are missing or of another version."""
    if (FOLDER / "Makefile").is_file():
        return f"`rm -f {shlex.quote(str(FOLDER / '.venv' / '.installed'))}`, then `make lab`"
    return f"`{shlex.quote(sys.executable)} -m pip install --force-reinstall {_source()}`"


def _source() -> str:
    """The wheel or folder that the course was installed from; no index has it."""
    try:
        known = json.loads(metadata.distribution(PACKAGE).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        known = {}
    url = known.get("url", "") if isinstance(known, dict) else ""
    path = unquote(urlsplit(url).path) if url.startswith("file:") else ""
    return (
        shlex.quote(path) if path and Path(path).exists() else "WHEEL` with the course's wheel in the place of `WHEEL"
    )


def files_of(*packages: str) -> str:
    """What puts back the files of packages that count as installed; what installs them, if one does not."""
    versions = {name: version_of(name) for name in packages}
    if not versions or None in versions.values():
        return install()
    requirements = " ".join(f"{name}=={version}" for name, version in versions.items())
    return f"`{shlex.quote(sys.executable)} -m pip install --force-reinstall --no-deps {requirements}`"
