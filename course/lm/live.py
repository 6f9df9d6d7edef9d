"""The language model as an executor: a policy decides what is in a step, the model computes it.

    from course import lm, policies

    model = lm.load()
    asked = lm.Questions.poisson(["Count from 3 to 9.", "Spell owl."], rate=20, seed=0)
    run = lm.serve_live(asked, policies.Continuous(8, 256), model)
    run.ttft, run.words

The length of an answer is not known beforehand: it ends when the model says so. In a padded batch an answer that is
complete keeps its slot, which goes on computing padding, and so does a prompt that is shorter than the longest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from course.base import settings
from course.engine.executor import Work
from course.engine.live import Emitted, Live
from course.engine.live import serve_live as serve_any
from course.engine.run import Run
from course.lm.cache import Blocks, SharedTables, prefix_ids
from course.lm.config import Config
from course.lm.drafter import Drafter, Row, forward
from course.lm.errors import LMError
from course.lm.sampling import GREEDY, Sampling
from course.lm.speaker import Conversation, LanguageModel
from course.lm.threads import one_thread
from course.memory.kvcache import KVCache
from course.policies.base import Limits, Policy, Request
from course.workload import Workload

STOP, LENGTH, CANCELLED = "stop", "length", "cancelled"
BLOCK_SIZE = 16

Heard = Callable[[int, str, str], None]
Seen = Callable[[Mapping[int, "Answer"]], None]


@dataclass
class Answer:
    """One request as the model sees it.

    tokens: of the prompt, then of the answer. limit: how many there may be in all. number: what its random numbers
    depend on. ended: "" while it goes on, "stop" at the model's own end, "length" at the limit, "cancelled". heard:
    called with (number, text, ended) at each of its tokens. ignore_end: only the limit ends it, and no special token is
    chosen. stop: texts that end it where they begin; held: the end of the text, which may be the beginning of one.
    """

    tokens: list[int]
    prompt_tokens: int
    limit: int
    sampling: Sampling
    number: int
    heard: Heard | None = None
    ignore_end: bool = False
    ended: str = ""
    stop: Sequence[str] = ()
    held: str = ""
    padding: int = 0  # tokens of padding after the end
    drafted: list[tuple[int, tuple[int, ...], int]] = field(default_factory=list)  # where, what, how many were right
    text: list[str] = field(default_factory=list)
    stream: Any = None

    @property
    def words(self) -> str:
        """The text so far."""
        return "".join(self.text)

    def until_stop(self, text: str) -> str:
        """What may be said of a new piece of text. The answer ends with the first of its stop texts."""
        text = self.held + text
        found = [at for at in (text.find(one) for one in self.stop) if at >= 0]
        if found:
            self.ended, self.held = STOP, ""
            return text[: min(found)]
        begun = (n for one in self.stop for n in range(len(one) - 1, 0, -1) if text.endswith(one[:n]))
        keep = 0 if self.ended else max(begun, default=0)
        self.held = text[len(text) - keep :]
        return text[: len(text) - keep]


class Speaking(Live):
    """Runs each step through a language model. `ask` comes before a request does.

    cache: the KV blocks that the engine counts; their keys and values are kept here. With prefix caching there is room
    for twice as many, and `shared` says which are whose. memory: where they are, of an executor before this one. draft:
    another model with the same tokenizer, which drafts what a policy asks for (`policies.Drafting`); its keys and
    values stand in the same blocks, and are found there as the model's are. A draft is accepted if it is the token that
    the model chooses there itself, so the words are those without drafts. Other settings as in `Live`. LMError if the
    memory is not there, and for a draft with another vocabulary.
    """

    numbers_blocks = True

    def __init__(
        self,
        model: LanguageModel,
        cache: KVCache,
        memory: Blocks | None = None,
        draft: LanguageModel | None = None,
        **how: Any,
    ):
        super().__init__(**how)
        self.model, self.verifies = model, draft is not None
        self.seen: Seen | None = None  # called after each step with all answers by row
        self.answers: dict[int, Answer] = {}  # by row
        self.cache = cache
        self.shared: SharedTables | None = None
        blocks = cache.num_blocks * (2 if cache.prefix_caching else 1)
        self.memory = model.paged_kv(blocks, cache.block_size) if memory is None else memory
        self.drafter = None if draft is None else Drafter(draft, model, blocks, cache.block_size)

    def workload(self, load: Questions) -> Workload:
        """What was asked as the requests of an engine; with prefix caching it says who begins alike."""
        answers = [self.answers[row] for row in range(len(self.answers))]
        counts = np.array([answer.prompt_tokens for answer in answers])
        asked = load.workload(counts, np.array([answer.limit for answer in answers]) - counts)
        if not self.cache.prefix_caching:
            return asked
        size = self.cache.block_size
        ids = prefix_ids([answer.tokens[: answer.prompt_tokens] for answer in answers], size)
        self.shared = SharedTables(ids, self.memory.num_blocks, size)
        return replace(asked, prefix=ids, prefix_block_size=size)

    def ask(
        self,
        row: int,
        tokens: Sequence[int],
        max_tokens: int | None = None,
        sampling: Sampling = GREEDY,
        number: int | None = None,
        heard: Heard | None = None,
        ignore_end: bool = False,
        stop: Sequence[str] = (),
    ) -> Answer:
        """What the request of this row asks: the tokens of `LanguageModel.prompt`.

        max_tokens: of its answer; without it, until the context is full. number: what its random numbers depend on,
        its row by default. ignore_end: for load tests that ask for a length: the words past the end make no sense.
        stop: texts, of which the first one that comes ends the answer.
        """
        context, count = self.model.config.max_position_embeddings, len(tokens)
        limit = context if max_tokens is None else min(context, count + settings.whole("max_tokens", max_tokens))
        answer = Answer(list(tokens), count, limit, sampling, row if number is None else number, heard)
        answer.ignore_end, answer.stop = ignore_end, stop
        answer.stream = self.model.tokenizer.stream()
        self.answers[row] = answer
        return answer

    def compute(self, work: Work) -> Emitted:
        """One forward pass over everything in the step, padding too; then the next token of each complete prompt."""
        rows: list[Row] = []
        speakers: list[tuple[int, Request]] = []  # (row of the pass, who gets a token from it)
        tables = self._tables(work)
        for request in work.decodes:
            answer = self.answers[request.index]
            if not answer.ended:
                speakers.append((len(rows), request))
            rows.append(self._decode(answer, tables[request]))
        for request, count in work.chunks:
            answer, table, computed = self.answers[request.index], tables[request], request.computed
            real = answer.tokens[computed : computed + count]
            if not answer.ended and computed + count >= len(answer.tokens):
                speakers.append((len(rows), request))
            rows.append((real, computed, table))
            if count > len(real):  # a padded batch: the rest of the longest prompt, behind this one
                rows.append(([self.model.tokenizer.end] * (count - len(real)), computed + len(real), table))
        if self.drafter is not None:
            return self._speculated(work, tables, rows, speakers)
        logits = forward(self.model, rows, self.memory)
        finished = [request for request, token in self._chosen(logits, speakers) if self._hear(request, token)]
        if self.shared is not None:
            for request in finished:
                self.shared.release(request)
        if self.seen is not None:
            self.seen(self.answers)
        return Emitted(finished)

    def _tables(self, work: Work) -> dict[Request, Sequence[int]]:
        """Where the keys and values of each request are; with prefix caching the pool only counts."""
        if self.shared is None:
            return {request: work.table(request) for request in [*work.decodes, *(one for one, _ in work.chunks)]}
        self.shared.release_preempted()
        counts = [*((request, 1) for request in work.decodes), *work.chunks]
        return {request: self.shared.table(request, tokens, work.drafts.get(request, 0)) for request, tokens in counts}

    def _speculated(
        self,
        work: Work,
        tables: Mapping[Request, Sequence[int]],
        rows: list[Row],
        speakers: Sequence[tuple[int, Request]],
    ) -> Emitted:
        """The same with drafts: each row of a decode has them behind its token, and may give several tokens."""
        drafts = self.drafter.drafts(work, self.answers, tables)  # type: ignore[union-attr]
        for row, request in enumerate(work.decodes):
            tokens, before, table = rows[row]
            rows[row] = [*tokens, *drafts.get(request, ())], before, table
        logits = forward(self.model, rows, self.memory, every=True)
        ends = np.cumsum([len(tokens) for tokens, _, _ in rows])
        finished, counts = list[Request](), dict[Request, int]()
        for row, request in speakers:
            answer, drafted = self.answers[request.index], list(drafts.get(request, ()))
            first = int(ends[row]) - 1 - len(drafted)
            for place in range(1 + len(drafted)):
                ((_, token),) = self._chosen(logits, [(first + place, request)])
                counts[request] = place + 1
                if self._hear(request, token):
                    finished.append(request)
                    break
                if place < len(drafted) and token != drafted[place]:
                    break
            if drafted:
                answer.drafted.append((len(answer.tokens) - counts[request], tuple(drafted), counts[request] - 1))
        self.drafter.verified(work, self.answers)  # type: ignore[union-attr]
        if self.shared is not None:
            for request in work.drafts:
                self.shared.verified(request, request.computed + counts.get(request, 1))
            for request in finished:
                self.shared.release(request)
        if self.seen is not None:
            self.seen(self.answers)
        return Emitted(finished, {request: count for request, count in counts.items() if request in drafts})

    def _decode(self, answer: Answer, table: Sequence[int]) -> tuple[list[int], int, Sequence[int]]:
        place = len(answer.tokens) - 1
        if not answer.ended:
            return answer.tokens[-1:], place, table
        place = min(place + answer.padding, self.model.config.max_position_embeddings - 1)
        answer.padding += 1
        return [self.model.tokenizer.end], place, table

    def _chosen(self, logits: np.ndarray, speakers: Sequence[tuple[int, Request]]) -> Iterable[tuple[Request, int]]:
        """(request, next token) of each row in `speakers`; rows with the same sampling are computed together."""
        groups: dict[Sampling, list[tuple[int, Request]]] = {}
        for row, request in speakers:
            groups.setdefault(self.answers[request.index].sampling, []).append((row, request))
        for sampling, members in groups.items():
            answers = [self.answers[request.index] for _, request in members]
            numbers = np.array([answer.number for answer in answers])
            places = np.array([len(answer.tokens) for answer in answers])
            part = logits[[row for row, _ in members]]  # a copy
            part[np.ix_([answer.ignore_end for answer in answers], [*self.model.tokenizer.special])] = -np.inf
            tokens = sampling.choose(part, numbers, places)
            yield from zip((request for _, request in members), tokens.tolist(), strict=True)

    def _hear(self, request: Request, token: int) -> bool:
        """Add a token to an answer; returns whether the answer is complete."""
        answer = self.answers[request.index]
        answer.tokens.append(token)
        if token == self.model.tokenizer.end:
            answer.ended, text = STOP, answer.stream.close()
        else:
            text = answer.stream.add(token)
            if len(answer.tokens) >= answer.limit:
                answer.ended = LENGTH
                text += answer.stream.close()
        if answer.stop:
            text = answer.until_stop(text)
        answer.text.append(text)
        if answer.heard is not None:
            answer.heard(answer.number, text, answer.ended)
        return bool(answer.ended)


@dataclass(frozen=True)
class Questions:
    """Prompts that come at given times [s], in order. max_tokens: of each answer; None: until the context is full.

    conversations: each a prompt, or prompt, answer, ..., prompt. class_: the kind of each, as policies see it and
    `run.workload` has it; or None. ValueError if there are not as many of one as of the other.
    """

    conversations: Sequence[Conversation]
    arrival: Sequence[float] | np.ndarray
    max_tokens: int | None = None
    class_: Sequence[int | str] | np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.conversations) != len(self.arrival):
            raise ValueError(
                f"there are {len(self.conversations)} conversations and {len(self.arrival)} arrivals: "
                "give one arrival for each"
            )
        if not len(self.conversations):
            raise LMError("There is no prompt, so there is nothing to answer.")
        if self.max_tokens is not None:
            settings.whole("max_tokens", self.max_tokens)
        if self.class_ is not None and len(self.class_) != len(self.arrival):
            raise ValueError(
                f"there are {len(self.conversations)} conversations and {len(self.class_)} classes: give one for each"
            )

    def workload(self, prompt_tokens: np.ndarray, output_tokens: np.ndarray) -> Workload:
        """The same as requests of so many tokens."""
        class_ = None if self.class_ is None else np.asarray(self.class_)
        return Workload(np.asarray(self.arrival), prompt_tokens, output_tokens, class_=class_)

    @classmethod
    def poisson(
        cls,
        conversations: Sequence[Conversation],
        rate: float,
        seed: int = 0,
        max_tokens: int | None = None,
        class_: Sequence[int | str] | None = None,
    ) -> Questions:
        """Questions with Poisson arrivals, `rate` a second."""
        if not len(conversations):
            raise LMError("There is no prompt, so there is nothing to answer.")
        drawn = Workload.poisson(
            rate=rate, num_requests=len(conversations), prompt_tokens=1, output_tokens=1, seed=seed
        )
        return cls(conversations, drawn.arrival, max_tokens, class_)

    @classmethod
    def at_once(
        cls,
        conversations: Sequence[Conversation],
        max_tokens: int | None = None,
        class_: Sequence[int | str] | None = None,
    ) -> Questions:
        """Questions that all arrive at 0."""
        return cls(conversations, np.zeros(len(conversations)), max_tokens, class_)


class SpokenRun(Run):
    """A Run with what was said. words: the answers, in the order of the questions.

    ended: "stop" if the model said that its answer was complete, "length" if there was no room for more.
    """

    words: tuple[str, ...]
    ended: tuple[str, ...]
    seconds: tuple[float, ...]
    """Of each step: what to feed a simulator with, to make the same run of it."""


def serve_live(
    load: Questions,
    policy: Policy,
    lm: LanguageModel,
    cache: KVCache | None = None,
    *,
    sampling: Sampling = GREEDY,
    heard: Heard | None = None,
    seen: Seen | None = None,
    waits: bool = True,
    clock: Callable[[], float] = time.perf_counter,
    draft: LanguageModel | None = None,
) -> SpokenRun:
    """Let the model answer questions that come by the clock, under a policy that does not know how long they become.

    cache: KV blocks; without one, as many as the slots can fill. sampling: how tokens are chosen; random numbers depend
    on seed, row and position alone. heard: called as heard(row, text, ended) at each token. seen: called after each
    step with all answers by row, those that are padding too. Both are part of the step's time. waits: False: times in
    which the engine is empty pass at once. clock: returns seconds; `time.perf_counter` by default. draft: a smaller
    model that drafts, where the policy asks for it (`policies.Drafting`).

    BLAS computes with one thread meanwhile: more are slower for a model of this size as soon as anything else runs.
    LMError for a prompt that cannot be answered, and if the memory is not there; ValueError as `serve` does.
    """
    if not isinstance(load, Questions):
        raise ValueError(f"the first argument must be Questions, not {settings.quote(load)}")
    if not isinstance(lm, LanguageModel):
        raise ValueError(f"the third argument must be a language model (lm.load()), not {settings.quote(lm)}")
    prompts = [lm.prompt(conversation) for conversation in load.conversations]
    if cache is None:
        cache = full_cache(policy, lm.config, len(prompts))
    speaking = Speaking(lm, cache, draft=draft, waits=waits, clock=clock)
    speaking.seen = seen
    for row, tokens in enumerate(prompts):
        speaking.ask(row, tokens, load.max_tokens, sampling, heard=heard)
    with one_thread():
        run = serve_any(speaking.workload(load), policy, speaking, cache)
    return spoken(run, speaking)


def spoken(run: Run, speaking: Speaking) -> SpokenRun:
    """A run of this executor with what was said in it."""
    whole = SpokenRun(run.workload, run.policy, run.limits, speaking, run.cache, run.log)
    answers = [speaking.answers[row] for row in range(len(run.workload))]
    whole.words = tuple(answer.words for answer in answers)
    whole.ended = tuple(answer.ended for answer in answers)
    whole.seconds = tuple(speaking.seconds)
    return whole


def full_cache(policy: Policy, config: Config, requests: int | None = None) -> KVCache:
    """KV blocks for every slot of the policy with a full context. requests: how many there are, if that is known.

    In a padded batch a slot may hold the longest prompt and, behind it, the longest answer.
    """
    limits = Limits.of(policy)
    slots = limits.max_num_seqs if requests is None else min(limits.max_num_seqs, requests)
    tokens = config.max_position_embeddings * (2 if limits.padded else 1)
    return KVCache(slots * -(-tokens // BLOCK_SIZE), BLOCK_SIZE)
