"""Lab 16: measuring honestly.

Its explorers, tables and figures are at hand here: `from course.lessons import lab16`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab", "over_http")
