"""One hub for all tests of this folder, with a class of thirty logged in. `make hub-test` installs what they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hub.hub import BIN, PROXY, Hub, Learner, running

SIZE = int(os.environ.get("HUB_LEARNERS", "30"))


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A running hub with nobody in it."""
    if not (BIN / "jupyterhub").exists() or not PROXY.exists():
        pytest.skip("there is no hub in .hub/: run `make hub-test`")
    with running(tmp_path_factory.mktemp("hub")) as one:
        yield one


@pytest.fixture(scope="session")
def learners(hub: Hub) -> list[Learner]:
    """Thirty people, each logged in and with a server that is ready."""
    everybody = [Learner(hub, f"learner{number:02}") for number in range(SIZE)]
    for learner in everybody:
        learner.log_in()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Learner.start_server, everybody))
    return everybody


@pytest.fixture(scope="session")
def labs(hub: Hub, learners: list[Learner]) -> list[Path]:
    """The labs as the installed course hands them out."""
    (folder,) = BIN.parent.glob("lib/python*/site-packages/course/_labs")
    return sorted(folder.glob("*.ipynb"))
