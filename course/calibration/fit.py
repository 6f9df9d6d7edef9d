"""What a fit found: four constants, how well they do, what the run could not tell, and what they become elsewhere."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

from course import models
from course.base import settings
from course.base.textfiles import MAX_JSON_BYTES, json_value, path_of, text
from course.calibration.constants import NAMES, UNITS, Shape, shape_of, step_time
from course.calibration.scaling import ScaledConstants, scale
from course.models import ModelSpec, gpus
from course.models.gpus import GPU
from course.steptime import PowerLaw

KIND = "course step-time fit"
RATES = ("read_bandwidth", "matrix_flops", "seconds_per_kernel")
SAME = 0.01
"""Metrics are taken to be good to a per cent: fits whose errors differ by less are not told apart. The errors jump by a
third of that when a constant moves by next to nothing, so a finer judgement would be one of chance."""


@dataclass(frozen=True)
class Constant:
    """One fitted constant.

    seconds: its value, in `unit`. sheet: what the data sheet says. halved, doubled: the metric error of the best fit
    in which this constant is half or twice as large (root mean square, as a share).
    """

    name: str
    seconds: float
    sheet: float
    halved: float
    doubled: float

    @property
    def unit(self) -> str:
        """The unit of the constant, such as "s a step"."""
        return UNITS[self.name]


@dataclass(frozen=True)
class Fit:
    """Step-time constants of one measured run.

    name: the run. shape, gpu: what ran on what. constants: by name. misfit: root mean square of `errors`. errors:
    metric -> statistic -> modelled / measured - 1. notes: what a reader of the numbers must know.
    """

    name: str
    shape: Shape
    gpu: GPU
    constants: Mapping[str, Constant]
    misfit: float
    errors: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={self.constants[name].seconds:.3g}" for name in NAMES)
        return f"Fit({self.name!r}, {self.gpu.name}: {values}; metric errors {self.misfit:.2%})"

    @property
    def seconds(self) -> dict[str, float]:
        """The constants as plain numbers, in the units of `constants.UNITS`."""
        return {name: self.constants[name].seconds for name in NAMES}

    @property
    def source(self) -> str:
        """Where step times from this fit come from, for badges and notes."""
        return f"fitted: {self.name}, {self.shape.name} on {self.gpu.name}"

    @property
    def step_time(self) -> PowerLaw:
        """The step-time model, for `serve`."""
        return step_time(self.seconds, self.source)

    def settled(self, name: str) -> bool:
        """Whether the run tells this constant: half and twice its value fit worse, whatever the others do."""
        constant = self.constants[name]
        return min(constant.halved, constant.doubled) > self.misfit + SAME

    @property
    def unsettled(self) -> tuple[str, ...]:
        """A sentence for each constant that this run does not tell."""
        sentences = []
        for name in NAMES:
            if not self.settled(name):
                c = self.constants[name]
                sentences.append(
                    f"{name} is not settled by this run: with the others fitted again, half its value gives "
                    f"metric errors of {c.halved:.2%} and twice its value {c.doubled:.2%}, against {self.misfit:.2%}. "
                    f"Its value comes mostly from the data sheet ({c.sheet:.3g} {c.unit})"
                )
        return tuple(sentences)

    def scaled_to(
        self,
        gpu: GPU | str | None = None,
        model: ModelSpec | str | None = None,
        *,
        compute: float | None = None,
        step_overhead: float | None = None,
        ranks: int = 1,
        weight_bytes: float | None = None,
    ) -> ScaledConstants:
        """What these constants become on another card, for another model, or both, by the data sheets alone.

        per_step: the part that reads the weights, as the data sheet has it, with bytes / bandwidth; the rest, the
        engine's own overhead, is kept. per_context_token: with KV bytes / bandwidth. per_prompt_token: with FLOPs a
        token, and with a factor between 1 and the ratio of the cards' FLOP/s. per_sequence: kept.

        compute: that factor; by default halfway in ratio, the square root of the ratio of FLOP/s. step_overhead:
        seconds of per_step that do not scale, instead of what exceeds the data sheet; 0 scales all of it. ranks,
        weight_bytes: of the new model, as in `shape_of`.

        `ScaledConstants.account` says all this with the numbers. ValueError for settings out of range, and for names
        that are not known.
        """
        if gpu is None:
            card = self.gpu
        else:
            card = gpu if isinstance(gpu, GPU) else gpus.gpu(gpu)
        shape = self.shape
        if model is not None:
            spec = model if isinstance(model, ModelSpec) else models.model(model)
            shape = shape_of(spec, ranks=ranks, weight_bytes=weight_bytes)
        elif ranks != 1 or weight_bytes is not None:
            raise ValueError("ranks and weight_bytes belong to a new model: give model too")
        return scale(
            self.seconds, (self.shape, self.gpu), (shape, card),
            name=self.name, compute=compute, step_overhead=step_overhead,
        )  # fmt: skip

    # To a file and back

    def as_dict(self) -> dict[str, Any]:
        """The fit as values that JSON can hold; times in seconds."""
        card = {name: getattr(self.gpu, name) for name in ("name", *RATES, "peak_bandwidth", "source")}
        return {
            "kind": KIND,
            "run": self.name,
            "shape": asdict(self.shape),
            "gpu": card,
            "constants": {
                name: asdict(c) | {"unit": c.unit, "settled": self.settled(name)} for name, c in self.constants.items()
            },
            "misfit": self.misfit,
            "errors": {metric: dict(errors) for metric, errors in self.errors.items()},
            "unsettled": list(self.unsettled),
            "notes": list(self.notes),
        }

    @classmethod
    def read(cls, path: str | PathLike) -> "Fit":
        """A fit from the file that `save` wrote. ValueError, with what is wrong, for any other."""
        file = path_of(path, "a fit")
        content = json_value(file, text(file, "fit", "JSON", MAX_JSON_BYTES))
        try:
            return cls.from_dict(content)
        except ValueError as error:
            raise ValueError(f"{file.name}: {error}") from None

    def save(self, path: str | PathLike) -> None:
        """Write the fit as JSON."""
        path_of(path, "a fit").write_text(json.dumps(self.as_dict(), indent=2, allow_nan=False) + "\n", "utf-8")

    @classmethod
    def from_dict(cls, content: Any) -> "Fit":
        """A fit from `as_dict`. ValueError for anything else."""
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise ValueError("this is not a fit: `course compare ... --fit --save-fit FILE` writes one")
        shape, card, constants = (_part(content, key) for key in ("shape", "gpu", "constants"))
        fitted_constants = {}
        for name in NAMES:
            row = _part(constants, name)
            numbers = {key: settings.real(f"{name}.{key}", row.get(key), low=0, high=1e10)
                       for key in ("seconds", "sheet", "halved", "doubled")}  # fmt: skip
            fitted_constants[name] = Constant(name, **numbers)
        errors = {
            metric: {key: settings.real(f"errors.{metric}.{key}", value) for key, value in _part(rows, metric).items()}
            for rows in (_part(content, "errors"),)
            for metric in rows
        }
        sizes = ("weight_bytes", "flops_per_token", "kv_bytes_per_token")
        bandwidth, flops, kernel = (settings.real(rate, card.get(rate)) for rate in RATES)
        peak = card.get("peak_bandwidth")
        notes = content.get("notes")
        fit = cls(
            str(content.get("run")),
            Shape(str(shape.get("name")), *(settings.real(size, shape.get(size)) for size in sizes)),
            GPU(
                str(card.get("name")),
                bandwidth,
                flops,
                kernel,
                source=str(card.get("source")),
                peak_bandwidth=None if peak is None else settings.real("peak_bandwidth", peak, low=1, high=1e30),
            ),
            fitted_constants,
            settings.real("misfit", content.get("misfit"), low=0),
            errors,
            tuple(str(note) for note in notes) if isinstance(notes, list) else (),
        )
        step_time(fit.seconds, fit.source)  # refuses constants that no step can have
        return fit


def _part(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    part = content.get(key)
    if not isinstance(part, dict):
        raise ValueError(f"a fit has an object {key!r} in braces, not {settings.quote(part)}")
    return part
