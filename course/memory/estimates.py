"""What profiling finds beside the weights: estimates, from what vLLM printed on a few cards.

Give your own engine's figures to `ledger` where you have them; these serve until then.
"""

from typing import NamedTuple

from course.models import ModelSpec

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


def activation(spec: ModelSpec, tp: int, max_num_batched_tokens: int, max_num_seqs: int) -> Amount:
    """Bytes at the peak of the profiling run, and the formula: the larger of sampling and the widest layer."""
    hidden = spec.hidden_size * max_num_batched_tokens * 2
    sampling = SAMPLER_BYTES * max_num_seqs * spec.vocab_size + HIDDEN_STATES * hidden
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


def other(tp: int) -> Amount:
    """Bytes of the CUDA context and, over several ranks, of NCCL, and the formula."""
    if tp == 1:
        return Amount(CONTEXT_BYTES, "estimate: CUDA context and libraries 0.13 GiB")
    return Amount(CONTEXT_BYTES + NCCL_BYTES, "estimate: CUDA context and libraries 0.13 GiB + NCCL 0.42 GiB")
