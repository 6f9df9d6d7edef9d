"""One run read by many tools: the same token times under the definition of each.

The definitions are those that the readers of `course.results` found in the tools, each with its version in their
docstrings.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from course import policies, results
from course.calibration import vllm_live
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab16.load_test import OUTPUT, PROMPT, SLOTS, STEP
from course.results.result import Result
from course.workload import Workload, lengths

REQUESTS = 300
LIVE = vllm_live.read("preempted")
PEAK = Path(vllm_live.__file__).parents[1] / "data" / "results" / "peak.json"
"""The file of the decision, in the schema of `vllm bench serve` and written by hand: no run of an engine made it."""
SAME_AS_OTHERS = {
    ("genai-perf, aiperf", "inter token latency"),
    ("aiperf", "inter chunk latency"),
    ("guidellm 0.2, 0.3", "ITL"),
    ("guidellm from 0.4", "ITL"),
}
"""Readings (tool, metric) whose number another one gives as well, and which no bar shows."""


@dataclass(frozen=True)
class Streams:
    """What a client saw of each request, shape (n,): seconds until the first and the last token, tokens, and pieces.

    gaps: the seconds between the pieces that arrived, one array a request; a piece may hold several tokens.
    piece_tokens: how many tokens each of those pieces brought.
    """

    ttft: np.ndarray
    e2e: np.ndarray
    tokens: np.ndarray
    gaps: Sequence[np.ndarray]
    piece_tokens: Sequence[np.ndarray]

    @property
    def tpot(self) -> np.ndarray:
        """(E2E - TTFT) / (tokens - 1), NaN for an answer of one token [s]."""
        some = self.tokens > 1
        return np.where(some, (self.e2e - self.ttft) / np.where(some, self.tokens - 1, 1), np.nan)


def streams(run: Run, tokens_per_piece: int = 1) -> Streams:
    """The answers of a run as the client sees them: the first token alone, the others in pieces of so many tokens."""
    gaps, brought = [], []
    for i in range(len(run)):
        times = run.token_times(i)
        ends = np.unique(np.append(np.arange(0, len(times), tokens_per_piece), len(times) - 1))
        gaps.append(np.diff(times[ends]))
        brought.append(np.diff(ends))
    return Streams(run.ttft, run.e2e, run.workload.output_tokens, gaps, brought)


@dataclass(frozen=True)
class Reading:
    """One number of one tool: its name there, how it comes about, and its mean [s]."""

    tool: str
    metric: str
    how: str
    mean: float


def readings(seen: Streams) -> list[Reading]:
    """The time per token of every tool, from one set of token times; seconds."""
    n, decode = seen.tokens, seen.e2e - seen.ttft
    some = n > 1
    pieces = np.array([len(gap) for gap in seen.gaps])
    all_gaps = np.concatenate(seen.gaps)
    shared = float(all_gaps.sum() / np.concatenate(seen.piece_tokens).sum())
    tpot = float(np.nanmean(seen.tpot))
    several = pieces > 0
    between, every_gap = float(all_gaps.mean()), float(decode[some].sum() / (n - 1)[some].sum())
    return [
        Reading("this course", "TPOT", "(E2E - TTFT) / (n - 1), mean over requests", tpot),
        Reading("this course", "ITL", "every gap between tokens, mean over gaps", every_gap),
        Reading("vLLM bench serve", "TPOT", "(E2E - TTFT) / (n - 1), mean over requests", tpot),
        Reading("vLLM bench serve", "ITL", "gaps between pieces, mean over gaps", between),
        Reading("SGLang bench_serving", "ITL", "a piece's gap shared among its tokens, mean over tokens", shared),
        Reading("genai-perf, aiperf", "inter token latency", "(E2E - TTFT) / (n - 1), mean over requests", tpot),
        Reading("aiperf", "inter chunk latency", "gaps between pieces, mean over requests and gaps", between),
        Reading("inference-perf", "TPOT", "decode time / (pieces - 1), mean over requests",
                float((decode[several] / pieces[several]).mean())),
        Reading("guidellm 0.2, 0.3", "TPOT", "decode time / n, mean over tokens", float(decode.sum() / n.sum())),
        Reading("guidellm 0.2, 0.3", "ITL", "decode time / (n - 1), mean over tokens", every_gap),
        Reading("guidellm from 0.4", "ITL", "decode time / (n - 1), mean over tokens", every_gap),
        Reading("guidellm from 0.4", "TPOT", "E2E / n, mean over tokens", float(seen.e2e.sum() / n.sum())),
        Reading("llmperf", "inter token latency", "(TTFT + later gaps) / n, mean over requests",
                float((seen.e2e / n).mean())),
    ]  # fmt: skip


@lru_cache(maxsize=1)
def vllms_file() -> dict[str, Any]:
    """What `vllm bench serve` wrote of a load that vLLM answered."""
    return json.loads((vllm_live.FOLDER / "bench_serve.json").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def vllms_page() -> Result:
    """What vLLM's /metrics counted from before the recorded load to after it."""
    pages = [vllm_live.FOLDER / f"metrics_preempted_{when}.txt" for when in ("before", "after")]
    return results.read_files(pages, interval=float(LIVE.client_last.max()))[0]


def from_vllms_file() -> Streams:
    """The same answers; how many tokens each piece brought is not in the file, so that a request's are together."""
    found = vllms_file()
    ttft, e2e, tokens = (np.array(found[name]) for name in ("ttfts", "latencies", "output_lens"))
    return Streams(ttft, e2e, tokens, [np.array(gaps) for gaps in found["itls"]], [np.array([n - 1]) for n in tokens])


@dataclass(frozen=True)
class OneRun:
    """A run, what the client saw of it, and every tool's reading."""

    run: Run
    seen: Streams
    readings: list[Reading]


@lru_cache(maxsize=32)
def _run(rate: float, output_cv: float) -> Run:
    load = Workload.poisson(rate, REQUESTS, PROMPT, lengths.lognormal(OUTPUT, output_cv), seed=0)
    return serve(load, policies.Continuous(max_num_seqs=SLOTS, max_num_batched_tokens=2_048), STEP)


def read_by_all(rate: float, output_cv: float, tokens_per_piece: int) -> OneRun:
    """300 requests at `rate` a second, answers with this CV, and a server that sends so many tokens at a time."""
    run = _run(rate, output_cv)
    seen = streams(run, tokens_per_piece)
    return OneRun(run, seen, readings(seen))


def few_rows(result: OneRun) -> list[tuple[str, str]]:
    """What the bars do not say: how far our two means and the lowest and the highest reading are apart."""
    by_mean = sorted(result.readings, key=lambda r: r.mean)
    tpot, itl = (r.mean for r in result.readings[:2])
    return [
        ("our ITL over our TPOT", f"{itl / tpot:.3f}"),
        ("highest over lowest", f"{by_mean[-1].mean / by_mean[0].mean:.2f}"),
    ]
