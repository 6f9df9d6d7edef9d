"""Modelled against measured: what a real engine's run says about step times, and how well a model of it does.

from course import calibration, results

result = results.read("requests.jsonl")
fit = calibration.fit_run(result, "llama-3.1-8b", "RTX PRO 6000")
fit.seconds, fit.errors, fit.unsettled
serve(result.workload(), policy, fit.step_time)
print(fit.scaled_to("RTX 4090").account)
"""

from course.calibration.comparison import Comparison, Row, compare, stand_in
from course.calibration.constants import UNITS, Shape, from_data_sheet, shape_of, step_time
from course.calibration.engine import Engine, engine_of
from course.calibration.fit import Constant, Fit
from course.calibration.fitting import fit_run
from course.calibration.replay import Replay, replay
from course.calibration.runs import result_of
from course.calibration.scaling import ScaledConstants

__all__ = [
    "UNITS",
    "Comparison",
    "Constant",
    "Engine",
    "Fit",
    "Replay",
    "Row",
    "ScaledConstants",
    "Shape",
    "compare",
    "engine_of",
    "fit_run",
    "from_data_sheet",
    "replay",
    "result_of",
    "shape_of",
    "stand_in",
    "step_time",
]
