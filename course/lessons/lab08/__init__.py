"""Lab 08: KV budgeting.

Its explorers are at hand here, and what else its notebook shows in one line: `from course.lessons import lab08`.
"""

from course.base.at_hand import at_hand

__getattr__ = at_hand(__name__, "explorers", "shown")
