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


def test_no_file_reads_a_private_name_of_another_files_objects(root: Path):
    """`_name` belongs to the file that defines it; what others read has a name without the underscore."""
    borrowed = []
    for path in sorted((root / "course").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        fields = [node for node in nodes if isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr)]
        mine = {node for node in fields if ast.unparse(node.value) in ("self", "cls", "super()")}
        names = {node.attr for node in mine} | {"_asdict", "_replace", "_getframe", "_exit"}  # Python's own
        names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        names |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        borrowed += [f"{path.relative_to(root)}:{n.lineno}: {n.attr}" for n in fields if n.attr not in names]
    assert not borrowed


def test_no_files_import_each_other_in_a_circle(root: Path):
    """Nor in functions, nor for the sake of types: whoever reads a file need not read those that use it."""
    modules = {}
    for path in (root / "course").rglob("*.py"):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    needs = {}
    for module, nodes in modules.items():
        named = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                files = [f"{node.module}.{name.name}" for name in node.names]
                named |= {file if file in modules else node.module or "" for file in files}
        needs[module] = named & modules.keys() - {module}
    while last := [module for module, others in needs.items() if not others & needs.keys()]:
        for module in last:
            del needs[module]
    assert not needs
