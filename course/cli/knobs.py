"""The options of all policies, added to a command from their signatures (see `course.policies.registry`)."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, Any

import typer

from course.base.settings import MAX_SECONDS, real, whole
from course.policies.registry import POLICIES, options

OPTIONS = options()
NAMES = ", ".join(POLICIES)


def with_policy_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with an option for each setting of a policy, behind --policy; it takes them as **settings."""
    taken = inspect.signature(command).parameters.values()
    mine = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=option.default,
            annotation=Annotated[option.kind, typer.Option(help=option.help)],
        )
        for option in OPTIONS
    ]
    place = next(i for i, parameter in enumerate(taken) if parameter.name == "policy") + 1
    named = [parameter for parameter in taken if parameter.kind is not inspect.Parameter.VAR_KEYWORD]

    @wraps(command)
    def wrapper(**given: Any) -> None:
        command(**given)

    parameters = [*named[:place], *mine, *named[place:]]
    wrapper.__signature__ = inspect.Signature(parameters)  # what typer reads
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def check(given: Mapping[str, Any]) -> None:
    """Raises ValueError for a number that no policy could use. Contradictions between two are left to the policy."""
    for option in OPTIONS:
        if option.kind is int:
            whole(option.name, given[option.name], low=min(option.default, 1))
        elif option.kind is float:
            real(option.name, given[option.name], low=0, high=1_000 * MAX_SECONDS)
