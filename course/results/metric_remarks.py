"""What a page of an engine's metrics shows, in sentences, each with the lab that explains what is odd about it."""

from collections.abc import Mapping
from math import isfinite, isinf, nan

from course.results.exposition import Page

FULL = 0.9  # of the KV pool: from here on memory is what admission waits for
MOST = 0.5  # of TTFT: a wait beyond it is most of it
STALL = 3.0  # times the mean gap: a p99 in a bucket that starts beyond it is no usual step
ANOTHER_LOAD = 1.5  # times the average in flight: the load of the moment is another one
ABORTED_SHARE = 0.05
UNEVEN = 2.0  # times as many running on one engine as on another, and at least UNEVEN_BY more
UNEVEN_BY = 4

Statistics = Mapping[str, Mapping[str, float]]


def on_scrape(
    totals: Mapping[str, float],
    means: Statistics,
    p99: Mapping[str, tuple[float, float]],
    page: Page,
    earlier: Page | None,
    seconds: float,
    source: str,
) -> list[str]:
    """Sentences about one page, or about what happened between two.

    p99: metric -> the bounds of the bucket that holds it [s]. earlier: the page before, None if there is one alone.
    source: who says how many seconds lie between, in words.
    """
    sentences = [_when(earlier, seconds, source), *_buckets(p99), *_flight(totals, means, earlier)]
    sentences += _memory(totals, page)
    sentences += _on_preemptions(totals)
    sentences += _waiting(totals, means)
    sentences += _stalls(means, p99)
    sentences += _steps(totals)
    sentences += _rest(totals, page)
    return sentences


def _when(earlier: Page | None, seconds: float, source: str) -> str:
    if earlier is None:
        return (
            "One scrape: counts and times are since the engine started, gauges of the moment. A page does not say when "
            "it was printed, so there are no rates: a second scrape and the seconds between them give those"
        )
    if seconds > 0:
        return f"Between two scrapes, {seconds:,.4g} s apart{source}"
    return (
        "Between two scrapes. How far apart they are neither says, so there are no rates: the seconds between them "
        "(--interval) give those"
    )


def _buckets(p99: Mapping[str, tuple[float, float]]) -> list[str]:
    parts = []
    for metric, (low, high) in p99.items():
        if isfinite(low) and metric in ("ttft", "itl", "e2e"):
            where = f"above {low:g} s" if isinf(high) else f"between {low:g} and {high:g} s"
            parts.append(f"that of {metric.upper()} {where}")
    return (
        [f"Percentiles are read off histogram buckets: a p99 is somewhere in one, {', '.join(parts)}"] if parts else []
    )


def _flight(totals: Mapping[str, float], means: Statistics, earlier: Page | None) -> list[str]:
    whole = means.get("e2e", {}).get("mean", nan)
    running, waiting = totals.get("running", nan), totals.get("waiting", nan)
    now = running + waiting
    if not isfinite(now):
        return []
    there = f"{running:,.0f} running and {waiting:,.0f} waiting at the scrape"
    if earlier is not None:
        before = [earlier.total(f"vllm:num_requests_{state}") for state in ("running", "waiting")]
        there = f"{before[0]:,.0f} running and {before[1]:,.0f} waiting at the first scrape, {running:,.0f} and "
        there += f"{waiting:,.0f} at the second"
    average = totals.get("in_flight", nan)
    if isfinite(average):
        sentence = (
            f"L = lambda W: {totals['requests_per_second']:.4g} requests/s x {whole:.4g} s are {average:.4g} in flight "
            f"on average; {there}"
        )
        if now > ANOTHER_LOAD * average and now - average > UNEVEN_BY:
            sentence += ". More than the average: the load or the queue grows, and W will be longer (lab 03)"
        elif average > ANOTHER_LOAD * now and average - now > UNEVEN_BY:
            sentence += ". Fewer than the average: the load was higher before (lab 03)"
        return [sentence]
    if whole > 0 and earlier is None and now > 0:
        return [
            f"{there}. If that is the usual load, L = lambda W makes {now / whole:.4g} requests/s of a mean E2E of "
            f"{whole:.4g} s (lab 03)"
        ]
    return [there[0].upper() + there[1:]]


