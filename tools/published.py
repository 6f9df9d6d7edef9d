"""Published results, computed again in shape: `python -m tools.published` prints docs/published.md's numbers.

    .venv/bin/python -m tools.published [NAME...]

Each function simulates a claim's set-up on the course's own step times and returns what it is about. Nothing here is
measured, and no model and card of a paper is at hand: what can agree is the sign of an effect and its size within a
factor, and docs/published.md says why it differs. Draws have seed 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np

from course import SLO, KVCache, Workload, lengths, policies, serve, steptime
from course.engine.disaggregated import Disaggregated
from course.engine.fleet import Fleet
from course.engine.promises import share_within_slo
from course.engine.run import Run
from course.engine.serving import Engine
from course.engine.speculative import Speculative

H100 = steptime.recorded("h100-llama3-8b")
H200, DRAFT = steptime.recorded("h200-llama3-8b-flash"), steptime.recorded("h200-llama3-1b")
POOL = KVCache(26_317)  # `course kv llama-3.1-8b --gpu H100`
Numbers = dict[str, float]


def highest(holds: Callable[[float], bool], low: float, high: float, within: float = 0.03) -> float:
    """The highest rate that holds, to `within` of itself, by bisection; `low` must hold and `high` must not."""
    if not holds(low) or holds(high):
        raise ValueError(f"what is looked for is not between {low:g} and {high:g}")
    while high / low > 1 + within:
        middle = sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def skewed(median: float, p90: float, high: int) -> lengths.Lengths:
    """Lognormal lengths with this median and 90th percentile, up to `high`."""
    sigma = log(p90 / median) / 1.2816
    return lengths.lognormal(median * exp(sigma**2 / 2), sqrt(exp(sigma**2) - 1), 1, high)


def per_token(run: Run) -> float:
    """The median of E2E over output tokens, the "normalized latency" of Orca and vLLM [s]."""
    return float(np.median(run.e2e / run.workload.output_tokens))


def orca(seed: int = 0) -> Numbers:
    """Rates at one median latency per token, request by request (whole batches) and step by step."""
    load = Workload.poisson(1, 3_200, lengths.uniform(32, 512), lengths.uniform(1, 128), seed=seed)
    alone = per_token(serve(load.head(50).scaled(0.1), policies.Continuous(32, 8192), H100))

    def rate(policy: policies.Policy) -> float:
        return highest(lambda r: per_token(serve(load.scaled(r), policy, H100)) <= 4 * alone, 0.2, 400)

    batches, steps = rate(policies.Dynamic(32, 0.0)), rate(policies.Continuous(32, 8192))
    return {"whole batches, requests/s": batches, "step by step, requests/s": steps, "ratio": steps / batches}


def paged_attention(seed: int = 0) -> Numbers:
    """Rates at one median latency per token, with 2,048 tokens reserved for each request and with blocks."""
    step = steptime.Roofline("llama-2-7b", "A100-40GB")
    load = Workload.poisson(
        1, 2_000, lengths.lognormal(161, 1.0, 4, 1024), lengths.lognormal(338, 1.0, 4, 1024), seed=seed
    )
    blocks = 960  # 15,360 tokens: the paper's model of 13B left about so many on this card
    policy = policies.Continuous(256, 2048)
    whole = KVCache(blocks, reserve="longest", max_model_len=2048)

    def rate(cache: KVCache) -> float:
        return highest(lambda r: per_token(serve(load.scaled(r), policy, step, cache)) <= 0.1, 0.2, 400)

    reserved, paged = rate(whole), rate(KVCache(blocks))
    load = load.with_guesses("exact")
    oracle = rate(KVCache(blocks, reserve="length", max_model_len=2048))
    share = float(np.mean(load.prompt_tokens + load.output_tokens / 2)) / 2048
    return {
        "reserved, requests/s": reserved,
        "blocks, requests/s": paged,
        "ratio": paged / reserved,
        "ratio to reservations of the true length": paged / oracle,
        "of a reservation in use": share,
        "of blocks empty": empty_places(load),
    }


def empty_places(load: Workload, block_size: int = 16) -> float:
    """Share of the places in blocks that hold no token, over all steps of all answers."""
    empty = places = 0
    for prompt, output in zip(load.prompt_tokens.tolist(), load.output_tokens.tolist(), strict=True):
        held = np.arange(prompt, prompt + output)
        empty, places = empty + int((-held % block_size).sum()), places + int((held + -held % block_size).sum())
    return empty / places


def sarathi(seed: int = 0) -> Numbers:
    """Rates at which the p99 gap stays below 50 ms, and the median wait below 2 s, prompts first and in chunks."""
    prompts, outputs = skewed(1730, 5696, 8192), skewed(415, 834, 2048)
    load = Workload.poisson(1, 500, prompts, outputs, seed=seed)

    def rate(policy: policies.Policy) -> float:
        def holds(r: float) -> bool:
            numbers = serve(load.scaled(r), policy, H100, POOL).summary()
            return numbers["itl_p99"] <= 0.05 and numbers["queue_wait_p50"] <= 2

        return highest(holds, 0.05, 60)

    first = rate(policies.PrefillFirst(128, 8192, enable_chunked_prefill=False))
    chunks = rate(policies.Continuous(128, 512))
    return {"prompts first, requests/s": first, "chunks of 512, requests/s": chunks, "ratio": chunks / first}


def splitfuse(seed: int = 0) -> Numbers:
    """The p95 gap between tokens, prompts first over a fixed budget, at a low rate and at a high one."""
    prompts, outputs = lengths.lognormal(2600, 0.3), lengths.lognormal(128, 0.3)
    numbers: Numbers = {}
    for rate in (5, 9):
        load = Workload.poisson(rate, 500, prompts, outputs, seed=seed)
        first = serve(load, policies.PrefillFirst(128, 8192, enable_chunked_prefill=False), H100, POOL).summary()
        fused = serve(load, policies.Continuous(128, 1024), H100, POOL).summary()
        numbers |= {
            f"p95 gap at {rate}/s, prompts first over a budget of 1,024": first["itl_p95"] / fused["itl_p95"],
            f"longest gap at {rate}/s": first["itl_max"] / fused["itl_max"],
            f"requests/s at {rate}/s, budget over prompts first": fused["requests_per_second"]
            / first["requests_per_second"],
        }
    return numbers


def radix_attention(seed: int = 0) -> Numbers:
    """Throughput of 500 few-shot questions at once, 2,000 of 2,100 tokens alike, with and without a prefix cache.

    seed: of nothing, since nothing is drawn.
    """
    load = Workload(np.zeros(500), np.full(500, 100), np.full(500, 8)).with_system_prompt(2_000)
    policy = policies.Continuous(256, 8192)
    plain = serve(load, policy, H100, POOL).summary()
    shared = serve(load, policy, H100, KVCache(POOL.num_blocks, prefix_caching=True)).summary()
    return {
        "hit rate": shared["prefix_hit_rate"],
        "ratio of throughputs": shared["requests_per_second"] / plain["requests_per_second"],
    }


def hits_on_a_slow_host(seed: int = 0) -> Numbers:
    """Throughput of 64 short questions at once, 80 of 83 tokens alike, by a prefix cache: card alone, and slow host.

    seed: of nothing, since nothing is drawn.
    """
    load = Workload(np.zeros(64), np.full(64, 3), np.full(64, 12)).with_system_prompt(80)
    numbers: Numbers = {}
    for name, step in (
        ("card alone", DRAFT),
        ("35 ms of host a step", steptime.with_host(DRAFT, 0.035, overlap=False)),
    ):
        plain, shared = (
            serve(load, policies.Continuous(256, 8192), step, KVCache(40_000, prefix_caching=on)).summary()
            for on in (False, True)
        )
        numbers["hit rate"] = shared["prefix_hit_rate"]
        numbers[f"ratio of throughputs, {name}"] = shared["requests_per_second"] / plain["requests_per_second"]
    return numbers


def vtc(seed: int = 0) -> Numbers:
    """How far one of two tenants, both of whom wait all the time, is ahead in service: VTC, first come, the bound."""
    rng = np.random.default_rng(seed)
    n = 120
    tenant = np.repeat([0, 1], n)
    load = Workload(np.zeros(2 * n), rng.integers(50, 400, 2 * n), rng.integers(20, 200, 2 * n), tenant=tenant)
    slots, budget = 16, 2048

    def ahead(policy: policies.Policy) -> float:
        run = serve(load, policy, H100)
        events = [
            (when, owner, weight * tokens)
            for row, owner in enumerate(tenant.tolist())
            for when, weight, tokens in [
                (run.admitted[row], 1.0, load.prompt_tokens[row]),
                *((moment, 2.0, 1) for moment in run.token_times(row)),
            ]
        ]
        events.sort(key=lambda one: one[0])
        last = min(float(run.admitted[tenant == number].max()) for number in (0, 1))  # from then on one is done
        served, most = [0.0, 0.0], 0.0
        for when, owner, service in events:
            if when > last:
                break
            served[owner] += service
            most = max(most, abs(served[0] - served[1]))
        return most

    bound = 2 * max(float(load.prompt_tokens.max()), 2.0 * slots * float(load.output_tokens.max()))
    return {
        "VTC": ahead(policies.Fair(slots, budget)),
        "first come, first served": ahead(policies.Continuous(slots, budget)),
        "bound": bound,
    }


def speculation(seed: int = 0) -> Numbers:
    """Times as fast with four drafts of a 1B model, accepted with 0.7, by the number of users who ask in a loop."""
    numbers = {}
    for users in (1, 16, 64, 256):
        load = Workload.closed_loop(
            users=users, think_time=0.0, requests_per_user=2, prompt_tokens=256, output_tokens=200, seed=seed
        )
        policy, cache = policies.Continuous(256, 8192), KVCache(40_000)
        plain = serve(load, policy, H200, cache)
        drafted = serve(load, policies.Drafting(policy, 4), Speculative(H200, DRAFT, accept=0.7, seed=seed), cache)
        numbers[f"{users} users"] = plain.makespan / drafted.makespan
    return numbers


def shortest_first(seed: int = 0) -> Numbers:
    """Mean E2E a token, first come first served over shortest guessed answer first, in one burst."""
    load = Workload.fixed(
        num_requests=2_000, prompt_tokens=lengths.lognormal(161, 1.0, 4, 1024),
        output_tokens=lengths.lognormal(338, 1.0, 4, 1024), interval=0, seed=seed,
    )  # fmt: skip

    def latency(policy: policies.Policy, noise: str, **settings: float) -> float:
        run = serve(load.with_guesses(noise, **settings), policy, H100, POOL)
        return float(np.mean(run.e2e / load.output_tokens))

    in_order, shortest = policies.Continuous(256, 2048), policies.ShortestFirst(256, 2048, by="guess")
    before = latency(in_order, "exact")
    return {
        "exact guesses": before / latency(shortest, "exact"),
        "guesses with an error of 1": before / latency(shortest, "lognormal", error=1.0),
    }


def mixing(seed: int = 0) -> Numbers:
    """Requests/s of 2,000 requests at once: prompts and decodes in one step, apart, and whole batches."""
    rng = np.random.default_rng(seed)
    load = Workload(np.zeros(2_000), rng.integers(50, 1000, 2_000), rng.integers(20, 300, 2_000))
    ways = {
        "one step for both": policies.Continuous(256, 1024),
        "prompts apart": policies.PrefillFirst(256, 1024),
        "whole batches": policies.Dynamic(32, 0.0),
    }
    return {name: serve(load, policy, H100, POOL).summary()["requests_per_second"] for name, policy in ways.items()}


def distserve(seed: int = 0) -> Numbers:
    """Rates of two cards at which 90% have a TTFT of 0.2 s and a TPOT of 10 or 15 ms: both for all, one for each."""
    load = Workload.poisson(
        1, 2_000, lengths.lognormal(755, 1.0, 4, 4096), lengths.lognormal(200, 1.0, 4, 1024), seed=seed
    )

    def engine(policy: policies.Policy) -> Engine:
        return Engine(policy, H100, POOL)

    def apart(rate: float) -> Run:
        first, then = engine(policies.PrefillFirst(256, 8192)), engine(policies.Continuous(256, 8192))
        return Disaggregated([first], [then], transfer=50e9, token_bytes=131_072).serve(load.scaled(rate))

    def together(kind: Callable[..., policies.Policy], budget: int) -> Callable[[float], Run]:
        return lambda rate: Fleet([engine(kind(256, budget)) for _ in range(2)]).serve(load.scaled(rate))

    def rate(run: Callable[[float], Run], tpot: float) -> float:
        slo = SLO(ttft=0.2, tpot=tpot)
        return highest(lambda r: share_within_slo(run(r), slo=slo)["all"] >= 0.9, 1, 60)

    numbers = {
        "prompts first": rate(together(policies.PrefillFirst, 8192), 0.01),
        "chunks of 512": rate(together(policies.Continuous, 512), 0.01),
        "apart": rate(apart, 0.01),
        "chunks of 512 at 15 ms": rate(together(policies.Continuous, 512), 0.015),
        "apart at 15 ms": rate(apart, 0.015),
    }
    return numbers | {"ratio": numbers["apart"] / numbers["prompts first"]}


CLAIMS: dict[str, Callable[..., Numbers]] = {
    one.__name__: one
    for one in (
        orca,
        paged_attention,
        sarathi,
        splitfuse,
        radix_attention,
        hits_on_a_slow_host,
        vtc,
        speculation,
        shortest_first,
        mixing,
        distserve,
    )
}


def main(names: list[str]) -> None:
    """Print the numbers of some claims, or of all."""
    for name in names or CLAIMS:
        if name not in CLAIMS:
            raise SystemExit(f"there is no claim {name}: there are {', '.join(CLAIMS)}")
        print(name, *(f"{what}: {value:.3g}" for what, value in CLAIMS[name]().items()), sep="; ")


if __name__ == "__main__":
    main(sys.argv[1:])
