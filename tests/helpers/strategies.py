"""Random engines and loads, and how three servings of one are compared.

Times and step times often lie on a grid of 1/8 s, which floats hold exactly: then arrivals fall on step ends.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from course import KVCache, Run, Workload, policies, serve, steptime
from course.engine.fast import tight
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from tests.helpers import oracle, oracle_own
from tests.helpers.asking import serve_asking
from tests.helpers.own_policies import Decided
from tests.helpers.sizes import examples as examples  # beside what its cases are made of

GRID = 0.125
RIVALS = ("host_blocks", "host_seconds", "reserve", "max_model_len", "compaction", "fit")


def fresh(policy):
    """The same policy without what it remembers of an earlier run."""
    policy = deepcopy(policy)
    if isinstance(policy, Decided):
        policy.had_slot = set()
        policy.decide = oracle_own.AtRandom(policy.decide.seed, rejects=policy.decide.rejects)
    return policy


def blocks_of(cache: KVCache) -> dict[str, int]:
    """What the oracles take of a cache."""
    named = ("num_blocks", "block_size", *RIVALS)
    return {name: getattr(cache, name) for name in named if getattr(cache, name) is not None}


@dataclass(frozen=True)
class Case:
    """One engine and what comes to it. `after` holds None or the number of an earlier request."""

    arrival: tuple
    prompt: tuple
    output: tuple
    after: tuple
    think_time: tuple
    policy: policies.Policy
    step_time: steptime.StepTime
    cache: KVCache | None = None
    guess: tuple | None = None
    cap: int | None = None
    tenant: tuple | None = None
    patience: tuple | None = None
    elsewhere: tuple | None = None
    """Tokens of each prompt that somebody else computed; such requests are submitted one by one."""

    @property
    def labels(self) -> dict:
        """Columns that orders of tenants read: a level and a deadline for each of them."""
        if self.patience is not None:
            patience = [np.nan if seconds is None else seconds for seconds in self.patience]
            return {"patience": patience} | replace(self, patience=None).labels
        if self.tenant is None:
            return {}
        places = [ord(name) - ord("A") for name in self.tenant]
        return {"tenant": list(self.tenant), "tags": [{"priority": place} for place in places],
                "deadline": [np.nan if place > 1 else 2.0 - place for place in places]}  # fmt: skip

    @property
    def guess_column(self) -> list | None:
        """As a workload holds it: NaN where nobody guessed."""
        return None if self.guess is None else [np.nan if guess is None else guess for guess in self.guess]

    @property
    def load(self) -> Workload:
        if all(before is None for before in self.after):
            return Workload(
                self.arrival, self.prompt, self.output, guess=self.guess_column, max_concurrency=self.cap, **self.labels
            )
        return Workload(
            [np.nan if before is not None else when for when, before in zip(self.arrival, self.after, strict=True)],
            self.prompt,
            self.output,
            after=[-1 if before is None else before for before in self.after],
            think_time=[
                0 if before is None else think for think, before in zip(self.think_time, self.after, strict=True)
            ],
            guess=self.guess_column,
            **self.labels,
        )

    def served(self) -> Run:
        if self.elsewhere is not None:
            return self.served_by(Engine(fresh(self.policy), self.step_time, self.cache))
        return serve(self.load, fresh(self.policy), self.step_time, self.cache)

    def served_asking(self) -> Run:
        if self.elsewhere is not None:
            return self.served_by(Engine(fresh(self.policy), self.step_time, self.cache, honour_until=False))
        return serve_asking(self.load, fresh(self.policy), self.step_time, self.cache)

    def served_by(self, engine: Engine | PlainEngine) -> Run:
        """Each request is submitted by itself."""
        load, tokens = self.load, self.elsewhere or (0,) * len(self.prompt)
        columns = [load.guess, load.tenant, load.tags, load.deadline, load.patience]
        for row, (arrival, prompt) in enumerate(zip(self.arrival, self.prompt, strict=True)):
            values = [None if column is None else column[row] for column in columns]
            guess, tenant, tags, deadline, patience = (None if v != v else v for v in values)  # NaN
            request = policies.Request(
                arrival, prompt, guess=guess, tenant=tenant, tags=tags or (), deadline=deadline, patience=patience,
                computed=tokens[row],
            )  # fmt: skip
            engine.submit(request, self.output[row])
        return finish(engine)

    def by_the_oracle(self) -> oracle.Outcome:
        guess = self.guess or (None,) * len(self.prompt)
        requests = oracle.Requests(
            self.arrival, self.prompt, self.output, self.after, self.think_time, guess, self.cap, self.patience,
            self.elsewhere,
        )  # fmt: skip
        memory = {} if self.cache is None else blocks_of(self.cache)

        def step_time(decodes, context, chunks):
            return float(self.step_time(steptime.Step(decodes, context, chunks)))

        policy = self.policy
        if isinstance(policy, policies.RateLimit):  # in cases whose budget and blocks never bind
            limit = policy.tokens_per_second, policy.burst
            cost = [prompt + (asked or 0) for prompt, asked in zip(self.prompt, guess, strict=True)]
            decide = oracle_own.told_to_come_again(*limit, cost, self.tenant)
            return oracle_own.serve_decided(requests, step_time, decide, policy.max_num_seqs)
        if isinstance(policy, policies.Continuous):
            fewest = isinstance(policy, policies.FewestComputed)
            return oracle.serve_continuous(requests, step_time, **vars(policy), **memory, fewest=fewest)
        blocks = {name: memory[name] for name in ("num_blocks", "block_size") if name in memory}  # no rivals of pages
        if isinstance(policy, Decided):
            limits = policy.max_num_seqs, policy.max_num_batched_tokens
            return oracle_own.serve_decided(requests, step_time, deepcopy(policy.decide), *limits, **blocks)
        if isinstance(policy, policies.PrefillFirst):
            decide = oracle_own.prompts_first(policy.enable_chunked_prefill)
            limits = policy.max_num_seqs, policy.max_num_batched_tokens
            return oracle_own.serve_decided(requests, step_time, decide, *limits, **blocks)
        if isinstance(policy, policies.Window):
            noted = isinstance(policy, policies.NoteWindow)
            rule = oracle_own.window_of_the_notes if noted else oracle_own.first_arrival_opens
            return oracle_own.serve_decided(requests, step_time, rule(policy.window), policy.max_num_seqs, **blocks)
        return oracle.serve_batches(requests, step_time, **vars(self.policy), **blocks)


def differences(case: Case, run: Run, want: oracle.Outcome) -> list[str]:
    """What of the run is not equal, to the last bit, to what the oracle says."""
    n, times = len(case.prompt), want.token_times
    first, last = (np.array([t[place] if t else np.nan for t in times]) for place in (0, -1))
    arrival, response = np.array(want.arrival), np.array(want.response)
    ends = [seconds or np.inf for seconds in case.patience or (None,) * n]
    late = first > arrival + ends
    outcome = [want.left[who][0] if who in want.left else "gave up" if late[who] else "answered" for who in range(n)]
    whole = np.where([what == "answered" for what in outcome], 0, np.nan)
    answered_whole = case.policy.padded
    values = {
        "arrival": arrival,
        "outcome": np.array(outcome),
        "admitted": np.array(want.admitted, dtype=float),
        "first_computed": first,
        "last_computed": last,
        "response": response,
        "queue_wait": np.array(want.admitted, dtype=float) - arrival,
        "ttft": (response if answered_whole else first) - arrival + whole,
        "e2e": response - arrival + whole,
        "preempted": want.preempted,
    }
    found = [name for name, value in values.items() if not _equal(getattr(run, name), value)]
    abandoned = sum(tokens for _, _, tokens in want.left.values())
    abandoned += sum(case.prompt[who] + case.output[who] - 1 for who in np.flatnonzero(late) if who not in want.left)
    found += [] if run.abandoned_tokens == abandoned else ["abandoned_tokens"]
    found += [] if run.log.retries == want.retries else ["retries"]
    if len(run.steps) != len(want.steps):
        return [*found, f"{len(run.steps)} steps for {len(want.steps)}"]
    for name in oracle.COLUMNS:
        if not np.array_equal(getattr(run.steps, name), [row[name] for row in want.steps]):
            found.append(f"steps.{name}")
    found += [f"token_times({i})" for i in range(n) if not np.array_equal(run.token_times(i), times[i])]
    gaps = [] if answered_whole else np.concatenate([np.diff(t) for t in times])
    if not np.array_equal(np.sort(run.itl), np.sort(gaps)):
        found.append("itl")
    return found


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return (
        np.array_equal(one, other, equal_nan=other.dtype.kind == "f")
        if isinstance(other, np.ndarray)
        else np.array_equal(one, other)
    )


def compare(case: Case) -> oracle.Outcome:
    """The engine in each of its ways and the oracle must agree. What the oracle says, to look for rare events in it.

    Small cases go into the tight loop once, at their beginning; without its pause they go in and out all the time.
    """
    want = case.by_the_oracle()
    with patch.object(tight, "_PAUSE", 2):
        in_and_out = case.served()
    for name, run in (("serve", case.served()), ("tight", in_and_out), ("serve_asking", case.served_asking())):
        found = differences(case, run, want)
        assert not found, f"{name} differs from the oracle in {', '.join(found)}: {case}"
    return want


# Step times and who comes when


class Somebodys(steptime.PowerLaw):
    """A model that is none of those whose answers need no check."""


def by_order(step):
    """A callable that looks at everything, also at the order of the chunks, and returns no float."""
    parts = sum((place + 1) * tokens + cached for place, (tokens, cached) in enumerate(step.prefill_chunks))
    return np.float64(GRID * (1 + step.decodes) + 1e-3 * parts + 1e-5 * step.decode_context)


OUR_MODELS = [
    steptime.PowerLaw(t0=GRID, c=0, alpha=1),
    steptime.PowerLaw(t0=GRID, c=GRID, alpha=1, prefill=GRID, context=GRID / 8),
    steptime.PowerLaw(t0=0, c=1e-3, alpha=0.9, prefill=2e-5),
    steptime.PowerLaw(t0=5e-3, c=2e-4, alpha=0.5, prefill=2e-5, context=5e-8, pairs=1e-9),
    steptime.PowerLaw(t0=1e-4, c=2e-4, alpha=1, pairs=1e-7),
    steptime.Roofline("llama-3.1-8b", "H100"),
    steptime.Roofline("llama-2-7b", "L40S"),
]
MODELS = st.sampled_from(OUR_MODELS)
STEP_TIMES = st.sampled_from(
    [
        by_order,
        lambda step: 1,
        Somebodys(t0=5e-3, c=2e-4, alpha=0.5, prefill=2e-5, context=5e-8, pairs=1e-9),
        *OUR_MODELS,
    ]
)
ON_GRID = st.sampled_from([0.0, 0.0, GRID, 2 * GRID, 4 * GRID, 20 * GRID, 80 * GRID])
ANY_TIME = st.one_of(ON_GRID, st.sampled_from([1e-3, 0.05]), st.floats(0, 3, allow_subnormal=False))


@st.composite
def arrivals(draw, n):
    """(arrival, after, think time): bursts, gaps and ties; sometimes some follow an answer, often at once."""
    gaps = draw(st.lists(draw(st.sampled_from([ON_GRID, ANY_TIME, st.just(0.0)])), min_size=n, max_size=n))
    arrival = tuple(np.cumsum(gaps).tolist())
    if n == 1 or not draw(st.sampled_from([False, False, True])):
        return arrival, (None,) * n, (0.0,) * n
    after = tuple(draw(st.one_of(st.none(), st.integers(0, i - 1))) if i else None for i in range(n))
    think = tuple(draw(st.lists(st.one_of(st.just(0.0), ANY_TIME), min_size=n, max_size=n)))
    return arrival, after, think


def token_counts(n, tops):
    return st.sampled_from(tops).flatmap(
        lambda top: st.lists(st.integers(1, top), min_size=n, max_size=n).map(tuple),
    )


@st.composite
def caches(draw, prompt, output, factors=(1, 1, 1.25, 2, 4)):
    """Just enough blocks for the longest request, or somewhat more."""
    size = draw(st.sampled_from([1, 2, 4, 16]))
    longest = max(p + o - 1 for p, o in zip(prompt, output, strict=True))
    return KVCache(int(-(-longest // size) * draw(st.sampled_from(factors))) + draw(st.integers(0, 2)), size)


# Whole cases


VERSIONS = st.sampled_from(["0.33", "0.19"])


@st.composite
def continuous_policies(draw, longest):
    slots = draw(st.sampled_from([1, 2, 3, 8, 64]))
    chunked = draw(st.sampled_from([True, True, True, False]))
    budget = slots + draw(st.sampled_from([0, 1, 5, 40, 500])) if chunked else max(slots, longest)
    threshold = draw(st.sampled_from([0, 0, 1, 3, 7, 64])) if chunked else 0
    version = draw(VERSIONS)
    watermark = draw(st.sampled_from([0, 0, 0, 0.1, 0.3])) if version == "0.33" else 0
    return policies.Continuous(slots, budget, chunked, threshold, draw(st.booleans()), version, watermark)


@st.composite
def continuous(draw, most=24, outputs=(1, 5, 40)):
    n = draw(st.integers(1, most))
    prompt, output = draw(token_counts(n, [1, 4, 40, 300])), draw(token_counts(n, list(outputs)))
    cache = draw(st.one_of(st.none(), caches(prompt, output), caches(prompt, output)))
    policy = draw(continuous_policies(max(p + o for p, o in zip(prompt, output, strict=True))))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


@st.composite
def storms(draw):
    """Many long answers at once in few blocks: preempted again and again."""
    n = draw(st.integers(3, 16))
    prompt = (draw(st.integers(1, 12)),) * n if draw(st.booleans()) else draw(token_counts(n, [4, 40]))
    output = (draw(st.integers(10, 40)),) * n
    cache = draw(caches(prompt, output, factors=(1, 1.5, 2.5)))
    slots = draw(st.sampled_from([2, 8, 64]))
    policy = policies.Continuous(
        slots,
        slots + draw(st.sampled_from([0, 4, 30])),
        True,
        draw(st.sampled_from([0, 0, 2, 5])),
        draw(st.booleans()),
        draw(VERSIONS),
    )
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


@st.composite
def many_in_chunks(draw):
    """Several long prompts in chunks of `long_prefill_token_threshold` at once, beside requests that already decode."""
    n = draw(st.integers(4, 12))
    prompt = tuple(draw(st.lists(st.sampled_from([1, 2, 60, 90]), min_size=n, max_size=n)))
    output = draw(token_counts(n, [3, 20]))
    threshold = draw(st.integers(2, 12))
    policy = policies.Continuous(
        n, max(n, 2 * threshold + draw(st.integers(0, 3))), True, threshold, draw(st.booleans()), draw(VERSIONS)
    )
    cache = draw(st.one_of(st.none(), caches(prompt, output)))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


@st.composite
def cut_short(draw):
    """Answers grow beside the last one's prompt in small chunks: it is preempted, then gives up without a token."""
    older, prompt = draw(st.integers(1, 4)), draw(st.integers(20, 40))
    n, size, slots = older + 1, draw(st.sampled_from([1, 2])), draw(st.sampled_from([8, 64]))
    blocks = -(-(2 * older + prompt) // size) + older + draw(st.integers(0, 2))
    policy = policies.Continuous(
        slots, slots + draw(st.integers(0, 20)), True, draw(st.integers(1, 3)), draw(st.booleans()), draw(VERSIONS)
    )
    lengths = (2,) * older + (prompt,), (draw(st.integers(10, 20)),) * older + (2,)
    patience = (None,) * older + (GRID * draw(st.integers(2, 25)),)  # steps
    start, cache = (0.0,) * n, KVCache(blocks, size)
    return Case(start, *lengths, (None,) * n, start, policy, OUR_MODELS[0], cache, patience=patience)


@st.composite
def shortest_first(draw):
    """A queue long enough to be sorted, often with few slots or blocks; guesses, some missing and some the same."""
    case = draw(st.one_of(continuous(), storms(), many_in_chunks()))
    policy = policies.ShortestFirst(**vars(case.policy), by=draw(st.sampled_from(["prompt", "guess"])))
    guesses = st.one_of(st.none(), st.sampled_from([1, 2, 2.5, 40]), st.floats(1, 100))
    n = len(case.prompt)
    return replace(
        case, policy=policy, guess=draw(st.one_of(st.none(), st.lists(guesses, min_size=n, max_size=n).map(tuple)))
    )


@st.composite
def sharing(draw):
    """A queue under the orders of several tenants, often with few slots or blocks."""
    case = draw(st.one_of(continuous(), storms(), many_in_chunks()))
    limits = case.policy.max_num_seqs, case.policy.max_num_batched_tokens
    n, costs = len(case.prompt), draw(st.sampled_from([(1, 2), (0, 1), (1.5, 0)]))
    kinds = (
        policies.Priority(*limits, ageing=draw(st.sampled_from([0, 0.3, 5, float("inf")]))),
        policies.Fair(*limits, *costs, lift=draw(st.booleans()), weights=draw(st.sampled_from([{}, {"A": 2.5}]))),
        policies.Bucket(*limits, draw(st.sampled_from([20, 300, 1e5])), max(case.prompt) + draw(st.integers(0, 50))),
        policies.EarliestDeadline(*limits),
        policies.RateLimit(*limits, draw(st.sampled_from([20, 300, 1e5])), max(case.prompt) + draw(st.integers(0, 50))),
    )
    tenant = draw(st.lists(st.sampled_from("ABC"), min_size=n, max_size=n))
    return replace(case, policy=draw(st.sampled_from(kinds)), tenant=tuple(tenant))


@st.composite
def rate_limits(draw):
    """A gateway that tells whoever finds an empty bucket to come again; some ask for more than it ever holds."""
    n = draw(st.integers(1, 16))
    prompt, output = draw(token_counts(n, [4, 40, 300])), draw(token_counts(n, [1, 5, 40]))
    slots, guess = draw(st.sampled_from([1, 2, 8])), draw(st.one_of(st.none(), st.just(output)))
    first = prompt[0] + (0 if guess is None else guess[0])  # it passes, or there might be no step at all
    burst = max(first, draw(st.sampled_from([max(prompt) // 2, max(prompt), 3 * max(prompt)])))
    rate = draw(st.sampled_from([2, 40, 300.5]))
    policy = policies.RateLimit(slots, slots + sum(prompt) + sum(output), rate, burst)
    tenant = draw(st.lists(st.sampled_from("AB"), min_size=n, max_size=n))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), None, guess, tenant=tuple(tenant))


@st.composite
def rivals(draw):
    """Blocks that go to the host and come back, pieces that are reserved, and another victim."""
    case = draw(st.one_of(storms(), storms(), continuous(), many_in_chunks()))
    if draw(st.booleans()):
        case = replace(case, policy=policies.FewestComputed(**vars(case.policy)))
    longest = max(p + o for p, o in zip(case.prompt, case.output, strict=True))
    cache = case.cache or draw(caches(case.prompt, case.output))
    seconds = draw(st.sampled_from([0.0, GRID, 1e-3]))
    if draw(st.booleans()):
        host = draw(st.sampled_from([1, 2, 5, 10_000]))
        return replace(case, cache=replace(cache, host_blocks=host, host_seconds=seconds))
    guess = tuple(o + draw(st.sampled_from([0, 0, 0.5, 3])) for o in case.output)
    blocks = -(-(longest + 4) // cache.block_size)
    cache = KVCache(
        blocks + draw(st.integers(0, 2 * blocks)), cache.block_size, max_model_len=longest + draw(st.integers(0, 4)),
        reserve=draw(st.sampled_from(["longest", "power of two", "length"])),
        compaction=draw(st.sampled_from([None, None, seconds])), fit=draw(st.sampled_from(["best", "best", "first"])),
    )  # fmt: skip
    return replace(case, cache=cache, guess=draw(st.sampled_from([guess, guess, None])))


@st.composite
def holes(draw):
    """Reserved pieces of many lengths, given back out of turn: enough blocks are free, and not side by side."""
    n = draw(st.integers(8, 16))
    prompt, output = (tuple(draw(st.lists(st.integers(1, 40), min_size=n, max_size=n))) for _ in range(2))
    longest = max(p + o for p, o in zip(prompt, output, strict=True))
    size, reserve = draw(st.sampled_from([1, 4])), draw(st.sampled_from(["power of two", "length"]))
    cache = KVCache(-(-2 * longest // size), size, max_model_len=longest, reserve=reserve)
    policy = policies.Continuous(n, draw(st.sampled_from([n, 4 * n, 1_000])))
    columns = _columns(draw, n, prompt, output)
    return Case(*columns, policy, draw(STEP_TIMES), cache, guess=draw(st.sampled_from([output, None])))


@st.composite
def prefill_first(draw):
    """Often with few blocks, so that somebody who decodes must give way."""
    case = draw(st.one_of(continuous(), storms()))
    slots, longest = case.policy.max_num_seqs, max(p + o for p, o in zip(case.prompt, case.output, strict=True))
    chunked = draw(st.booleans())
    budget = slots + draw(st.sampled_from([0, 1, 5, 40])) if chunked else max(slots, longest)
    return replace(case, policy=policies.PrefillFirst(slots, budget, chunked))


@st.composite
def windows(draw):
    """Admission windows; with blocks enough for a whole batch, since they preempt nobody."""
    n = draw(st.integers(1, 20))
    prompt, output = draw(token_counts(n, [1, 40, 300])), draw(token_counts(n, [1, 5, 60]))
    slots, kind = draw(st.sampled_from([1, 2, 3, 8])), draw(st.sampled_from([policies.Window, policies.NoteWindow]))
    size = draw(st.sampled_from([1, 4, 16]))
    enough = min(slots, n) * -(-(max(prompt) + max(output) - 1) // size)
    cache = draw(st.sampled_from([None, KVCache(enough, size)]))
    policy = kind(slots, draw(st.one_of(ON_GRID, ANY_TIME)))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


@st.composite
def decided(draw):
    """A policy that does whatever is allowed; see oracle_own.AtRandom."""
    n = draw(st.integers(1, 8))
    prompt, output = draw(token_counts(n, [1, 4, 40])), draw(token_counts(n, [1, 4, 25]))
    slots = draw(st.sampled_from([1, 2, 3, 8]))
    policy = Decided(
        oracle_own.AtRandom(draw(st.integers(0, 2**16))),
        slots,
        draw(st.sampled_from([1, 4, 40, 500])),
        draw(st.booleans()),
    )
    cache = draw(st.one_of(st.none(), caches(prompt, output), caches(prompt, output)))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


def long_answers():
    """Stretches of hundreds of steps in which nothing changes but the clock."""
    return continuous(most=6, outputs=(30, 600))


@st.composite
def batches(draw):
    n = draw(st.integers(1, 20))
    prompt, output = draw(token_counts(n, [1, 40, 300])), draw(token_counts(n, [1, 5, 60]))
    slots = draw(st.sampled_from([1, 2, 3, 8, 64]))
    policy = draw(
        st.one_of(
            st.just(policies.Static(slots)),
            st.one_of(ON_GRID, ANY_TIME).map(lambda delay: policies.Dynamic(slots, delay)),
        )
    )
    size = draw(st.sampled_from([1, 4, 16]))
    reserved = min(slots, n) * -(-(max(prompt) + max(output) - 1) // size)
    cache = draw(st.sampled_from([None, KVCache(reserved, size)]))
    return Case(*_columns(draw, n, prompt, output), policy, draw(STEP_TIMES), cache)


@st.composite
def capped(draw):
    """Requests that are due at times, and a client that has few of them out: any policy, in any memory."""
    case = draw(st.one_of(continuous(), storms(), batches(), windows(), shortest_first(), decided()))
    n = len(case.prompt)
    gaps = draw(st.lists(draw(st.sampled_from([ON_GRID, ANY_TIME])), min_size=n, max_size=n))
    cap = draw(st.sampled_from([1, 1, 2, 3, 5, n, n + 1]))
    return replace(case, arrival=tuple(np.cumsum(gaps).tolist()), after=(None,) * n, cap=cap)


@st.composite
def leaving(draw, *only, sharing_too=False):
    """Whoever asked goes if the first token does not come in time; and a policy that also rejects."""
    kinds = only or (
        continuous(),
        storms(),
        many_in_chunks(),
        shortest_first(),
        prefill_first(),
        rivals(),
        decided(),
        decided(),
        rate_limits(),
    )
    case = draw(st.one_of(*kinds, *([sharing()] if sharing_too else [])))
    n, policy = len(case.prompt), case.policy
    if isinstance(policy, Decided) and draw(st.booleans()):
        decide = replace(policy.decide, rejects=True)
        policy = Decided(decide, policy.max_num_seqs, policy.max_num_batched_tokens, policy.in_words)
    if case.after == (None,) * n and draw(st.booleans()):
        case = replace(case, cap=draw(st.sampled_from([1, 2, 5])))
    seconds = st.one_of(st.none(), st.sampled_from([1e-9, GRID, 2 * GRID, 4 * GRID, 20 * GRID]), st.floats(1e-3, 3))
    # Somebody stays, or there might be no step at all.
    patience = (None, *draw(st.lists(seconds, min_size=n - 1, max_size=n - 1)))
    return replace(case, policy=policy, patience=patience)


@st.composite
def from_elsewhere(draw, *kinds):
    """Cases of these kinds, some or all prompts of which somebody else has computed, in part or whole."""
    case = draw(st.one_of(*kinds).filter(lambda case: not any(before is not None for before in case.after)))
    some = draw(st.sampled_from([(0, 0.5, 1), (1,), (0, 1)]))
    share = draw(st.lists(st.sampled_from(some), min_size=len(case.prompt), max_size=len(case.prompt)))
    return replace(case, elsewhere=tuple(int(p * s) for p, s in zip(case.prompt, share, strict=True)), cap=None)


def _columns(draw, n, prompt, output):
    arrival, after, think = draw(arrivals(n))
    return arrival, prompt, output, after, think
