"""Prefixes that are shared, at random: both loops are a naive third one, under every policy."""

from dataclasses import dataclass, replace
from random import Random

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, policies, steptime
from tests.engine import test_plain
from tests.helpers import oracle, oracle_prefix, strategies
from tests.helpers.sizes import size
from tests.helpers.strategies import Case, examples


@dataclass(frozen=True)
class Sharing(Case):
    """starts: (request, tokens) of each: its prompt begins as so many tokens of that one's prompt and answer; -1: a
    text that many share; None: its own. hash_tokens: of a block that a hash stands for. answers: hashes go on over
    answers.
    """

    starts: tuple = ()
    hash_tokens: int = 1
    answers: bool = False

    def text(self, who):
        """All tokens of a request, prompt and answer: a list of numbers, equal ones only where they are shared."""
        whole = [(who, place) for place in range(self.prompt[who] + self.output[who])]
        if self.starts[who] is None:
            return whole
        source, tokens = self.starts[who]
        text = [("all", place) for place in range(tokens)] if source < 0 else self.text(source)[:tokens]
        text = text[: self.prompt[who]]
        return text + whole[len(text) :]

    def hashed(self, who):
        return self.text(who)[: None if self.answers else self.prompt[who]]

    def known_as(self, who, place):
        """What others know its block of this number by: all text up to the end of what its hash stands for."""
        hashed, end = self.hashed(who), (place + 1) * self.cache.block_size
        if end > len(hashed):
            return "nobody else's", who, place
        return hashed[: -(-end // self.hash_tokens) * self.hash_tokens], place

    @property
    def load(self):
        names: dict = {}
        prefix = []
        for who in range(len(self.prompt)):
            text = self.hashed(who)
            ends = range(self.hash_tokens, len(text) + self.hash_tokens, self.hash_tokens)
            prefix.append([names.setdefault(tuple(text[:end]), len(names)) for end in ends])
        return replace(
            super().load, prefix=prefix, prefix_block_size=self.hash_tokens, prefix_answers=self.answers
        )  # fmt: skip

    def by_the_oracle(self):
        requests = oracle.Requests(self.arrival, self.prompt, self.output, self.after, self.think_time, None)

        def step_time(decodes, context, chunks):
            return float(self.step_time(steptime.Step(decodes, context, chunks)))

        settings = {name: value for name, value in vars(self.policy).items() if not name.startswith("_")}
        memory = self.cache.num_blocks, self.cache.block_size
        return oracle_prefix.serve_sharing(requests, self.known_as, step_time, *memory, **settings)


@st.composite
def sharing(draw, most=14):
    """Prompts that begin alike or as earlier ones went on, in few blocks as often as in many."""
    n = draw(st.integers(2, most))
    prompt = list(draw(strategies.token_counts(n, [6, 30, 90])))
    output = draw(strategies.token_counts(n, [1, 6, 30]))
    starts: list = []
    for who in range(n):
        kind = draw(st.sampled_from(["own", "all", "all", "before", "same"]))
        if kind == "own" or (kind in ("before", "same") and not who):
            starts.append(None)
        elif kind == "all":
            starts.append((-1, draw(st.integers(1, 60))))
        else:
            source = draw(st.integers(0, who - 1))
            tokens = prompt[source] + (0 if kind == "same" else draw(st.integers(0, output[source])))
            starts.append((source, tokens))
            prompt[who] = min(tokens + draw(st.sampled_from([0, 0, 1, 7])), 150)
    prompt = tuple(prompt)
    block = draw(st.sampled_from([1, 2, 4, 8]))
    longest = -(-max(map(sum, zip(prompt, output, strict=True))) // block)
    blocks = int(longest * draw(st.sampled_from([1, 1, 1.3, 2, 6]))) + draw(st.integers(0, 2))
    policy = draw(strategies.continuous_policies(max(map(sum, zip(prompt, output, strict=True)))))
    hash_tokens = draw(st.sampled_from([block, block, 1, 2 * block, 4 * block]))
    arrival, after, think = draw(strategies.arrivals(n))
    return Sharing(
        arrival, prompt, output, after, think, policy, draw(strategies.STEP_TIMES),
        KVCache(blocks, block, policy.engine_version, prefix_caching=True), starts=tuple(starts),
        hash_tokens=hash_tokens, answers=draw(st.booleans()),
    )  # fmt: skip


# At random


def plainly(case):
    return test_plain.plainly(case)


def parts(case, run, want):
    """What of a run is not as the oracle has it."""
    out, hits, spared = want
    found = strategies.differences(case, run, out)
    found += [] if run.log.lookups.tolist() == [list(hit) for hit in hits] else ["hits"]
    found += [] if run.steps.shared.tolist() == spared else ["steps.shared"]
    found += [] if run.log.evicted == out.evicted else ["evicted"]
    numbers = run.summary()
    computed = sum(case.prompt) + sum(case.output) - len(case.prompt)
    computed += numbers["recomputed_tokens"] - numbers["prefix_cache_hits"]
    return found + ([] if numbers["computed_tokens"] == computed else ["tokens computed"])


@pytest.mark.parametrize("part", range(size(1, 4)))
def test_both_loops_are_the_oracle(part):
    """Times, hits, preemptions, the columns of the steps: equal to the last bit, however often the policy is asked."""
    seen = dict.fromkeys(("hits", "preempted", "hits after it", "several times", "an answer", "evicted"), 0)

    @hypothesis.seed(part)  # other cases in each part, the same in each run
    @given(sharing())
    @examples(500, 120)
    def equal(case):
        want = case.by_the_oracle()
        for name, run in (("fast", case.served()), ("asked", case.served_asking()), ("plain", plainly(case))):
            found = parts(case, run, want)
            assert not found, f"{name} differs from the oracle in {', '.join(found)}: {case}"
        out, hits, _ = want
        seen["hits"] += any(there for *_, there in hits)
        seen["preempted"] += any(out.preempted)
        seen["evicted"] += bool(out.evicted)
        seen["hits after it"] += len({who for who, *_, there in hits if there}) < sum(bool(there) for *_, there in hits)
        seen["several times"] += max(out.preempted) > 1
        seen["an answer"] += any(
            start and start[0] >= 0 and there > case.prompt[start[0]]
            for who, _, there in hits
            for start in [case.starts[who]]
        )

    equal()
    assert min(seen.values()) >= size(1, 10), seen  # to be preempted twice is rare


class AtRandom(policies.Policy):
    """Who runs, rests, joins and is sent away is drawn; a plan says what fits."""

    def __init__(self, seed, max_num_seqs, max_num_batched_tokens):
        self.draw, self.max_num_seqs, self.max_num_batched_tokens = Random(seed), max_num_seqs, max_num_batched_tokens

    def schedule(self, state):
        plan, left, tokens, preempt = state.plan(decodes=False), self.max_num_batched_tokens, {}, []
        running = list(state.running)
        while len(running) > 1 and self.draw.random() < 0.1:
            preempt.append(running.pop(self.draw.randrange(len(running))))
            plan.release(preempt[-1])
        rest = 0.2 if len(running) > 1 else 0
        for request in list(running):
            if request in running and left and self.draw.random() >= rest:
                chunk = min(request.remaining, left)
                while not plan.take(request, chunk, if_fit=chunk):
                    preempt.append(running.pop())
                    plan.release(preempt[-1])
                    left += tokens.pop(preempt[-1], 0)
                    if preempt[-1] is request:
                        break
                else:
                    tokens[request] = chunk
                    left -= chunk
        waiting = self.draw.sample(list(state.waiting), len(state.waiting))
        for request in waiting[: self.max_num_seqs - len(running)]:
            chunk = min(plan.remaining(request), left, self.draw.choice([3, 100]))
            if chunk and plan.take(request, chunk, if_fit=chunk):
                tokens[request] = chunk
                left -= chunk
        if not tokens and state.running:
            first, *others = state.running
            return policies.Schedule({first: min(first.remaining, self.max_num_batched_tokens)}, others)
        return policies.Schedule(tokens, preempt)


def outcome(how, case):
    """The run, or what was refused: a policy of one's own may plan on what the step does not have."""
    try:
        return how(case)
    except ValueError as error:
        return str(error).partition(" has ")[0]


WAYS = (lambda case: case.served(), lambda case: case.served_asking(), plainly)


@pytest.mark.parametrize("kind", ["at random", "shortest first", "prefill first"])
def test_the_loops_are_one_under_other_policies(kind):
    ran = [0, 0]

    @given(sharing(), st.integers(0, 2**16))
    @examples(400, 40)
    def equal(case, seed):
        chosen = vars(case.policy)
        limits = chosen["max_num_seqs"], chosen["max_num_batched_tokens"]
        policy = {
            "at random": lambda: AtRandom(seed, *limits),
            "shortest first": lambda: policies.ShortestFirst(*limits, engine_version=case.policy.engine_version),
            "prefill first": lambda: policies.PrefillFirst(*limits),
        }[kind]()
        case = replace(case, policy=policy)
        fast, *others = (outcome(way, case) for way in WAYS)
        ran[isinstance(fast, str)] += 1
        for other in others:
            if isinstance(fast, str) or isinstance(other, str):
                assert fast == other, case
            else:
                assert not test_plain.differences(fast, other), case
                assert np.array_equal(fast.log.lookups, other.log.lookups), case
                assert fast.log.evicted == other.log.evicted, case
                assert np.array_equal(fast.steps.shared, other.steps.shared), case

    equal()
    assert ran[0] > 9 * ran[1]
