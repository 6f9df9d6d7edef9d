"""Batching for LLM inference, to learn by moving one thing and seeing what it does.

`serve(workload, policy, step_time, cache)` simulates one engine and returns a Run. The rooms beside it are modules:
`from course import metrics, policies, queueing, steptime, traces`.
"""

from .kvcache import KVCache
from .run import Run
from .serving import serve
from .workload import Workload

__all__ = ["KVCache", "Run", "Workload", "serve"]
