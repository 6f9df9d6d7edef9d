"""Lab 02: the memory wall, what a step reads and computes, and how many sequences share it before it grows.

Its explorers, tables and figures are at hand here: `from course.lessons import lab02`.
"""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab", "further")
