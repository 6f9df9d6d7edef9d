"""The live executor of a card: an engine's steps run by `course.gpu.transformer`, in wall-clock time.

    sizes = CaptureSizes()
    executor = LiveLlama(llama, longest=1_024, sizes=sizes)
    executor.capture(policy, prompt_tokens=...)              # once, before anybody comes
    run = serve_live(load, policy, executor, KVCache(num_blocks=llama.blocks, block_size=16))
    same = serve(load, policy, AsCaptured(steptime.recorded("h100-llama3-8b"), sizes, executor.overhead()), ...)

A step runs in the smallest captured size that holds it, as engines with CUDA graphs do, and the rest is padding. Each
answer has the length that the workload says, whatever its tokens are (vLLM's `ignore_eos`); its tokens are the most
likely ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course.base.settings import quote, seed_sequence, whole
from course.engine.executor import Work
from course.engine.live import Emitted, Live
from course.engine.step import Step as StepParts
from course.gpu.transformer.llama import Llama
from course.gpu.transformer.padded import PaddedStep
from course.policies.base import Request
from course.steptime import Recorded
from course.workload import Workload

Size = tuple[int, int, int]
"""(prompt tokens, chunks, decodes) of a captured step."""


@dataclass(frozen=True)
class CaptureSizes:
    """The sizes in which steps are captured.

    tokens: prompt tokens of a step, rounded up to the next of them, above the last to a multiple of it. chunks: alike.
    decodes: beside prompts, and above `alone`, rounded up to a multiple of this; fewer alone are captured as they are.
    """

    tokens: tuple[int, ...] = (*range(64, 513, 64), *range(768, 2_049, 256))
    chunks: tuple[int, ...] = (1, 4)
    decodes: int = 8
    alone: int = 32

    def of(self, tokens: int, chunks: int, decodes: int) -> Size:
        """The size that a step with so many runs in."""
        if not chunks and decodes <= self.alone:
            return 0, 0, decodes
        if not chunks:
            return 0, 0, -(-decodes // self.decodes) * self.decodes
        return _next(tokens, self.tokens), _next(chunks, self.chunks), -(-decodes // self.decodes) * self.decodes

    def up_to(self, tokens: int, chunks: int, decodes: int) -> list[Size]:
        """All sizes that steps with at most so many run in."""
        every = {self.of(0, 0, n) for n in range(1, decodes + 1)}
        sizes = {_next(n, self.tokens) for n in range(1, tokens + 1)}
        groups = {_next(n, self.chunks) for n in range(1, chunks + 1)}
        beside = {-(-n // self.decodes) * self.decodes for n in range(decodes + 1)}
        return sorted(every | {(n, c, d) for n in sizes for c in groups for d in beside if c <= n})


def _next(number: int, steps: tuple[int, ...]) -> int:
    return next((step for step in steps if step >= number), -(-number // steps[-1]) * steps[-1])


@dataclass
class Timings:
    """Of each step, in the order of `LiveLlama.seconds`: what it was made of, and seconds on the card and on the host.

    parts: prompt tokens, chunks, decodes. context: tokens that decodes attend to, query-key pairs of the chunks.
    gpu: between events around the graph. inputs: to gather token numbers and tables and to send them. after: from the
    end of the graph until the new tokens are there and written down. What is left of a step is the policy and engine.
    """

    parts: list[tuple[int, int, int]] = field(default_factory=list)
    context: list[tuple[int, int]] = field(default_factory=list)
    gpu: list[float] = field(default_factory=list)
    inputs: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Overhead:
    """Seconds that a step takes beside the card's: `step` of each, and more for each decode and each chunk."""

    step: float
    decode: float
    chunk: float

    def __call__(self, decodes: int, chunks: int) -> float:
        """Seconds of a step with so many."""
        return self.step + self.decode * decodes + self.chunk * chunks


