"""Policies: which tokens run in the next step. One file a policy; `registry` knows them by name."""

from course.policies.base import Policy, Request, Schedule, State, blocks_needed
from course.policies.continuous import Continuous
from course.policies.dynamic import Dynamic
from course.policies.function import FromFunction
from course.policies.prefill_first import PrefillFirst
from course.policies.shortest_first import ShortestFirst
from course.policies.static import Static
from course.policies.window import NoteWindow, Window

__all__ = [
    "Continuous",
    "Dynamic",
    "FromFunction",
    "NoteWindow",
    "Policy",
    "PrefillFirst",
    "Request",
    "Schedule",
    "ShortestFirst",
    "State",
    "Static",
    "Window",
    "blocks_needed",
]
