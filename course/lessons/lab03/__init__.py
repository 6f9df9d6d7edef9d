"""Lab 03: Little's law.

What its notebook shows is at hand here: `from course.lessons import lab03`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers", "shown")
