"""What a program prints to, whoever started it."""

import sys
from io import TextIOWrapper


def forgiving() -> None:
    r"""Print a letter that cannot be printed as Python writes it: \u2500 for a terminal that has ASCII only.

    File names may hold bytes that are no text at all, and printing one must not end a program.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None where it is closed, and a stream of another kind in tests
            stream.reconfigure(errors="backslashreplace")
