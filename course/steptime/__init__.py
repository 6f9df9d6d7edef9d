"""How long one step takes: callables from a Step to seconds; `profiles` holds those recorded on real cards."""

from course.steptime.steptime import (
    LONGEST,
    SHORTEST,
    PowerLaw,
    Roofline,
    Step,
    StepTime,
    StepTimeModel,
    checked,
    trusted,
    usable,
)

__all__ = [
    "LONGEST",
    "SHORTEST",
    "PowerLaw",
    "Roofline",
    "Step",
    "StepTime",
    "StepTimeModel",
    "checked",
    "trusted",
    "usable",
]
