"""The live executor of a card: an engine's steps run by `course.gpu.transformer`, in wall-clock time.

    sizes = CaptureSizes()                                   # tools.gpu.captured, as is AsCaptured
    executor = LiveLlama(llama, longest=1_024, sizes=sizes)
    executor.capture(sizes.up_to(512, chunks=4, decodes=64)) # once, before anybody comes
    run = serve_live(load, policy, executor, KVCache(num_blocks=llama.blocks, block_size=16))
    step_time = AsCaptured(steptime.recorded("h100-llama3-8b"), sizes, executor.host())
    same = serve(load, policy, step_time, run.cache)

A step runs in the smallest captured size that holds it, as engines with CUDA graphs do, and the rest is padding. Each
answer has the length that the workload says, whatever its tokens are (vLLM's `ignore_eos`); its tokens are the most
likely ones, or drawn by `sampling`. In a padded batch the padding is computed too: that of the prompts, and that of
each answer after its end. Decodes do not attend to the padding of their prompts; the engine counts it, and so does a
simulator's step time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course.base.settings import quote, seed_sequence, whole
from course.engine.executor import Work
from course.engine.live import Emitted, Live
from course.engine.step import Step
from course.gpu.ops import sampling as drawing
from course.gpu.transformer.llama import Llama
from course.gpu.transformer.step import BLOCK
from course.lm.sampling import GREEDY, Sampling, uniform
from course.policies.base import Request
from course.steptime import Recorded
from course.workload import Workload
from tools.gpu.captured import (
    CaptureSizes,
    Overhead,
    Size,
    captured_seconds,
    card_overhead,
    host_overhead,
    prompt_share,
)
from tools.gpu.padded import PaddedStep


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


class LiveLlama(Live):
    """Runs the steps of an engine with a model on a card; without one it computes them all the same, slowly.

    llama: the model and its cache; the engine's KVCache has as many blocks of 16 tokens, or fewer. longest: tokens of
    the longest sequence that will come; typical: of an ordinary one (see PaddedStep). sizes: what steps are rounded up
    to. prompts: the token numbers of each request by its index; random ones by default, drawn from `seed`. sampling:
    how tokens are chosen, on the device and as a part of the captured step.

    timings: of each step. late: sizes that were captured only when a step asked for them, while people waited.
    """

    def __init__(
        self,
        llama: Llama,
        *,
        longest: int,
        typical: int | None = None,
        sizes: CaptureSizes | None = None,
        prompts: Callable[[Request], Any] | None = None,
        seed: int = 0,
        sampling: Sampling = GREEDY,
        **settings: Any,
    ) -> None:
        super().__init__(**{"sleep": sleep_exactly} | settings)
        self.sampling = sampling
        self.llama, self.longest = llama, whole("longest", longest, high=llama.max_positions)
        self.sizes, self.typical = sizes or CaptureSizes(), typical
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
        self._tables: dict[int, tuple[Any, np.ndarray]] = {}

    # Who comes

    def expect(self, request: Request, output_tokens: int | None) -> None:
        """Raises ValueError for a request without a length, longer than `longest`, or of another run than before."""
        if output_tokens is None:
            raise ValueError("this executor ends each answer at a given length: give output_tokens")
        self._check_run(request.index)
        self._check(request.prompt_tokens, output_tokens, request.index)
        self._answers.append(whole("output_tokens", output_tokens))

    def follow(self, load: Workload) -> None:
        """See Executor. Raises ValueError for a request longer than `longest`, and after another run."""
        self._check_run(0)
        total = load.prompt_tokens + load.output_tokens
        worst = int(total.argmax())
        self._check(int(load.prompt_tokens[worst]), int(load.output_tokens[worst]), worst)
        self._answers = load.output_tokens.tolist()

    def _check_run(self, row: int) -> None:
        if row != len(self._answers):
            raise ValueError("this executor still has the requests of another run: call start_over() first")

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
            if prompt.shape != (request.prompt_tokens,) or prompt.dtype.kind not in "iu":
                raise ValueError(
                    f"the prompt of {request!r} must be {request.prompt_tokens} tokens, whole numbers: {quote(prompt)}"
                )
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
        step = PaddedStep(
            self.llama,
            chunk_tokens=tokens,
            chunks=chunks,
            decodes=decodes,
            longest=self.longest,
            typical=self.typical,
            sampled=self.sampling != GREEDY,
        )
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
        chunks = [(count, request.computed) for request, count in work.chunks]
        known = [self._known(request) for request, _ in work.chunks]
        # What is no padding: all but the end of a prompt that is shorter than the longest of a padded batch.
        asked = [min(count, request.known - request.computed) for request, count in work.chunks]
        rows = [self._known(request) for request in work.decodes]
        ends = [request.known for request in work.decodes]
        lengths = [min(end, self.longest) for end in ends]
        ids = [
            np.concatenate([one[cached : cached + real], np.zeros(count - real, np.int64)])
            for one, real, (count, cached) in zip(known, asked, chunks, strict=True)
        ]
        ids.append(
            np.array([row[end - 1] if end < len(row) else 0 for row, end in zip(rows, ends, strict=True)], np.int64)
        )
        tables = [self._table(request, work) for request, _ in work.chunks]
        # The blocks of a padded batch have room for padding as well.
        tables += [
            self._table(request, work)[: -(-length // BLOCK)]
            for request, length in zip(work.decodes, lengths, strict=True)
        ]
        tokens = sum(count for count, _ in chunks)
        step, replay = self._step(self.sizes.of(tokens, len(chunks), len(lengths)))
        requests = [*(request for request, _ in work.chunks), *work.decodes]
        step.write_parts(
            np.concatenate(ids), tables, chunks=chunks, lengths=lengths, asked=asked, settings=self._settings(requests)
        )
        launched = time.perf_counter()
        queue = self.llama.queue
        if queue.captures:
            spent = float(queue.seconds(replay, repeats=1, warm=0)[0])  # type: ignore[attr-defined]
        else:
            replay()
            spent = time.perf_counter() - launched
        ready = time.perf_counter()
        chosen = step.answers(step.chosen(), len(chunks), len(lengths)).tolist()
        finished = []
        for request, row, (count, cached), token in zip(
            (request for request, _ in work.chunks), known, chunks, chosen, strict=False
        ):
            end = request.known
            if cached + count >= end:  # else the prompt is not complete
                row[end] = token
                if end + 1 == len(row):
                    finished.append(request)
        for request, row, end, token in zip(work.decodes, rows, ends, chosen[len(chunks) :], strict=True):
            if end < len(row):  # else its answer is complete
                row[end] = token
                if end + 1 == len(row):
                    finished.append(request)
        pairs = sum(count * cached + count * (count + 1) // 2 for count, cached in chunks)
        timings = self.timings
        timings.parts.append((tokens, len(chunks), len(lengths)))
        timings.context.append((sum(lengths), pairs))
        timings.gpu.append(spent)
        timings.inputs.append(launched - began)
        timings.after.append(time.perf_counter() - ready)
        return Emitted(finished)

    def _settings(self, requests: Sequence[Request]) -> np.ndarray | None:
        """How the next token of each is drawn; None where the most likely one is taken."""
        if self.sampling == GREEDY:
            return None
        how, places = self.sampling, ([one.index for one in requests], [one.known for one in requests])
        return drawing.settings(
            len(requests),
            temperature=how.temperature,
            top_k=how.top_k,
            top_p=how.top_p,
            draws=uniform(how.seed, *map(np.array, places)),
            columns=self.llama.shape.vocabulary,
        )

    def _step(self, size: Size) -> tuple[PaddedStep, Callable[[], Any]]:
        if size not in self._steps:
            self.late.append(size)
            self.capture([size])
        return self._steps[size]

    def _table(self, request: Request, work: Work) -> np.ndarray:
        """The blocks of a request, turned into an array when there are more or other ones than before."""
        blocks = work.table(request)
        old = self._tables.get(request.index)
        if old is None or old[0] is not blocks or len(old[1]) != len(blocks):
            old = self._tables[request.index] = blocks, np.array(blocks, np.int32)
        return old[1]

    def seconds_at(
        self, llama: Llama, point: tuple[int, int, int, int], rng: np.random.Generator, budget: float = 0.1
    ) -> tuple[np.ndarray, str]:
        """As `step_profile.seconds_at`, of the captured step that serves a point; `timed` for `step_profile.record`.

        Between two replays of a step with a chunk, decodes run for as long as it took, as they do while people are
        served: under one chunk after the other a card draws more power, and lowers its clocks.
        Raises ValueError for a point that is no captured size.
        """
        decodes, context, chunk, cached = point
        size = self.sizes.of(chunk, int(chunk > 0), decodes)
        if size != (chunk, int(chunk > 0), decodes):
            raise ValueError(f"a step of {decodes} decodes and a chunk of {chunk} runs in the size {size}")
        replay, queue = self._ready(size, context, cached, rng), llama.queue
        first = float(queue.seconds(replay, repeats=1, warm=1)[0])  # type: ignore[attr-defined]
        repeats = int(np.clip(budget / first, 4, 30))
        if not chunk:
            return queue.seconds(replay, repeats=repeats, warm=1), "captured"  # type: ignore[attr-defined]
        between = self._ready((0, 0, self.sizes.decodes), self.longest // 4, 0, rng)
        short = float(queue.seconds(between, repeats=1, warm=1)[0])  # type: ignore[attr-defined]
        found = []
        for _ in range(repeats):
            queue.seconds(between, repeats=max(1, round(first / short)), warm=0)  # type: ignore[attr-defined]
            found.append(float(queue.seconds(replay, repeats=1, warm=0)[0]))  # type: ignore[attr-defined]
        return np.array(found), "captured"

    def _ready(self, size: Size, context: int, cached: int, rng: np.random.Generator) -> Callable[[], Any]:
        """A replay of a captured size that is used to the full: random tokens, shuffled blocks."""
        chunk, chunks, decodes = size
        self.capture([size])
        step, replay = self._steps[size]
        order = rng.permutation(self.llama.blocks)
        need = [-(-(chunk + cached) // BLOCK)] * chunks + [-(-context // BLOCK)] * decodes
        tables = np.split(order[: sum(need)], np.cumsum(need)[:-1])
        ids = rng.integers(0, self.llama.shape.vocabulary, chunk + decodes)
        step.write_parts(ids, tables, chunks=[(chunk, cached)] * chunks, lengths=[context] * decodes)
        return replay

    def host(self) -> Overhead:
        """What the program took beside the card in the steps since `start_over`: inputs, policy, engine, new tokens."""
        return host_overhead(self.timings.parts, np.array(self.seconds) - np.array(self.timings.gpu))

    def card(self, recorded: Recorded) -> Overhead:
        """What the card took beyond the recording in the steps since `start_over`. See `captured.card_overhead`."""
        parts, sizes = self.timings.parts, self.sizes
        made_of = list(zip(parts, self.timings.context, strict=True))
        known = np.array([captured_seconds(recorded, sizes, one, *sums) for one, sums in made_of])
        shares = [
            prompt_share(recorded, sizes, one, context, spent)
            for (one, (context, _)), spent in zip(made_of, known, strict=True)
        ]
        beyond = np.array(self.timings.gpu) - known
        return card_overhead(parts, beyond, known, np.array(shares), np.array(self.seconds))


def sleep_exactly(seconds: float) -> None:
    """Sleep, but for the last half millisecond, which is waited away: a sleeper wakes up late."""
    end = time.perf_counter() + seconds
    if seconds > 1e-3:
        time.sleep(seconds - 5e-4)
    while time.perf_counter() < end:
        pass


def replayed(seconds: Iterable[float]) -> Callable[[Step], float]:
    """A step time that gives these seconds, one after the other: what a live run took, for a simulator."""
    left = iter(list(seconds))
    return lambda step: next(left)


def summary(run: Any) -> Mapping[str, float]:
    """What is compared between two runs: percentiles in seconds, throughput in output tokens a second."""
    found = {}
    for name in ("ttft", "tpot", "e2e"):
        values = getattr(run, name)
        values = values[np.isfinite(values)]  # an answer that comes all at once has no TPOT
        for share in (50, 95):
            found[f"{name}_p{share}"] = float(np.percentile(values, share)) if len(values) else float("nan")
    span = float(run.response.max() - run.arrival.min())
    return found | {"throughput": float(run.workload.output_tokens.sum() / span)}
