"""A power law of the batch: a handful of constants, as fitted to an engine or chosen by hand."""

from course.base import settings
from course.engine.step import SHORTEST, StepTimeModel


class PowerLaw(StepTimeModel):
    """t0 + c x decodes^alpha + prefill x prompt tokens + context x decode context + pairs x prefill pairs, in seconds.

    t0: seconds every step costs (weights read once, launches). c, alpha: what a decode adds, alpha <= 1 where batching
    pays. prefill: seconds a prompt token. context: seconds a token of decode context (KV read). pairs: seconds a
    query-key pair of prefill attention. Raises ValueError for a constant outside 0 to 1e10, an alpha outside 0 to 10,
    and where a step would take no time at all.
    """

    sound = True

    def __init__(self, t0: float, c: float, alpha: float, prefill: float = 0, context: float = 0, pairs: float = 0):
        self.t0, self.c, self.alpha, self.prefill, self.context, self.pairs = t0, c, alpha, prefill, context, pairs
        self.check_settings()

    def check_settings(self) -> None:
        """See StepTimeModel."""
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

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        batch = self.c * decodes**self.alpha if decodes else 0.0
        return self.t0 + batch + self.prefill * tokens + self.context * decode_context + self.pairs * pairs

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        return self.t0 + (self.c * decodes**self.alpha if decodes else 0.0), self.context

    def prefill_line(self) -> tuple[float, float]:
        """See StepTimeModel."""
        return self.prefill, self.pairs
