"""Lab 03: Little's law.

What its notebook shows is at hand here: `from course.lessons import lab03`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
