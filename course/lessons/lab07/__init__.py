"""Lab 07: chunked prefill.

Its explorers, tables, figures and step times are at hand here: `from course.lessons import lab07`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers", "shown", "deeper")
