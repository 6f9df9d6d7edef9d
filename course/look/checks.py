"""Printed numbers computed again. A printed number is an interval, and so is what is computed from others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from course.base.printed_number import Number
from course.base.textfiles import finite
from course.look.reading import Paste
from course.memory import Ledger, ledger
from course.models import ModelSpec
from course.results import Result

GIB = Number.exact(2**30)
EQUAL, EXPLAINED, POSSIBLE, DIFFERS = "equal", "explained", "possible", "differs"
LOOSE = 0.05  # of the number: its digits leave so much open that one that is 3% wrong would be called right
CLEAR = 0.1  # of the number: a setting that moves it less may also be what a wrong number looks like
RATES = (
    ("requests/s", "request_throughput", "completed"),
    ("output tokens/s", "output_throughput", "total_output_tokens"),
    ("tokens/s", "total_token_throughput", "total_output_tokens", "total_input_tokens"),
)


@dataclass(frozen=True)
class Check:
    """One printed number beside the computed one. why: how it is computed, or the reason of the verdict."""

    name: str
    printed: str
    computed: str
    verdict: str
    why: str = ""


def _check(name: str, printed: Number, computed: Number, unit: str, why: str) -> Check:
    open_ = max((computed, printed), key=lambda one: (one.high - one.low) / one.value if one.value else 0.0)
    loose = open_.high - open_.low > LOOSE * open_.value
    verdict = DIFFERS if not printed.meets(computed) else POSSIBLE if loose else EQUAL
    why += f"; the printed digits leave {open_.low:.4g} to {open_.high:.4g}" * (verdict == POSSIBLE)
    return Check(name, f"{printed.value:,g} {unit}".strip(), _amount(computed, unit), verdict, why)


def _amount(number: Number, unit: str) -> str:
    small = not unit and abs(number.value) < 1000
    size = f"{number.value:,.2f}" if unit == "GiB" else f"{number.value:.4g}" if small else f"{number.value:,.0f}"
    return f"{size} {unit}".strip()


def _unless(check: Check, why: str, may: bool = True) -> Check:
    """A check that differs, and what may excuse it."""
    return replace(check, verdict=POSSIBLE, why=why) if may and check.verdict == DIFFERS else check


def of_start(paste: Paste) -> list[Check]:
    """The ledger of a card, from the lines alone."""
    made = []
    total, share, usable, wanted = paste.each("total share usable wanted")
    if total and share:
        made += [_check(name, value, total * share, "GiB", "total x share")
                 for name, value in (("usable", usable), ("wanted", wanted)) if value]  # fmt: skip
        usable = usable or total * share
    peak, weights, activation, other, graphs = paste.each("peak weights activation other graphs")
    peak = peak or (weights + activation if weights and activation else None)
    left, printed = paste.each("kv_left kv_gib")
    left = left or (printed if paste.ranks_seen == 1 else None)
    if left and usable and peak and other:
        rest = usable - peak - other
        made.append(_check("KV", left, rest, "GiB", "usable - weights - activation - other"))
        if made[-1].verdict == DIFFERS and graphs and left.meets(rest - graphs):
            amount = _amount(rest - graphs, "GiB")
            made[-1] = replace(made[-1], computed=amount, verdict=EXPLAINED, why="CUDA graphs are taken off, too")
    now, before, to_set = paste.each("graph_share graph_share_before graph_share_to_set")
    if now and before and to_set:
        made.append(_check("utilization to set", to_set, now + now - before, "", "the share, and that of graphs again"))
    needed, has, asked, longest = paste.each("needed_gib kv_gib refused_length longest")
    if needed and has and asked and longest and needed.low > 0:
        fits = asked * has / needed  # and the engine rounds to whole blocks
        named, why = "longest model length", "length x GiB there / GiB needed"
        check = _check(named, longest, Number(fits.value, fits.low - 16, fits.high + 16), "tokens", why)
        large = longest.meets(Number(fits.value, fits.low - 512, fits.high))
        check = _unless(check, f"{why}, in blocks of more than 16 tokens", large)
        made.append(_unless(check, "a model with windows or states keeps less of a long sequence"))
    return made


def of_requests(paste: Paste) -> list[Check]:
    """Tokens/s of llama.cpp's requests from their times; of many, the first of each verdict."""
    columns = {side: [paste.facts.get(f"{side}_{name}", ()) for name in ("ms", "count", "speed")]
               for side in ("prompt", "answer")}  # fmt: skip
    made = [_check(f"{side} tokens/s", speed, tokens * Number.exact(1e3) / ms, "", "tokens / time")
            for side in columns for ms, tokens, speed in zip(*columns[side], strict=True) if ms.low > 0]  # fmt: skip
    return list({(one.name, one.verdict): one for one in reversed(made)}.values())


