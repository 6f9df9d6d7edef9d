"""Tables of lab 08 as a cell shows them: text for everyone, HTML where there is a browser."""

from functools import lru_cache

from course.calibration import vllm_live
from course.engine.serving import serve
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab08 import card_memory, decision, kv_pool
from course.lessons.lab08.card_memory import GIB
from course.lessons.lab08.engine_prints import PRINTS
from course.steptime import recorded

SLOTS = (24, 48)
H100_RATE = 12.0  # requests/s: twice what the recorded steps answer
PAGES = ("before", "within", "after")
ON_THE_PAGE = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total")
LENGTHS = (1_024, 16_384, 1_048_576)


@lru_cache(maxsize=8)
def on_recorded_steps(slots: int, rate: float = H100_RATE) -> tuple[float, int]:
    """Tokens/s and preemptions of the same requests and pool, with steps recorded on an H100."""
    load = kv_pool.requests(rate)
    run = serve(load, kv_pool.engine(slots), recorded("h100-llama3-8b"), kv_pool.cache())
    return float(load.output_tokens.sum()) / run.makespan, int(run.preempted.sum())


def preempted_page() -> Table:
    """Lines of vLLM's own /metrics before, within and after a load that outgrew its pool."""
    pages = [(vllm_live.FOLDER / f"metrics_preempted_{when}.txt").read_text(encoding="utf-8") for when in PAGES]
    rows: list[tuple[str, ...]] = [("", *PAGES)]
    for name in ON_THE_PAGE:
        lines = (next(x for x in page.splitlines() if x.startswith(f"vllm:{name}{{")) for page in pages)
        rows.append((f"vllm:{name}", *(f"{float(line.split()[-1]):g}" for line in lines)))
    return table(rows, f"/metrics [{decision.LIVE.label}]")


def two_cards() -> Table:
    """Whether more slots help: on the modelled RTX 4090, and on steps recorded on an H100, with the same pool."""
    rows: list[tuple[str, ...]] = [("", *(f"{slots} slots" for slots in SLOTS))]
    modelled = [kv_pool.under_load(slots=slots) for slots in SLOTS]
    pairs = [(one.tokens_per_second, one.preemptions) for one in modelled]
    for name, found in (
        ("RTX 4090, modelled, 2 requests/s", pairs),
        (f"simulated on recorded H100 steps, {H100_RATE:g} requests/s", [on_recorded_steps(slots) for slots in SLOTS]),
    ):
        rows.append((name, *(f"{speed:,.0f} tokens/s, {lost:,} preemptions" for speed, lost in found)))
    return table(rows, "The same pool of 2,588 blocks, 2,000 requests")


def printed_and_estimated() -> Table:
    """What engines printed beside the ledger [GiB]."""
    rows: list[tuple[str, ...]] = [("", "KV printed", "ledger", "off", "rest", "estimated")]
    for log in PRINTS:
        kv = log.ledger.kv_bytes / GIB
        numbers = (f"{log.kv_gib:.2f}", f"{kv:.2f}", f"{kv / log.kv_gib - 1:+.1%}", f"{log.engine_rest_gib:.2f}")
        rows.append((f"{log.engine}, {log.model_name}, {log.card}", *numbers, f"{log.rest_gib:.2f}"))
    return table(rows, "KV memory and all but weights and KV, of one card [GiB]")


def kinds_under_load() -> Table:
    """Three kinds of K and V in a pool of the same bytes, at two rates."""
    heads = ("blocks", "p95 TTFT", "output", "preemptions", "computed twice", "longest gap")
    rows: list[tuple[str, ...]] = [("", *heads)]
    for kind in kv_pool.BYTES:
        for rate in (1.0, 2.0):
            found = kv_pool.under_load(kind, rate)
            cells = (f"{kv_pool.cache(kind).num_blocks:,}", seconds(found.p95_ttft), f"{found.tokens_per_second:.0f}/s",
                     f"{found.preemptions:,}", f"{found.recomputed:.0%}", seconds(found.longest_gap))  # fmt: skip
            rows.append((f"{kind}, {rate:g}/s", *cells))
    return table(rows, "2,000 requests on one RTX 4090 [modelled]")


def what_a_sequence_keeps() -> Table:
    """Bytes of one sequence in six architectures, at three lengths."""
    rows: list[tuple[str, ...]] = [("", "a token", "one more", "state", *(f"{length:,}" for length in LENGTHS))]
    for name, what in card_memory.ARCHITECTURES.items():
        spec = card_memory.spec(name)
        kept = (f"{card_memory.sequence_bytes(spec, length) / 2**20:,.0f} MiB" for length in LENGTHS)
        each = (f"{spec.kv_bytes_per_token:,} B", f"{spec.kv_bytes_after_window:,} B")
        rows.append((f"{name}: {what}", *each, f"{spec.state_bytes / 2**20:,.0f} MiB", *kept))
    return table(rows, "One token, one more behind the window, the state, and a sequence of so many tokens [theory]")
