"""Lab 11: padding, packing, ragged. What the square shape of a batch costs, in tokens, FLOPs and seconds."""

from course.exercises.lesson import lesson

__getattr__ = lesson(__name__, "lab")
