"""The recorded steps of one card, for a model that is spread over several: tensor and pipeline parallelism."""

from __future__ import annotations

from functools import cache
from statistics import median

from course.base.settings import quote, whole
from course.engine.step import StepTimeModel
from course.steptime.links import RECORDING, Link, recorded_link, two_cards
from course.steptime.recorded import Recorded

NUMBER_BYTES = 2  # bf16, in which activations are added up
CONTEXT = 1_024  # tokens that each decode of the recorded halves attends to


class Sharded(StepTimeModel):
    """Seconds of a step of `tp` x `pp` cards, from a recording of one card.

    tp: ranks of tensor parallelism. Each has its share of every layer: of the weights and of the KV heads, which are
    copied where there are fewer of them than ranks. A step takes t0 + (t - t0) / tp where one card takes t: t0, of all
    layers, is what does not shrink (`unshrinking`). Two all-reduces a layer come on top, of tokens x hidden x 2 bytes.
    Only two cards were recorded: more are extrapolated.

    pp: stages of a pipeline. The requests of a step are dealt evenly to as many micro-batches, which follow each other
    through the stages so that all compute; a step takes as long as one of them needs for all stages, with a send
    behind each stage.

    link: what all-reduces take (`links`), by default the fastest recorded. The last layer's logits are not gathered.

    Raises ValueError if tp does not divide the heads, or pp is more than the layers.
    """

    sound = True

    def __init__(self, recording: Recorded, tp: int = 1, pp: int = 1, link: Link | None = None):
        if not isinstance(recording, Recorded) or not recording.sizes:
            raise ValueError(f"a recording with the sizes of its model is sharded, not {quote(recording)}")
        if link is not None and not isinstance(link, Link):
            raise ValueError(f"link must be a Link, such as links.recorded_link(), not {quote(link)}")
        self.recording, self.tp, self.pp = recording, whole("tp", tp, high=4_096), whole("pp", pp, high=4_096)
        self.link = link or recorded_link()
        heads, kv_heads = recording.sizes["heads"], recording.sizes["kv_heads"]
        self.layers, self.hidden = recording.sizes["layers"], recording.sizes["hidden"]
        if heads % self.tp or max(kv_heads, self.tp) % min(kv_heads, self.tp):
            works = [str(one) for one in range(1, heads + 1)
                     if not heads % one and not max(kv_heads, one) % min(kv_heads, one)]  # fmt: skip
            raise ValueError(
                f"tp {self.tp} does not divide the {heads} heads of {recording.model} and its {kv_heads} KV heads: "
                f"choose {', '.join(works[:-1])} or {works[-1]}"
            )
        if self.pp > self.layers:
            raise ValueError(f"pp {self.pp} is more than the {self.layers} layers of {recording.model}: choose fewer")
        self.kv_heads = kv_heads
        self.stays = unshrinking(recording)

    @property
    def badge(self) -> str:
        """See StepTimeModel."""
        where = f"modelled: {self.recording.card} {self.recording.provenance['date']}, tp {self.tp}, pp {self.pp}"
        return f"{where}, {self.link.badge(self.tp)}" if self.tp > 1 else where

    def __repr__(self) -> str:
        return f"Sharded({self.recording.name!r}, tp={self.tp}, pp={self.pp})"

    def beyond(self, **step: int) -> str:
        """See StepTimeModel."""
        return self.recording.beyond(**step)

    def all_reduces(self, tokens: int) -> float:
        """Seconds of all all-reduces of a step of so many tokens, two a layer."""
        if self.tp == 1 or not tokens:
            return 0.0
        return 2 * self.layers * self.link.all_reduce(tokens * self.hidden * NUMBER_BYTES, self.tp)

    def seconds(self, decodes: int, decode_context: int, tokens: int, pairs: int, prefill_context: int) -> float:
        """See StepTimeModel."""
        base, slope = self.decode_line(decodes)
        if tokens:
            each, chunk = self._micro(decodes), self._micro(tokens)
            one_card = self.recording.seconds(each, 0, chunk, pairs / self.pp, 0)
            base = max(base, self._spread(one_card, each + chunk))
        return base + slope * decode_context

    def decode_line(self, decodes: int) -> tuple[float, float]:
        """See StepTimeModel."""
        each = self._micro(decodes)
        base, slope = self.recording.decode_line(each)
        return self._spread(base, each), slope / min(self.tp, self.kv_heads) / self.pp

    def _micro(self, many: int) -> int:
        """Of so many decodes or tokens, those of the largest micro-batch."""
        return -(-many // self.pp)

    def _spread(self, seconds: float, tokens: int) -> float:
        """Seconds that the cards need for what takes one card so long, all-reduces and sends with it."""
        stays = min(self.stays, seconds) if self.tp > 1 else 0.0
        sends = self.pp * self.link.send(tokens * self.hidden * NUMBER_BYTES) if self.pp > 1 and tokens else 0.0
        return (seconds - stays) / self.tp + stays + self.all_reduces(tokens) + sends


@cache
def unshrinking(recording: Recorded) -> float:
    """Seconds of a step that do not shrink with more cards.

    Of a layer of Llama-3.1-8B that took two H200s half the seconds of one and a share s of them on top, s stays. Here
    it is the median of s times this recording's own step, over the recorded batches: in between they scatter with the
    kernels that a library picks.
    """
    of_decodes = {"model": "llama-3.1-8b", "all_reduce": "none", "graphs": True, "context": CONTEXT}
    times = {(row["tp"], row["tokens"]): row["us_a_layer"][0] for row in two_cards(RECORDING)["steps"]
             if of_decodes.items() <= row.items()}  # fmt: skip
    found = []
    for tokens in sorted(tokens for tp, tokens in times if tp == 1):
        base, slope = recording.decode_line(tokens)
        stays = max(2 * times[2, tokens] / times[1, tokens] - 1, 0.0)
        found.append(stays * (base + slope * CONTEXT * tokens))
    return median(found)
