"""Policies by name, and their settings as a command line shows them, read off the signatures.

A policy registers itself in its own file and describes each setting where it stands in the signature:

    @registered("window")
    class Window(Policy):
        def __init__(self, max_num_seqs: MaxNumSeqs, window: Annotated[float, Knob("How long", 0.006, seconds=True)]):

Commands, their options, help and the words of their refusals follow.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from course.base.settings import quote
from course.policies.base import Policy

POLICIES: dict[str, type[Policy]] = {}
Kind = TypeVar("Kind", bound=type[Policy])


@dataclass(frozen=True)
class Knob:
    """What a signature says of a setting besides its name and type.

    help: one line. default: what a command takes where the policy itself has no default. seconds: commands take
    milliseconds, and call the option NAME_ms.
    """

    help: str
    default: Any = None
    seconds: bool = False


MaxNumSeqs = Annotated[int, Knob("Slots: the most requests in a batch.", 64)]


@dataclass(frozen=True)
class Option:
    """A setting as a command takes it. name: with underscores. kind: its type. policies: the names of who takes it."""

    name: str
    kind: type
    default: Any
    help: str
    policies: tuple[str, ...]


def registered(name: str) -> Callable[[Kind], Kind]:
    """Register a policy under this name."""

    def register(policy: Kind) -> Kind:
        POLICIES[name] = policy
        return policy

    return register


def knobs(policy: type[Policy]) -> dict[str, tuple[type, Any, Knob]]:
    """Setting -> (type, default, knob), in the order of the signature."""
    found = {}
    hints = get_type_hints(policy.__init__, include_extras=True)
    for name, parameter in inspect.signature(policy).parameters.items():
        kind, knob = get_args(hints[name])
        default = knob.default if parameter.default is inspect.Parameter.empty else parameter.default
        found[name] = (kind, default, knob)
    return found


def options() -> tuple[Option, ...]:
    """The settings of all registered policies, each once; where only some take it, their names open its help."""
    takers: dict[str, list[str]] = {}
    first: dict[str, tuple[type, Any, Knob]] = {}
    for policy_name, policy in POLICIES.items():
        for name, found in knobs(policy).items():
            takers.setdefault(name, []).append(policy_name)
            first.setdefault(name, found)
    made = []
    for name, (kind, default, knob) in first.items():
        who = () if len(takers[name]) == len(POLICIES) else tuple(takers[name])
        text = f"{', '.join(who)}: {knob.help}" if who else knob.help
        if knob.seconds:
            made.append(Option(f"{name}_ms", kind, 1_000 * default, text, tuple(takers[name])))
        else:
            made.append(Option(name, kind, default, text, tuple(takers[name])))
    return tuple(made)


def build(name: str, given: Mapping[str, Any]) -> Policy:
    """The policy of this name with the settings that a command was given, each under its option's name.

    Raises ValueError for a name that nobody has, and as the policy does.
    """
    if name not in POLICIES:
        raise ValueError(f"no policy is called {quote(name)}; there are {', '.join(POLICIES)}")
    chosen = {}
    for setting, (_, _, knob) in knobs(POLICIES[name]).items():
        value = given[f"{setting}_ms" if knob.seconds else setting]
        chosen[setting] = value / 1_000 if knob.seconds and isinstance(value, int | float) else value
    return POLICIES[name](**chosen)
