"""The options of all policies, added to a command from their signatures (see `course.policies.registry`)."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_type_hints

import typer

from course.base.settings import MAX_SECONDS, quote, real, whole
from course.policies import POLICIES, Policy
from course.policies.registry import Knob


@dataclass(frozen=True)
class Option:
    """A setting as a command takes it. name: with underscores. kind: its type. policies: the names of who takes it."""

    name: str
    kind: type
    default: Any
    help: str
    policies: tuple[str, ...]


def knobs(policy: type[Policy]) -> dict[str, tuple[type, Any, Knob]]:
    """Setting -> (type, default, knob), in the order of the signature; what has no Knob keeps its default."""
    by_name = {}
    hints = get_type_hints(policy.__init__, include_extras=True)
    for name, parameter in inspect.signature(policy).parameters.items():
        kind, *_, knob = get_args(hints[name]) or (None, None)
        if not isinstance(knob, Knob):
            continue
        default = knob.default if parameter.default is inspect.Parameter.empty else parameter.default
        by_name[name] = (kind, default, knob)
    return by_name


def options() -> tuple[Option, ...]:
    """The settings of all registered policies, each once; if only some take it, their names open its help."""
    takers: dict[str, list[str]] = {}
    first: dict[str, tuple[type, Any, Knob]] = {}
    for policy_name, policy in POLICIES.items():
        for name, entry in knobs(policy).items():
            takers.setdefault(name, []).append(policy_name)
            first.setdefault(name, entry)
    result = []
    for name, (kind, default, knob) in first.items():
        who = () if len(takers[name]) == len(POLICIES) else tuple(takers[name])
        text = f"{', '.join(who)}: {knob.help}" if who else knob.help
        if knob.seconds:
            result.append(Option(f"{name}_ms", kind, 1_000 * default, text, tuple(takers[name])))
        else:
            result.append(Option(name, kind, default, text, tuple(takers[name])))
    return tuple(result)


def build(name: str, options: Mapping[str, Any]) -> Policy:
    """The policy of this name with the settings that a command was given, each under its option's name.

    Raises ValueError for an unknown name, and as the policy does.
    """
    if name not in POLICIES:
        raise ValueError(f"no policy is called {quote(name)}; there are {', '.join(POLICIES)}")
    arguments = {}
    for setting, (_, _, knob) in knobs(POLICIES[name]).items():
        value = options[f"{setting}_ms" if knob.seconds else setting]
        arguments[setting] = value / 1_000 if knob.seconds and isinstance(value, int | float) else value
    return POLICIES[name](**arguments)


OPTIONS = options()
NAMES = ", ".join(POLICIES)


def with_policy_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with an option for each setting of a policy, behind --policy; it takes them as **settings."""
    signature = inspect.signature(command).parameters.values()
    mine = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=option.default,
            annotation=Annotated[option.kind, typer.Option(help=option.help)],
        )
        for option in OPTIONS
    ]
    place = next(i for i, parameter in enumerate(signature) if parameter.name == "policy") + 1
    named = [parameter for parameter in signature if parameter.kind is not inspect.Parameter.VAR_KEYWORD]

    @wraps(command)
    def wrapper(**given: Any) -> None:
        command(**given)

    parameters = [*named[:place], *mine, *named[place:]]
    setattr(wrapper, "__signature__", inspect.Signature(parameters))  # noqa: B010  what typer reads
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def check(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a number that no policy could use. Contradictions between two are left to the policy."""
    for option in OPTIONS:
        if option.kind is int:
            whole(option.name, options[option.name], low=min(option.default, 1))
        elif option.kind is float:
            real(option.name, options[option.name], low=0, high=1_000 * MAX_SECONDS)
