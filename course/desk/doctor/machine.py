"""What the machine gives: folders, space, a compiler, a GPU, and a decode step that computes what it should."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from course.desk import home
from course.desk.doctor import process
from course.desk.doctor.answer import Answer, note, ok, problem
from course.desk.home import unwritable

LITTLE = 200e6  # bytes: the labs with their outputs, compiled kernels, and room for what browsers and Python keep
ELSEWHERE = "name a folder that you can write to: `make lab MY_LABS=~/my-labs`"
REQUIRED_MODULES = {"course", "numpy", "scipy", "plotly", "ipywidgets", "anywidget", "IPython"}


def labs(folder: Path) -> Answer:
    """Check that the handed-out labs are there and can be read."""
    from course.desk.copies import read_labs

    notebooks, remarks = read_labs(folder)
    if remarks:
        return problem(" ".join(remarks), "start this in the course's folder, or give --labs")
    return ok(f"{len(notebooks)} in {folder}")


def copies(mine: Path) -> Answer:
    """Check that the learner's folder can be written, and that no file in it hides a module."""
    why = unwritable(mine)
    if why:
        return problem(f"{mine} cannot be written: {why}", ELSEWHERE)
    hiding = sorted(
        path.name for path in mine.glob("*.py") if path.stem in {*REQUIRED_MODULES, *sys.stdlib_module_names}
    )
    if hiding:
        return problem(f"{', '.join(hiding)} in {mine} hides a module of that name from the labs", "rename it")
    _, moved = home.elsewhere(mine)
    return note(moved) if moved else ok(f"{mine} can be written")


def progress() -> Answer:
    """Check that the file of the learner's progress can be read and written."""
    from course.exercises.progress import FOLDER, Progress

    stored = Progress()
    if not stored.kept():
        return problem(" ".join(stored.notices), f"name another folder: `{FOLDER}=/some/folder make lab`")
    why = unwritable(stored.path.parent)
    if why:
        return problem(
            f"{stored.path.parent} cannot be written: {why}", f"name another folder: `{FOLDER}=/some/folder make lab`"
        )
    trouble = stored.unusable()
    if trouble:
        return note(f"{stored.path} {trouble}", "nothing: it will be kept under another name, and a new file started")
    return ok(f"{stored.path.parent} can be written")


def space(folder: Path) -> Answer:
    """Check that there is space where the copies are, or will be."""
    while not os.path.isdir(folder) and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < LITTLE:
        return problem(f"{free / 1e6:,.0f} MB are free, and the labs need {LITTLE / 1e6:,.0f}", "delete something")
    return ok(f"{free / 1e9:,.0f} GB free")


@cache
def best() -> dict[str, Any] | str:
    """The answer of the device that labs will use, or how asking for it failed."""
    try:
        return process.ask("launch", "auto")
    except process.ProcessError as error:
        return str(error)


@cache
def on_the_cpu() -> dict[str, Any] | str:
    """The answer of the kernel compiled for the CPU; asks a process of its own if labs use another device."""
    launch = best()
    if isinstance(launch, dict) and launch["device"] and launch["device"]["kind"] == "cpu-shim":
        return launch
    try:
        return process.ask("launch", "cpu")
    except process.ProcessError as error:
        return str(error)


def compiler() -> Answer:
    """Check that kernels can be compiled for the CPU."""
    launch = on_the_cpu()
    if isinstance(launch, str):
        return problem(f"compiling a kernel for the CPU and running it {launch}", "set CXX to another compiler")
    if launch["why"]:
        return note(f"{launch['why']}. Kernels run as NumPy instead")
    if not _agrees(launch):
        return problem(
            f"the kernel compiled for the CPU gives wrong results: {_off(launch)}", "set CXX to another compiler"
        )
    return ok(f"{launch['device']['versions'].get('compiler', 'a C++ compiler')}")


def gpu() -> Answer:
    """A GPU that CuPy can use, or why there is none; that is a problem only if CuPy is installed."""
    launch = best()
    if isinstance(launch, str):
        return problem(f"looking for a GPU {launch}", "see what `nvidia-smi` or `rocminfo` says; restart the machine")
    device = launch["device"]
    if device and launch["is_gpu"]:
        return ok(", ".join([device["name"], *(f"{name} {version}" for name, version in device["versions"].items())]))
    why = launch["notes"][0] if launch["notes"] else launch["why"]
    if launch["has_cupy"] and "no driver" not in why:
        return problem(f"{why}. Labs use the CPU", "without this GPU: `pip uninstall` the CuPy package")
    return note(f"{why}. Labs use the CPU")


def decode_step() -> Answer:
    """Check that the decode step, launched where labs launch it, computes what NumPy computes in float64."""
    launch = best()
    if isinstance(launch, str):
        return problem(f"launching the decode step {launch}")
    if launch["why"]:
        return problem(f"the decode step cannot be launched: {launch['why']}")
    where = f"on {launch['device']['name']} ({launch['device']['kind']})"
    if not _agrees(launch):
        return problem(
            f"{where} it gives wrong results: {_off(launch)}", "do not trust measured figures on this machine"
        )
    return ok(f"{where}, equal to NumPy in float64 within {launch['off']:.0e}")


def _agrees(launch: dict[str, Any]) -> bool:
    return launch["off"] is not None and launch["off"] <= launch["allowed"]


def _off(launch: dict[str, Any]) -> str:
    off = "no number" if launch["off"] is None else f"off by {launch['off']:.1e}"
    return f"{off}, and rounding in float32 explains at most {launch['allowed']:.1e}"
