"""A run for each incident, and the same load after the repair: simulated on steps recorded on an H100.

Every scene has seeds of its own; `tests/incidents` looks at five of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from course.engine.run import Run
from course.engine.serving import serve
from course.engine.speculative import Speculative
from course.incidents.page import Seen
from course.memory.kvcache import KVCache
from course.policies import Bucket, Continuous, Drafting, Policy, Priority, Window
from course.steptime import recorded, verify
from course.steptime.host import with_host
from course.workload import Workload, lengths

STEP = recorded("h100-llama3-8b")
VERIFY = verify()
SLOTS, BUDGET, SECONDS = 256, 2_048, 120.0
POOL = KVCache(27_000)  # 8B in 16 bits on 80 GB
HOST = 6e-3  # seconds of the host in each step without graphs and overlap: of the order that --enforce-eager adds
NETWORK = 4.0  # seconds on the way, in the scene of that


def poisson(rate: float, prompt: int, answer: int, seed: int) -> Workload:
    """Two minutes of independent arrivals with lengths that vary (CV 0.5)."""
    prompts, answers = lengths.lognormal(prompt, 0.5), lengths.lognormal(answer, 0.5)
    return Workload.poisson(rate, round(rate * SECONDS), prompts, answers, seed=seed)


def plain(load: Workload, policy: Policy | None = None, pool: KVCache = POOL) -> Run:
    """Served by continuous batching with the engine's defaults, unless a policy is given."""
    return serve(load, policy or Continuous(SLOTS, BUDGET), STEP, pool)


def window(repaired: bool, seed: int) -> Seen:
    """A quiet night; an idle engine waits 150 ms for company, or not at all."""
    return Seen(plain(poisson(0.5, 200, 100, seed), Window(SLOTS, 0.0 if repaired else 0.15)))


def plateau(repaired: bool, seed: int) -> Seen:
    """Long conversations, more and more of them; repaired: a third of them on each of three cards."""
    parts = [poisson(rate, 2_000, 800, seed + n) for n, rate in enumerate((0.7, 2.5, 4.8))]
    load = parts[0]
    for number, part in enumerate(parts[1:], start=1):
        later = Workload(part.arrival + number * SECONDS, part.prompt_tokens, part.output_tokens)
        load = load.concat(later)
    load = load.scaled(load.rate / 3) if repaired else load
    return Seen(plain(load))


def mixed(repaired: bool, seed: int) -> Seen:
    """Chats, and contracts of 24,000 tokens; repaired: those go to another card."""
    chats = poisson(6.0, 300, 150, seed)
    every = np.arange(2.0, SECONDS, 3.0)
    contracts = Workload(every, np.full(len(every), 24_000), np.full(len(every), 200))
    return Seen(plain(chats if repaired else Workload.mix([chats, contracts]), Continuous(SLOTS, 8_192)))


def gaps(repaired: bool, seed: int) -> Seen:
    """A steady load, without graphs and overlap; repaired: with both."""
    step = STEP if repaired else with_host(STEP, HOST, overlap=False)
    run = serve(poisson(6.0, 400, 200, seed), Continuous(SLOTS, BUDGET), step, POOL)
    return Seen(run, host=0.0 if repaired else HOST)


def paging(repaired: bool, seed: int) -> Seen:
    """Answers that outgrow a small pool; repaired: a larger one."""
    return Seen(plain(poisson(7.0, 500, 600, seed), pool=POOL if repaired else KVCache(2_000)))


def bursts(repaired: bool, seed: int) -> Seen:
    """700 people within five seconds, three times; repaired: as many, but not together."""
    drawn = poisson(17.5, 300, 150, seed)
    together = np.concatenate([8.0 + at + np.linspace(0, 5, 700) for at in (0, 40, 80)])
    load = drawn if repaired else Workload(together, drawn.prompt_tokens, drawn.output_tokens)
    last = Workload(np.array([SECONDS]), np.array([10]), np.array([1]))  # until when the page counts
    return Seen(plain(load.concat(last), Continuous(64, BUDGET)))


