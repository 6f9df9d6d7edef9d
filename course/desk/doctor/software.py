"""What is installed: Python, the packages within their bounds, the two halves of the widgets, the kernel."""

from __future__ import annotations

import os
import platform
import re
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from course.desk.doctor import process, repair
from course.desk.doctor.answer import Answer, ok, problem
from course.desk.doctor.repair import PACKAGE, version_of

MODULES = (
    "numpy",
    "scipy",
    "plotly",
    "platformdirs",
    "rich",
    "IPython",
    "ipywidgets",
    "anywidget",
    "jupyterlab.labapp",
)
WIDGETS = {"@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets", "anywidget": "anywidget"}
"""Lab extensions that show sliders and figures, and the package that brings each."""


def bounds() -> tuple[str, list[str]]:
    """The Python that the course asks for, and its requirements: those of pyproject.toml, or of the installed wheel."""
    project = Path(__file__).resolve().parents[3] / "pyproject.toml"
    if project.is_file():
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        return table["requires-python"], list(table["dependencies"])
    wheel = metadata.metadata(PACKAGE)
    return wheel["Requires-Python"], [one for one in metadata.requires(PACKAGE) or () if "extra ==" not in one]


def python() -> Answer:
    """Check that this Python is within its bounds."""
    from packaging.specifiers import SpecifierSet

    versions, version = bounds()[0], platform.python_version()
    if SpecifierSet(versions).contains(version, prereleases=True):
        return ok(f"{version}, within {versions}")
    return problem(
        f"{version}, and the course needs {versions}", "make clean, then `make lab PYTHON=/path/to/python3.12`"
    )


def packages() -> Answer:
    """Check that every package the course asks for is within its bounds."""
    from packaging.requirements import Requirement

    wrong, requirements = [], [Requirement(text) for text in bounds()[1]]
    for one in requirements:
        version = version_of(one.name)
        if version is None:
            wrong.append(f"{one.name} is not installed")
        elif not one.specifier.contains(version, prereleases=True):
            wrong.append(f"{one.name} is {version}, and the course needs {one.specifier}")
    if version_of(PACKAGE) is None:
        wrong.append("the course itself is not installed")
    if wrong:
        return problem("; ".join(wrong), repair.install())
    return ok(f"all {len(requirements)} within their bounds")


@cache
def try_imports() -> dict[str, Any] | str:
    """The answer of a process that imported everything, or how that failed."""
    try:
        return process.ask("imports", *MODULES)
    except process.ProcessError as error:
        return f"importing the packages {error}"


def imports() -> Answer:
    """Check that the packages can be imported."""
    answer = try_imports()
    if isinstance(answer, str):
        return problem(answer, repair.install())
    failed = answer["failed"]
    if failed:
        broken = dict.fromkeys(name.partition(".")[0].lower() for name in failed)
        why = "; ".join(f"{name} cannot be imported: {why}" for name, why in failed.items())
        return problem(why, repair.files_of(*broken))
    return ok("every package can be imported")


def widgets() -> Answer:
    """Check that the halves of the widgets fit: what runs in the kernel, and what JupyterLab shows."""
    from packaging.requirements import Requirement

    kernel_side, lab_side = version_of("ipywidgets"), version_of("jupyterlab_widgets")
    if kernel_side is None or lab_side is None:
        missing = "ipywidgets" if kernel_side is None else "jupyterlab_widgets"
        return problem(f"{missing} is not installed: no slider would be shown", repair.install())
    for text in metadata.requires("ipywidgets") or ():
        one = Requirement(text)
        if re.sub(r"[-_.]+", "_", one.name) == "jupyterlab_widgets" and not one.specifier.contains(lab_side):
            return problem(
                f"ipywidgets {kernel_side} needs jupyterlab_widgets{one.specifier}, not {lab_side}", repair.install()
            )
    answer = try_imports()
    if isinstance(answer, str):
        return problem(answer, repair.install())
    if answer["why_no_extensions"]:
        return problem(
            f"JupyterLab's extensions cannot be listed: {answer['why_no_extensions']}",
            repair.files_of("jupyterlab"),
        )
    extensions = answer["extensions"]
    for name, package in WIDGETS.items():
        if name not in extensions["found"]:
            missing = f"the lab extension {name} of {package} is not where JupyterLab looks"
            return problem(missing, repair.files_of(package))
        version, folder = extensions["found"][name]
        own = _own(name)
        if own is not None and own != version:
            return problem(
                f"{folder} has {name} {version} and hides {own}, which is installed here", "rename that folder"
            )
        if any(off == name or off.startswith(f"{name}:") for off in extensions["off"]):
            return problem(f"the lab extension {name} is switched off", f"`jupyter labextension enable {name}`")
    return ok(f"ipywidgets {kernel_side} with jupyterlab_widgets {lab_side}, anywidget {version_of('anywidget')}")


def _own(name: str) -> str | None:
    """The version of a lab extension that came with the packages of this Python."""
    import json

    path = Path(sys.prefix, "share", "jupyter", "labextensions", *name.split("/"), "package.json")
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def kernel(folder: Path) -> Answer:
    """Check that the kernel of the labs starts in the folder of the copies, if there is one, and is this Python."""
    try:
        answer = process.ask("kernel", *([str(folder)] if os.path.isdir(folder) else []))
    except process.ProcessError as error:
        return problem(
            f"starting a kernel {error}",
            f"check that programs may listen on 127.0.0.1 here; if they may, run {repair.files_of('ipykernel')}",
        )
    if answer["prefix"] and not _same_folder(answer["prefix"], sys.prefix):
        where = f"rename {answer['spec']}" if answer["spec"] else repair.files_of("ipykernel")
        return problem(f"the kernel python3 belongs to another Python, that of {answer['prefix']}", where)
    if answer["error"] or not answer["prefix"]:
        return problem(f"the course cannot be imported in a kernel: {answer['error'] or 'no answer'}", repair.install())
    return ok("starts, and can import the course")


def _same_folder(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.normcase(one) == os.path.normcase(other)