class AsCaptured:
    """A recorded step time as a live executor spends it: in captured sizes, and with the host's overhead."""

    def __init__(self, recorded: Recorded, sizes: CaptureSizes, overhead: Overhead) -> None:
        self.recorded, self.sizes, self.overhead = recorded, sizes, overhead

    def __call__(self, step: StepParts) -> float:
        """Seconds of the step."""
        chunks = step.prefill_chunks
        tokens, _, decodes = self.sizes.of(step.prefill_tokens, len(chunks), step.decodes)
        context = step.decode_context + decodes - step.decodes  # a padded decode attends to itself
        seconds = self.recorded.seconds(decodes, context, tokens, step.prefill_pairs, step.prefill_context)
        return seconds + self.overhead(step.decodes, len(chunks))

    def __repr__(self) -> str:
        return f"AsCaptured({self.recorded!r}, {self.overhead!r})"


class LiveLlama(Live):
    """Runs the steps of an engine with a model on a card; without one it computes them all the same, slowly.

    llama: the model and its cache; the engine's KVCache has as many blocks of 16 tokens, or fewer. longest: tokens of
    the longest sequence that will come. sizes: what steps are rounded up to. prompts: the token numbers of each request
    by its index; random ones by default, drawn from `seed`.

    timings: of each step. late: sizes that were captured only when a step asked for them, while people waited.
    """

    def __init__(
        self,
        llama: Llama,
        *,
        longest: int,
        sizes: CaptureSizes | None = None,
        prompts: Callable[[Request], Any] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        super().__init__(**{"sleep": sleep_exactly} | settings)
        self.llama, self.longest = llama, whole("longest", longest, high=llama.max_positions)
        self.sizes = sizes or CaptureSizes()
        self._prompts, self._seed = prompts, seed
        self._steps: dict[Size, tuple[PaddedStep, Callable[[], Any]]] = {}
        self.late: list[Size] = []
        self.start_over()

    def start_over(self) -> None:
        """Forget requests and timings, and keep what is captured: for another run."""
        self.seconds.clear()
        self._zero = None
        self.timings = Timings()
        self._answers: list[int] = []
        self.tokens: dict[int, np.ndarray] = {}

    # Who comes

    def expect(self, request: Request, output_tokens: int | None) -> None:
        """Raises ValueError for a request without a length, or longer than `longest`."""
        if output_tokens is None:
            raise ValueError("this executor ends each answer where it is told: give output_tokens")
        self._check(request.prompt_tokens, output_tokens, request.index)
        self._answers.append(whole("output_tokens", output_tokens))

    def follow(self, load: Workload) -> None:
        """See Executor. Raises ValueError for a request longer than `longest`."""
        total = load.prompt_tokens + load.output_tokens
        worst = int(total.argmax())
        self._check(int(load.prompt_tokens[worst]), int(load.output_tokens[worst]), worst)
        self._answers = load.output_tokens.tolist()

    def _check(self, prompt: int, output: int, row: int) -> None:
        total = prompt + output - 1
        if total > self.longest:
            raise ValueError(
                f"request {row} grows to {total:,} tokens, and this executor was made for {self.longest:,}"
            )

    def _known(self, request: Request) -> np.ndarray:
        """The tokens of a request: its prompt, and room for its answer, filled as it comes."""
        found = self.tokens.get(request.index)
        if found is None:
            found = np.zeros(request.prompt_tokens + self._answers[request.index], np.int64)
            if self._prompts:
                prompt = np.asarray(self._prompts(request))
            else:
                rng = np.random.default_rng([*seed_sequence(self._seed).generate_state(2), request.index])
                prompt = rng.integers(0, self.llama.shape.vocabulary, request.prompt_tokens)
            if prompt.shape != (request.prompt_tokens,):
                raise ValueError(f"the prompt of {request!r} must be {request.prompt_tokens} tokens: {quote(prompt)}")
            found[: request.prompt_tokens] = prompt
            self.tokens[request.index] = found
        return found

    # Steps

    def capture(self, sizes: Iterable[Size]) -> None:
        """Prepare steps of these sizes, before anybody waits for them."""
        for size in sizes:
            if size not in self._steps:
                self._steps[size] = self._captured(size)

    def _captured(self, size: Size) -> tuple[PaddedStep, Callable[[], Any]]:
        tokens, chunks, decodes = size
        step = PaddedStep(self.llama, chunk_tokens=tokens, chunks=chunks, decodes=decodes, longest=self.longest)
        step.write_parts(np.zeros(0, np.int64), [])  # all padding
        step.run()
        if not self.llama.queue.captures:
            return step, step.run
        replay = step.captured()
        replay()  # the first time it is sent to the card
        return step, replay

    def compute(self, work: Work) -> Emitted:
        """Run one step."""
        began = time.perf_counter()
        ids, tables, chunks, lengths = [], [], [], []
        for request, count in work.chunks:
            cached = request.computed
            if cached + count > request.known:
                raise ValueError("this executor runs no padded batches: serve with a policy that has no padding")
            ids.append(self._known(request)[cached : cached + count])
            tables.append(work.table(request))
            chunks.append((count, cached))
        for request in work.decodes:
            cached = request.computed
            ids.append(self._known(request)[cached : cached + 1])
            tables.append(work.table(request))
            lengths.append(cached + 1)
        size = self.sizes.of(sum(count for count, _ in chunks), len(chunks), len(lengths))
        if size not in self._steps:
            self.late.append(size)
            self.capture([size])
        step, replay = self._steps[size]
        step.write_parts(np.concatenate(ids), tables, chunks=chunks, lengths=lengths)
        launched = time.perf_counter()
        queue = self.llama.queue
        if queue.captures:
            spent = float(queue.seconds(replay, repeats=1, warm=0)[0])  # type: ignore[attr-defined]
        else:
            replay()
            spent = time.perf_counter() - launched
        ready = time.perf_counter()
        chosen = step.answers(step.most_likely(), len(chunks), len(lengths)).tolist()
        finished = self._hand_out(work, chosen)
        timings = self.timings
        timings.parts.append((sum(count for count, _ in chunks), len(chunks), len(lengths)))
        pairs = sum(count * cached + count * (count + 1) // 2 for count, cached in chunks)
        timings.context.append((sum(lengths), pairs))
        timings.gpu.append(spent)
        timings.inputs.append(launched - began)
        timings.after.append(time.perf_counter() - ready)
        return Emitted(finished)

    def _hand_out(self, work: Work, chosen: list[int]) -> list[Request]:
        """Write down the new tokens; who has all of them."""
        finished = []
        for (request, count), token in zip((*work.chunks, *((one, 1) for one in work.decodes)), chosen, strict=True):
            end = request.computed + count
            if end < request.known:
                continue  # a prompt that is not complete
            self.tokens[request.index][end] = token
            if request.emitted + 1 == self._answers[request.index]:
                finished.append(request)
        return finished

    def overhead(self) -> Overhead:
        """What a step of the last run took beside the card, by its decodes and chunks: least squares, none below zero.

        A step that began late, because its size had to be captured or the machine did something else, counts as the
        99th percentile.
        """
        from scipy.optimize import nnls

        beside = np.array(self.seconds) - np.array(self.timings.gpu)
        beside = np.minimum(beside, np.percentile(beside, 99))
        _, chunks, decodes = np.array(self.timings.parts, float).T
        found, _ = nnls(np.stack([np.ones_like(beside), decodes, chunks], axis=1), beside)
        return Overhead(*found.tolist())


def sleep_exactly(seconds: float) -> None:
    """Sleep, but for the last half millisecond, which is waited away: a sleeper wakes up late."""
    end = time.perf_counter() + seconds
    if seconds > 1e-3:
        time.sleep(seconds - 5e-4)
    while time.perf_counter() < end:
        pass


def replayed(seconds: Iterable[float]) -> Callable[[StepParts], float]:
    """A step time that gives these seconds, one after the other: what a live run took, for a simulator."""
    left = iter(list(seconds))
    return lambda step: next(left)


def summary(run: Any) -> Mapping[str, float]:
    """What is compared between two runs: percentiles in seconds, throughput in output tokens a second."""
    found = {}
    for name in ("ttft", "tpot", "e2e"):
        values = getattr(run, name)
        for share in (50, 95):
            found[f"{name}_p{share}"] = float(np.nanpercentile(values, share))
    span = float(run.response.max() - run.arrival.min())
    return found | {"throughput": float(run.workload.output_tokens.sum() / span)}
