"""The tables of docs/calibration.md from course/data/vllm: `python -m tools.vllm_live.tables`. Needs no vLLM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.calibration import vllm_live
from course.calibration.vllm_live import VllmRun
from course.engine.metrics import percentiles
from course.engine.run import Run


def schedules() -> list[list[str]]:
    """A row a load: settings, steps, and how many of them are equal."""
    rows = [["load", "slots, budget, blocks", "requests, tokens", "steps", "equal", "preemptions", "words as NumPy's"]]
    for name in vllm_live.names():
        one = vllm_live.read(name)
        same, e = one.equal_steps(one.replay()), one.engine
        rows.append([
            one.title, f"{e['max_num_seqs']}, {e['max_num_batched_tokens']}, {e['num_gpu_blocks']}",
            f"{len(one)}, {one.output_tokens.sum():,}", f"{len(one.schedule)}",
            f"{same.sum()}" + ("" if len(same) == len(one.schedule) else f" of {len(same)}"),
            f"{sum(len(row) - 1 for row in one.preempted)}", f"{one.same_as_numpy} of {len(one)}",
        ])  # fmt: skip
    return rows


def times() -> list[list[str]]:
    """A row a load: p50 and p95 of vLLM and of the simulator with its seconds [ms], and what lies around TTFT."""
    rows = [["load", "TTFT", "TPOT", "E2E", "step p50", "reading", "handing over", "returning"]]
    for name in vllm_live.names():
        one = vllm_live.read(name)
        other = one.replay()
        late = one.workload.arrival - one.arrival
        pairs = ((one.ttft, other.ttft + late), (one.tpot, other.tpot), (one.e2e, other.e2e + late))
        around = [f"{1e3 * percentiles(values)['p50']:.1f}" for values in one.around.values()]
        rows.append([one.title, *(_pair(*pair) for pair in pairs), f"{1e3 * np.median(one.seconds):.1f}", *around])
    return rows


def fits() -> list[list[str]]:
    """A row a load: how much of the variation of its steps four constants explain, fitted to the load itself."""
    rows = [
        ["load", "R2 of base + decodes + prompt tokens + chunks", "TTFT p50, E2E p50 with the fit [ms]", "measured"]
    ]
    for name in vllm_live.names():
        one = vllm_live.read(name)
        r2, run = _fitted(one)
        late = one.workload.arrival - one.arrival
        mine = [1e3 * np.median(values) for values in (run.ttft + late, run.e2e + late)]
        theirs = [1e3 * np.median(values) for values in (one.ttft, one.e2e)]
        rows.append([one.title, f"{r2:.2f}", *("{:.0f}, {:.0f}".format(*pair) for pair in (mine, theirs))])
    return rows


def _fitted(one: VllmRun) -> tuple[float, Run]:
    from course.engine.serving import serve

    def row(decodes: int, chunks: Sequence[int]) -> list[int]:
        return [1, decodes, sum(chunks), len(chunks)]

    rows = []
    for step in one.schedule:
        chunks = [tokens for request, (tokens, cached) in step.items() if cached < one.prompt_tokens[request]]
        rows.append(row(len(step) - len(chunks), chunks))
    x = np.array(rows, dtype=np.float64)
    constants = np.linalg.lstsq(x, one.seconds, rcond=None)[0]
    left = one.seconds - x @ constants
    r2 = 1 - (left**2).sum() / ((one.seconds - one.seconds.mean()) ** 2).sum()
    run = serve(
        one.workload, one.policy,
        lambda step: float(max(1e-4, constants @ row(step.decodes, [n for n, _ in step.prefill_chunks]))), one.cache,
    )  # fmt: skip
    return float(r2), run


def _pair(theirs: np.ndarray, ours: np.ndarray) -> str:
    there, here = percentiles(theirs), percentiles(ours)
    return ", ".join(f"{1e3 * there[s]:.1f} / {1e3 * here[s]:.1f}" for s in ("p50", "p95"))


def main() -> None:
    """Prints all of them as Markdown."""
    for rows in (schedules(), times(), fits()):
        print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
        print("\n".join("| " + " | ".join(row) + " |" for row in rows[1:]), end="\n\n")


if __name__ == "__main__":
    main()
