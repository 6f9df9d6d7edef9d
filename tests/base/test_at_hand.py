"""Names of a package that are fetched when they are used, and modules that are imported in any order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from course.base.at_hand import at_hand

LESSONS = Path(__file__).parents[2] / "course" / "lessons"
LABS = sorted(path.name for path in LESSONS.glob("lab*"))
EACH_FIRST = """
import sys
from importlib import import_module
for module in sys.argv[1:]:
    package = module.rpartition(".")[0]
    for name in [name for name in sys.modules if name.startswith(package)]:
        del sys.modules[name]
    import_module(module)
    print(module)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "pretended"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from course.base.at_hand import at_hand\n__getattr__ = at_hand(__name__, 'one', 'two')\n"
    )
    (folder / "one.py").write_text("from pretended.two import low\n__all__ = ['high']\nhigh = low + 1\n")
    (folder / "two.py").write_text("from pretended import three\n__all__ = ['low']\nlow = three.zero + 1\nhidden = 5\n")
    (folder / "three.py").write_text("zero = 0\nimport pretended.one\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "pretended"
    for name in [name for name in sys.modules if name.startswith("pretended")]:
        del sys.modules[name]


def test_names_come_from_the_modules(package: str) -> None:
    import pretended

    assert "pretended.one" not in sys.modules
    assert pretended.high == 2 and pretended.low == 1
    for name in ("hidden", "zero", "_low", "nothing"):
        with pytest.raises(AttributeError, match=f"module 'pretended' has no attribute '{name}'"):
            at_hand(package, "one", "two")(name)


def test_a_module_is_imported_without_the_others() -> None:
    with pytest.raises(AttributeError, match=r"'course\.lessons\.lab02' has no attribute 'figures'"):
        at_hand("course.lessons.lab02", "lab")("figures")


def test_what_is_no_name() -> None:
    """Whoever asks for what cannot be a name is told so; nothing is imported to find out."""
    for name in ("", "a.b", "figures.Times", "..", "a b", "a\0"):
        with pytest.raises(AttributeError, match=r"'course\.lessons\.lab02' has no attribute"):
            at_hand("course.lessons.lab02", "lab")(name)


def test_every_module_of_a_lesson_may_be_imported_first() -> None:
    modules = sorted(
        f"course.lessons.{path.parent.name}.{path.stem}"
        for path in LESSONS.glob("lab*/*.py")
        if path.stem != "__init__"
    )
    assert {module.split(".")[2] for module in modules} == set(LABS)
    done = subprocess.run([sys.executable, "-c", EACH_FIRST, *modules], capture_output=True, text=True)
    assert done.stdout.split() == modules, done.stderr[-800:]
