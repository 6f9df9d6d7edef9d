"""What speculative decoding adds to memory: layers of KV, and weights.

Who drafts decides. The layers that come with some models (multi-token prediction) and an EAGLE head keep K and V of
every token, as a layer of the model does; a draft model keeps those of all its layers; n-grams keep nothing.
"""

from dataclasses import dataclass

from course.base import settings
from course.models import ModelSpec
from course.models.layers import Layer

MTP, EAGLE, EAGLE3, MODEL, NGRAM, SUFFIX = "mtp", "eagle", "eagle3", "draft_model", "ngram", "suffix"
METHODS = (MTP, EAGLE, EAGLE3, MODEL, NGRAM, SUFFIX)
WITHOUT_KV = (NGRAM, SUFFIX)


@dataclass(frozen=True)
class Drafts:
    """tokens: drafted a step. layers: what keeps KV beside the model's own. weights_bytes: of all ranks together.

    note: who drafts, and what is not counted; empty without drafts.
    """

    tokens: int = 0
    layers: tuple[Layer, ...] = ()
    weights_bytes: int = 0
    note: str = ""


def drafts(
    spec: ModelSpec,
    num_speculative_tokens: int = 0,
    method: str | None = None,
    draft_model: ModelSpec | None = None,
    draft_layers: int | None = None,
) -> Drafts:
    """What drafts `num_speculative_tokens` tokens a step for `spec`.

    method: vLLM's names, METHODS. Without one: draft_model if there is one, else mtp if the model brings such
    layers, else eagle. draft_model: the config of the draft model or of the head. draft_layers: how many layers of KV
    an EAGLE head has, 1 without its config. ValueError for draft settings without tokens to draft, and a method that
    does not fit.
    """
    tokens = settings.whole("num_speculative_tokens", num_speculative_tokens, low=0, high=1000)
    if method is not None and method not in METHODS:
        raise ValueError(
            f"speculative_method is {', '.join(METHODS[:-1])} or {METHODS[-1]}, not {settings.quote(method)}"
        )
    if tokens == 0:
        named = {"speculative_method": method, "draft_model": draft_model, "draft_layers": draft_layers}
        idle = [name for name, value in named.items() if value is not None]
        if idle:
            raise ValueError(f"{idle[0]} drafts nothing without num_speculative_tokens: give it, at least 1")
        return Drafts()
    if method is None and draft_model is not None:
        method = MODEL
    elif method is None:
        method = MTP if spec.draft_layers and draft_layers is None else EAGLE
    if method in WITHOUT_KV:
        return Drafts(tokens, note=f"drafts from {method} keep no KV")
    if method == MODEL or draft_model is not None:
        return _of_a_model(tokens, method, draft_model)
    if method == MTP:
        return _of_the_model(spec, tokens)
    number = 1 if draft_layers is None else settings.whole("draft_layers", draft_layers, high=1000)
    caches = [layer.attention for layer in spec.layer_caches if layer.attention]
    if not caches:
        raise ValueError(
            f"{spec.name} has no attention for an EAGLE head to be shaped like: give draft_model, its config"
        )
    full = [one for one in caches if one.window is None] or caches
    note = (
        f"drafts from {method}: {number} layer{'' if number == 1 else 's'} of KV, shaped like the model's; the weights "
        "of the head are not counted without its config"
    )
    return Drafts(tokens, (Layer(full[-1]),) * number, note=note)


def _of_a_model(tokens: int, method: str, draft: ModelSpec | None) -> Drafts:
    if draft is None:
        raise ValueError("speculative_method draft_model needs draft_model, the config of the model that drafts")
    size = draft.weights_bytes
    if method in (EAGLE, EAGLE3) and draft.weights is not None:  # embedding and head are the model's
        size = draft.weights.layer_bytes + 2 * 2 * draft.hidden_size**2
    number = sum(layer.attention is not None for layer in draft.layer_caches)
    uncounted = "; its weights could not be counted" if size is None else ""
    return Drafts(
        tokens, draft.layer_caches, size or 0, f"drafts from {draft.name} ({method}): {number} layers of KV{uncounted}"
    )


def _of_the_model(spec: ModelSpec, tokens: int) -> Drafts:
    if not spec.draft_layers:
        raise ValueError(f"{spec.name} has no layers for multi-token prediction: take another speculative_method")
    size = 0 if spec.weights is None else spec.weights.draft_bytes
    number = len(spec.draft_layers)
    return Drafts(
        tokens, spec.draft_layers, size, f"drafts from mtp: the model's own {number} layer{'' if number == 1 else 's'}"
    )
