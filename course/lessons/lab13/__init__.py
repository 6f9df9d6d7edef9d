"""Lab 13: Speculative batching.

Its explorers are at hand here, and what else its notebook shows in one line: `from course.lessons import lab13`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
