"""Who arrives, when, and with how many tokens: an immutable set of requests, as one array a property."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from course.base.settings import MAX_REQUESTS, quote, real, seed_sequence, whole
from course.workload import arrivals, conversations, transforms
from course.workload.columns import (
    check_order,
    check_sizes,
    guesses,
    label,
    labels,
    patience,
    prefix_blocks,
    prefixes,
    references,
    same,
    sentences,
    tags,
    times,
    tokens,
)
from course.workload.lengths import Lengths, as_lengths, sample_lengths
from course.workload.slo import SLO, of_requests

PER_REQUEST = (
    "arrival",
    "prompt_tokens",
    "output_tokens",
    "class_",
    "tenant",
    "prefix",
    "after",
    "think_time",
    "guess",
    "tags",
    "deadline",
    "slo",
    "patience",
)


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """The requests of one experiment. Every array has shape (n,), is copied, and cannot be written to.

    - arrival: float64 [s], non-decreasing, from 0 to 1e10; NaN exactly where `after` >= 0.
    - prompt_tokens, output_tokens: int64, 1 to 1e9. What the model will say is known here; no policy may look at it.
    - class_, tenant: int64 or str labels, or None.
    - prefix: for each request a tuple of hashes, one a block of its prompt, each standing for all up to there; or None.
      The last block may be partial.
    - prefix_block_size: tokens of such a block; a cache of smaller or larger blocks works out its own. None if nobody
      said so: then no prefix cache can serve these requests. prefix_answers: whether the hashes go on over the answer.
    - after: int64, or None. after[i] = j >= 0: request i arrives think_time[i] after request j was answered. -1:
      arrival[i] counts. Always after[i] < i, so there are no cycles and `head` cuts no chain.
    - think_time: float64 [s], 0 where `after` is -1; None without `after`.
    - guess: float64 [tokens], 1 to 1e9, what a predictor says of the answer, NaN if it says nothing; or None.
    - tags: for each request what else a policy may know of it, a mapping or a tuple of labels; or None.
    - deadline: float64 [s], from 0 to 1e10, after its arrival, NaN if there is none; or None.
    - slo: what was promised to each request (`SLO`), or None. Given as one for all, as a mapping by class, or one each.
    - patience: float64 [s], above 0, how long after its arrival whoever asked waits for the first token before leaving,
      NaN for ever; or None.
    - max_concurrency: so many are sent and not answered yet, at most; one that is due while they are waits in the
      client, first come first served. Then `arrival` is when it is due, and a run's own `arrival` when it was sent.
      None: no cap. With `after`, users are the cap.
    - name: a label for tables. notes: what a reader should know, such as rows that were dropped on reading.

    Two workloads are equal when their arrays are; name and notes do not count. ValueError, naming the first bad
    request, for anything else than the above, for no requests at all, and for more than 5 million.
    """

    arrival: np.ndarray
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    class_: np.ndarray | None = None
    tenant: np.ndarray | None = None
    prefix: tuple[tuple, ...] | None = None
    after: np.ndarray | None = None
    think_time: np.ndarray | None = None
    guess: np.ndarray | None = None
    tags: tuple[Mapping[str, Any] | tuple, ...] | None = None
    deadline: np.ndarray | None = None
    slo: tuple[SLO, ...] | None = None
    patience: np.ndarray | None = None
    prefix_block_size: int | None = None
    prefix_answers: bool = False
    max_concurrency: int | None = None
    name: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "arrival": times("arrival", self.arrival, allow_nan=self.after is not None),
            "prompt_tokens": tokens("prompt_tokens", self.prompt_tokens),
            "output_tokens": tokens("output_tokens", self.output_tokens),
        }
        for name in ("class_", "tenant"):
            checked[name] = labels(name, getattr(self, name))
        checked["prefix"], checked["guess"] = prefixes(self.prefix), guesses(self.guess)
        checked["tags"] = tags(self.tags)
        checked["deadline"] = None if self.deadline is None else times("deadline", self.deadline, allow_nan=True)
        checked["patience"] = patience(self.patience)
        checked["slo"] = of_requests(self.slo, len(checked["arrival"]), checked["class_"])
        if self.after is None and self.think_time is not None:
            raise ValueError("think_time needs after, the request that each one follows")
        checked["after"] = None if self.after is None else references("after", self.after)
        if self.after is not None:
            checked["think_time"] = (
                np.zeros(len(checked["after"])) if self.think_time is None else times("think_time", self.think_time)
            )
        check_sizes({name: value for name, value in checked.items() if value is not None})
        check_order(checked["arrival"], checked["after"], checked.get("think_time"))
        checked["prefix_block_size"], checked["prefix_answers"] = prefix_blocks(
            self.prefix_block_size, self.prefix_answers, checked["prefix"], checked["prompt_tokens"],
            checked["output_tokens"],
        )  # fmt: skip
        if self.max_concurrency is not None:
            if self.after is not None:
                raise ValueError(
                    "max_concurrency holds back requests that are due at a time, and here they follow answers: change "
                    "the number of users instead"
                )
            checked["max_concurrency"] = whole("max_concurrency", self.max_concurrency, high=10**18)
        checked["name"], checked["notes"] = label(self.name), sentences(self.notes)
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.arrival)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        single = ("prefix_block_size", "prefix_answers", "max_concurrency")
        if any(getattr(self, name) != getattr(other, name) for name in single):
            return False
        return all(same(getattr(self, name), getattr(other, name)) for name in PER_REQUEST)

    def __hash__(self) -> int:
        return hash((len(self), self.arrival.tobytes(), self.prompt_tokens.tobytes(), self.output_tokens.tobytes()))

    def __repr__(self) -> str:
        arriving = f"{self.rate:.4g}/s" if self.after is None else "arrivals follow answers"
        arriving += "" if self.max_concurrency is None else f", at most {self.max_concurrency:,} sent and not answered"
        lengths = f"prompt mean {self.prompt_tokens.mean():.4g}, output mean {self.output_tokens.mean():.4g} tokens"
        return f"Workload({self.name + ': ' if self.name else ''}{len(self):,} requests, {arriving}, {lengths})"

    # What it looks like

    @property
    def span(self) -> float:
        """Seconds from the first arrival to the last, over the requests whose arrival is known beforehand."""
        times = self.arrival if self.after is None else self.arrival[self.after < 0]
        return float(times[-1] - times[0])

    @property
    def rate(self) -> float:
        """Mean arrival rate [requests/s], (n - 1) / span: n arrivals have n - 1 gaps between them.

        inf if all arrive at once; NaN for one request, and if arrivals depend on answers (then the run decides).
        """
        if len(self) < 2 or (self.after is not None and (self.after >= 0).any()):
            return float("nan")
        return (len(self) - 1) / self.span if self.span > 0 else float("inf")

    def describe(self) -> dict[str, float]:
        """Counts, rates and lengths as a flat dict; percentiles by linear interpolation.

        Keys: n, span_s, rps = (n - 1) / span, gap_mean_s, gap_cv_population (standard deviation with divisor n, over
        the mean), max_gap_s, ties (gaps of exactly 0), negative (0: arrivals are sorted), and sum, mean, p50, p99, max,
        min of prompts (in_) and outputs (out_). NaN if there is nothing to divide by.
        """
        return transforms.describe(self)

    # Others made from it

    def scaled(self, rate: float) -> "Workload":
        """The same requests in the same pattern, `rate` requests a second: all arrival times times self.rate / rate.

        ValueError if there is no rate to change: one request, all at once, or arrivals that follow answers (there,
        change the number of users or the think time instead).
        """
        rate = arrivals.checked_rate(rate)
        if not 0 < self.rate < float("inf"):
            why = "arrivals follow answers: change users or think_time instead"
            if self.after is None:
                why = "they arrive at once, or there is only one"
            raise ValueError(f"these {len(self):,} requests have no rate to scale: {why}")
        return replace(self, arrival=self.arrival * (self.rate / rate))

    def with_guesses(self, noise: str, **settings: Any) -> "Workload":
        """The same requests, each with what a length predictor says of its answer, as policies see it (`guess`).

        noise: "exact", the true length. "lognormal", with error= and seed=: the true length times exp(error x Z), Z
        standard normal, so that half of the guesses are too long. "constant", with tokens=: the same for every request.
        See `course.workload.guesses`. ValueError for another noise, and for settings that it does not take.
        """
        from course.workload.guesses import guesses

        return replace(self, guess=guesses(self.output_tokens, noise, settings))

    def with_max_tokens(self, max_tokens: int) -> "Workload":
        """The same requests with answers of at most so many tokens, as a cap in the request or at a gateway cuts them.

        ValueError for a cap below 1, and for conversations, whose later prompts hold the whole answers.
        """
        cap = whole("max_tokens", max_tokens)
        if self.after is not None or self.prefix_answers:
            raise ValueError(
                "the prompts of later turns hold the answers before them: cap the answers when they are drawn"
            )
        return replace(self, output_tokens=np.minimum(self.output_tokens, cap))

    def with_system_prompt(self, tokens: int, prefix_block_size: int = 16) -> "Workload":
        """The same requests behind one system prompt of so many tokens, which a prefix cache computes once.

        prefix_block_size: tokens of a block that a hash stands for; the blocks of the cache should be as large. Raises
        ValueError for sizes below 1, and for requests that share prefixes already.
        """
        from course.workload.sharing import with_system_prompt

        return with_system_prompt(self, tokens, prefix_block_size)

    def with_documents(
        self, documents: int, tokens: int, skew: float = 0.0, prefix_block_size: int = 16, seed: int = 0
    ) -> "Workload":
        """The same requests behind a document of so many tokens each, as retrieval (RAG) puts it before a question.

        Which of the documents is drawn, the n-th most popular in proportion to 1 / n^skew; `seed` is of that draw.
        prefix_block_size: see `with_system_prompt`. Raises ValueError as that does, and for a skew below 0.
        """
        from course.workload.sharing import with_documents

        return with_documents(self, documents, tokens, skew, prefix_block_size, seed)

    def head(self, n: int) -> "Workload":
        """The first `n` requests; all of them if there are fewer, as the shell command of that name does."""
        n = min(whole("n", n, high=10**18), len(self))
        cut = {name: getattr(self, name) for name in PER_REQUEST}
        return replace(self, **{name: value[:n] for name, value in cut.items() if value is not None})

    def concat(self, other: "Workload") -> "Workload":
        """Both workloads on one clock, merged by arrival; neither is shifted. Equal arrivals keep this order.

        A request that follows an answer is placed by the earliest time at which it could arrive. If only one side
        has class_, tenant, prefix, guess, tags, deadline, slo or patience, the other's are "" or -1, (), NaN or SLO().
        """
        if not isinstance(other, Workload):
            raise ValueError(f"only another Workload can be merged, not {quote(other)}")
        return Workload(**transforms.merged([self, other]), name=self.name)

    @classmethod
    def mix(cls, parts: "Mapping[str, Workload] | Sequence[Workload]") -> "Workload":
        """Several workloads on one clock, merged by arrival, each labelled in `class_`.

        The labels are the keys of a mapping, or 0, 1, 2, ... for a sequence. Give every part its own seed: with the
        same one, their arrivals are copies of each other. ValueError for no parts, or a part that is no workload.
        """
        return cls(**transforms.merged(transforms.label_parts(parts, Workload)), name="mix")

    # Where it comes from

    @classmethod
    def poisson(
        cls,
        rate: float,
        num_requests: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        seed: int = 0,
    ) -> "Workload":
        """Independent arrivals at `rate` requests/s: exponential gaps. Many people who do not know of each other."""
        draw = partial(arrivals.renewal, rate=arrivals.checked_rate(rate), cv=1.0)
        return _draw(draw, num_requests, prompt_tokens, output_tokens, seed, "poisson")

    @classmethod
    def gamma(
        cls,
        rate: float,
        cv: float,
        num_requests: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        seed: int = 0,
    ) -> "Workload":
        """Gamma gaps of mean 1 / rate and coefficient of variation `cv`: 0 regular, 1 Poisson, above 1 bursty.

        The first request arrives after the first gap. Arrivals, prompts and outputs are drawn from separate streams of
        `seed`, so a change of rate or cv leaves the lengths as they are. ValueError for a rate outside 1e-9 to 1e9, or
        a cv outside 0 to 100.
        """
        draw = partial(arrivals.renewal, rate=arrivals.checked_rate(rate), cv=arrivals.checked_cv(cv))
        return _draw(draw, num_requests, prompt_tokens, output_tokens, seed, "gamma")

    @classmethod
    def on_off(
        cls,
        rate: float,
        num_requests: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        on_fraction: float = 0.25,
        period: float = 20.0,
        seed: int = 0,
    ) -> "Workload":
        """Bursts: Poisson arrivals at rate / on_fraction during on periods, none during off periods, `rate` overall.

        Periods are exponential; one on and one off period together last `period` seconds on average. on_fraction = 1 is
        Poisson.
        """
        rate, period = arrivals.checked_rate(rate), real("period", period, above=0, high=1e9)
        on_fraction = real("on_fraction", on_fraction, low=1e-6, high=1)
        draw = partial(arrivals.on_off, rate=rate, on_fraction=on_fraction, period=period)
        return _draw(draw, num_requests, prompt_tokens, output_tokens, seed, "on-off")

    @classmethod
    def fixed(
        cls,
        rate: float | None = None,
        *,
        num_requests: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        interval: float | None = None,
        seed: int = 0,
    ) -> "Workload":
        """One request every 1 / rate or `interval` seconds, the first after one interval; interval=0 is all at once."""
        if (rate is None) == (interval is None):
            raise ValueError("fixed arrivals need either rate [requests/s] or interval [s], not both")
        if rate is not None:
            draw = partial(arrivals.renewal, rate=arrivals.checked_rate(rate), cv=0.0)
        else:
            draw = partial(arrivals.every, interval=real("interval", interval, low=0, high=1e9))
        return _draw(draw, num_requests, prompt_tokens, output_tokens, seed, "fixed")

    @classmethod
    def closed_loop(
        cls,
        users: int,
        think_time: float,
        requests_per_user: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        think_cv: float = 1.0,
        seed: int = 0,
    ) -> "Workload":
        """`users` people who each wait for the answer, think, and ask again; users x requests_per_user requests in all.

        Think times have mean `think_time` [s] and coefficient of variation `think_cv` (1 exponential, 0 constant).
        Users begin at times spread uniformly over the first think_time seconds, all at 0 if that is 0. The requests
        are ordered by round: first one of each user, then the second of each, so `head` keeps everyone.
        """
        columns = conversations.closed_loop(
            users, think_time, requests_per_user, prompt_tokens, output_tokens, think_cv, seed
        )
        return cls(**columns)

    @classmethod
    def turns(
        cls,
        rate: float,
        num_conversations: int,
        turns: int | Lengths,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        think_time: float = 10.0,
        think_cv: float = 1.0,
        system_tokens: int = 0,
        seed: int = 0,
        prefix_block_size: int | None = None,
    ) -> "Workload":
        """Conversations that begin as a Poisson process of `rate` a second and go on for `turns` turns each.

        `prompt_tokens` are what the user types in a turn, `output_tokens` what the model answers. The prompt that the
        engine sees is the whole history: system_tokens, then all that was said before, then the new text. Each next
        turn comes a think time after the answer before it. Conversations stand one after the other, in order of their
        start. prefix_block_size: hashes of blocks of so many tokens say what turns have in common (`prefix`); a prefix
        cache finds nothing without.
        """
        columns = conversations.turns(
            rate, num_conversations, turns, prompt_tokens, output_tokens, think_time, think_cv, system_tokens, seed,
            prefix_block_size,
        )  # fmt: skip
        return cls(**columns)

    @classmethod
    def agents(
        cls,
        rate: float,
        num_agents: int,
        branches: int,
        prompt_tokens: int | Lengths,
        output_tokens: int | Lengths,
        tool_time: float = 0.0,
        system_tokens: int = 0,
        seed: int = 0,
        prefix_block_size: int = 16,
    ) -> "Workload":
        """Agents that fork: one request each, and a tool time after its answer `branches` more, all at once.

        Agents begin as a Poisson process of `rate` a second. A branch's prompt is the first prompt, its answer, and
        `prompt_tokens` of its own; the first prompt has system_tokens before its own text. So do several samples of one
        prompt, or the beams of a search, begin alike. `prefix` says what they have in common, in blocks of
        `prefix_block_size` tokens. Rows stand agent by agent. ValueError for settings that cannot be.
        """
        columns = conversations.agents(
            rate, num_agents, branches, prompt_tokens, output_tokens, tool_time, system_tokens, seed, prefix_block_size
        )  # fmt: skip
        return cls(**columns)


def _draw(draw: Callable[..., np.ndarray], n: int, prompts: Any, outputs: Any, seed: int, name: str) -> Workload:
    n = whole("num_requests", n, high=MAX_REQUESTS)
    prompts, outputs = as_lengths("prompt_tokens", prompts), as_lengths("output_tokens", outputs)
    for_arrivals, for_prompts, for_outputs = (np.random.default_rng(s) for s in seed_sequence(seed).spawn(3))
    return Workload(
        draw(for_arrivals, n=n),
        sample_lengths("prompt_tokens", prompts, for_prompts, n),
        sample_lengths("output_tokens", outputs, for_outputs, n),
        name=name,
    )
