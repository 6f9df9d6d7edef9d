"""Who was served as promised: the SLOs of requests against the times of a run."""

from typing import Any

import numpy as np

from course.base import settings
from course.workload.slo import SLO, limits, of_requests

Run = Any  # course.engine.run.Run, which stands above


def meets_slos(
    run: Run,
    ttft_slo: float | None = None,
    tpot_slo: float | None = None,
    e2e_slo: float | None = None,
    *,
    slo: Any = None,
) -> np.ndarray:
    """For each request, whether it was answered and met its SLO, (n,) bool. Without a TPOT any is within it.

    Without an argument the SLOs of the workload count (`Workload.slo`), and none if it has none. ttft_slo, tpot_slo,
    e2e_slo: seconds, for all requests alike. slo: an SLO for all, or a mapping by class. Either stands in place of the
    workload's. Raises ValueError for an SLO that is not positive, for both at once, and as a Workload does for slo.
    """
    slos = slos_of(run, slo, ttft=ttft_slo, tpot=tpot_slo, e2e=e2e_slo)
    met = run.answered.copy()
    if slos is None:
        return met
    for name in ("ttft", "tpot", "e2e"):
        met &= ~(getattr(run, name) > limits(slos, name))
    return met


def slos_of(run: Run, slo: Any, **for_all: float | None) -> tuple[SLO, ...] | None:
    """What each request was promised; None if nothing was."""
    given = {name: settings.real(f"{name}_slo", value, above=0) for name, value in for_all.items() if value is not None}
    if given and slo is not None:
        raise ValueError(f"give slo, or {', '.join(f'{name}_slo' for name in given)}, and not both")
    load = run.workload
    return of_requests(SLO(**given) if given else load.slo if slo is None else slo, len(run), load.class_)


def goodput(run: Run, by: str | None = None, *, slo: Any = None) -> dict[Any, float]:
    """Requests a second of the makespan that met their SLO, of each class or tenant. As `share_within_slo`."""
    return {label: float(met.sum()) / run.makespan for label, met in grouped(run, by, slo).items()}


def share_within_slo(run: Run, by: str | None = None, *, slo: Any = None) -> dict[Any, float]:
    """The share of requests that met their SLO, 0 to 1, of each class or tenant.

    by: "class" or "tenant"; None: {"all": of all}. slo: as in `meets_slos`. Raises ValueError as that, for another
    `by`, and where the workload has no such label.
    """
    return {label: float(met.mean()) for label, met in grouped(run, by, slo).items()}


def grouped(run: Run, by: str | None, slo: Any, met: np.ndarray | None = None) -> dict[Any, np.ndarray]:
    """Who met their SLO, by label."""
    met = meets_slos(run, slo=slo) if met is None else met
    if by is None:
        return {"all": met}
    if by not in ("class", "tenant"):
        raise ValueError(f'by must be "class", "tenant" or None, not {settings.quote(by)}')
    labels = run.workload.class_ if by == "class" else run.workload.tenant
    if labels is None:
        raise ValueError(f"these requests have no {by}: give the workload {'class_' if by == 'class' else by}")
    return {label: met[labels == label] for label in np.unique(labels).tolist()}
