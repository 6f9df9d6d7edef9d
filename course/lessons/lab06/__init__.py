"""Lab 06: mixed batches.

Its explorers, tables, figures and step times are at hand here: `from course.lessons import lab06`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
