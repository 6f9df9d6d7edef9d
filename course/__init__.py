"""Batching for LLM inference, to learn by moving one thing and seeing what it does.

`serve(workload, policy, step_time, cache)` simulates one engine and returns a Run. The rooms beside it are modules:
`from course import metrics, policies, queueing, steptime, traces`.
"""

TYPE_CHECKING = False  # what typing would say; importing it takes ten times as long as the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from .kvcache import KVCache
    from .run import Run
    from .serving import serve
    from .workload import Workload

__all__ = ["KVCache", "Run", "Workload", "serve"]

# Fetched at first use (PEP 562): `course --help` need not wait for NumPy, and `course doctor` works without it.
_HOMES = {"KVCache": "kvcache", "Run": "run", "Workload": "workload", "serve": "serving"}


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
