"""Policies: which tokens run in the next step."""

from course.policies.base import Policy, Request, Schedule, State, blocks_needed
from course.policies.continuous import Continuous
from course.policies.dynamic import Dynamic
from course.policies.static import Static

__all__ = ["Continuous", "Dynamic", "Policy", "Request", "Schedule", "State", "Static", "blocks_needed"]
