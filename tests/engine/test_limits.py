"""Requests that can never be served and runs without end are refused; too high a load is served with a warning."""

import re

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.engine import log
from course.engine.fast import stretch
from tests.helpers.asking import serve_asking

pytestmark = pytest.mark.filterwarnings("error")  # a NumPy warning would mean that a bad number got through

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [3, 4, 1])
POLICY = policies.Continuous(max_num_seqs=2, max_num_batched_tokens=8)
ALL = (POLICY, policies.Static(2), policies.Dynamic(2, 0.5))


# Requests that can never be served


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("run", [serve, serve_asking])
def test_a_request_that_never_fits_the_cache(run, policy):
    # 6 + 4 - 1 tokens: the last one is sampled and never stored.
    assert len(run(LOAD, policy, SECOND, KVCache(5 * 2, 2)))
    with pytest.raises(
        ValueError, match=r"request 1 needs 9 tokens of KV cache, 5 blocks, and num_blocks is 4: it can"
    ):
        run(LOAD, policy, SECOND, KVCache(4, 2))


def test_a_request_that_never_fits_the_budget():
    policy = policies.Continuous(2, 9, enable_chunked_prefill=False)
    assert len(serve(LOAD, policy, SECOND))
    tight = policies.Continuous(2, 8, enable_chunked_prefill=False)
    with pytest.raises(ValueError, match=r"request 1 may need 9 tokens in one step .* raise the budget to 9, or turn"):
        serve(LOAD, tight, SECOND)


@pytest.mark.parametrize("policy", ALL[1:], ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("run", [serve, serve_asking])
def test_a_batch_that_does_not_fit_the_cache(run, policy):
    # Both slots reserve 6 + 4 - 1 tokens, 5 blocks of 2.
    sentence = (
        "a batch of 2 requests padded to 6 prompt and 4 output tokens reserves 10 KV blocks, and num_blocks is 9: "
        "lower max_num_seqs to at most 1, or give the cache more blocks"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        run(LOAD, policy, SECOND, KVCache(9, 2))


# Runs that would not end, or not fit the machine


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("step_time", [SECOND, lambda step: 1.0], ids=["a model", "a callable"])
def test_an_answer_without_end(policy, step_time):
    endless = Workload([0.0, 1.0], [5, 5], [5, 10**9])
    with pytest.raises(
        ValueError, match=r"request 1 alone, with 5 prompt and 1,000,000,000 output tokens, takes 1,0.*"
    ):
        serve(endless, policy, step_time)


def test_a_prompt_without_end():
    endless = Workload([0.0, 1.0], [10**9, 5], [5, 5])
    cut = policies.Continuous(2, 10**9, long_prefill_token_threshold=8, engine_version="0.19")
    for policy in (POLICY, cut):
        with pytest.raises(ValueError, match=r"request 0 alone, .*takes 125,000,004 steps"):
            serve(endless, policy, SECOND)
    large_budget = policies.Continuous(1, 10**9)  # the prompt takes one step
    assert len(serve(endless, large_budget, SECOND).steps) == 10
    spared = policies.Continuous(2, 10**9, long_prefill_token_threshold=8, engine_version="0.33")  # while it is alone
    assert len(serve(endless, spared, SECOND).steps) == 6


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("run", [serve, serve_asking])
def test_a_run_too_long_to_keep(run, policy, monkeypatch):
    monkeypatch.setattr(log, "MAX_STEPS", 900)
    monkeypatch.setattr(stretch, "MAX_STEPS", 900)
    many = Workload(np.arange(20) * 1e3, [1] * 20, [100] * 20)
    with pytest.raises(ValueError, match=r"the run takes more than 900 steps, .*: serve fewer requests at a time"):
        run(many, policy, SECOND)


@pytest.mark.parametrize(
    "policy",
    [policies.Continuous(10**9, 10**9), policies.Static(10**9), policies.Dynamic(10**9, 1e10)],
    ids=lambda policy: type(policy).__name__,
)
def test_a_billion_slots_take_no_memory(policy):
    for cache in (None, KVCache(10**9), KVCache(10**9, 2**20)):
        run = serve(LOAD, policy, SECOND, cache)
        assert run.steps.running.max() == 3
        assert 0 < run.summary()["slot_utilisation"] < 1e-8


@pytest.mark.parametrize("run", [serve, serve_asking])
def test_prompts_in_too_many_chunks_to_keep(run, monkeypatch):
    monkeypatch.setattr(log, "MAX_CHUNKS", 60)
    long = Workload([0.0, 0.0], [300, 300], [3, 4])
    with pytest.raises(
        ValueError, match=r"the prompts are computed in more than 60 chunks, .*: raise max_num_batched_"
    ):
        run(long, POLICY, SECOND)
    assert len(run(long, policies.Continuous(2, 16), SECOND))


# More than can be served


def test_a_load_above_capacity_is_served_and_says_so():
    # A slot serves one request of ten 1 s steps in 10 s: 4 slots make 0.4 requests/s. Twice that is offered.
    over = Workload.poisson(rate=0.8, num_requests=400, prompt_tokens=8, output_tokens=10, seed=1)
    for policy in (policies.Continuous(4, 64), policies.Static(4), policies.Dynamic(4, 1.0)):
        run = serve(over, policy, SECOND)
        (sentence,) = run.warnings
        assert re.match(
            r"The queue grew to the end: when the last request arrived, \d+ of 400 were still waiting", sentence
        )
        assert "Lower the rate or raise capacity." in sentence
        assert len(run.steps) <= (over.prompt_tokens + over.output_tokens).sum()
    assert serve(over.scaled(0.3), policies.Continuous(4, 64), SECOND).warnings == ()
    everybody_at_once = Workload.fixed(interval=0, num_requests=400, prompt_tokens=8, output_tokens=10)
    assert serve(everybody_at_once, policies.Continuous(4, 64), SECOND).warnings == ()  # no rate, so none too high
    loop = Workload.closed_loop(users=50, think_time=1, requests_per_user=8, prompt_tokens=8, output_tokens=10)
    assert serve(loop, policies.Continuous(4, 64), SECOND).warnings == ()  # a closed loop waits for its answers


def test_a_cache_that_is_too_small_is_served_and_says_so():
    load = Workload.fixed(interval=0, num_requests=20, prompt_tokens=4, output_tokens=60)
    run = serve(load, policies.Continuous(20, 64), SECOND, KVCache(8, 16))
    (sentence,) = run.warnings
    assert re.match(
        r"\d+ preemptions threw away \d+ computed tokens: KV blocks are short\. Lower max_num_seqs", sentence
    )
    assert serve(load, policies.Continuous(20, 64), SECOND, KVCache(80, 16)).warnings == ()
