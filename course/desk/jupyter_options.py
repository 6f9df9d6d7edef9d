"""The options with which JupyterLab is started, and what a learner gives beside them: what comes last wins.

JupyterLab itself refuses an option that comes twice ("only accepts one value, got 2").
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

# On this machine only, with JupyterLab's random token, and with everything off that would reach for the network:
# news, the check for updates, and the extension catalogue. news_url alone leaves the question whether to fetch news;
# the settings folder answers it; there, all cells of a notebook are kept laid out (windowingMode), since figures out of
# sight would not follow a window that changes its width. Jupytext is for building the labs, not for taking
# them. --allow-root matters in containers only; -y stops at the first Ctrl-C instead of asking.
OF_ANY_SERVER = (
    "--LabApp.news_url=None",
    f"--LabApp.app_settings_dir={Path(__file__).parent / 'lab_settings'}",
    f"--LabApp.extra_labextensions_path={Path(__file__).parent / 'lab_extensions'}",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--ServerApp.jpserver_extensions=jupyterlab_jupytext=False",
    "--ServerApp.jpserver_extensions=course.desk.server=True",
    "--Application.log_level=WARN",
    "--allow-root",
)
OWN = ("--ip=127.0.0.1", *OF_ANY_SERVER, "--ServerApp.jpserver_extensions=course.desk.guard=True", "-y")
"""Of the server that the course starts. On a hub address, port and access are the hub's."""
ALIASES = {
    "--ip": "--ServerApp.ip",
    "--port": "--ServerApp.port",
    "--notebook-dir": "--ServerApp.root_dir",
    "--ServerApp.notebook_dir": "--ServerApp.root_dir",
    "--ServerApp.default_url": "--LabApp.default_url",
    "--log-level": "--Application.log_level",
    "--ServerApp.log_level": "--Application.log_level",
    "--LabApp.log_level": "--Application.log_level",
}
MANY = {"--ServerApp.jpserver_extensions", "--LabApp.extra_labextensions_path"}
"""Options that hold a table or a list, one row each time they are given."""


def with_others(own: Sequence[str], others: Sequence[str]) -> list[str]:
    """`own` and `others` as one list in which each option that takes one value comes once, as it was given last."""
    options = [*_paired(own), *_paired(others)]
    last = {_name(option): position for position, option in enumerate(options)}
    pairs = [
        option
        for position, option in enumerate(options)
        if (len(option) == 1 and "=" not in option[0]) or _name(option) in MANY or last[_name(option)] == position
    ]
    return [word for option in pairs for word in option]


def value_of(name: str, options: Sequence[str]) -> str | None:
    """The value of an option, by its full name; None if it is not given."""
    for option in reversed(_paired(options)):
        if _name(option) == name and (len(option) == 2 or "=" in option[0]):
            return option[1] if len(option) == 2 else option[0].partition("=")[2]
    return None


def _paired(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The words with each option's value beside it, if that is a word of its own."""
    options: list[tuple[str, ...]] = []
    for word in words:
        before = options[-1] if options else ()
        takes = len(before) == 1 and "=" not in before[0] and _full(before[0]) in _TAKE_A_VALUE
        if takes and not word.startswith("-"):
            options[-1] = (*before, word)
        else:
            options.append((word,))
    return options


def _name(option: tuple[str, ...]) -> str:
    return _full(option[0].partition("=")[0])


def _full(name: str) -> str:
    return ALIASES.get(name, name)


_TAKE_A_VALUE = {*ALIASES.values(), *(option.partition("=")[0] for option in OWN if "=" in option)}
