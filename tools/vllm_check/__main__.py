"""Let vLLM's own scheduler serve small workloads, and compare what it did with what is recorded in tests/data/vllm/.

make vllm-check                   compare, change nothing: exit 1 if a run differs or a kind is not recorded
make vllm-check ARGS=--write      record
make vllm-check ARGS="tight"      one kind only
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.vllm_check import fetch
from tools.vllm_check.workloads import COUNTS, make

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "vllm"
VERSIONS = ("0.19.1", "0.33.0")
SINCE = {"watermark": "0.33.0"}
"""Kinds whose setting older releases do not have."""


def main() -> int:
    """Compare or record, and return the exit status."""
    asked = argparse.ArgumentParser(prog="make vllm-check", description="vLLM's scheduler against what is recorded.")
    asked.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(COUNTS)}; all by default")
    asked.add_argument("--write", action="store_true", help="record what differs, with today's date")
    options = asked.parse_args()
    kinds = options.kinds or list(COUNTS)
    if unknown := set(kinds) - set(COUNTS):
        asked.error(f"no workloads are called {sorted(unknown)[0]!r}; there are {', '.join(COUNTS)}")
    fetch.fetch(VERSIONS)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    found = {version: served(version, [k for k in kinds if SINCE.get(k, version) == version]) for version in VERSIONS}
    differ = 0
    for kind in kinds:
        path, loads = DATA / f"{kind}.json", json.loads(json.dumps([make(kind, seed) for seed in range(COUNTS[kind])]))
        old = json.loads(path.read_text()) if path.exists() else {"workloads": None, "recorded": {}}
        new: dict[str, Any] = {"kind": kind, "workloads": loads, "recorded": {}}
        for version in VERSIONS:
            if kind not in found[version]:
                continue
            runs, before = found[version][kind], old["recorded"].get(version)
            different = differences(loads, runs, old["workloads"], before and before["runs"])
            differ += len(different)
            print(f"{kind:<10} vLLM {version}: {len(runs) - len(different)} of {len(runs)} runs as recorded"
                  + (f"; not so: {different[0]}" if different else ""))  # fmt: skip
            date = today if different else before["date"]
            new["recorded"][version] = {"vllm": version, "date": date, "runs": runs}
        if options.write:
            DATA.mkdir(parents=True, exist_ok=True)
            path.write_text(text(new))
    if differ and not options.write:
        print("To record them: make vllm-check ARGS=--write")
    return int(differ > 0 and not options.write)


def served(version: str, kinds: list[str]) -> dict[str, list[dict[str, Any]]]:
    """For each kind the runs of its workloads, by this release."""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "runs.json"
        environment = os.environ | {"PYTHONPATH": f"{fetch.source(version)}:{ROOT}", "VLLM_LOGGING_LEVEL": "CRITICAL"}
        command = [str(fetch.PYTHON), "-m", "tools.vllm_check.drive", str(to), *kinds]
        subprocess.run(command, check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        return json.loads(to.read_text())


def differences(loads: list, runs: list, old_loads: list | None, old_runs: list | None) -> list[str]:
    """A sentence for each run that is not as recorded: which seed, and in what."""
    sentences = []
    for i, (load, run) in enumerate(zip(loads, runs, strict=True)):
        if old_loads is None or old_runs is None or i >= len(old_runs):
            sentences.append(f"seed {load['seed']} is not recorded")
        elif old_loads[i] != load:
            sentences.append(f"seed {load['seed']} is another workload now")
        elif old_runs[i] != run:
            what = [name for name in run.keys() | old_runs[i].keys() if run.get(name) != old_runs[i].get(name)]
            sentences.append(f"seed {load['seed']} has other {', '.join(sorted(what))}")
    return sentences


def text(record: dict[str, Any]) -> str:
    """JSON with a line for each workload and each run."""

    def lines(values: list) -> str:
        return "[\n" + ",\n".join(json.dumps(value, separators=(",", ":")) for value in values) + "\n]"

    recorded = [
        f'{json.dumps(version)}: {{"vllm": {json.dumps(version)}, "date": {json.dumps(one["date"])}, "runs": '
        f"{lines(one['runs'])}}}"
        for version, one in record["recorded"].items()
    ]
    return (
        f'{{"kind": {json.dumps(record["kind"])}, "workloads": {lines(record["workloads"])},\n"recorded": {{'
        f"{', '.join(recorded)}}}}}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
