"""How long one step takes: callables from a Step to seconds.

Any callable will do for `serve`. The models here also offer what the fast loops need: `seconds`, the same value from
the sums over a step; `decode_line`, the straight line that a step of decodes alone follows as its context grows; and
perhaps `prefill_line`, what prompts add to it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from course.base import settings
from course.models import ModelSpec, model
from course.models.gpus import GPU, gpu


@dataclass(frozen=True, slots=True)
class Step:
    """What one forward pass is made of; all that a step-time model may look at. Counts of sequences and tokens."""

    decodes: int
    """Sequences that compute one token and emit the next."""
    decode_context: int
    """Tokens that those attend to, the new one included, summed over the decodes."""
    prefill_chunks: tuple[tuple[int, int], ...]
    """(tokens, tokens already in the cache) of each prompt chunk."""

    @property
    def prefill_tokens(self) -> int:
        return sum(tokens for tokens, _ in self.prefill_chunks)

    @property
    def prefill_pairs(self) -> int:
        """Query-key pairs of causal attention over the chunks: tokens x (cached + (tokens + 1) / 2) each."""
        return sum(tokens * cached + tokens * (tokens + 1) // 2 for tokens, cached in self.prefill_chunks)

    @property
    def prefill_context(self) -> int:
        """Tokens whose K and V the chunks read: those already in the cache and their own."""
        return sum(tokens + cached for tokens, cached in self.prefill_chunks)


StepTime = Callable[[Step], float]
SHORTEST, LONGEST = 1e-12, 1e200  # seconds a step may take, so that clocks and rates stay within the range of floats


class StepTimeModel:
    """A step time that depends on sums over the step only, so that the fast loops need not build a Step."""

    source = "modelled"

    def check_settings(self) -> None:
        """Raises ValueError for settings that cannot be. `serve` asks too: they may have been changed since."""

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """Seconds of a step with these sums (see Step)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `seconds`")

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """(base, slope): a step of decodes alone takes base + slope x decode_context seconds, to the last bit."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `decode_line`")

    def prefill_line(self) -> tuple[float, float] | None:
        """(a, b) where a step takes base + a x tokens + slope x decode_context + b x pairs seconds, to the last bit and
        added up in this order, also with 0 decodes; None where it is no such sum.

        Saves the fast loop a call for each step with prompts. It asks only models whose class is known to keep to it.
        """
        return None

    def __call__(self, step: Step) -> float:
        return self.seconds(
            step.decodes, step.decode_context, step.prefill_tokens, step.prefill_pairs, step.prefill_context
        )


class PowerLaw(StepTimeModel):
    """t0 + c x decodes^alpha + prefill x prompt tokens + context x decode context + pairs x prefill pairs, in seconds.

    t0: seconds every step costs (weights read once, launches). c, alpha: what a decode adds, alpha <= 1 where batching
    pays. prefill: seconds a prompt token. context: seconds a token of decode context (KV read). pairs: seconds a
    query-key pair of prefill attention. Raises ValueError for a constant outside 0 to 1e10, an alpha outside 0 to 10,
    and where a step would take no time at all.
    """

    def __init__(self, t0: float, c: float, alpha: float, prefill: float = 0, context: float = 0, pairs: float = 0):
        self.t0, self.c, self.alpha, self.prefill, self.context, self.pairs = t0, c, alpha, prefill, context, pairs
        self.check_settings()

    def check_settings(self) -> None:
        self.alpha = settings.real("alpha", getattr(self, "alpha", None), low=0, high=10)
        for name in ("t0", "c", "prefill", "context", "pairs"):
            value = settings.real(name, getattr(self, name, None), low=0, high=settings.MAX_SECONDS)
            setattr(self, name, value)
        if self.t0 + min(self.c, self.prefill) < SHORTEST:
            raise ValueError(
                f"a step must take time, at least {SHORTEST:g} s: give t0, or both c and prefill, a value above that"
            )

    def __repr__(self) -> str:
        names = ("t0", "c", "alpha", "prefill", "context", "pairs")
        return f"PowerLaw({', '.join(f'{name}={getattr(self, name):g}' for name in names)})"

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        batch = self.c * decodes**self.alpha if decodes else 0.0
        return self.t0 + batch + self.prefill * tokens + self.context * decode_context + self.pairs * pairs

    def decode_line(self, decodes):
        return self.t0 + (self.c * decodes**self.alpha if decodes else 0.0), self.context

    def prefill_line(self):
        return self.prefill, self.pairs


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
        for name in ("launch", "weights", "per_token", "per_logits", "per_context", "per_pair"):
            setattr(self, name, settings.real(name, getattr(self, name, None), low=0, high=settings.MAX_SECONDS))
        if self.launch + self.weights < SHORTEST:
            raise ValueError(
                f"a step must take time, at least {SHORTEST:g} s: is {self.gpu!r} right for {self.model.name!r}?"
            )

    def __repr__(self) -> str:
        return f"Roofline({self.model.name!r}, {self.gpu.name!r})"

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        products = self.per_token * (decodes + tokens) + self.per_logits * decodes
        attention = max(self.per_pair * pairs, self.per_context * prefill_context)
        return self.launch + max(self.weights, products) + self.per_context * decode_context + attention

    def decode_line(self, decodes):
        products = self.per_token * decodes + self.per_logits * decodes
        return self.launch + max(self.weights, products), self.per_context

    @property
    def knee(self) -> float:
        """Tokens a step at which computing the matrix products takes as long as reading the weights."""
        return self.weights / (self.per_token + self.per_logits)


def checked(step_time: StepTime, step: Step) -> float:
    """Seconds of the step. Raises ValueError unless they are a finite number, at least SHORTEST."""
    return usable(step_time(step), step)


def usable(seconds: float, asked: object) -> float:
    if type(seconds) is float and SHORTEST <= seconds <= LONGEST:
        return seconds
    try:
        return settings.real("the step time", seconds, low=SHORTEST, high=LONGEST)
    except ValueError as error:
        raise ValueError(f"{error}; it was asked for {asked}") from None


def trusted(model: StepTimeModel) -> StepTimeModel:
    """The model itself where its settings rule out bad times, as here; else one that checks every answer."""
    own = vars(model).keys() & {
        "seconds",
        "decode_line",
        "prefill_line",
    }  # put into the object, over those of its class
    return model if type(model) in (PowerLaw, Roofline) and not own else _Checked(model)


class _Checked(StepTimeModel):
    """Somebody's own model, each answer looked at before the fast loops use it."""

    def __init__(self, model: StepTimeModel):
        self.model = model

    def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
        asked = f"{decodes} decodes over {decode_context} tokens and {tokens} prompt tokens"
        return usable(self.model.seconds(decodes, decode_context, tokens, pairs, prefill_context), asked)

    def decode_line(self, decodes):
        try:
            base, slope = self.model.decode_line(decodes)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"decode_line must return (base, slope) for {decodes} decodes: {settings.reason(error)}"
            ) from None
        slope = settings.real("the slope of decode_line", slope, low=0, high=LONGEST)
        for context in (decodes, 1000 * decodes):
            line, plain = base + slope * context, self.seconds(decodes, context, 0, 0, 0)
            if line != plain:
                raise ValueError(
                    f"decode_line and seconds must agree to the last bit, but for {decodes} decodes over {context} "
                    f"tokens they say {line!r} and {plain!r}"
                )
        return base, slope
