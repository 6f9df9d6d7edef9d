"""Many runs as one table: a grid of settings or some at random, over the cores of this machine or of several.

    from course.sweep import capacity, random_settings, sweep

    table = sweep(design, {"max_num_seqs": [32, 64, 128], "cards": [1, 2]}, seeds=5, resume="sweep.jsonl")
    table.best("goodput").settings

`design(seed=..., **settings)` serves some requests and returns its Run, or a mapping of numbers. docs/sweeps.md says
when one machine is not enough.
"""

from course.sweep.capacity import HighestRate, capacity
from course.sweep.executors import OneProcess, from_pool, on_dask, on_ray, process_pool
from course.sweep.fast import compiled
from course.sweep.front import front
from course.sweep.grid import random_settings
from course.sweep.row import Row
from course.sweep.running import sweep
from course.sweep.table import Design, Table

__all__ = [
    "Design", "HighestRate", "OneProcess", "Row", "Table", "capacity", "compiled", "from_pool", "front", "on_dask",
    "on_ray", "process_pool", "random_settings", "sweep",
]  # fmt: skip
