"""The text of a component of the browser, joined from files: a component cannot import another file of the package."""

from pathlib import Path

HERE = Path(__file__).parent


def script(*names: str) -> str:
    """Return the files `<name>.js` beside this one, in this order, as one module."""
    return "".join((HERE / f"{name}.js").read_text(encoding="utf-8") for name in names)
