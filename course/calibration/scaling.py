"""From one card, or model, to another: which constant changes with what."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

from course.base import settings
from course.calibration.constants import NAMES, UNITS, Shape, step_time
from course.models.gpus import GPU
from course.steptime import PowerLaw


@dataclass(frozen=True)
class ScaledConstants:
    """Predicted constants of a card that was not measured.

    constants: seconds, by name. why: for each constant a sentence on what it was scaled with. compute: the factor of
    the constant a prompt token. compute_range: its two ends, no effect of the card's FLOP/s and the whole of it.
    """

    constants: Mapping[str, float]
    why: Mapping[str, str]
    compute: float
    compute_range: tuple[float, float]
    source: str

    @property
    def step_time(self) -> PowerLaw:
        """A step-time model with these constants."""
        return step_time(self.constants, self.source)

    @property
    def account(self) -> str:
        """One line a constant: value, unit, and what it was scaled with."""
        return "\n".join(f"{name} = {self.constants[name]:.3g} {UNITS[name]}: {self.why[name]}" for name in NAMES)


def scale(
    constants: Mapping[str, float],
    before: tuple[Shape, GPU],
    after: tuple[Shape, GPU],
    *,
    name: str,
    compute: float | None = None,
    step_overhead: float | None = None,
) -> ScaledConstants:
    """Constants fitted for one shape and card, for another. See `Fit.scaled_to`."""
    (shape, gpu), (other, card) = before, after
    overhead = max(0.0, constants["per_step"] - shape.weight_bytes / (gpu.peak_bandwidth or gpu.read_bandwidth))
    if step_overhead is not None:
        overhead = settings.real("step_overhead", step_overhead, low=0, high=constants["per_step"])
    weights = constants["per_step"] - overhead
    bandwidth, peaks = gpu.read_bandwidth / card.read_bandwidth, gpu.matrix_flops / card.matrix_flops
    factor = sqrt(peaks) if compute is None else settings.real("compute", compute, above=0, high=1e6)
    bytes_ratio = other.weight_bytes / shape.weight_bytes
    work = _ratio("FLOPs a token", other.flops_per_token, shape.flops_per_token)
    cache = _ratio("KV bytes a token", other.kv_bytes_per_token, shape.kv_bytes_per_token)
    which = "halfway, in ratio, between" if compute is None else "given; the ends are"
    return ScaledConstants(
        constants={
            "per_step": weights * bytes_ratio * bandwidth + overhead,
            "per_sequence": constants["per_sequence"],
            "per_prompt_token": constants["per_prompt_token"] * work * factor,
            "per_context_token": constants["per_context_token"] * cache * bandwidth,
        },
        why={
            "per_step": f"{1e3 * weights:.2f} ms to read the weights{_times('their bytes', bytes_ratio)} x "
            f"{bandwidth:.2f} (bandwidth), and {1e3 * overhead:.2f} ms of the engine's own, kept as they are",
            "per_sequence": "kept: sampling and bookkeeping of the engine",
            "per_prompt_token": f"x {factor:.2f}{_times('FLOPs a token', work)}: {which} x 1 (FLOP/s do not "
            f"count) and x {peaks:.2f} (nothing else does)",
            "per_context_token": f"x {bandwidth:.2f} (bandwidth){_times('KV bytes a token', cache)}",
        },
        compute=factor,
        compute_range=(1.0, peaks),
        source=f"predicted: {other.name} on {card.name}, from {name} on {gpu.name}",
    )


def _ratio(what: str, after: float, before: float) -> float:
    if not before > 0:
        raise ValueError(f"the fitted model has no {what} to scale from")
    return after / before


def _times(what: str, ratio: float) -> str:
    return "" if ratio == 1 else f" x {ratio:.3g} ({what})"
