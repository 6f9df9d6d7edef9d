"""Single wrong changes for tests/bench/strength.py: a file a room, with the tests of the room, the nearest first."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One change. `old` stands in `file` exactly once; `new` takes its place.

    Tests are named as for pytest, with options behind them where they help.

    kind: what kind of slip it is. tests: tests to run before those of the room, where they are nearer. equivalent: why
    it changes nothing that anybody could see; such a change is not planted.
    """

    file: str
    old: str
    new: str
    kind: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""


BOUNDARY = "off by one"
COMPARISON = "comparison"
TERM = "dropped term"
PERCENTILE = "percentile"
ORDER = "order"
UNIT = "unit"
CONSTANT = "constant"
KEY = "key"
NUMBER = "number in text"
