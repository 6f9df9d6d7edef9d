"""Lab 04: static, dynamic, continuous.

Its explorers, tables and figures are at hand here: `from course.lessons import lab04`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab", "further")
