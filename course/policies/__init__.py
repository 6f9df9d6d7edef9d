"""Policies: which tokens run in the next step. One file a policy, which registers itself; see `registry`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from course.policies.base import Order, Policy, Request, Schedule, State, blocks_needed
from course.policies.by_key import ByKey
from course.policies.drafting import Drafting
from course.policies.function import FromFunction
from course.policies.hopeless_last import HopelessLast
from course.policies.registry import POLICIES
from course.policies.step_target import StepTarget

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
globals().update({policy.__name__: policy for policy in POLICIES.values()})

__all__ = [
    "ByKey", "Drafting", "FromFunction", "HopelessLast", "Order", "Policy", "Request", "Schedule", "State",
    "StepTarget", "blocks_needed",
]  # fmt: skip
__all__ += [policy.__name__ for policy in POLICIES.values()]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
