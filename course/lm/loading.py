"""The course's own models, from their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from course.lm.errors import LMError
from course.lm.speaker import LanguageModel
from course.lm.tokenizer import Tokenizer

if TYPE_CHECKING:
    from course.gpu import Device

ROOM = Path(__file__).parent
FOLDERS = {"model": ROOM, "draft": ROOM / "draft"}


def load(name: str = "model", device: str | Device | None = None, form: str = "launches") -> LanguageModel:
    """The course's own "model", or its "draft", which is a tenth of it and has the same vocabulary.

    device: what computes: a device of `course.gpu`, or the name of one ("cuda"); None: this package's NumPy code.
    form: who starts the kernels of a step on a device: "launches", "graph" or "persistent" (`course.lm.device`).
    LMError if a file is missing or its checksum is not the one in SHA256SUMS, and for a device that cannot be used.
    """
    if name not in FOLDERS:
        raise LMError(f"There is no model {name!r}: choose {' or '.join(FOLDERS)}.")
    return load_folder(FOLDERS[name], ROOM, device, form)


def load_folder(folder: Path, room: Path, device: str | Device | None = None, form: str = "launches") -> LanguageModel:
    """The model in `folder`, whose tokenizer and checksums are in `room`."""
    try:
        lines = (room / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LMError(f"The checksums {room / 'SHA256SUMS'} cannot be read: {error.strerror or error}.") from None
    digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    path = (folder / "model.safetensors").relative_to(room).as_posix()
    if path not in digests:
        raise LMError(f"{room / 'SHA256SUMS'} has no checksum of {path}. Install the course again.")
    tokenizer = Tokenizer(room / "tokenizer.json")
    if device is None:
        if form != "launches":
            raise LMError(f"The form {form!r} is one of a device: without a device the model runs in NumPy.")
        return LanguageModel(folder, tokenizer, digests[path])
    from course.lm.device import DeviceModel  # brings course.gpu

    return DeviceModel(folder, tokenizer, digests[path], device=device, form=form)
