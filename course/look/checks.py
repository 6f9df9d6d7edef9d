"""Printed numbers computed again. A printed number is an interval, and so is what is computed from others."""

from dataclasses import dataclass
from itertools import product
from math import ceil, floor, isfinite
from typing import Any

from course.look.reading import Number, Paste
from course.memory import Ledger, ledger
from course.models import ModelSpec
from course.results import Result

GIB = 2**30
EQUAL, EXPLAINED, POSSIBLE, DIFFERS = "equal", "explained", "possible", "differs"
SIXTEEN_BITS, EIGHT_BITS = "16 bits", "fp8"


@dataclass(frozen=True)
class Check:
    """One printed number beside the computed one. why: the reason of a verdict that is not `equal`."""

    name: str
    printed: str
    computed: str
    verdict: str
    why: str = ""

    def as_json(self) -> dict[str, str]:
        """Its fields by name."""
        return vars(self)


def _interval(name: str, printed: Number, low: float, high: float, unit: str, why: str = "") -> Check:
    """equal where the two intervals meet. 1e-9: sums of decimals that are no binary fractions."""
    slack = 1e-9 * max(abs(high), abs(printed.value))
    verdict = EQUAL if printed.low - slack <= high and low <= printed.high + slack else DIFFERS
    middle = f"{(low + high) / 2:,.2f}" if unit == "GiB" else f"{(low + high) / 2:,.4g}"
    return Check(name, f"{printed.value:,g} {unit}".strip(), f"{middle} {unit}".strip(), verdict, why)


def of_start(paste: Paste) -> list[Check]:
    """The ledger of a card, from the lines alone."""
    found = []
    total, share, usable = (paste.one(name) for name in ("total", "share", "usable"))
    for name, value in (("usable", usable), ("wanted", paste.one("wanted"))):
        if total and share and value:
            found.append(_interval(name, value, total.low * share.low, total.high * share.high, "GiB", "total x share"))
    left = paste.one("kv_left") or (paste.one("kv_gib") if paste.ranks_seen == 1 else None)
    parts = [paste.one(name) for name in ("peak", "other")] if "peak" in paste.facts else [
        paste.one(name) for name in ("weights", "activation", "other")]  # fmt: skip
    if usable is None and total and share and "peak" in paste.facts:
        usable = Number(total.value * share.value, total.high * share.high - total.value * share.value)
    taken = [one for one in parts if one is not None]
    if left and usable and len(taken) == len(parts):
        whys = " - ".join(["usable", *(f"{one.value:g}" for one in taken)])
        check = _interval("KV", left, usable.low - sum(one.high for one in taken), usable.high - sum(one.low for one in taken),
                          "GiB", whys)  # fmt: skip
        graphs = paste.one("graphs")
        if check.verdict == DIFFERS and graphs:
            again = _interval("KV", left, usable.low - sum(one.high for one in taken) - graphs.high,
                              usable.high - sum(one.low for one in taken) - graphs.low, "GiB")  # fmt: skip
            if again.verdict == EQUAL:
                check = Check("KV", again.printed, again.computed, EXPLAINED, "CUDA graphs are taken off the pool too")
        found.append(check)
    now, before, to_set = (paste.one(name) for name in ("graph_share", "graph_share_before", "graph_share_to_set"))
    if now and before and to_set:
        found.append(_interval("utilization to set", to_set, 2 * now.low - before.high, 2 * now.high - before.low, "",
                               "the share, and what graphs take of it once more"))  # fmt: skip
    needed, has, asked, longest = (paste.one(name) for name in ("needed_gib", "kv_gib", "refused_length", "longest"))
    if needed and has and asked and longest and needed.low > 0:
        check = _interval("longest model length", longest, asked.value * has.low / needed.high - 512,
                          asked.value * has.high / needed.low + 16, "tokens", "the length x GiB there / GiB needed")  # fmt: skip
        if check.verdict == DIFFERS:
            check = Check(*(check.name, check.printed, check.computed, POSSIBLE),
                          "a model with windows or states keeps less of a long sequence")  # fmt: skip
        found.append(check)
    return found


