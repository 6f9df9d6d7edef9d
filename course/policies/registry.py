"""Policies by name, and their settings as a command line shows them, read off the signatures.

A policy registers itself in its own file and describes each setting where it stands in the signature:

    @registered("window")
    class Window(Policy):
        def __init__(self, max_num_seqs: MaxNumSeqs, window: Annotated[float, Knob("How long", 0.006, seconds=True)]):

Commands, their options, help and refusals follow from that (`course.cli.knobs`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from course.policies.base import Policy

POLICIES: dict[str, type[Policy]] = {}
Kind = TypeVar("Kind", bound=type[Policy])


@dataclass(frozen=True)
class Knob:
    """What a signature says of a setting besides its name and type.

    help: one line. default: what a command takes if the policy itself has no default. seconds: commands take
    milliseconds, and call the option NAME_ms.
    """

    help: str
    default: Any = None
    seconds: bool = False


MaxNumSeqs = Annotated[int, Knob("Slots: the most requests in a batch.", 64)]


def registered(name: str) -> Callable[[Kind], Kind]:
    """Register a policy under this name."""

    def register(policy: Kind) -> Kind:
        POLICIES[name] = policy
        return policy

    return register