def of_pool(paste: Paste, spec: ModelSpec | None) -> list[Check]:
    """Tokens and concurrency of the pool; with a model from its bytes, without one from each other."""
    tokens, length, seqs, blocks = paste.each("tokens length concurrency blocks")
    tokens = tokens or (blocks * Number.exact(16) if blocks else None)
    needed, asked, gib, held = paste.each("needed_gib refused_length trt_gib trt_tokens")
    made: list[Check] = []
    if spec is not None:
        if length and (tokens or seqs):
            made += _with_model(paste, spec, tokens, seqs, int(length.value))
        if needed and asked:
            sizes = [(keys, low.pool.blocks_for(low.max_model_len) * low.pool.bytes_per_block / GIB.value)
                     for keys, low, _ in _ledgers(paste, spec, Number.exact(1.0), int(asked.value))]  # fmt: skip
            made += _fit("GiB needed", needed, "GiB", [(keys, Number.exact(size)) for keys, size in sizes])
        if gib and held and held.value > 0:
            halves = product(_ranks(paste), ((1, ()), (2, ("an 8-bit KV cache",))))
            bytes_ = [((*a, *b), Number.exact(spec.kv_bytes_per_token / tp / bits)) for (tp, a), (bits, b) in halves]
            made += _fit("KV bytes a token", gib * GIB / held, "B", sorted(bytes_, key=lambda one: len(one[0])))
    if tokens and length and seqs and length.value > 0 and not any(one.name == "concurrency" for one in made):
        why = "a model with windows or states counts blocks of several kinds: name its --config"
        made.append(_unless(_check("concurrency", seqs, tokens / length, "", "tokens / length"), why))
    return made


Assumed = tuple[str, ...]  # what the paste does not say, as flags


def _fit(name: str, printed: Number, unit: str, tried: Sequence[tuple[Assumed, Number]]) -> list[Check]:
    """The printed number among those of each setting that the paste leaves open, the likely first: all that fit."""
    if not tried:
        return []
    plain = tried[0][1]
    fits = [one for one in tried if printed.meets(one[1])]
    if not fits:
        why = "no KV type, rank, version or cache mode gives that number"
        return [Check(name, _amount(printed, unit), _amount(plain, unit), DIFFERS, why)]
    fewest = [assumed for assumed, _ in fits if len(assumed) == len(fits[0][0])]
    why = f"fits with {'; or with '.join(dict.fromkeys(map(' and '.join, fewest)))}" if fewest[0] else ""
    clear = abs(fits[0][1].value / plain.value - 1) > CLEAR
    verdict = EQUAL if not why else EXPLAINED if clear else POSSIBLE
    return [Check(name, _amount(printed, unit), _amount(fits[0][1], unit), verdict, why)]


def _ranks(paste: Paste) -> list[tuple[int, Assumed]]:
    said = paste.settings.get("tensor_parallel_size")
    return [(int(said), ())] if said else [(1, ()), *((n, (f"--tensor-parallel-size {n}",)) for n in (2, 4, 8))]


