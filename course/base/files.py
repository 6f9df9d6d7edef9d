"""The course's own small files: read without surprises, replaced whole or not at all, put aside without overwriting."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class NotAFile(OSError):
    """A folder, a pipe or a device has the name of a file: to be neither read nor replaced."""


class TooLarge(ValueError):
    """The file is larger than any that the course writes."""


def ordinary(path: Path) -> bool:
    """Whether a file can be read here; False if there is nothing.

    NotAFile if something else has this name: a pipe would keep its reader waiting, and a device has no end. OSError
    if it cannot be looked at, as in a folder that must not be read.
    """
    try:
        shape = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(shape):
        raise NotAFile(f"{path} is {'a folder' if stat.S_ISDIR(shape) else 'a pipe or a device'}, not a file")
    return True


def read(path: Path, limit: int) -> bytes:
    """The content of a file. Raises FileNotFoundError for none, TooLarge above `limit` bytes, or as `ordinary` does."""
    if not ordinary(path):
        raise FileNotFoundError(2, "No such file", str(path))
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise TooLarge(f"{path} has more than {limit:,} bytes")
    return content


def replace(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file in one move, so that a crash leaves the old content or the new and never half of it.

    mode: permissions of the new file, less those that the umask takes away.
    """
    fresh = path.with_name(f".{path.name[:100]}-{secrets.token_hex(6)}.tmp")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def write_new(path: Path, content: bytes) -> None:
    """Write a new file, whole or not at all. Raises FileExistsError if anything of that name exists."""
    file = path.open("xb")
    try:
        with file:
            file.write(content)
    except BaseException:  # a full disk: half a file would be taken for a whole one from then on
        path.unlink(missing_ok=True)
        raise


def put_aside(path: Path, names: Iterable[Path]) -> Path:
    """Rename a file, folder or link to the first of `names`, in the same folder, that is free; return that.

    The name is taken first, by something empty, so that no other program's file can get under the move. Raises OSError
    if nothing can be renamed; then everything is as it was.
    """
    folder = path.is_dir() and not path.is_symlink()
    for name in names:
        try:
            if folder:
                name.mkdir()
            else:
                name.open("xb").close()
        except FileExistsError:
            continue
        try:
            os.replace(path, name)
        except BaseException:
            with suppress(OSError):
                name.rmdir() if folder else name.unlink()
            raise
        return name
    raise FileExistsError(17, "every name for a copy is taken: delete some of the copies", str(path))
