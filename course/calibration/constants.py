"""Four constants of a step, what a data sheet says of them, and how they change from card to card."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from course.base import settings
from course.models import ModelSpec
from course.models.gpus import GPU
from course.steptime import PowerLaw

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "per_step": "s a step",
        "per_sequence": "s per decoding sequence and step",
        "per_prompt_token": "s a prompt token",
        "per_context_token": "s per token of decode context",
    }
)
NAMES = tuple(UNITS)


@dataclass(frozen=True)
class Shape:
    """What of a model a step's time depends on, on one card: weight bytes a step reads, FLOPs and KV bytes a token."""

    name: str
    weight_bytes: float
    flops_per_token: float
    kv_bytes_per_token: float

    def __post_init__(self) -> None:
        for size in ("weight_bytes", "flops_per_token", "kv_bytes_per_token"):
            settings.real(size, getattr(self, size), low=1 if size == "weight_bytes" else 0, high=1e18)


def shape_of(spec: ModelSpec, *, ranks: int = 1, weight_bytes: float | None = None) -> Shape:
    """The shape of a model on one of `ranks` cards of tensor parallelism.

    weight_bytes: what one card reads in a step, if that is not all weights / ranks: experts spread over more cards.
    """
    ranks = settings.whole("ranks", ranks, high=4096)
    return Shape(
        spec.name,
        spec.step_weight_bytes / ranks if weight_bytes is None else weight_bytes,
        2 * spec.layer_parameters / ranks,
        spec.kv_bytes_per_token / ranks,
    )


def from_data_sheet(shape: Shape, gpu: GPU) -> dict[str, float]:
    """The constants that `gpu` would have if nothing but its rates counted, in seconds.

    per_step: weight bytes / bandwidth. per_prompt_token: FLOPs a token / FLOP/s; per_sequence the same, since a decode
    computes one token. per_context_token: KV bytes a token / bandwidth. Rates are GPU.read_bandwidth and
    GPU.matrix_flops.
    """
    compute = shape.flops_per_token / gpu.matrix_flops
    return {
        "per_step": shape.weight_bytes / gpu.read_bandwidth,
        "per_sequence": compute,
        "per_prompt_token": compute,
        "per_context_token": shape.kv_bytes_per_token / gpu.read_bandwidth,
    }


def step_time(constants: Mapping[str, float], source: str) -> PowerLaw:
    """The step-time model with these constants; `source` says where they come from.

    per_step + per_sequence x decodes + per_prompt_token x prompt tokens + per_context_token x decode context.
    """
    model = PowerLaw(
        constants["per_step"],
        constants["per_sequence"],
        1,
        prefill=constants["per_prompt_token"],
        context=constants["per_context_token"],
    )
    model.source = source
    return model
