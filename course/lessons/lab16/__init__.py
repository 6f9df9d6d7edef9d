"""Lab 16: measuring honestly.

Its explorers, tables and figures are at hand here: `from course.lessons import lab16`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers", "shown", "over_http")
