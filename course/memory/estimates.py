"""What profiling finds beside the weights: estimates, from what vLLM printed on a few cards.

Give your own engine's figures to `ledger` if you have them; these serve until then.
"""

from math import ceil
from typing import NamedTuple

from course.models import ModelSpec, formula

GIB = 2**30
SAMPLER_BYTES = 38
"""Bytes a (sequence, vocabulary entry) while sampling with top-k and top-p: logits and their sorted copy, indices,
probabilities, sums. Fitted to what vLLM printed for five models of 0.6 to 70 billion parameters on H100s, which it
gives within 1.2% (llm-d-benchmark, empirical vLLM memory results)."""
HIDDEN_STATES = 2
FORWARD_HIDDEN_STATES = 3
CONTEXT_BYTES = int(0.13 * GIB)
"""Of the CUDA context and libraries, as printed on one H100; 0.55 GiB on two, where NCCL has buffers."""
NCCL_BYTES = int(0.42 * GIB)


class Amount(NamedTuple):
    """A figure of a ledger: bytes, and where they come from."""

    bytes: int
    formula: str


def activation(
    spec: ModelSpec, tp: int, max_num_batched_tokens: int, max_num_seqs: int, *, samples: bool = True
) -> Amount:
    """Bytes at the peak of the profiling run, and the formula: the larger of sampling and the widest layer.

    samples: False for a stage of a pipeline before the last, which samples nothing.
    """
    hidden = spec.hidden_size * max_num_batched_tokens * 2
    sampling = SAMPLER_BYTES * max_num_seqs * spec.vocab_size + HIDDEN_STATES * hidden if samples else 0
    widest = -(-3 * spec.intermediate_size // tp) * max_num_batched_tokens * 2 + FORWARD_HIDDEN_STATES * hidden
    if sampling >= widest:
        return Amount(
            sampling,
            f"estimate, sampling: {SAMPLER_BYTES} B x {max_num_seqs:,} sequences x {spec.vocab_size:,} vocabulary + "
            f"{HIDDEN_STATES} x {spec.hidden_size:,} x {max_num_batched_tokens:,} tokens x 2 B",
        )
    share = f" / {tp} ranks" if tp > 1 else ""
    return Amount(
        widest,
        f"estimate, widest layer: (3 x {spec.intermediate_size:,}{share} + {FORWARD_HIDDEN_STATES} x "
        f"{spec.hidden_size:,}) x {max_num_batched_tokens:,} tokens x 2 B",
    )


def other(ranks: int) -> Amount:
    """Bytes of the CUDA context and, over several ranks, of NCCL, and the formula."""
    if ranks == 1:
        return Amount(CONTEXT_BYTES, "estimate: CUDA context and libraries 0.13 GiB")
    return Amount(CONTEXT_BYTES + NCCL_BYTES, "estimate: CUDA context and libraries 0.13 GiB + NCCL 0.42 GiB")


def weights(spec: ModelSpec, stage: range, last: bool, tp: int, replicas: int, drafted: int) -> Amount:
    """Bytes of weights on a card of one stage of the pipeline, and the formula.

    The layers are taken to be equally large. Embedding and head are on the first and the last stage. replicas: data
    parallel ranks times those of prefill context parallelism, over which experts are spread as well (vLLM's
    FusedMoEParallelConfig), and everything else is repeated. drafted: bytes of what drafts, on the last stage.
    ValueError if the weights could not be counted.
    """
    whole = spec.weights_bytes
    if whole is None:
        reasons = [note for note in spec.notes if note.startswith("the weights")]
        raise ValueError("; ".join([*reasons, f"give the weights_bytes of {spec.name}"]))
    size, terms = whole, [formula.weights_bytes(spec)]
    experts = 0 if spec.weights is None else spec.weights.expert_bytes
    if len(stage) < spec.num_layers:
        share = len(stage) / spec.num_layers
        ends = spec.head_parameters * 2 * ((stage.start == 0) + last)
        layers = (
            spec.weights.layer_bytes if spec.weights else whole - 2 * spec.head_parameters * spec.bytes_per_parameter
        )
        size, experts = ceil(layers * share) + ends, ceil(experts * share)
        terms = [f"{len(stage)} of {spec.num_layers} layers of {layers:,} B" + (f" + {ends:,} B" if ends else "")]
    if last and drafted:
        size += drafted
        terms.append(f"{drafted:,} B of drafts")
    card = (size - experts) / tp + experts / (tp * replicas)
    text = " + ".join(terms)
    if experts and replicas > 1:
        return Amount(ceil(card), f"({text} - {experts:,} B of experts) / {tp} + experts / {tp * replicas} ranks")
    if tp > 1:
        text = f"({text})" if len(terms) > 1 else text
        return Amount(ceil(card), f"{text} / {tp} ranks")
    return Amount(ceil(card), text)
