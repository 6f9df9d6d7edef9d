"""Lab 05: the admission window, what waiting for company buys and who pays for it.

Its explorers, tables and figures are at hand here: `from course.lessons import lab05`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
