"""Lab 01: the first token, where the time before it goes, and what means and percentiles say of it.

Its explorers, tables and figures are at hand here: `from course.lessons import lab01`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab", "further")
