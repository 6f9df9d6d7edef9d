"""Prefixes that are shared: both loops, honouring `until` and not, are a naive third one; and what can be counted by hand."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Request
from tests.engine import test_plain
from tests.helpers import oracle, oracle_prefix, strategies
from tests.helpers.asking import BOTH, serve_asking
from tests.helpers.sizes import size
from tests.helpers.strategies import Case, examples


@dataclass(frozen=True)
class Sharing(Case):
    """starts: (request, tokens) of each: its prompt begins as so many tokens of that one's prompt and answer; -1: a text
    that many share; None: its own. hash_tokens: of a block that a hash stands for. answers: hashes go on over answers.
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
    version = draw(strategies.VERSIONS)
    blocks = int(longest * draw(st.sampled_from([1, 1, 1.3, 2, 6]))) + draw(st.integers(0, 2))
    policy = draw(strategies.continuous_policies(max(map(sum, zip(prompt, output, strict=True)))))
    policy.engine_version = version
    hash_tokens = draw(st.sampled_from([block, block, 1, 2 * block, 4 * block]))
    arrival, after, think = draw(strategies.arrivals(n))
    return Sharing(
        arrival, prompt, output, after, think, policy, draw(strategies.STEP_TIMES),
        KVCache(blocks, block, version, prefix_caching=True), None, tuple(starts), hash_tokens, draw(st.booleans()),
    )  # fmt: skip


def plainly(case):
    return test_plain.plainly(case)


def parts(case, run, want):
    """What of a run is not as the oracle has it."""
    out, hits, spared = want
    found = strategies.differences(case, run, out)
    found += [] if run.log.lookups.tolist() == [list(hit) for hit in hits] else ["hits"]
    found += [] if run.steps.shared.tolist() == spared else ["steps.shared"]
    numbers = run.summary()
    computed = sum(case.prompt) + sum(case.output) - len(case.prompt)
    computed += numbers["recomputed_tokens"] - numbers["prefix_cache_hits"]
    return found + ([] if numbers["computed_tokens"] == computed else ["tokens computed"])


def test_both_loops_are_the_oracle():
    """Times, hits, preemptions, the columns of the steps: equal to the last bit, however often the policy is asked."""
    seen = dict.fromkeys(("hits", "preempted", "hits after it", "several times", "an answer"), 0)

    @given(sharing())
    @examples(2000, 120)
    def equal(case):
        want = case.by_the_oracle()
        for name, run in (("fast", case.served()), ("asked", case.served_asking()), ("plain", plainly(case))):
            found = parts(case, run, want)
            assert not found, f"{name} differs from the oracle in {', '.join(found)}: {case}"
        out, hits, _ = want
        seen["hits"] += any(there for *_, there in hits)
        seen["preempted"] += any(out.preempted)
        seen["hits after it"] += len({who for who, *_, there in hits if there}) < sum(bool(there) for *_, there in hits)
        seen["several times"] += max(out.preempted) > 1
        seen["an answer"] += any(
            start and start[0] >= 0 and there > case.prompt[start[0]]
            for who, _, there in hits
            for start in [case.starts[who]]
        )

    equal()
    assert min(seen.values()) >= size(5, 100), seen
