"""The roofline: what a step must read and compute, over what the card can read and compute."""

from course.base import settings
from course.engine.step import SHORTEST, StepTimeModel
from course.models import ModelSpec, model
from course.models.gpus import GPU, gpu


class Roofline(StepTimeModel):
    """Seconds of a step of `model` on `gpu`: what must be read against bandwidth, what must be computed against FLOP/s.

    launches + max(weight bytes / bandwidth, FLOPs of the matrix products / peak)
             + KV bytes of the decodes / bandwidth
             + max(FLOPs of the chunks' attention / peak, their KV bytes / bandwidth)

    The weights are read once for all tokens of a step, decodes and prompt chunks alike: that is why a mixed step costs
    less than its parts one after the other. Roofline model: Williams, Waterman and Patterson, CACM 52(4), 2009.
    Constants and their sources: `models.model(name)`, `gpus.gpu(name)`. It is a floor: no kernel reaches its peak at
    every shape, and the scheduling, sampling and detokenising of a real engine come on top.

    model, gpu: names, or a ModelSpec and a GPU. `kernels` is the number of launches a step, by default 11 a layer
    (norm, qkv, rotary, KV write, attention, merge, output, norm, gate and up, activation, down) and 4 around them.
    """

    sound = True

    def __init__(self, model_name: str | ModelSpec, gpu_name: str | GPU, *, kernels: int | None = None):
        self.model = model_name if isinstance(model_name, ModelSpec) else model(model_name)
        self.gpu = gpu_name if isinstance(gpu_name, GPU) else gpu(gpu_name)
        self.kernels = 11 * self.model.num_layers + 4 if kernels is None else settings.whole("kernels", kernels, low=0)
        self.launch = self.kernels * self.gpu.seconds_per_kernel
        self.weights = self.model.step_weight_bytes / self.gpu.read_bandwidth
        self.per_token = 2 * self.model.layer_parameters / self.gpu.matrix_flops
        self.per_logits = 2 * self.model.head_parameters / self.gpu.matrix_flops
        self.per_context = self.model.kv_bytes_per_token / self.gpu.read_bandwidth
        self.per_pair = self.model.attention_flops_per_pair / self.gpu.matrix_flops
        self.check_settings()

    def check_settings(self) -> None:
        """See StepTimeModel."""
        for name in ("launch", "weights", "per_token", "per_logits", "per_context", "per_pair"):
            setattr(self, name, settings.real(name, getattr(self, name, None), low=0, high=settings.MAX_SECONDS))
        if self.launch + self.weights < SHORTEST:
            raise ValueError(
                f"a step must take time, at least {SHORTEST:g} s: is {self.gpu!r} right for {self.model.name!r}?"
            )

    def __repr__(self) -> str:
        return f"Roofline({self.model.name!r}, {self.gpu.name!r})"

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        products = self.per_token * (decodes + tokens) + self.per_logits * decodes
        attention = max(self.per_pair * pairs, self.per_context * prefill_context)
        return self.launch + max(self.weights, products) + self.per_context * decode_context + attention

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        products = self.per_token * decodes + self.per_logits * decodes
        return self.launch + max(self.weights, products), self.per_context

    @property
    def knee(self) -> float:
        """Tokens a step at which computing the matrix products takes as long as reading the weights."""
        return self.weights / (self.per_token + self.per_logits)
