"""`make vllm-live`: install vLLM if it is missing, record everything again, and print what moved.

    python -m tools.vllm_live [--only NAME ...] [--keep] [--folder .vllm]

--only: record these servers again (and `transformers`), and take the others from the raw folder of the last time.
--keep: record nothing, make the files again from the raw folder. A schedule that differs is a finding: it is printed,
and tests/calibration/test_vllm_live.py fails until somebody has looked at it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from course.calibration import vllm_live
from course.engine.metrics import percentiles
from tools.vllm_live.install import install
from tools.vllm_live.loads import SERVERS
from tools.vllm_live.pack import DATA, pack
from tools.vllm_live.record import ROOT, run


def summary(text: str) -> dict[str, str]:
    """What is compared of one recorded load."""
    one = vllm_live.of_document(json.loads(text))
    same = one.equal_steps(one.replay())
    return {
        "vLLM": one.engine["version"],
        "requests": f"{len(one)}",
        "output tokens": f"{one.output_tokens.sum():,}",
        "steps": f"{len(one.schedule)}",
        "equal steps": f"{same.sum()} of {len(same)}",
        "preemptions": f"{sum(len(row) - 1 for row in one.preempted)}",
        "most blocks": f"{one.blocks.max()}",
        "step p50": f"{1e3 * percentiles(one.seconds)['p50']:.1f} ms",
        "TTFT p50": f"{1e3 * percentiles(one.ttft)['p50']:.1f} ms",
        "E2E p50": f"{1e3 * percentiles(one.e2e)['p50']:.1f} ms",
    }


def moved(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """A line for each number of each load, and for metrics that came or went."""
    lines = []
    for name, text in after.items():
        if name.startswith("metrics_"):
            new, old = _metrics(text), _metrics(before.get(name, ""))
            lines += [f"{name}: {one} is new" for one in sorted(new - old) if old]
            lines += [f"{name}: {one} is gone" for one in sorted(old - new)]
        elif name.endswith(".json") and '"steps"' in text:
            now, then = summary(text), summary(before[name]) if name in before else {}
            for key, value in now.items():
                was = then.get(key, "-")
                lines.append(f"{name}: {key} {value}" + ("" if was == value else f" (was {was})"))
    return lines


def _metrics(page: str) -> set[str]:
    return {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}


def main() -> None:
    """Reads the command line."""
    names = [server.name for server in SERVERS]
    parser = argparse.ArgumentParser(prog="python -m tools.vllm_live", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[*names, "transformers"], default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / ".vllm")
    asked = parser.parse_args()
    folder = asked.folder.absolute()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server goes with this process
    load = os.getloadavg()[0]
    if not asked.keep:
        run(install(folder / "venv"), folder, asked.only)
        machine = f"{os.cpu_count()} cores, {platform.machine()}, load average {load:.1f} at the start"
        (folder / "raw" / "machine.json").write_text(
            json.dumps({"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine}), encoding="utf-8"
        )
    files = pack(folder, **json.loads((folder / "raw" / "machine.json").read_text(encoding="utf-8")))
    before = {path.name: path.read_text(encoding="utf-8") for path in DATA.glob("*") if path.name != "README.md"}
    DATA.mkdir(exist_ok=True)
    for name, text in files.items():
        (DATA / name).write_text(text, encoding="utf-8")
    print("\n".join(moved(before, files)))


if __name__ == "__main__":
    main()
