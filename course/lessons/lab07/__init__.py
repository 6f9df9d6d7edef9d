"""Lab 07: chunked prefill.

Its explorers, tables, figures and step times are at hand here: `from course.lessons import lab07`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab", "deeper")
