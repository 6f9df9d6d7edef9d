"""Policies: which tokens run in the next step."""

from .base import Policy, Request, Schedule, State, blocks_needed
from .continuous import Continuous
from .dynamic import Dynamic
from .static import Static

__all__ = ["Continuous", "Dynamic", "Policy", "Request", "Schedule", "State", "Static", "blocks_needed"]
