"""How long one step takes: callables from a Step to seconds. One file a model; profiles/ holds recordings of cards.

What the engine asks of any step time is `course.engine.step`; its names are at hand from here.
"""

from course.engine.step import LONGEST, SHORTEST, Step, StepTime, StepTimeModel, seconds_of
from course.steptime.curve import Curve, fit
from course.steptime.host import WithHost, with_host
from course.steptime.links import Link, recorded_link
from course.steptime.moe import Moe
from course.steptime.power_law import PowerLaw
from course.steptime.recorded import Recorded, recorded
from course.steptime.roofline import Roofline
from course.steptime.scaled import Scaled
from course.steptime.sharded import Sharded
from course.steptime.verification import Verification, verify

__all__ = [
    "LONGEST",
    "SHORTEST",
    "Curve",
    "Link",
    "Moe",
    "PowerLaw",
    "Recorded",
    "Roofline",
    "Scaled",
    "Sharded",
    "Step",
    "StepTime",
    "StepTimeModel",
    "Verification",
    "WithHost",
    "fit",
    "recorded",
    "recorded_link",
    "seconds_of",
    "verify",
    "with_host",
]