def _ledgers(paste: Paste, spec: ModelSpec, gib: Number, length: int) -> list[tuple[Assumed, Ledger, Ledger]]:
    """The pool at both ends of the printed GiB with each setting that the paste leaves open; the likely first."""
    said = paste.settings.get("kv_cache_dtype")
    minor = ".".join((paste.version or "").split(".")[:2])
    dtypes = [(said, ())] if said else [("auto", ()), ("fp8", ("--kv-cache-dtype fp8",))]
    versions = [(minor, ())] if "." in minor else [("0.19", ()), ("0.21", ("vLLM from 0.21 on",))]
    modes: list[tuple[str, Assumed]] = [("none", ()), ("align", ("--mamba-cache-mode align",))]
    made: list[tuple[Assumed, Ledger, Ledger]] = []
    for (kind, a), (tp, b), (version, c), (mode, d) in product(dtypes, _ranks(paste), versions, modes):
        keys: dict[str, Any] = {"kv_dtype": kind, "tp": tp, "version": version, "mamba_cache_mode": mode}
        try:
            low, high = (ledger(spec, kv_bytes=max(1.0, end * GIB.value), max_model_len=length, **keys)
                         for end in (gib.low, gib.high))  # fmt: skip
        except ValueError:  # the model cannot be served so
            continue
        made.append(((*a, *b, *c, *d), low, high))
    return sorted(made, key=lambda one: len(one[0]))


def _with_model(paste: Paste, spec: ModelSpec, tokens: Number | None, seqs: Number | None, length: int) -> list[Check]:
    ranks = paste.facts.get("kv_gib") or paste.facts.get("kv_left")
    if not ranks:
        return []
    least = min(ranks, key=lambda one: one.value)
    pools = [one for one in _ledgers(paste, spec, least, length) if one[1].kv_tokens and one[2].kv_tokens]
    tried = [(assumed, _between(low.kv_tokens or 0, high.kv_tokens or 0)) for assumed, low, high in pools]
    made = _fit("tokens", tokens, "tokens", tried) if tokens else []
    if made and tokens:
        made = [_smaller_rank(paste, made[0], tokens, tried[0][1], least, len(ranks))]
    if seqs and pools:
        chosen = next((n for n, (_, size) in enumerate(tried) if not tokens or tokens.meets(size)), None)
        _, low, high = pools[chosen or 0]
        one_kind = len(low.pool.groups) == 1 and length % low.pool.block_size == 0  # blocks of attention are tokens
        if tokens and (one_kind or chosen is None):
            made.append(_check("concurrency", seqs, tokens / Number.exact(length), "", "tokens / length"))
        else:
            most = _between(low.concurrency(length), high.concurrency(length))
            made.append(_check("concurrency", seqs, most, "", "blocks / those of a sequence"))
    return made


def _between(low: float, high: float) -> Number:
    return Number(high, low, high)


def _smaller_rank(paste: Paste, check: Check, tokens: Number, plain: Number, gib: Number, printed: int) -> Check:
    """Another rank may have less memory, until every rank's GiB are in the paste."""
    sizes = [int(paste.settings.get(name, 1)) for name in ("tensor_parallel_size", "pipeline_parallel_size")]
    ranks = max(sizes[0] * sizes[1], paste.ranks_seen)
    why = (f"they are {tokens.value / plain.high * gib.high:.2f} GiB: another of the {ranks} ranks may have less; "
           f"{printed} of {ranks} are printed here")  # fmt: skip
    return _unless(check, why, tokens.value < plain.low and printed < ranks)


def of_results(reports: Sequence[tuple[dict[str, Any], Result]]) -> list[Check]:
    """Rates of printed results from their counts and duration."""
    made = []
    for doc, _ in reports:
        numbers = {key: float(value) for key, value in doc.items() if finite(value)}
        for name, key, *counts in RATES:
            printed = doc.get("not_printed") not in (key, "duration") and {key, "duration", *counts} <= numbers.keys()
            if printed and numbers["duration"] > 0.01:
                total = Number.exact(sum(numbers[count] for count in counts))
                rate = total / Number.of(f"{numbers['duration']:.2f}")
                made.append(_check(name, Number.of(f"{numbers[key]:.2f}"), rate, "", "count / duration"))
        good, done = numbers.get("request_goodput"), numbers.get("request_throughput", 0.0)
        if good is not None and done > 0:
            verdict = POSSIBLE if 0 <= good <= done else DIFFERS
            why = "what kept its promises is a part of what was answered: no more can be said of it"
            made.append(Check("goodput", f"{good:,.2f}", f"0 to {done:,.2f}", verdict, why))
    return made
