"""Lab 09: paged KV, and what happens when blocks run out.

Its explorers, tables and figures are at hand here: `from course.lessons import lab09`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
