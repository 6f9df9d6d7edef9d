"""Lab 08: KV budgeting.

Its explorers are at hand here, and what else its notebook shows in one line: `from course.lessons import lab08`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
