"""`fit_run`: step-time constants from a measured run, by serving the same requests at the same times.

Few runs tell all four constants: while the batch stays full, a step's own time, its sequences and its context cannot be
taken apart. So the search starts from the data sheet and is held to it loosely, and what it found is tried out with
each constant halved and doubled: what the metrics do not notice, the run does not tell.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp, log, sqrt
from typing import Any

import numpy as np

from course.calibration.constants import NAMES, Shape, from_data_sheet, shape_of, step_time
from course.calibration.engine import Engine, engine_of
from course.calibration.fit import SAME, Constant, Fit
from course.calibration.replay import replay
from course.calibration.runs import engine_of_run, result_of
from course.calibration.samples import STATISTICS, samples
from course.engine.metrics import percentiles
from course.engine.run import Run
from course.models import ModelSpec, gpus, model
from course.models.gpus import GPU
from course.results import Result
from course.workload import Workload

FEWEST = 10
MOST_ERROR = 0.05  # the metrics are taken to be off by what a free search leaves, from SAME to this
LOOSENESS = {"per_step": 0.5, "per_sequence": 1.0, "per_prompt_token": 0.5, "per_context_token": 0.5}
"""How far a constant may lie from the data sheet, as a standard deviation of its logarithm: 0.5 is a factor of 1.6."""
FREE = 10.0  # the same in a search that is free: the sheet counts next to nothing
FARTHEST = log(1e4)
RANGE = {
    "per_step": (0.5, 5.0),
    "per_sequence": (0.1, 20.0),
    "per_prompt_token": (0.4, 12.0),
    "per_context_token": (0.1, 5.0),
}
"""Between which multiples of the data sheet the first search looks everywhere; the later ones may leave this range."""
POPULATION, GENERATIONS = 8, 20

Errors = Callable[[np.ndarray], np.ndarray]


def fit_run(
    result: Result | Run,
    model_name: ModelSpec | str,
    gpu_name: GPU | str,
    *,
    engine: Engine | None = None,
    weight_bytes: float | None = None,
    **settings: Any,
) -> Fit:
    """Fit step-time constants to a measured run that has the times of each request.

    The requests of `result` are served again in the simulator, at the same times, and four constants (seconds a step, a
    sequence, a prompt token and a token of context) are chosen so that mean, p50, p90 and p99 of TTFT, TPOT, ITL and
    E2E come out as measured: the sum of the squares of their relative errors, together with the distance from the data
    sheet (see LOOSENESS), is made as small as can be found. Deterministic.

    result: what was read from a file, or a Run that took real time; a Run brings its engine with it.
    model_name, gpu_name: names, or a ModelSpec and a GPU. engine: what served, by default what the file says; settings:
    what it does not say, as in `engine_of`. weight_bytes: what one card reads in a step, if that is not all weights.

    Takes about a thousand replays. ValueError if the file has no times of requests or fewer than 10 that were
    answered, for settings out of range, and if a request does not fit into the KV pool.
    """
    spec = model_name if isinstance(model_name, ModelSpec) else model(model_name)
    gpu = gpu_name if isinstance(gpu_name, GPU) else gpus.gpu(gpu_name)
    if isinstance(result, Run):
        engine, result = engine or engine_of_run(result), result_of(result)
    if engine is None:
        engine = engine_of(result, spec, gpu, **settings)
    elif settings:
        raise ValueError(f"an engine was given, so {sorted(settings)[0]} has no effect: leave one of them out")
    kv_dtype = result.setup.get("kv_cache_dtype")
    spec = spec.with_kv_dtype(kv_dtype) if isinstance(kv_dtype, str) else spec
    result = engine.served(result)
    shape = shape_of(spec, ranks=engine.ranks, weight_bytes=weight_bytes)
    search = _Search(result, engine, shape, gpu)
    best, noise = search.best()
    constants = {}
    for place, name in enumerate(NAMES):
        half, double = (search.error_with(best, place, factor, noise) for factor in (0.5, 2.0))
        constants[name] = Constant(name, exp(best[place]), search.sheet[name], half, double)
    errors = search.errors(best)
    return Fit(
        result.name,
        shape,
        gpu,
        constants,
        _rms(errors),
        {m: dict(zip(search.kept[m], part, strict=True)) for m, part in search.by_metric(errors).items()},
        (*engine.notes, *search.notes),
    )


class _Search:
    """One run to be fitted. Points are the logarithms of the constants, in the order of NAMES."""

    def __init__(self, result: Result, engine: Engine, shape: Shape, gpu: GPU):
        self.load = result.workload()
        self.engine = replace(engine, cache=None) if _never_full(self.load, engine) else engine
        if len(self.load) < FEWEST:
            raise ValueError(
                f"{result.name} has {len(self.load)} answered requests, and a fit needs at least {FEWEST}: "
                "fewer do not determine four constants"
            )
        values = samples(result)
        if not values:
            raise ValueError(f"{result.name} has requests without latencies: there is nothing to fit to")
        statistics = {metric: percentiles(sample) for metric, sample in values.items()}
        self.kept = {m: [s for s in STATISTICS if stats[s] > 0] for m, stats in statistics.items()}
        self.target = np.array([statistics[m][s] for m, names in self.kept.items() for s in names])
        self.sheet = from_data_sheet(shape, gpu)
        self.middle = np.log([max(self.sheet[name], 1e-12) for name in NAMES])
        self.loose = np.array([LOOSENESS[name] for name in NAMES])
        missing = [m.upper() for m in ("ttft", "tpot", "e2e") if m not in values]
        self.notes = self.load.notes
        if missing:
            self.notes += (f"the file has no {' and no '.join(missing)}: fitted to the rest",)

    def errors(self, point: np.ndarray) -> np.ndarray:
        """The error, modelled / measured - 1, of every statistic."""
        point = self.middle + np.clip(point - self.middle, -FARTHEST, FARTHEST)
        run = replay(self.load, step_time(dict(zip(NAMES, np.exp(point).tolist(), strict=True)), ""), self.engine)
        stats = {m: run.statistics(m) for m in self.kept}
        return np.array([stats[m][s] for m, names in self.kept.items() for s in names]) / self.target - 1

    def by_metric(self, errors: np.ndarray) -> dict[str, list[float]]:
        ends = np.cumsum([len(names) for names in self.kept.values()])
        return {m: part.tolist() for m, part in zip(self.kept, np.split(errors, ends[:-1]), strict=True)}

    def best(self) -> tuple[np.ndarray, float]:
        """The point found, and how far off the metrics are taken to be: what the best point is off without a sheet."""
        self.errors(self.middle)  # says in a sentence what cannot be served, which a search would not
        free = self._costs(SAME, np.full(len(NAMES), FREE))
        anywhere = _simplex(free, _wide(free, self.middle), 60)
        noise = min(max(_rms(self.errors(anywhere)), SAME), MOST_ERROR)
        costs = self._costs(noise, self.loose)
        ends = [anywhere, *(_slope(costs, start) for start in (anywhere, self.middle))]
        return _simplex(costs, min(ends, key=lambda point: (_squares(costs, point), *point)), 60), noise

    def error_with(self, best: np.ndarray, place: int, factor: float, noise: float) -> float:
        """The least metric error with one constant at a multiple of its best value."""
        rest = [i for i in range(len(NAMES)) if i != place]

        def whole(part: np.ndarray) -> np.ndarray:
            point = best.copy()
            point[place] += log(factor)
            point[rest] = part
            return point

        costs = self._costs(noise, np.full(len(NAMES), FREE))

        def part_costs(part: np.ndarray) -> np.ndarray:
            return costs(whole(part))

        end = _simplex(part_costs, _slope(part_costs, best[rest]), 20)
        return _rms(self.errors(whole(end)))

    def _costs(self, noise: float, loose: np.ndarray) -> Errors:
        return lambda point: np.concatenate([self.errors(point) / noise, (point - self.middle) / loose])


def _never_full(load: Workload, engine: Engine) -> bool:
    """Whether the pool holds any requests that can run at once: then it decides nothing, and serving goes faster."""
    if engine.cache is None:
        return True
    longest = np.sort(-(-(load.prompt_tokens + load.output_tokens) // engine.cache.block_size))
    return int(longest[-engine.policy.max_num_seqs :].sum()) <= engine.cache.num_blocks


def _wide(costs: Errors, middle: np.ndarray) -> np.ndarray:
    """A good point of the whole RANGE, by differential evolution: the slopes have valleys that end before the best."""
    from scipy import optimize  # half a second that only a fit needs

    ends = [(point + log(low), point + log(high)) for point, (low, high) in zip(middle, RANGE.values(), strict=True)]
    return optimize.differential_evolution(
        lambda point: _squares(costs, point),
        ends,
        x0=middle,
        popsize=POPULATION,
        maxiter=GENERATIONS,
        tol=0,
        polish=False,
        rng=np.random.default_rng(0),
    ).x


def _slope(costs: Errors, start: np.ndarray) -> np.ndarray:
    """Search downhill from `start` by least squares.

    The metrics jump a little wherever a request moves to another step: the differences that stand for slopes are wide
    enough to see through that.
    """
    from scipy import optimize

    return optimize.least_squares(costs, start, diff_step=0.003, max_nfev=12).x


def _simplex(costs: Errors, start: np.ndarray, evaluations: int) -> np.ndarray:
    """Search on from `start` with a simplex, which needs no slope. evaluations: at most, for each coordinate."""
    from scipy import optimize

    size = len(start)
    corners = start + np.vstack([np.zeros(size), 0.08 * np.eye(size)])
    options = {"initial_simplex": corners, "maxfev": evaluations * size, "xatol": 1e-4, "fatol": 1e-3}
    return optimize.minimize(lambda point: _squares(costs, point), start, method="Nelder-Mead", options=options).x


def _squares(costs: Errors, point: np.ndarray) -> float:
    return float(np.square(costs(point)).sum())


def _rms(errors: Sequence[float] | np.ndarray) -> float:
    return sqrt(float(np.mean(np.square(errors))))
