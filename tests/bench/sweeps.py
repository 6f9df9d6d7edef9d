"""200 designs of 1,400 requests in one process, on a pool and on a Dask LocalCluster, in turns: seconds, equal rows.

    PYTHONPATH=. .venv/bin/python tests/bench/sweeps.py [TURNS]

Needs Dask: pip install -e ".[dask]". Then a sweep is killed in the middle and taken up again.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from course.cli.sweep_design import Simulated
from course.sweep import OneProcess, Table, on_dask, process_pool, random_settings, rows_file, sweep

GRID = {
    "gpu": ["H100", "H200", "A100", "L40S"],
    "cards": [1, 2, 3, 4, 6],
    "max_num_seqs": [0, 16, 32, 64, 128, 256],  # no slot is refused: every sixth row is a sentence
    "max_num_batched_tokens": [512, 1024, 2048, 4096, 8192],
    "long_prefill_token_threshold": [0, 256, 512],
    "rate": [36.0],
    "num_requests": [1_400],
    "prompt_tokens": [1_100.0],
    "output_tokens": [230.0],
}
DESIGN = Simulated({}, "", {"": {"ttft": 0.8, "tpot": 0.03}}, {})
CORES = 2


def timed(executor: object) -> tuple[Table, float, float, float]:
    """The table, and seconds: of the clock, of all runs, of this process."""
    wall, own = time.perf_counter(), time.process_time()
    table = sweep(DESIGN, random_settings(GRID, 200, seed=0), executor=executor)
    return table, time.perf_counter() - wall, table.cpu_seconds, time.process_time() - own


def killed(folder: Path) -> tuple[str, Table]:
    """What is there after kill -9 in the middle, and the table of the sweep that goes on from it."""
    path = folder / "s.jsonl"
    code = f"""
from pathlib import Path
from tests.bench.sweeps import DESIGN, GRID
from course.sweep import process_pool, random_settings, sweep
if __name__ == "__main__":
    sweep(DESIGN, random_settings(GRID, 200, seed=0), executor=process_pool({CORES}), resume=Path({str(path)!r}))
"""
    (folder / "s.py").write_text(code)
    process = subprocess.Popen([sys.executable, str(folder / "s.py")], env={"PYTHONPATH": str(Path.cwd())})
    while not path.exists() or path.read_bytes().count(b"\n") < 80:
        time.sleep(0.05)
    process.kill()
    process.wait()
    there = len(rows_file.read(path))
    again = sweep(DESIGN, random_settings(GRID, 200, seed=0), executor=process_pool(CORES), resume=path)
    return f"killed with {there} rows in the file; rows after going on: {len(again)}", again


def main(turns: int) -> None:
    """Print the table of docs/benchmarks.md."""
    import distributed

    times: dict[str, list[tuple[float, float, float]]] = {}
    tables = []
    with distributed.LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None) as cluster:
        for _ in range(turns):
            ways = {
                "one process": OneProcess(),
                "pool": process_pool(CORES),
                "Dask": on_dask(cluster.scheduler_address),
            }
            for name, executor in ways.items():
                table, *seconds = timed(executor)
                times.setdefault(name, []).append(tuple(seconds))
                tables.append(table)
                print(
                    f"{name}: wall {seconds[0]:.1f} s, runs {seconds[1]:.1f} CPU s, this process {seconds[2]:.1f}",
                    flush=True,
                )
    with tempfile.TemporaryDirectory() as folder:
        said, again = killed(Path(folder))
        tables.append(again)
    refused = sum(row.refused is not None for row in tables[0])
    print(f"Python {platform.python_version()}, Dask {distributed.__version__}, {turns} turns")
    print(f"{len(tables[0])} designs, {refused} refused; rows equal: {all(table == tables[0] for table in tables)}")
    print(said)
    for name, seconds in times.items():
        print(name, *(f"{statistics.median(column):.1f}" for column in zip(*seconds, strict=True)))
    served = [row.cpu_seconds for row in tables[0] if row.refused is None]
    print(f"100 runs of 1,400 requests: {100 * statistics.mean(served):.1f} CPU s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
