"""stdout and stderr: letters that a terminal cannot print, or must not be given."""

import re
import sys
from io import TextIOWrapper

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Letters that move the cursor, start an escape sequence or turn the direction of a line; newline and tab are none."""
STYLE = re.compile(r"(\x1b\[(?:[012];?)+m)")
"""Bold, dim and plain, as tables have them on a terminal."""
LONGEST_WORD = 300
"""Letters without a space in a message: longer than any path that is typed."""


def forgiving() -> None:
    r"""Print a letter that cannot be printed as Python writes it: \u2500 for a terminal that has ASCII only.

    File names may hold bytes that are no text at all, and printing one must not end a program.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None if it is closed, and a stream of another kind in tests
            stream.reconfigure(errors="backslashreplace")


def printable(text: str, styles: bool = False) -> str:
    r"""`text` with control letters as Python writes them, \x1b: a name in a file must not command a terminal.

    styles: leave bold and dim as they are.
    """
    parts = STYLE.split(text) if styles else [text]
    return "".join(part if number % 2 else CONTROL.sub(_escaped, part) for number, part in enumerate(parts))


def shortened(sentence: str) -> str:
    """A sentence in which a name of thousands of letters is cut in its middle."""
    return re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda long: f"{long[0][:80]}...{long[0][-40:]}", sentence)


def _escaped(letter: re.Match[str]) -> str:
    return letter[0].encode("unicode_escape").decode()
