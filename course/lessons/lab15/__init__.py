"""Lab 15: an SLO-driven policy.

Its explorers, tables and figures are at hand here: `from course.lessons import lab15`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
