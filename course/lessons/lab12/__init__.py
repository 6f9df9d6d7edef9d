"""Lab 12: launch overhead."""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
