"""Will the labs run on this machine? A list of checks, each answered in one line, and a short code of the answers.

report.py    the checks in their order; one that fails in an unforeseen way is a problem, never a traceback
software.py  Python, packages, widgets, kernel
repair.py    what to do if something is missing
machine.py   folders, space, compiler, GPU, the decode step
children.py  what is tried in a process of its own, since a broken library or driver may crash or hang it
process.py   such a process, with a time limit
code.py      the answers as a few characters, and back
"""

from course.desk.doctor.code import ITEMS, in_code, statuses_of
from course.desk.doctor.report import Answer, examine

__all__ = ["ITEMS", "Answer", "examine", "in_code", "statuses_of"]