def of_pool(paste: Paste, spec: ModelSpec | None) -> list[Check]:
    """Tokens and concurrency of the pool; with a model from its bytes, without one from each other."""
    tokens, length, seqs = (paste.one(name) for name in ("tokens", "length", "concurrency"))
    blocks = paste.one("blocks")
    if tokens is None and blocks:
        tokens = Number(blocks.value * 16)
    found = []
    if spec is not None:
        if tokens or seqs:
            found += _with_model(paste, spec, tokens)
        needed, asked = paste.one("needed_gib"), paste.one("refused_length")
        if needed and asked:
            found.append(_needed(paste, spec, needed, int(asked.value)))
        gib, held = paste.one("trt_gib"), paste.one("trt_tokens")
        if gib and held and held.value > 0:
            found.append(_bytes_a_token(spec, gib, held))
    if tokens and length and seqs and length.value > 0 and not any(one.name == "concurrency" for one in found):
        check = _interval(
            "concurrency", seqs, tokens.low / length.value, tokens.high / length.value, "", "tokens / length"
        )
        if check.verdict == DIFFERS:
            check = Check(check.name, check.printed, check.computed, POSSIBLE,
                          "a model with windows or states counts blocks of several kinds: name its --config")  # fmt: skip
        found.append(check)
    return found


def _settings(paste: Paste) -> list[tuple[dict[str, Any], list[str]]]:
    """Keywords of `memory.ledger` for each setting that the paste leaves open, with what it assumes; the likely first."""
    said = paste.settings
    dtype = said.get("kv_cache_dtype")
    dtypes = [(dtype, "")] if dtype else [("auto", ""), ("fp8", "--kv-cache-dtype fp8")]
    tp = said.get("tensor_parallel_size")
    ranks = [(tp, "")] if tp else [(1, ""), *((n, f"--tensor-parallel-size {n}") for n in (2, 4, 8))]
    minor = ".".join((paste.version or "").split(".")[:2])
    versions = [(minor, "")] if minor.count(".") == 1 else [("0.19", ""), ("0.21", "vLLM from 0.21 on")]
    modes = [("none", ""), ("align", "--mamba-cache-mode align")]
    made = []
    for (kind, a), (tensor, b), (version, c), (mode, d) in product(dtypes, ranks, versions, modes):
        keys = {"kv_dtype": kind, "tp": tensor, "version": version, "mamba_cache_mode": mode}
        made.append((keys, [one for one in (a, b, c, d) if one]))
    return sorted(made, key=lambda one: len(one[1]))


def _ledgers(
    spec: ModelSpec, gib: list[Number], keys: dict[str, Any], length: int | None
) -> tuple[Ledger, Ledger] | None:
    """The pool at both ends of the printed GiB; None where the model cannot be served so."""
    smallest = min(gib, key=lambda one: one.value)
    try:
        low, high = (ledger(spec, kv_bytes=max(1.0, end * GIB), max_model_len=length, **keys)
                     for end in (smallest.low, smallest.high))  # fmt: skip
    except ValueError:
        return None
    return low, high


def _with_model(paste: Paste, spec: ModelSpec, tokens: Number | None) -> list[Check]:
    gib = paste.facts.get("kv_gib") or paste.facts.get("kv_left")
    seqs, length = paste.one("concurrency"), paste.one("length")
    if not gib or not length:
        return []
    size = int(length.value)
    fits: list[tuple[list[str], Ledger, Ledger]] = []
    first: tuple[Ledger, Ledger] | None = None
    for keys, assumed in _settings(paste):
        both = _ledgers(spec, gib, keys, size)
        if both is None or both[0].kv_tokens is None or both[1].kv_tokens is None:
            continue
        first = first or both
        target = tokens or Number(0)
        if tokens is None or both[0].kv_tokens <= target.value <= both[1].kv_tokens:
            fits.append((assumed, *both))
    if first is None:
        return []
    low, high = fits[0][1:] if fits else first
    found = []
    if tokens is not None:
        printed, computed = f"{tokens.value:,.0f} tokens", f"{low.kv_tokens:,} to {high.kv_tokens:,} tokens"
        if fits and not fits[0][0]:
            found.append(Check("tokens", printed, computed, EQUAL))
        elif fits:
            ways = list(dict.fromkeys(" and ".join(one[0]) for one in fits if len(one[0]) == len(fits[0][0])))
            found.append(Check("tokens", printed, computed, EXPLAINED, f"fits with {'; or with '.join(ways)}"))
        else:
            found.append(_smaller_rank(paste, gib, tokens, printed, first))
    if seqs is not None and (tokens is None or fits):
        ends = (low.concurrency(size), high.concurrency(size))
        if tokens is not None and len(low.pool.groups) == 1 and size % low.pool.block_size == 0:
            ends = (tokens.value / size, tokens.value / size)  # of full attention alone: blocks are tokens
        found.append(_interval("concurrency", seqs, *ends, "", "blocks / blocks of the longest sequence"))
    elif seqs is not None and tokens is not None and len(low.pool.groups) == 1:
        found.append(_interval("concurrency", seqs, tokens.value / size, tokens.value / size, "", "tokens / length"))
    return found


