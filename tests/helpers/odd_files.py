"""What may stand where a file is expected: makers that take the path."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pipe(path: Path) -> None:
    """A pipe keeps its reader waiting."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no pipes with a name")
    os.mkfifo(path)


def link_to(device: str) -> Callable[[Path], None]:
    """A maker of links to a device: /dev/zero never ends, /dev/null never fills."""

    def make(path: Path) -> None:
        if not os.path.exists(device):
            pytest.skip(f"this system has no {device}")
        path.symlink_to(device)

    return make


endless = link_to("/dev/zero")


def dangling(path: Path) -> None:
    """A link to nothing."""
    path.symlink_to(path.with_name("nowhere"))
