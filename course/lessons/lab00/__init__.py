"""Lab 00: how a language model answers, and how to read a serving graph.

Its explorers are at hand here: `from course.lessons import lab00`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers")
