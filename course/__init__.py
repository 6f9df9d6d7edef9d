"""Batching for LLM inference, to learn by moving one thing and seeing what it does.

`serve(workload, policy, step_time, cache)` simulates one engine and returns a Run. The rooms of the package are listed
in CONTRIBUTING.md; those that a lab needs are at hand from here:
`from course import lengths, metrics, policies, queueing, steptime, traces`.
"""

TYPE_CHECKING = False  # what typing would say; importing it takes ten times as long as the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from course.engine.run import Run
    from course.engine.serving import serve
    from course.engine.speculative import Speculative
    from course.memory.kvcache import KVCache
    from course.workload import SLO, Workload

__all__ = ["SLO", "KVCache", "Run", "Speculative", "Workload", "serve"]

# Fetched at first use (PEP 562): `course --help` need not wait for NumPy, and `course doctor` works without it.
_NAMES = {
    "KVCache": "memory.kvcache",
    "Run": "engine.run",
    "SLO": "workload",
    "Speculative": "engine.speculative",
    "Workload": "workload",
    "serve": "engine.serving",
}
_MODULES = {
    "arrivals": "workload.arrivals",
    "budget": "memory",
    "conversations": "workload.conversations",
    "gpus": "models.gpus",
    "lengths": "workload.lengths",
    "metrics": "engine.metrics",
    "prefixes": "memory.prefixes",
    "profiles": "gpu.recordings",
}


def __getattr__(name: str) -> "Any":
    home = _NAMES.get(name) or _MODULES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{home}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
