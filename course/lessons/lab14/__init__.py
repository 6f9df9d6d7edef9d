"""Lab 14: one model on several cards, as replicas or in shares, and what its tokens cost."""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
