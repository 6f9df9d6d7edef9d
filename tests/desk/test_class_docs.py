"""What docs/class tells a hub: a short values.yaml whose limits hold what was measured, and Binder's scripts."""

from __future__ import annotations

import re
import subprocess

import pytest
import yaml

from tests.helpers.places import ROOT

UNITS = {"M": 1, "G": 1_000}


def megabytes(text: str) -> float:
    return float(text[:-1]) * UNITS[text[-1]]


def test_values_are_short_and_hold_what_was_measured() -> None:
    text = (ROOT / "docs/class/values.yaml").read_text()
    values, page = yaml.safe_load(text), (ROOT / "docs/class/README.md").read_text()
    assert len(text.splitlines()) <= 30
    most = max(float(number) for number in re.findall(r"\d+ to (\d+) (?:MB|over)", page))
    assert most > 300
    memory = values["singleuser"]["memory"]
    assert most < megabytes(memory["guarantee"]) < 660 < megabytes(memory["limit"])  # lab 08 reaches 660 for a moment
    assert values["singleuser"]["cmd"] == ["course", "lab", "--"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert f"WORKDIR {values['singleuser']['storage']['homeMountPath']}" in dockerfile and " AS hub\n" in dockerfile


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_binders_scripts_can_run(name: str) -> None:
    path = ROOT / ".binder" / name
    assert path.stat().st_mode & 0o111 and subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    requirement = (ROOT / ".binder/requirements.txt").read_text().split()[-1]
    assert (ROOT / ".binder" / requirement).resolve() == ROOT / "requirements.lock"
