"""Any config.json in a lab: one that comes with the course, a path, or a file from the browser's machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from course import memory
from course.explore.keys import with_keys
from course.explore.style import EXPLORER, dead, notice
from course.explore.table import Rows, failure, html_table, rows_of, text_table
from course.lessons.lab08 import card_memory
from course.models import ModelSpec

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
DTYPES = {"16 bits": "bfloat16", "fp8": "fp8", "as the checkpoint asks": "auto"}
MAX_BYTES = 2**26
LENGTH = 4_096
# The look of an explorer, under a name of its own: an explorer has a figure.
STYLE = EXPLORER.replace("course-explorer", "course-picker")


class ConfigPicker:
    """A model's KV bytes and what of it fits on a card. End a cell with one to show it.

    As text it is the table of the config it was made with; what is picked in the browser changes only the widgets, and
    `spec`, which later cells can use.

    config: a name in course/data/configs, a path to a config.json or to its folder, or the dict itself. card: a name in
    `card_memory.CARDS`.

    Raises ValueError: a config that cannot be understood, or an unknown card.
    """

    def __init__(self, config: str | PathLike | Mapping[str, Any] = "llama-3.1-8b", card: str = "H100") -> None:
        if card not in card_memory.CARDS:
            raise ValueError(f"there is no card called {card!r}: choose one of {', '.join(card_memory.CARDS)}")
        self.card, self.kv_dtype = card, "bfloat16"
        self.spec = self.use(config)
        self._text = f"KV of {self.spec.name} on {card}\n{text_table(self.rows(), indent='  ')}"
        self.root: widgets.Widget | None = None

    def __repr__(self) -> str:
        return self._text

    def use(self, config: str | PathLike | Mapping[str, Any]) -> ModelSpec:
        """Take this config; ValueError with a sentence, and the one before stays, where it cannot be understood."""
        if isinstance(config, str) and config in card_memory.names():
            self.spec = card_memory.spec(config)
        else:
            self.spec = ModelSpec.from_config(config)
        return self.spec

    def ledger(self) -> memory.Ledger:
        """The ledger of the card, for sequences of 4,096 tokens or of the model's longest."""
        spec = self.spec.with_kv_dtype(self.kv_dtype)
        length = min(LENGTH, spec.max_position_embeddings or LENGTH)
        return memory.ledger(spec, self.card, max_model_len=length)

    def rows(self) -> Rows:
        """What a sequence keeps, and the ledger of the card."""
        card = self.ledger()
        spec = card.spec
        return rows_of(
            [
                ("", "value", "from"),
                ("KV bytes a token", f"{spec.kv_bytes_per_token:,} B", "every layer holds it"),
                ("once windows are full", f"{spec.kv_bytes_after_window:,} B", "layers without a window"),
                ("state of a sequence", f"{spec.state_bytes / 2**20:.1f} MiB", "recurrent layers"),
                *card_memory.ledger_rows(card),
            ]
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        self.root = self._build()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.root.model_id}
        return {"text/plain": self._text, WIDGET_VIEW: view}

    def _build(self) -> widgets.Widget:
        wide = {"description_width": "initial"}
        names = card_memory.names()
        start = self.spec.name if self.spec.name in names else None
        shipped = widgets.Dropdown(options=list(names), value=start, description="Config", style=wide)
        path = widgets.Text(
            description="or a path", placeholder="config.json, or its folder", continuous_update=False, style=wide
        )
        upload = widgets.FileUpload(accept=".json", multiple=False, description="or a file from here")
        upload.layout = {"width": "max-content"}
        cards = widgets.Dropdown(options=list(card_memory.CARDS), value=self.card, description="Card", style=wide)
        dtypes = widgets.Dropdown(options=list(DTYPES.items()), value=self.kv_dtype, description="K and V", style=wide)
        said, table = widgets.HTML(), widgets.HTML()

        def show() -> None:
            self.card, self.kv_dtype = cards.value, dtypes.value
            try:
                table.value = f"<b>{escape(self.spec.name)}</b>" + html_table(self.rows(), "The ledger")
                said.value = "".join(notice(text) for text in (*self.spec.notes, *self.ledger().problems))
            except (ValueError, OSError) as error:
                table.value, said.value = "", notice(_sentence(error))

        def picked(take: Callable[[], Any], listed: bool = False) -> None:
            before = self.spec
            try:
                take()
                self.rows()
            except (ValueError, OSError) as error:
                self.spec = before
                show()
                said.value = notice(f"{_sentence(error)} Below is still {before.name}.")
            else:
                show()
                if not listed:
                    shipped.value = None

        def chosen(value: Any, take: Callable[[Any], Any], listed: bool = False) -> None:
            if value:
                picked(lambda: take(value), listed)

        shipped.observe(lambda change: chosen(change["new"], self.use, listed=True), names="value")
        path.observe(lambda change: chosen(change["new"].strip(), self.use), names="value")
        upload.observe(lambda change: chosen(change["new"], lambda files: self._upload(files[0])), names="value")
        for choice in (cards, dtypes):
            choice.observe(lambda _change: show(), names="value")
        show()
        self.widgets = {"config": shipped, "path": path, "file": upload, "card": cards, "kv": dtypes}
        head = widgets.HTML(f"{STYLE}<b>Any config.json</b>{dead('read nothing')}")
        grid = widgets.Box(list(self.widgets.values()))
        grid.add_class("course-controls")
        self.said, self.table = said, table
        root = with_keys(widgets.VBox([head, grid, said, table]))
        root.add_class("course-picker")
        return root

    def _upload(self, file: Mapping[str, Any]) -> None:
        """Read what the browser sent through a file, so that it is checked like any other."""
        name, content = Path(str(file["name"])).name or "config.json", bytes(file["content"])
        if len(content) > MAX_BYTES:
            raise ValueError(f"{name} has {len(content):,} bytes: a config.json has some thousands")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "config.json"
            copy.write_bytes(content)
            self.spec = ModelSpec.from_config(copy, name=name.removesuffix(".json"))


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"This file cannot be read: {error.strerror or error}. Check the path, seen from the lab's folder."
    return failure(error)
