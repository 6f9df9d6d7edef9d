"""How long one step takes: models of a step; `profiles` holds those recorded on real cards.

What the engine asks of any step time is `course.engine.step`; its names are at hand from here.
"""

from course.engine.step import LONGEST, SHORTEST, Step, StepTime, StepTimeModel, seconds_of
from course.steptime.steptime import PowerLaw, Roofline

__all__ = ["LONGEST", "SHORTEST", "PowerLaw", "Roofline", "Step", "StepTime", "StepTimeModel", "seconds_of"]
