"""How fast the simulator is, as ratios, each from one run of this script: CPU time, medians of five runs in turn.

Beside it stands a natural server loop in SimPy. Both simulate one engine with 64 slots at 80% of its capacity, prompts
of 512 tokens and answers of 128, and must say the same about who waited how long.

    PYTHONPATH=. .venv/bin/python tests/bench/simulator.py

Exit status 1 where a floor is missed.
"""

import gc
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import simpy

from course import KVCache, Workload, policies, serve, steptime

SLOTS, PROMPT, OUTPUT, BUDGET = 64, 512, 128, 8192
T0, C, ALPHA, PREFILL = 5e-3, 2e-4, 0.9, 2e-5
STEP_TIME = steptime.PowerLaw(t0=T0, c=C, alpha=ALPHA, prefill=PREFILL)
ENGINE = policies.Continuous(max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET, long_prefill_token_threshold=2048)
CACHE = KVCache(num_blocks=2_600)  # 64 sequences of 640 tokens take 2,560
RUNS = 5


class Everybody(policies.Policy):
    """A policy of one's own through public names: lists all that run in every step, and lets newcomers in whole."""

    def __init__(self, max_num_seqs: int, max_num_batched_tokens: int):
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens

    def schedule(self, state):
        tokens = {request: request.remaining for request in state.running}
        for request in state.waiting[: state.max_num_seqs - len(tokens)]:
            tokens[request] = request.remaining
        return policies.Schedule(tokens)


class WithBudget(Everybody):
    """The same with a token budget, which it hands out one after the other."""

    def schedule(self, state):
        left, tokens = state.max_num_batched_tokens, {}
        newcomers = state.waiting[: state.max_num_seqs - len(state.running)]
        for request in (*state.running, *newcomers):
            chunk = min(request.remaining, left)
            if chunk > 0:
                tokens[request] = chunk
                left -= chunk
        return policies.Schedule(tokens)


OTHERS = {  # what is served -> floor of the ratio, and how; 10,000 requests each
    "in chunks (budget 512)": (1.2, lambda load: serve(load, policies.Continuous(SLOTS, 512), STEP_TIME, CACHE)),
    "shortest first": (1.5, lambda load: serve(load, policies.ShortestFirst(SLOTS, BUDGET), STEP_TIME, CACHE)),
    "an own policy that lists everybody": (0.4, lambda load: serve(load, Everybody(SLOTS, BUDGET), STEP_TIME, CACHE)),
    "an own policy with a token budget": (0.2, lambda load: serve(load, WithBudget(SLOTS, 512), STEP_TIME, CACHE)),
    "any callable as step time": (0.7, lambda load: serve(load, ENGINE, lambda step: STEP_TIME(step), CACHE)),
    "static": (5, lambda load: serve(load, policies.Static(SLOTS), STEP_TIME)),
}


class General(policies.Continuous):
    """Continuous through the loop that asks a policy."""


SHARING = {  # what 10,000 prompts of 512 tokens have in common -> (blocks, their workload)
    "prompts that share nothing": (2_600, lambda load: load),
    "a system prompt of 256 tokens": (2_600, lambda load: prefixed(load, 1)),
    "60 documents of 256 tokens": (2_600, lambda load: prefixed(load, 60)),
    "1,800 blocks, 60 documents": (1_800, lambda load: prefixed(load, 60)),
    "20,000 blocks, 1,000 documents of 512": (20_000, lambda load: prefixed(load, 1_000, 32)),
}


def prefixed(load: Workload, documents: int, blocks: int = 16) -> Workload:
    """The same with prompts that begin with one of so many documents, each of so many blocks of 16 tokens."""
    which = np.random.default_rng(0).integers(0, documents, len(load)).tolist()
    prefix = tuple(tuple(range(blocks * one, blocks * one + blocks)) for one in which)
    return replace(load, prefix=prefix, prefix_block_size=16)


def capacity(output: int) -> float:
    """Requests/s with all slots busy: in `output` steps each slot serves one request, prompt and all."""
    return SLOTS / (output * (T0 + C * SLOTS**ALPHA) + PREFILL * PROMPT * SLOTS)


def requests(number: int, share: float = 0.8, output: int = OUTPUT) -> Workload:
    """Poisson arrivals at this share of capacity."""
    return Workload.poisson(
        rate=share * capacity(output), num_requests=number, prompt_tokens=PROMPT, output_tokens=output, seed=0
    )


def ours(load: Workload, cache: KVCache | None = CACHE) -> np.ndarray:
    """TTFT and E2E, and their percentiles."""
    run = serve(load, ENGINE, STEP_TIME, cache)
    np.percentile(run.ttft, (50, 95, 99)), np.percentile(run.e2e, (50, 95, 99))
    return run.e2e


