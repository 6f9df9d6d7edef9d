"""The scenario of lab 16: a load test whose client lets only so many requests in flight, and what it writes down.

Llama-3.1-8B on one H100, its steps as recorded there; 512 prompt tokens and about 128 output tokens a request. One
request in the middle of the test is a long document. The engine computes it in chunks that fill its token budget, so
that nobody else gets a first token until it is done, and those who stream get one token a chunk.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from heapq import heappush, heapreplace

import numpy as np

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.figures.words import seconds
from course.steptime import Step, StepTime, recorded
from course.workload import Workload, lengths

STEP = recorded("h100-llama3-8b")
SLOTS = 256  # of the engine, as many as were recorded; the client's limit is never above it
BUDGET = 8_192  # tokens a step: what `vllm serve` takes on an H100 (0.19)
DOCUMENT = 65_536  # tokens: the longest prompt within the recording, whose last chunk is one of its points
PROMPT, OUTPUT, OUTPUT_CV = 512, 128, 1.0
REQUESTS = 2_000
LIMITS = (8, 16, 32, 64, 128, 256)
PERCENTILES = (50, 99)


def requests(rate: float, document_tokens: int = 0, num_requests: int = REQUESTS, seed: int = 0) -> Workload:
    """Poisson arrivals at `rate` requests/s: what the client plans.

    document_tokens: of the prompt in the middle, with a one-token answer; none where 0. Nothing else changes with it.
    """
    load = Workload.poisson(rate, num_requests, PROMPT, lengths.lognormal(OUTPUT, OUTPUT_CV), seed)
    if not document_tokens:
        return load
    prompts, answers = load.prompt_tokens.copy(), load.output_tokens.copy()
    prompts[num_requests // 2], answers[num_requests // 2] = document_tokens, 1
    return replace(load, prompt_tokens=prompts, output_tokens=answers)


def engine(max_num_seqs: int = SLOTS) -> policies.Continuous:
    """Continuous batching with vLLM's token budget of this card."""
    return policies.Continuous(max_num_seqs=max_num_seqs, max_num_batched_tokens=BUDGET)


def chunks(document_tokens: int, step_time: StepTime = STEP) -> list[float]:
    """Seconds of each step that computes a document alone."""
    starts = range(0, document_tokens, BUDGET)
    return [step_time(Step(0, 0, ((min(BUDGET, document_tokens - cached), cached),))) for cached in starts]


def stall(document_tokens: int, step_time: StepTime = STEP) -> float:
    """Seconds that it takes to compute a document alone, in which nobody else gets a first token; 0 without one."""
    return float(sum(chunks(document_tokens, step_time)))


def sent_times(planned: np.ndarray, answered: np.ndarray, limit: int) -> np.ndarray:
    """When a client with at most `limit` requests in flight sends each request, in order of its plan.

    planned, answered: seconds, shape (n,), planned non-decreasing. Request i goes out when it is planned and fewer than
    `limit` of those before it are unanswered: at the later of its plan and the moment of the answer that makes room.
    """
    sent = np.empty(len(planned))
    flying: list[float] = []  # the `limit` latest answers among those sent
    for i, (moment, answer) in enumerate(zip(planned.tolist(), answered.tolist(), strict=True)):
        if len(flying) < limit:
            sent[i] = moment
            heappush(flying, answer)
        else:
            sent[i] = max(moment, flying[0])
            heapreplace(flying, answer)
    return sent


@dataclass(frozen=True)
class LoadTest:
    """One load test through a limited client, beside the same plan without a limit.

    run: with the limit. Its times count from the plan: an engine with as many slots as the client's limit does, request
    by request, what a larger engine does behind that client (a test proves it). free: the same requests, each sent when
    it was planned. stall: seconds of the document's steps.
    """

    rate: float
    max_concurrency: int
    stall: float
    run: Run
    free: Run

    @cached_property
    def sent(self) -> np.ndarray:
        """When the client really sent each request [s]."""
        return sent_times(self.run.arrival, self.run.response, self.max_concurrency)

    @cached_property
    def written(self) -> np.ndarray:
        """TTFT as the client writes it down: from the moment it sent the request [s]."""
        return self.run.first_computed - self.sent

    @property
    def in_flight(self) -> float:
        """Mean number of requests at the server, by Little's law over the run."""
        return float((self.run.response - self.sent).sum() / self.run.makespan)


@lru_cache(maxsize=32)
def _run(rate: float, document_tokens: int, max_num_seqs: int) -> Run:
    return serve(requests(rate, document_tokens), engine(max_num_seqs), STEP)


def run_test(rate: float, max_concurrency: int, document_tokens: int) -> LoadTest:
    """The load test of 2,000 requests with and without the client's limit; rate in requests/s."""
    run, free = (_run(rate, document_tokens, slots) for slots in (max_concurrency, SLOTS))
    return LoadTest(rate, max_concurrency, stall(document_tokens), run, free)


def rows(result: LoadTest) -> list[tuple[str, ...]]:
    """Percentiles of TTFT three ways, and how many waited more than a second."""
    ways = (result.written, result.run.ttft, result.free.ttft)
    made = (
        (len(run) - 1) / np.ptp(sent) for run, sent in ((result.run, result.sent), (result.free, result.free.arrival))
    )
    limited, free = made
    return [
        ("", "written down", "from the plan", "no limit"),
        *((f"TTFT p{q}", *(seconds(float(np.percentile(way, q))) for way in ways)) for q in PERCENTILES),
        ("requests above 1 s", *(f"{int((way > 1).sum()):,}" for way in ways)),
        ("sent, requests/s", f"{limited:.2f}", f"{limited:.2f}", f"{free:.2f}"),
        ("at the server, mean", f"{result.in_flight:.1f}", f"{result.in_flight:.1f}", f"{result.free.little().L:.1f}"),
    ]