def _smaller_rank(paste: Paste, gib: list[Number], tokens: Number, printed: str, first: tuple[Ledger, Ledger]) -> Check:
    low, high = first
    computed = f"{low.kv_tokens:,} to {high.kv_tokens:,} tokens"
    ranks = int(paste.settings.get("tensor_parallel_size", 1)) * int(paste.settings.get("pipeline_parallel_size", 1))
    ranks = max(ranks, paste.ranks_seen)
    fewer = low.kv_tokens is not None and tokens.value < low.kv_tokens
    if fewer and len(gib) < ranks and high.kv_tokens:
        least = tokens.value / high.kv_tokens * min(gib, key=lambda one: one.value).high
        return Check("tokens", printed, computed, POSSIBLE,
                     f"they are {least:.2f} GiB: another of the {ranks} ranks may have less; {len(gib)} of {ranks} are "
                     "printed here")  # fmt: skip
    return Check("tokens", printed, computed, DIFFERS, "no KV type, rank, version or cache mode gives that number")


def _needed(paste: Paste, spec: ModelSpec, needed: Number, length: int) -> Check:
    """GiB of one sequence of `length` tokens."""
    fits, first = [], None
    for keys, assumed in _settings(paste):
        both = _ledgers(spec, [Number(1.0)], keys, length)
        if both is None:
            continue
        pool = both[0].pool
        size = pool.blocks_for(length) * pool.bytes_per_block / GIB
        first = first or size
        if needed.low <= size <= needed.high:
            fits.append((assumed, size))
    printed = f"{needed.value:g} GiB"
    if fits and not fits[0][0]:
        return Check("GiB needed", printed, f"{fits[0][1]:.2f} GiB", EQUAL)
    if fits:
        return Check("GiB needed", printed, f"{fits[0][1]:.2f} GiB", EXPLAINED, f"fits with {' and '.join(fits[0][0])}")
    return Check("GiB needed", printed, f"{first:.2f} GiB" if first else "-", DIFFERS, "blocks of the longest sequence")


def _bytes_a_token(spec: ModelSpec, gib: Number, held: Number) -> Check:
    low, high = floor(gib.low * GIB / held.value), ceil(gib.high * GIB / held.value)
    printed = f"{(low + high) / 2:,.0f} B"
    for share, why in (
        (1, ""),
        (2, "--tensor-parallel-size 2"),
        (4, "--tensor-parallel-size 4"),
        (8, "--tensor-parallel-size 8"),
    ):
        for bits, how in ((1, ""), (2, "an 8-bit KV cache")):
            each = spec.kv_bytes_per_token / share / bits
            if low <= each <= high:
                ways = " and ".join(one for one in (why, how) if one)
                verdict = EXPLAINED if ways else EQUAL
                return Check(
                    "KV bytes a token", printed, f"{each:,.0f} B", verdict, f"fits with {ways}" if ways else ""
                )
    return Check(
        "KV bytes a token", printed, f"{spec.kv_bytes_per_token:,} B", DIFFERS, "no rank or KV type gives that"
    )


def of_results(documents: list[dict[str, Any]], results: list[Result]) -> list[Check]:
    """Rates of printed results from their counts and duration, and requests in flight against the cap."""
    found = []
    for doc, run in zip(documents, results, strict=True):
        seconds = doc.get("duration")
        amounts = {
            "requests/s": ("request_throughput", doc.get("completed")),
            "output tokens/s": ("output_throughput", doc.get("total_output_tokens")),
            "tokens/s": ("total_token_throughput", _sum(doc.get("total_output_tokens"), doc.get("total_input_tokens"))),
        }
        for name, (key, amount) in amounts.items():
            said = doc.get(key)
            if _numbers(said, amount, seconds) and seconds > 0:
                span = Number.of(f"{seconds:.2f}")
                printed = Number.of(f"{said:.2f}")
                found.append(
                    _interval(name, printed, amount / span.high, amount / max(span.low, 1e-9), "", "count / duration")
                )
        flying, most = run.totals.get("in_flight", float("nan")), run.totals.get("max_concurrency", float("nan"))
        if flying > 1.02 * most:
            found.append(
                Check("in flight", f"at most {most:,.0f}", f"{flying:.4g}", DIFFERS, "Little's law: rate x E2E")
            )
    return found


def _sum(*parts: Any) -> Any:
    return sum(parts) if _numbers(*parts) else None


def _numbers(*values: Any) -> bool:
    return all(isinstance(one, int | float) and isfinite(one) for one in values)
