"""Where and when a recording was made: card, driver, versions, date and command."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from typing import Any

import numpy as np

from course.gpu.device import Device


def provenance(device: Device, command: str) -> dict[str, Any]:
    """Card, driver, versions, date and command: what a number needs to be believed."""
    found: dict[str, Any] = {"card": device.name, "kind": device.kind, **device.versions}
    driver = (
        output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") if device.kind == "cuda" else ""
    )
    if driver:
        found["driver"] = driver
    return found | {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "date": datetime.now(UTC).date().isoformat(),
        "command": command,
    }


def output_of(*command: str) -> str:
    """The first line that a command prints; nothing if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().splitlines()[0].strip() if done.returncode == 0 and done.stdout.strip() else ""
