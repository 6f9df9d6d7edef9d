"""Which names come from a cell that raised: `lab.check` grades no value that an earlier run left behind.

IPython tells before and after each cell. A cell that raised marks the names it would have set; a later cell that sets
them without an error clears the mark. What the running cell set above its own `lab.check` is new, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from course.exercises.learner import describe

# For a cell that is no Python: what it sets is read line by line.
SETS = re.compile(r"^\s*(?:async\s+)?(?:def\s+(\w+)|class\s+(\w+)|(\w+)\s*(?::[^=]+)?=(?!=))", re.MULTILINE)


class Cells:
    """What a kernel has run, as far as failures go.

    failed: for each name that a failed cell would have set, the error in words.
    """

    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.source = ""

    def before(self, info: Any) -> None:
        """A cell begins (`pre_run_cell`)."""
        self.source = getattr(info, "raw_cell", "") or ""

    def after(self, result: Any) -> None:
        """A cell has ended (`post_run_cell`)."""
        error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
        names = names_set(getattr(getattr(result, "info", None), "raw_cell", "") or self.source)
        for name in names:
            if error is None:
                self.failed.pop(name, None)
            else:
                self.failed[name] = describe(error)

    def failure_of(self, id: str) -> tuple[str, str] | None:
        """Return name and error if the running cell checks an answer that a failed cell should have set."""
        new = names_set_before(self.source, id)
        for name in names_checked(self.source, id):
            if name in self.failed and name not in new:
                return name, self.failed[name]
        return None


def names_set(source: str) -> set[str]:
    """The names that a cell sets at its top level or inside its blocks, functions and classes among them."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {name for found in SETS.findall(source) for name in found if name}
    return _set_by(tree.body)


def names_set_before(source: str, id: str) -> set[str]:
    """The names that a cell sets above the statement with its `.check(id, answer)`."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return set()
    checks = [position for position, statement in enumerate(body) if _check_of(statement, id)]
    return _set_by(body[: checks[0]]) if checks else set()


def _set_by(statements: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    waiting = list(statements)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)  # what is set inside is not the cell's
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        waiting += ast.iter_child_nodes(node)
    return names


def names_checked(source: str, id: str) -> list[str]:
    """The names in the answer that a cell gives to `.check(id, answer)`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    given = _check_of(tree, id)
    return [part.id for whole in given for part in ast.walk(whole) if isinstance(part, ast.Name)]


def _check_of(tree: ast.AST, id: str) -> list[ast.expr]:
    """What is given to `.check(id, answer)` in a tree, nothing if it has none."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "check"):
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(isinstance(part, ast.Constant) and part.value == id for part in given):
            return given
    return []


_watched: dict[int, Cells] = {}


def watched(shell: Any) -> Cells:
    """Return what is known of a shell's cells; from the first call on its cells are watched."""
    if shell is None or not hasattr(shell, "events"):
        return Cells()
    if id(shell) not in _watched:
        cells = _watched[id(shell)] = Cells()
        shell.events.register("pre_run_cell", cells.before)
        shell.events.register("post_run_cell", cells.after)
    return _watched[id(shell)]
