"""Designs for the tests: functions of a module, as every executor needs them."""

import os
import signal
import time
from pathlib import Path

from course import KVCache, Workload, lengths, policies, serve, steptime

STEP = steptime.PowerLaw(t0=0.005, c=1e-4, alpha=1, prefill=2e-5)


def served(*, seed, max_num_seqs=8, rate=5.0):
    """A Run of sixty requests; no slot is refused, and more slots than tokens a step."""
    load = Workload.poisson(rate, 60, lengths.lognormal(200, 1.0), lengths.lognormal(20, 1.0), seed=seed)
    return serve(load, policies.Continuous(max_num_seqs, 128), STEP, KVCache(2_000))


def numbers(*, seed, x=0.0, word="a"):
    """What JSON has no word for, and what NumPy has its own for."""
    import numpy as np

    return {
        "x": np.float64(x) / 3,
        "nan": float("nan"),
        "inf": np.inf,
        "seed": np.int64(seed),
        "word": word,
        "yes": np.True_,
    }


def slow(*, seed, log, place):
    """A tenth of a second, and a mark for each call."""
    with Path(log).open("a") as file:
        file.write(f"{place} {seed}\n")
    time.sleep(0.1)
    return {"pid": place + seed / 7}


def ends(*, seed, place):
    """Kills the process that runs it, at the second place."""
    if place == 1:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    return {"place": place}


def stumbles(*, seed, place):
    """A bug, at the second place, and no sentence at the third."""
    if place == 1:
        return {"x": 1 / 0}
    if place == 2:
        raise ValueError
    return {"x": place} if place != 3 else 5


def adds(*, seed, number):
    """A sum of so many products, whose last bits depend on how many threads share it."""
    import numpy as np

    a, b = np.random.default_rng(seed).random((2, number))
    return {"sum": np.dot(a, b)}


def two_policies(*, seed, rate):
    """Two runs, of which the compiled loop can do one."""
    load = Workload.poisson(rate, 20, 50, 5, seed=seed)
    first, second = (serve(load, policy(4, 64), STEP) for policy in (policies.Continuous, policies.ShortestFirst))
    return {"first": first.makespan, "second": second.makespan}
