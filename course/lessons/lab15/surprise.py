"""The table of lab 15 over five seeds, and that of other bursts and another card.

python -m course.lessons.lab15.surprise
"""

from collections.abc import Iterator

import numpy as np

from course import policies
from course.engine.promises import share_within_slo
from course.engine.serving import serve
from course.lessons.lab15 import promises
from course.lessons.lab15.promises import (
    BOTH,
    BUDGET,
    DEFAULTS,
    DOCUMENTS,
    EARLIEST,
    FLAG,
    HOPELESS,
    PACE,
    POLICIES,
    PROMISED,
    SMALL,
    TARGET,
    TPOT,
    Both,
)  # fmt: skip
from course.memory.kvcache import KVCache
from course.policies import Policy, StepTarget
from course.steptime import recorded
from course.workload import Workload, lengths

SEEDS = range(5)
H100, H100_POOL = "h100-llama3-8b", KVCache(26_317)  # blocks: what `course kv llama-3.1-8b --gpu H100` leaves
NAMES = {FLAG: f"--max-num-batched-tokens {SMALL}"}


def rows() -> list[tuple[str, ...]]:
    """A row for each policy of the lab, a column for each seed, header first."""
    found = {name: [promises.served(policy=name, seed=seed) for seed in SEEDS] for name in POLICIES}
    header = ("policy", *(f"seed {seed}" for seed in SEEDS))
    return [header, *((NAMES.get(name, name), *(f"{one.share:.0%}" for one in each)) for name, each in found.items())]


def random_bursts(rate: float, seed: int, num_requests: int = 1_500) -> Workload:
    """Bursts of random lengths: on for 40% of the time, 30 s from one to the next on average."""
    chats, documents = (int(share * num_requests) for share in (1 - DOCUMENTS, DOCUMENTS))
    short = lengths.lognormal(512, 1.0, 16, 4_096), lengths.lognormal(192, 1.0, 4, 1_024)
    long = lengths.lognormal(6_000, 0.4, 2_000, 16_000), lengths.lognormal(256, 0.5, 16, 1_024)
    often = Workload.on_off(rate * (1 - DOCUMENTS), chats, *short, on_fraction=0.4, period=30, seed=seed)
    seldom = Workload.poisson(rate * DOCUMENTS, documents, *long, seed=seed + 7)
    both = Workload.mix({promises.CHAT: often, promises.DOCUMENT: seldom})
    names = np.asarray(both.class_)
    slos = tuple(PROMISED[name] for name in names)
    return Workload(both.arrival, both.prompt_tokens, both.output_tokens, class_=names, slo=slos)


def engines(slots: int) -> dict[str, Policy]:
    """The policies by name on an H100, with so many slots."""
    step, pace = recorded(H100), {"tokens_per_second": PACE}
    few = min(slots, SMALL)
    return {
        DEFAULTS: policies.Continuous(slots, BUDGET),
        FLAG: policies.Continuous(few, SMALL),
        EARLIEST: policies.EarliestDeadline(slots, BUDGET),
        HOPELESS: policies.HopelessLast(slots, BUDGET, **pace),
        TARGET: StepTarget(slots, BUDGET, step_time=step, target=TPOT),
        BOTH: Both(slots, BUDGET, **pace, step_time=step, target=TPOT),
        f"{FLAG} + hopeless last": policies.HopelessLast(few, SMALL, **pace),
        f"{FLAG} + earliest deadline": policies.EarliestDeadline(few, SMALL),
        "by load (a note)": policies.LoadDependent(slots),
    }


def on_an_h100() -> Iterator[str]:
    """Lines of the table for random bursts on an H100: slots, rate, policy, a share for each seed."""
    for slots in (256, 1_024):
        for rate in (15, 18):
            loads = [random_bursts(rate, seed) for seed in SEEDS]
            for name, policy in engines(slots).items():
                runs = (serve(load, policy, recorded(H100), H100_POOL) for load in loads)
                shares = "/".join(f"{100 * share_within_slo(run)['all']:.0f}" for run in runs)
                yield f"{slots:>5,} slots, {rate} requests/s  {name:<32} {shares}"


if __name__ == "__main__":
    for row in rows():
        print(f"{row[0]:<32}", *(f"{cell:>7}" for cell in row[1:]))
    for one in on_an_h100():
        print(one, flush=True)