def _memory(totals: Mapping[str, float], page: Page) -> list[str]:
    used = totals.get("kv_usage", nan)
    if not isfinite(used):
        return []
    info = page.labels("vllm:cache_config_info")
    blocks, size = info.get("num_gpu_blocks", ""), info.get("block_size", "")
    sentence = f"KV cache in use at the scrape: {used:.1%}"
    if blocks.isdecimal() and size.isdecimal() and len(blocks) < 12 and len(size) < 8:
        tokens, running = used * int(blocks) * int(size), totals.get("running", nan)
        sentence += f" of {int(blocks):,} blocks of {int(size)} tokens"
        if running > 0:
            sentence += f", {tokens / running:,.0f} tokens for each running request"
    return [sentence]


def _on_preemptions(totals: Mapping[str, float]) -> list[str]:
    lost = totals.get("preemptions", nan)
    if not lost > 0:
        return []
    requests, each = totals.get("requests", nan), ""
    if requests > 0:
        each = f", {lost / requests:.2g} for each request that ended"
    rate = totals.get("preemptions_per_second", nan)
    often = f" ({rate:.3g}/s)" if rate > 0 else ""
    return [
        f"{lost:,.0f} preemptions{often}{each}: the KV pool ran out, and what those had computed is computed again "
        "(lab 08). Fewer slots or more memory end it"
    ]


def _waiting(totals: Mapping[str, float], means: Statistics) -> list[str]:
    sentences = []
    wait, first = (means.get(name, {}).get("mean", nan) for name in ("queue_wait", "ttft"))
    if wait > MOST * first:
        sentences.append(
            f"Of a mean TTFT of {first:.4g} s, {wait:.4g} s are the wait in the engine's queue and not prefill (lab 03)"
        )
    waiting, used, running = (totals.get(key, nan) for key in ("waiting", "kv_usage", "running"))
    if waiting > 0:
        if used >= FULL:
            why = f"the KV pool is {used:.0%} full, so memory holds them back (lab 08)"
        elif isfinite(used):
            why = (
                f"the KV pool is {used:.0%} full, so memory does not hold them back: {running:,.0f} running is the "
                "slots (max_num_seqs, lab 04), or the token budget is taken by prompts (lab 07)"
            )
        else:
            why = "the page does not say how full the KV pool is"
        sentences.append(f"{waiting:,.0f} requests wait: {why}")
    return sentences


def _stalls(means: Statistics, p99: Mapping[str, tuple[float, float]]) -> list[str]:
    mean, low = means.get("itl", {}).get("mean", nan), p99.get("itl", (nan, nan))[0]
    if not low >= STALL * mean:
        return []
    return [
        f"One gap in a hundred is longer than {1000 * low:,.4g} ms where the mean is {1000 * mean:,.4g} ms: steps with "
        "a long prompt in them, or preempted requests (lab 07)"
    ]


def _steps(totals: Mapping[str, float]) -> list[str]:
    tokens, sentences = totals.get("tokens_per_step", nan), []
    if isfinite(tokens):
        sentences.append(f"A step computed {tokens:,.4g} tokens on average, prompts and decodes together")
    drafts, accepted = totals.get("drafts", nan), totals.get("accepted_tokens", nan)
    if drafts > 0:
        drafted = totals.get("drafted_tokens", nan)
        sentences.append(
            f"Speculation: a step brought {1 + accepted / drafts:.3g} tokens of a request on average, "
            f"{accepted / drafted:.1%} of the drafted tokens were accepted; ITL is a step and not a token"
        )
    return sentences


def _rest(totals: Mapping[str, float], page: Page) -> list[str]:
    sentences = []
    rate = totals.get("prefix_hit_rate", nan)
    if rate > 0:
        sentences.append(f"{rate:.1%} of prompt tokens were found in the prefix cache and not computed")
    aborted, ends = totals.get("aborted", 0.0), totals.get("requests", nan) + totals.get("failed", 0.0)
    if aborted > ABORTED_SHARE * ends:
        sentences.append(
            f"{aborted:,.0f} of {ends:,.0f} requests were aborted by their clients: their times are in no average of "
            "those that waited to the end (lab 16)"
        )
    engines = page.by_label("vllm:num_requests_running", "engine")
    if len(engines) > 1:
        least, most = min(engines.values()), max(engines.values())
        if most > UNEVEN * least and most - least > UNEVEN_BY:
            sentences.append(
                f"{len(engines)} engines run from {least:,.0f} to {most:,.0f} requests: the load is not even, and each "
                "histogram here is of all of them (lab 16: percentiles cannot be averaged)"
            )
    return sentences
