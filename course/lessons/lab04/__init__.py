"""Lab 04: static, dynamic, continuous.

Its explorers, tables and figures are at hand here: `from course.lessons import lab04`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers", "shown", "further")
