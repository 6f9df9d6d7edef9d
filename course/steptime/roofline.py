"""The roofline: what a step must read and compute, over what the card can read and compute."""

from course.base import settings
from course.engine.step import SHORTEST, StepTimeModel
from course.models import ModelSpec, model
from course.models.gpus import GPU, gpu


class Roofline(StepTimeModel):
    """Seconds of a step of `model` on `gpu`: what must be read against bandwidth, what must be computed against FLOP/s.

    launches + max(weight bytes / bandwidth, FLOPs of the matrix products / their rate)
             + KV bytes of the decodes / bandwidth
             + max(FLOPs of the chunks' attention / rate, their KV bytes / bandwidth)

    The weights are read once for all tokens of a step, decodes and prompt chunks alike: that is why a mixed step costs
    less than its parts one after the other. Of a mixture of experts those are read that the tokens of the step touch
    (`ModelSpec.step_weight_bytes_of`). Products of 8-bit weights run at the card's rate for them; attention does not. A
    layer with a window reads no more than its window: of n decodes over C tokens min(C, n x window), which is what n
    equal ones read. Roofline model: Williams, Waterman and Patterson, CACM 52(4), 2009. Constants and their sources:
    `models.model(name)`, `gpus.gpu(name)`.

    What it is a floor of: the rates are those that a kernel of its kind was measured to reach, and no engine reads or
    computes less for a dense model; one that fuses its kernels launches fewer of them, by which the recorded step of
    one sequence on an H100 is 4% below it. Scheduling, sampling and communication come on top. It is no floor where a
    router sends a batch to fewer experts than chance would, and where contexts in windowed layers differ: there it is
    an average.

    model, gpu: names, or a ModelSpec and a GPU. `kernels` is the number of launches a step, by default 11 a layer
    (norm, qkv, rotary, KV write, attention, merge, output, norm, gate and up, activation, down) and 4 around them.
    tp: cards that share every layer; what they say to each other is not counted.
    """

    sound = True

    def __init__(self, model_name: str | ModelSpec, gpu_name: str | GPU, *, kernels: int | None = None, tp: int = 1):
        self.model = model_name if isinstance(model_name, ModelSpec) else model(model_name)
        self.gpu = gpu_name if isinstance(gpu_name, GPU) else gpu(gpu_name)
        self.kernels = 11 * self.model.num_layers + 4 if kernels is None else settings.whole("kernels", kernels, low=0)
        self.tp = settings.whole("tp", tp, high=4096)
        spec, bandwidth = self.model, self.gpu.read_bandwidth
        self.launch = self.kernels * self.gpu.seconds_per_kernel
        self.weights = spec.step_weight_bytes / bandwidth / tp
        wide, narrow = spec.layer_parameters - spec.fp8_parameters, spec.fp8_parameters
        self.per_token = (2 * wide / self.gpu.matrix_flops + 2 * narrow / self.gpu.fp8_flops) / tp
        self.per_logits = 2 * spec.head_parameters / self.gpu.matrix_flops / tp
        layers = [layer.attention for layer in spec.layer_caches if layer.attention]
        full = sum(kept.elements(tp) for kept in layers if kept.window is None)
        self.per_context = full * spec.kv_bytes_per_element / bandwidth
        self.per_pair = spec.attention_flops_per_pair / self.gpu.matrix_flops / tp
        self._windows = _windows(spec, self.gpu, tp)
        self.straight = not self._windows
        self.check_settings()

    def check_settings(self) -> None:
        """See StepTimeModel."""
        for name in ("launch", "weights", "per_token", "per_logits", "per_context", "per_pair"):
            setattr(self, name, settings.real(name, getattr(self, name, None), low=0, high=settings.MAX_SECONDS))
        if self.launch + self._reading(1) < SHORTEST:
            raise ValueError(
                f"a step must take time, at least {SHORTEST:g} s: is {self.gpu!r} right for {self.model.name!r}?"
            )

    def __repr__(self) -> str:
        return f"Roofline({self.model.name!r}, {self.gpu.name!r}{f', tp={self.tp}' if self.tp > 1 else ''})"

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        products = self.per_token * (decodes + tokens) + self.per_logits * decodes
        computing, reading = self.per_pair * pairs, self.per_context * prefill_context
        cached = self.per_context * decode_context
        for window, per_context, per_pair in self._windows:
            computing -= per_pair * max(pairs - tokens * window, 0)
            reading += per_context * min(prefill_context, tokens + window)
            cached += per_context * min(decode_context, decodes * window)
        return self.launch + max(self._reading(decodes + tokens), products) + cached + max(computing, reading)

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel. ValueError for a model with windows."""
        if self._windows:
            raise ValueError(f"{self!r} has windows, so its decodes do not follow a straight line: call `seconds`")
        products = self.per_token * decodes + self.per_logits * decodes
        return self.launch + max(self._reading(decodes), products), self.per_context

    @property
    def knee(self) -> float:
        """Tokens a step at which computing the matrix products takes as long as reading all the weights."""
        return self.weights / (self.per_token + self.per_logits)

    def _reading(self, tokens: int) -> float:
        """Seconds for the weights that a step of so many tokens reads."""
        mixture = self.model.weights
        if mixture is None or not mixture.expert_bytes:
            return self.weights
        return self.weights * (self.model.step_weight_bytes_of(tokens) / self.model.step_weight_bytes)


def _windows(spec: ModelSpec, card: GPU, tp: int) -> tuple[tuple[int, float, float], ...]:
    """(tokens, seconds a token of context, seconds a pair) of the layers of each window, on one of tp cards."""
    found: dict[int, list[int]] = {}
    for layer in spec.layer_caches:
        if layer.attention and layer.attention.window is not None:
            sums = found.setdefault(layer.attention.window, [0, 0])
            sums[0] += layer.attention.elements(tp) * spec.kv_bytes_per_element
            sums[1] += layer.attention.flops_per_pair
    return tuple(
        (window, size / card.read_bandwidth, flops / card.matrix_flops / tp) for window, (size, flops) in found.items()
    )
