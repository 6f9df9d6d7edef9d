"""Lab 00: how a language model answers, and how to read a serving graph.

Its explorers are at hand here: `from course.lessons import lab00`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
