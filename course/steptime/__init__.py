"""How long one step takes: callables from a Step to seconds. One file a model; profiles/ holds recordings of cards."""

from course.steptime.base import LONGEST, SHORTEST, Step, StepTime, StepTimeModel, checked, trusted, usable
from course.steptime.power_law import PowerLaw
from course.steptime.recorded import Recorded, recorded
from course.steptime.roofline import Roofline

__all__ = [
    "LONGEST",
    "SHORTEST",
    "PowerLaw",
    "Recorded",
    "Roofline",
    "Step",
    "StepTime",
    "StepTimeModel",
    "checked",
    "recorded",
    "trusted",
    "usable",
]
