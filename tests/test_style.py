"""What ruff has no rule for."""

import ast
import re
from pathlib import Path

HEADING = re.compile(r"^\s*(Args|Arguments|Parameters|Returns|Yields|Raises|Attributes)\s*:?\s*$", re.MULTILINE)


def test_docstrings_are_prose_without_headings(root: Path):
    """One style everywhere; CONTRIBUTING.md says which."""
    found = []
    for path in sorted((root / "course").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            if documented and HEADING.search(ast.get_docstring(node) or ""):
                found.append(f"{path.relative_to(root)}: {getattr(node, 'name', 'the module')}")
    assert not found
