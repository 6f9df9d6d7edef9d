"""Wrong answers by the hundred: one change to the source of a right function, told from it by inputs of its own.

A change that no input tells from the right function is none: `different` draws the inputs, and knows nothing of probes.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

from course.exercises.compare import same

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div,),
    ast.Pow: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.BitOr: (ast.BitAnd,),
}
CALLED = {
    "min": ("max", "sum"), "max": ("min", "sum"), "sum": ("max", "len"), "sorted": ("list",), "ceil": ("floor",),
    "mean": ("max", "min"), "std": ("var", "mean"), "len": ("max",),
}  # fmt: skip


def mutants(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield (what was changed, the changed function) for every single change of a right function."""
    tree = ast.parse(dedent(inspect.getsource(function)))
    inputs = [argument.arg for argument in tree.body[0].args.args]
    for change, changed in _changed(tree, inputs):
        scope = dict(inspect.getmodule(function).__dict__)
        code = compile(ast.fix_missing_locations(changed), f"<{change}>", "exec")
        exec(code, scope)
        yield change, scope[function.__name__]
    for name in inputs:
        yield f"empties {name}", _empties(function, name)
    yield "gives nothing but the first result again", _remembers(function)


def different(
    wrong: Callable[..., Any], right: Callable[..., Any], inputs: list[tuple[Any, ...]], rtol: float, shown: float
) -> bool:
    """Whether a function differs from the right one on some of the inputs, or changes them."""
    for arguments in inputs:
        given = copy.deepcopy(arguments)
        try:
            result = wrong(*given)
        except Exception:
            return True
        if not same(result, right(*copy.deepcopy(arguments)), rtol, shown):
            return True
        if any(was != now for was, now in zip(arguments, given, strict=True) if isinstance(was, list | dict)):
            return True
    return False


def _changed(tree: ast.Module, inputs: list[str]) -> Iterator[tuple[str, ast.Module]]:
    count = sum(1 for _ in ast.walk(tree))
    for place in range(count):
        for kind in range(len(list(_edits(list(ast.walk(tree))[place], inputs)))):
            again = copy.deepcopy(tree)
            node = list(ast.walk(again))[place]
            change, edit = list(_edits(node, inputs))[kind]
            edit()
            line = getattr(node, "lineno", 0)
            yield f"line {line}: {change}", again


def _edits(node: ast.AST, inputs: list[str]) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield (what it does, the edit in place) for each way to change one node."""
    if isinstance(node, ast.BinOp):
        for other in SWAPPED.get(type(node.op), ()):
            yield f"{type(node.op).__name__} to {other.__name__}", lambda other=other: setattr(node, "op", other())
        if isinstance(node.op, ast.Sub | ast.Div | ast.Pow):
            yield "sides exchanged", lambda: _exchange(node)
    elif isinstance(node, ast.Compare):
        for other in SWAPPED.get(type(node.ops[0]), ()):
            yield (
                f"{type(node.ops[0]).__name__} to {other.__name__}",
                lambda other=other: node.ops.__setitem__(0, other()),
            )
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        for by in (1, -1):
            yield f"{node.value} to {node.value + by}", lambda by=by: setattr(node, "value", node.value + by)
        if node.value:
            yield f"{node.value} twice", lambda: setattr(node, "value", 2 * node.value)
    elif isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for other in CALLED.get(name, ()):
            field = "id" if isinstance(node.func, ast.Name) else "attr"
            yield f"{name} to {other}", lambda other=other, field=field: setattr(node.func, field, other)
        if len(node.args) >= 2:
            yield f"{name} with arguments exchanged", lambda: node.args.__setitem__(slice(0, 2), node.args[1::-1])
            for place in range(len(node.args)):
                yield f"{name} without argument {place + 1}", lambda place=place: node.args.pop(place)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in inputs:
        for other in inputs:
            if other != node.id:
                yield f"{node.id} to {other}", lambda other=other: setattr(node, "id", other)
        yield f"{node.id} + 1", lambda: _one_more(node, 1)
        yield f"{node.id} - 1", lambda: _one_more(node, -1)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        for place in range(len(node.elts) - 1):
            yield (
                f"element {place} exchanged",
                lambda place=place: node.elts.__setitem__(slice(place, place + 2), node.elts[place : place + 2][::-1]),
            )


def _exchange(node: ast.BinOp) -> None:
    node.left, node.right = node.right, node.left


def _one_more(node: ast.Name, by: int) -> None:
    """Make a name into a sum, in place."""
    inner = ast.Name(node.id, ast.Load())
    node.__class__ = ast.BinOp  # type: ignore[assignment]
    node.left, node.op, node.right = inner, ast.Add(), ast.Constant(by)  # type: ignore[attr-defined]
    node._fields = ast.BinOp._fields  # type: ignore[misc]


def _empties(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    position = list(inspect.signature(function).parameters).index(name)

    def emptied(*arguments: Any) -> Any:
        result = function(*arguments)
        if hasattr(arguments[position], "clear"):
            arguments[position].clear()
        return result

    return emptied


def _remembers(function: Callable[..., Any]) -> Callable[..., Any]:
    first: list[Any] = []

    def remembered(*arguments: Any) -> Any:
        if not first:
            first.append(function(*arguments))
        return first[0]

    return remembered