def outside(repaired: bool, seed: int) -> Seen:
    """A busy, healthy engine behind a slow way; repaired: the way is quick."""
    return Seen(plain(poisson(10.0, 500, 200, seed)), outside=0.05 if repaired else NETWORK)


def speculation(repaired: bool, seed: int) -> Seen:
    """Noon with four drafts for everybody; repaired: none."""
    load = poisson(82.0, 300, 100, seed).head(4_000)
    cache = KVCache(60_000)
    if repaired:
        return Seen(serve(load, Continuous(SLOTS, 8_192), VERIFY.recording, cache))
    executor = Speculative(VERIFY.recording, 0.0, 0.6, verify=VERIFY.seconds, seed=seed)
    return Seen(serve(load, Drafting(Continuous(SLOTS, 8_192), 4), executor, cache))


def ageing(repaired: bool, seed: int) -> Seen:
    """Chats before reports, in overload; a level is worth half a second of waiting, or more than the queue is long."""
    drawn = poisson(18.0, 500, 250, seed)
    levels = np.random.default_rng(seed).random(len(drawn)) < 0.6
    load = Workload(drawn.arrival, drawn.prompt_tokens, drawn.output_tokens,
                    tags=tuple({"priority": int(level)} for level in levels))  # fmt: skip
    policy = Priority(24, BUDGET, ageing=600.0 if repaired else 0.5)
    routes = ["reports" if level else "chat" for level in levels]
    return Seen(plain(load, policy), routes=routes, command="vllm serve m --scheduling-policy priority")


def bucket(repaired: bool, seed: int) -> Seen:
    """Three tenants with a limit each, at a quarter of what they send; repaired: above it."""
    drawn = poisson(4.0, 600, 200, seed)
    tenants = np.array(["a", "b", "c"])[np.random.default_rng(seed).integers(0, 3, len(drawn))]
    load = Workload(drawn.arrival, drawn.prompt_tokens, drawn.output_tokens, tenant=tenants,
                    guess=drawn.output_tokens)  # fmt: skip
    policy = Bucket(SLOTS, BUDGET, 8_000.0 if repaired else 250.0, 20_000.0)
    run = plain(load, policy)
    passed = getattr(run.policy, "passed", {})
    return Seen(run, passed=np.array([passed.get(row, at) for row, at in enumerate(run.arrival)]))


def slots(repaired: bool, seed: int) -> Seen:
    """More than 20 slots can take; repaired: 256."""
    return Seen(plain(poisson(16.0, 400, 250, seed), Continuous(SLOTS if repaired else 20, BUDGET)))


def small_steps(repaired: bool, seed: int) -> Seen:
    """A token budget of 128 under prompts of 1,000; repaired: 2,048."""
    return Seen(plain(poisson(17.0, 1_000, 100, seed), Continuous(128, BUDGET if repaired else 128)))


SCENES: dict[str, Callable[[bool, int], Seen]] = {
    one.__name__: one
    for one in (window, plateau, mixed, gaps, paging, bursts, outside, speculation, ageing, bucket, slots, small_steps)
}


@dataclass(frozen=True)
class Healthy:
    """A page on which nothing is wrong: a rate, tokens of prompts and answers."""

    rate: float
    prompt: int
    answer: int


HEALTHY = {
    "a quiet night": Healthy(0.5, 300, 150),
    "an afternoon": Healthy(6.0, 500, 200),
    "a busy hour": Healthy(14.0, 400, 200),
    "long prompts": Healthy(2.0, 3_000, 200),
    "long answers": Healthy(3.0, 200, 800),
}


@lru_cache(maxsize=4)
def seen(id: str, repaired: bool = False, seed: int = 0) -> Seen:
    """The scene of an incident, or a healthy one by its name."""
    if id in HEALTHY:
        one = HEALTHY[id]
        return Seen(plain(poisson(one.rate, one.prompt, one.answer, seed)), outside=0.03)
    return SCENES[id](repaired, seed)
