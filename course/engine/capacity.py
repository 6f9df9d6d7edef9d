"""How much an engine carries: the highest rate at which enough requests are served as promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from course.base import settings
from course.engine.promises import share_within_slo
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies.base import Policy
from course.workload import SLO, Workload


def capacity(
    load: Workload,
    policy: Policy,
    step_time: Any,
    cache: KVCache | None = None,
    *,
    slo: SLO | Mapping[int | str, SLO] | None = None,
    share: float = 0.95,
    by: str | None = None,
    low: float,
    high: float,
    within: float = 0.02,
) -> float:
    """The highest rate [requests/s] at which at least `share` of the requests meet their SLO; the pattern is the same.

    load: served at each rate tried as `load.scaled(rate)`. Other arguments as for `serve`. slo: in place of the
    workload's. by: "class" or "tenant": each of them must keep its share. low, high: rates between which it is found,
    by halving, until they are `within` of each other, as a share of the higher. Found as if the share only fell with
    the rate; where it does not, the answer is one of the rates at which it passes `share`.

    Raises ValueError if `low` is too much already or `high` is not, for a workload without an SLO, and as `serve` does.
    """
    share = settings.real("share", share, above=0, high=1)
    within = settings.real("within", within, low=1e-6, high=1)
    low, high = (settings.real(name, rate, above=0) for name, rate in (("low", low), ("high", high)))
    if not low < high:
        raise ValueError(f"low must be below high, not {low:g} and {high:g} requests/s")
    if slo is None and load.slo is None:
        raise ValueError("nothing was promised: give the workload an SLO, or say slo=SLO(ttft=0.5)")

    def least(rate: float) -> float:
        run = serve(load.scaled(rate), policy, step_time, cache)
        return min(share_within_slo(run, by, slo=slo).values())

    if (found := least(low)) < share:
        raise ValueError(
            f"at {low:g} requests/s {found:.1%} keep their SLO, and {share:.1%} should: lower low, or promise less"
        )
    if (found := least(high)) >= share:
        raise ValueError(f"at {high:g} requests/s {found:.1%} still keep their SLO: raise high")
    while high - low > within * high:
        middle = (low + high) / 2
        if least(middle) >= share:
            low = middle
        else:
            high = middle
    return low