def simpy_server(load: Workload) -> np.ndarray:
    """The same as people write it in SimPy: requests go through a Store to a server that steps through its batch."""
    env = simpy.Environment()
    queue = simpy.Store(env)
    arrival = load.arrival.tolist()
    ttft, e2e = [0.0] * len(load), [0.0] * len(load)
    seconds = [T0 + C * batch**ALPHA for batch in range(SLOTS + 1)]

    def users():
        for request, when in enumerate(arrival):
            yield env.timeout(when - env.now)
            queue.put(request)

    def server():
        batch = {}  # request -> tokens to go
        answered = 0
        while answered < len(arrival):
            decodes = len(batch)
            if not batch:
                request = yield queue.get()
                batch[request] = OUTPUT
            while queue.items and len(batch) < SLOTS:
                request = yield queue.get()
                batch[request] = OUTPUT
            step = seconds[decodes] if decodes else T0
            yield env.timeout(step + PREFILL * PROMPT * (len(batch) - decodes))
            for request, left in list(batch.items()):
                if left == OUTPUT:
                    ttft[request] = env.now - arrival[request]
                batch[request] = left - 1
                if left == 1:
                    del batch[request]
                    e2e[request] = env.now - arrival[request]
                    answered += 1

    env.process(users())
    env.process(server())
    env.run()
    np.percentile(ttft, (50, 95, 99)), np.percentile(e2e, (50, 95, 99))
    return np.array(e2e)


def ratio(one: Callable[[], object], other: Callable[[], object], times: int = 1) -> tuple[float, float, float]:
    """(median ratio of CPU times, median of `one`, of `other`), in turn; a run is `times` calls of `other`."""
    one(), other()  # imports and caches
    seconds = np.array([[cpu_seconds(one), cpu_seconds(other, times)] for _ in range(RUNS)])
    return float(np.median(seconds[:, 0] / seconds[:, 1])), *np.median(seconds, axis=0).tolist()


def cpu_seconds(work: Callable[[], object], times: int = 1) -> float:
    gc.collect()  # what the other left behind is not cleared away on this one's time
    begin = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begin) / times


def peak_megabytes(number: int) -> float:
    """Peak memory of a fresh process that serves this many requests and sums them up."""
    result = subprocess.run(
        [sys.executable, __file__, "--memory", str(number)], capture_output=True, check=True, text=True
    )
    return float(result.stdout)


def main() -> int:
    ten, hundred = requests(10_000), requests(100_000)
    short, long = requests(10_000, 0.1), requests(10_000, 0.1, output=512)
    # Sums of the same steps, in SimPy as delays from now on: equal but for rounding.
    assert np.allclose(ours(ten), simpy_server(ten), rtol=1e-9), "SimPy and the simulator disagree"

    lines, missed = [], 0

    def report(what: str, value: float, unit: str, floor: float, at_least: bool, more: str = "") -> None:
        nonlocal missed
        kept = value >= floor if at_least else value <= floor
        missed += not kept
        limit = f"{'at least' if at_least else 'at most'} {floor:g}{unit}"
        lines.append(f"{what:<58} {value:>7.2f}{unit}   {limit}{more}{'' if kept else '   MISSED'}")

    for name, cache, goal in (("with blocks", CACHE, 12), ("without a KV limit", None, 12)):
        value, theirs, mine = ratio(lambda: simpy_server(ten), lambda cache=cache: ours(ten, cache), times=5)
        report(f"SimPy / serve {name}, 10,000 requests", value, "x", 10, True, f", goal {goal}x")
        lines.append(f"    {theirs:.3f} s / {mine:.3f} s, {len(ten) / mine:,.0f} requests/s")
    for name, (floor, work) in OTHERS.items():
        value, _, _ = ratio(lambda: simpy_server(ten), lambda work=work: work(ten))
        report(f"SimPy / serve, {name}", value, "x", floor, True)
    general, caching = (
        kind(SLOTS, BUDGET, long_prefill_token_threshold=2048) for kind in (General, policies.Continuous)
    )
    for name, (blocks, shared) in SHARING.items():
        load = shared(ten)
        value, _, _ = ratio(
            lambda load=load, blocks=blocks: serve(load, caching, STEP_TIME, KVCache(blocks, prefix_caching=True)),
            lambda load=load, blocks=blocks: serve(load, general, STEP_TIME, KVCache(blocks)),
        )
        report(f"prefix caching / the general loop, {name}", value, "x", 2, False)
    value, _, _ = ratio(lambda: ours(long), lambda: ours(short))
    report("512- / 128-token answers at 10% load, 10,000 requests", value, "x", 1.5, False)
    value, _, _ = ratio(lambda: ours(hundred), lambda: ours(ten), times=5)
    report("100,000 / 10,000 requests", value, "x", 12, False)
    report("peak memory, 100,000 requests and their summary", peak_megabytes(100_000), " MB", 200, False)
    print("\n".join(lines))
    return missed > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        serve(requests(int(sys.argv[2])), ENGINE, STEP_TIME, CACHE).summary()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)  # kilobytes on Linux
    else:
        sys.exit(main())
