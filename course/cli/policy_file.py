"""A policy of one's own from a Python file: `--policy-file mine.py`, or `mine.py:Name` where it defines several."""

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.cli.common import AsTyped
from course.policies import Policy


def load(text: str, options: Mapping[str, Any], given: Collection[str]) -> tuple[str, Policy, set[str]]:
    """(its name, the policy, the options that it takes) of what --policy-file says.

    Settings come from the options of the same name: those that were typed, and the defaults of the others where the
    class has none of its own. Raises ValueError with a sentence, and a line number, for all that can be wrong with it.
    """
    path, name = _parts(text)
    kind = _class_of(path, _module(path), name)
    settings, taken = _settings(path, kind, options, given)
    try:
        return kind.__name__, kind(**settings), taken
    except ValueError:
        raise
    except Exception as error:
        raise AsTyped(blame(path, error, f"{kind.__name__} could not be made")) from None


def blame(text: str | Path, error: BaseException, what: str) -> str:
    """A sentence: what went wrong in the file, in which line of it, and why."""
    path, _ = _parts(str(text))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.resolve()]
    where = f", line {frames[-1].lineno}" if frames else ""
    return f"{path}{where}: {what}: {type(error).__name__}: {error}"


def _parts(text: str) -> tuple[Path, str | None]:
    match = re.fullmatch(r"(.+\.py):(\w+)", text)
    return (Path(match[1]), match[2]) if match else (Path(text), None)


def _module(path: Path) -> Any:
    if not path.is_file():
        raise AsTyped(f"--policy-file {path}: there is no such file")
    name = f"policy_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise AsTyped(f"--policy-file {path}: the name of a Python file ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look it up there
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise AsTyped(f"{path}, line {error.lineno}: this is no Python: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise AsTyped(blame(path, error, "it could not be read")) from None
    return module


def _class_of(path: Path, module: Any, name: str | None) -> type:
    mine = {
        one.__name__: one
        for one in vars(module).values()
        if isinstance(one, type) and one.__module__ == module.__name__ and callable(getattr(one, "schedule", None))
    }
    if not mine:
        raise AsTyped(f"{path} defines no policy: write a class with schedule(state), as docs/policies.md shows")
    if name is None and len(mine) == 1:
        return next(iter(mine.values()))
    if name is None:
        names = ", ".join(mine)
        raise AsTyped(f"{path} defines {names}: say which one, as in --policy-file {path}:{next(iter(mine))}")
    if name not in mine:
        raise AsTyped(f"{path} defines no policy {quote(name)}; it has {', '.join(mine)}")
    return mine[name]


def _settings(
    path: Path, kind: type, options: Mapping[str, Any], given: Collection[str]
) -> tuple[dict[str, Any], set[str]]:
    settings: dict[str, Any] = {}
    taken: set[str] = set()
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        option = next((one for one in (name, f"{name}_ms") if one in options), None)
        if option is not None:
            taken.add(option)
            if option in given or parameter.default is parameter.empty:
                settings[name] = options[option] / 1_000 if option != name else options[option]
        elif parameter.default is parameter.empty:
            raise AsTyped(f"{path}: {kind.__name__} needs {name}, which no option gives: give it a default")
    return settings, taken
