"""How the layers and the tokens of a model are dealt out to ranks."""

from collections.abc import Sequence

from course.base import settings
from course.models import ModelSpec
from course.models.layers import Heads

MAX_BYTES = 10**15


def stages_of(number: int, pp: int) -> list[range]:
    """The layers of each stage of a pipeline, as vLLM deals them out (get_pp_indices in distributed/utils.py).

    What does not come out even goes to the stages before the last, from the one before it backwards.
    """
    pp = settings.whole("pp", pp, high=4096)
    if pp > number:
        raise ValueError(f"{number} layers cannot be spread over {pp} stages of a pipeline: each needs one at least")
    sizes = [number // pp] * pp
    for i in range(2, number % pp + 2):
        sizes[-i] += 1
    ends = [sum(sizes[: i + 1]) for i in range(pp)]
    return [range(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def smallest_of_stages(kv_bytes: float | Sequence[float], stages: int) -> list[int]:
    """Bytes of the smallest rank of each stage, of one number for all or of one a rank."""
    ranks = kv_bytes if isinstance(kv_bytes, Sequence) and not isinstance(kv_bytes, str) else [kv_bytes] * stages
    if not ranks:
        raise ValueError("kv_bytes must be a number of bytes, or one a rank, not an empty list")
    if len(ranks) % stages:
        raise ValueError(f"kv_bytes has {len(ranks)} ranks, which {stages} stages cannot share evenly")
    sizes = [int(settings.real("kv_bytes", one, low=-MAX_BYTES, high=MAX_BYTES)) for one in ranks]
    each = len(sizes) // stages
    return [min(sizes[i * each : (i + 1) * each]) for i in range(stages)]


def context_ranks(spec: ModelSpec, full: bool, tp: int, dcp: int, pcp: int) -> int:
    """Ranks that share the tokens of a sequence; ValueError for what vLLM 0.19 refuses (config/model.py, parallel.py).

    full: whether every layer keeps every token. Decode context parallelism uses the ranks of tensor parallelism again:
    if KV heads would be copied to several of them, each keeps some of the tokens instead.
    """
    dcp, pcp = settings.whole("dcp", dcp, high=4096), settings.whole("pcp", pcp, high=4096)
    if dcp * pcp == 1:
        return 1
    if not full:
        raise ValueError("context parallelism needs full attention in every layer: no windows and no recurrent states")
    if tp % dcp:
        raise ValueError(
            f"dcp {dcp} must divide tp {tp}: decode context parallelism uses the ranks of tensor parallelism"
        )
    caches = [layer.attention for layer in spec.layer_caches]
    heads = max((one.kv_heads for one in caches if isinstance(one, Heads)), default=0)
    if dcp > 1 and heads:
        if dcp > tp // heads:
            raise ValueError(
                f"dcp {dcp} is more than tp {tp} / {heads} KV heads: only ranks that would hold the same KV head can "
                "share its tokens"
            )
        if spec.num_heads // heads % dcp:
            raise ValueError(f"dcp {dcp} must divide the {spec.num_heads // heads} query heads of a KV head")
    return dcp * pcp
