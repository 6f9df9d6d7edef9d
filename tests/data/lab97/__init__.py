"""Lab 97, a toy: one small engine, for the tests of the form of a lab. It is not shipped."""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "lab")
