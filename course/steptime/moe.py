"""A mixture of experts: which share of its weights a step reads depends on how many tokens it computes."""

from __future__ import annotations

import os

from course.base import settings
from course.models import ModelSpec
from course.models.gpus import GPU
from course.models.known import named_or_read
from course.steptime.roofline import Roofline


class Moe(Roofline):
    """The roofline of a mixture of experts, with what makes it differ from a dense model in sight.

    A router sends each token to k of the E experts of a layer. If it sends all tokens alike and each by itself, n
    tokens touch E (1 - (1 - k / E)^n) of them on average: a second token finds few of its experts read already, the
    hundredth nearly all. Routers are trained to spread tokens evenly; tokens of one text resemble each other, so that a
    real batch touches fewer. No card was measured: `badge` says so.

    config: a model that the course knows, the path of a config.json, or a ModelSpec. gpu: a name or a GPU. More
    settings: see Roofline. Raises ValueError for a model without experts.
    """

    sound = True
    badge = "modelled: roofline, every expert as likely as any other"

    def __init__(
        self, config: str | os.PathLike | ModelSpec, gpu: str | GPU = "H200", *, kernels: int | None = None, tp: int = 1
    ):
        spec = config if isinstance(config, ModelSpec) else named_or_read(os.fspath(config))
        if spec.weights is None or not spec.weights.expert_bytes:
            raise ValueError(f"{spec.name} has no experts: steptime.Roofline is the model of its steps")
        super().__init__(spec, gpu, kernels=kernels, tp=tp)
        self.experts, self.chosen = spec.weights.num_experts, spec.weights.experts_per_token

    def __repr__(self) -> str:
        return super().__repr__().replace("Roofline", "Moe", 1)

    def touched(self, tokens: int) -> float:
        """Experts of a layer that a step of so many tokens reads, on average. Raises ValueError for none."""
        return self.experts * (1 - (1 - self.chosen / self.experts) ** settings.whole("tokens", tokens))

    def bytes_read(self, tokens: int) -> float:
        """Bytes of weights that a step of so many tokens reads, on average. Raises ValueError for none."""
        return self.model.step_weight_bytes_of(settings.whole("tokens", tokens))
