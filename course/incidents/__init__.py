"""Incidents of a serving engine: what an operator sees, what to measure next, the cause and the repair.

`incidents.yaml` has them in words, with the signals that tell each from the others; `scenes.py` has a run for each,
before and after the repair, whose page is what an operator would paste into `course look`.
"""

from course.incidents.rows import fitting, table
from course.incidents.signals import has_samples

__all__ = ["fitting", "has_samples", "table"]
