"""Lab 17: sharing a service.

Its explorers, tables and figures are at hand here: `from course.lessons import lab17`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
