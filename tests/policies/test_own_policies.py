"""A learner's own policy: served as it says where it keeps the rules, refused with a sentence where it breaks one."""

import math

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.policies import Policy, Schedule
from tests.helpers.asking import serve_asking
from tests.helpers.own_policies import (
    LastComeFirstServed,
    NewestPreempts,
    OneAtATime,
    Own,
    ShortestPromptFirst,
    TakingTurns,
)

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)  # every step takes one second


def at_once(prompts, output=2):
    return Workload([0.0] * len(prompts), prompts, [output] * len(prompts))


# Policies that keep the rules


def test_shortest_prompt_first():
    # One slot, two steps a request: the prompts of 3, 5, 7 and 9 tokens end at 2, 4, 6 and 8 s.
    run = serve(at_once([9, 3, 7, 5]), ShortestPromptFirst(1, 64), SECOND)
    assert run.e2e.tolist() == [8, 2, 6, 4]


def test_last_come_first_served():
    # 0 comes first and runs 0 to 2 s. By then 1, 2 and 3 are there, and the last of them is next.
    load = Workload([0.0, 0.5, 1.0, 1.5], [5] * 4, [2] * 4)
    run = serve(load, LastComeFirstServed(1, 64), SECOND)
    assert run.response.tolist() == [2, 8, 6, 4]
    assert run.queue_wait.tolist() == [0, 5.5, 3, 0.5]


def test_one_at_a_time_equals_continuous_with_one_slot():
    load = Workload.poisson(rate=5, num_requests=60, prompt_tokens=100, output_tokens=7, seed=3)
    mine = serve(load, OneAtATime(), steptime.Roofline("llama-3.1-8b", "H100"))
    theirs = serve(load, policies.Continuous(1, 4096), steptime.Roofline("llama-3.1-8b", "H100"))
    for name in ("ttft", "tpot", "e2e", "queue_wait"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name))
    assert np.array_equal(mine.steps.queue, theirs.steps.queue)


def test_a_policy_with_preemption():
    # 0 computes its prompt (0 to 1 s) and one more token (to 2 s); 1 sends it away and runs 2 to 4 s. Then 0 computes
    # its prompt and two tokens, 4 + 2 = 6 of them, and emits its third token at 5 s.
    load = Workload([0.0, 1.5], [4, 4], [3, 2])
    run = serve(load, NewestPreempts(), SECOND, KVCache(num_blocks=2, block_size=4))
    assert run.token_times(0).tolist() == [1, 2, 5]
    assert run.token_times(1).tolist() == [3, 4]
    assert run.preempted.tolist() == [1, 0]
    assert run.steps.dropped.tolist() == [0, 0, 5, 0, 0]
    assert run.steps.prefill_tokens.tolist() == [4, 0, 4, 0, 6]
    assert run.steps.queue.tolist() == [0, 0, 1, 1, 0]
    assert run.steps.blocks.tolist() == [1, 2, 1, 2, 2]
    assert sorted(run.itl) == [1, 1, 3]
    summary = run.summary()
    assert (summary["preemptions"], summary["recomputed_tokens"]) == (1, 5)


def test_running_requests_that_get_no_turn_stall():
    # Odd steps are the second one's turn, of those who run and then wait: request 1 alone at first, then 0 as well.
    run = serve(at_once([1, 1], output=3), TakingTurns(2, 2), SECOND)
    assert run.token_times(1).tolist() == [1, 2, 4]
    assert run.token_times(0).tolist() == [3, 5, 6]
    assert sorted(run.itl) == [1, 1, 2, 2]
    assert run.steps.running.tolist() == [1, 1, 2, 2, 1, 1]
    assert run.steps.useful.tolist() == [1] * 6


def test_a_subclass_of_continuous_is_asked_whenever_something_changes():
    asked = []

    class Mine(policies.Continuous):
        def schedule(self, state):
            asked.append(state.now)
            return super().schedule(state)

    # Two come at once and one at 2.5 s; all leave at once at 5 s but the third, at 6 s.
    load = Workload([0.0, 0.0, 2.5], [5, 5, 5], [5, 5, 3])
    run = serve(load, Mine(3, 16), SECOND)
    assert run.steps.start.tolist() == [0, 1, 2, 3, 4, 5]
    assert asked == [0, 3, 5]
    asked.clear()
    assert np.array_equal(serve_asking(load, Mine(3, 16), SECOND).e2e, run.e2e)
    assert asked == run.steps.start.tolist()


def test_wait_until_is_gone_and_says_so():
    with pytest.raises(ValueError, match=r"Schedule has no wait_until any more: .* Schedule\(until=\.\.\.\)"):
        Schedule(**{"wait_until": 5.0})
    with pytest.raises(
        ValueError, match="Schedule has tokens, preempt, decodes, until, drafts and reject, and nothing called token"
    ):
        Schedule(**{"token": {}})


def test_a_policy_may_wait_for_a_time_of_its_own():
    def every_ten_seconds(state):
        if state.running or state.now % 10 == 0:
            return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})
        return Schedule(until=math.ceil(state.now / 10) * 10)

    run = serve(Workload([0.0, 1.0, 4.0], [5] * 3, [1] * 3), Own(every_ten_seconds), SECOND)
    assert run.admitted.tolist() == [0, 10, 10]


def test_what_a_policy_sees():
    """Everything about the present, and nothing about how long an answer will be."""
    seen = []

    def look(state):
        here = [(r.index, r.arrival, r.prompt_tokens, r.computed, r.emitted, r.known, r.remaining, r.blocks, r.guess)
                for r in (*state.running, *state.waiting)]  # fmt: skip
        seen.append((state.now, state.free_blocks, state.no_more_arrivals, len(state.running), here))
        assert (state.block_size, state.max_num_seqs, state.max_num_batched_tokens) == (2, 5, 50)
        assert not any("output" in name for request in state.waiting for name in dir(request))
        return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})

    serve(Workload([0.0, 0.5], [4, 3], [3, 1]), Own(look, 5, 50), SECOND, KVCache(10, 2))
    assert seen[0] == (0, 10, False, 0, [(0, 0, 4, 0, 0, 4, 4, 0, None)])
    assert seen[1] == (1, 8, True, 1, [(0, 0, 4, 4, 1, 5, 1, 2, None), (1, 0.5, 3, 0, 0, 3, 3, 0, None)])
    assert seen[2] == (2, 7, True, 1, [(0, 0, 4, 5, 2, 6, 1, 3, None)])


# Rules broken: each once, by a policy that keeps all the others

FOUR = [10, 20, 30, 40]


def all_of(requests):
    return {request: request.remaining for request in requests}


def forever_waiting(state):
    return Schedule(until=state.now + 1e-3)


def take_turns_preempting(state):
    """Whoever runs is sent away for the one who waits, before a token is out: nobody ever gets anywhere."""
    if not state.waiting:
        return Schedule({state.running[0]: 1})
    return Schedule({state.waiting[-1]: 1}, preempt=state.running)


class Stranger:
    def __repr__(self):
        return "Stranger()"


BROKEN = {
    "slots": (lambda s: Schedule(all_of(s.waiting[:3])), "it needs 3 slots, and max_num_seqs is 2"),
    "budget": (lambda s: Schedule(all_of(s.waiting[2:])), "it runs 70 tokens, and max_num_batched_tokens is 64"),
    "blocks": (lambda s: Schedule(all_of(s.waiting[1:3])), "it takes 2 KV blocks more than the cache of 11 has"),
    "unknown request": (
        lambda s: Schedule({Stranger(): 1}),
        r"it runs Stranger\(\), which is neither running nor waiting",
    ),
    "a number for a request": (lambda s: Schedule({0: 1}), "it runs 0, which is neither running nor waiting"),
    "too many tokens": (
        lambda s: Schedule({s.running[0]: 11} if s.running else {s.waiting[0]: 4}),
        r"it gives 11 tokens to Request\(0, .*\), which has 6 left to compute",
    ),
    "no tokens": (lambda s: Schedule({s.waiting[0]: 0}), r"the tokens of Request\(0, .*whole number.*, not 0"),
    "negative tokens": (lambda s: Schedule({s.waiting[0]: -5}), r"the tokens of Request\(0, .*, not -5"),
    "NaN tokens": (lambda s: Schedule({s.waiting[0]: math.nan}), r"the tokens of Request\(0, .*, not nan"),
    "half a token": (lambda s: Schedule({s.waiting[0]: 2.5}), r"the tokens of Request\(0, .*, not 2.5"),
    "True tokens": (lambda s: Schedule({s.waiting[0]: True}), r"the tokens of Request\(0, .*, not True"),
    "tokens in words": (lambda s: Schedule({s.waiting[0]: "all"}), r"the tokens of Request\(0, .*, not 'all'"),
    "a list of tokens": (lambda s: Schedule([s.waiting[0]]), "tokens must be a dict of requests to token counts"),
    "tokens None": (lambda s: Schedule(None), "tokens must be a dict .* not None"),
    "preempts who waits": (
        lambda s: Schedule({s.waiting[0]: 1}, preempt=[s.waiting[0]]),
        r"it preempts Request\(0, .*, which is not running",
    ),
    "preempts one request, no list": (lambda s: Schedule(preempt=s.waiting[0]), "preempt must be a list of requests"),
    "preempts and runs nothing": (
        lambda s: Schedule(preempt=s.running) if s.running else Schedule({s.waiting[0]: 1}),
        "it preempts but runs nothing: give tokens to at least one request",
    ),
    "runs nothing": (
        lambda s: Schedule(),
        "it runs nothing although 0 requests are running and 4 wait, and nothing will change",
    ),
    "runs nothing once somebody runs": (
        lambda s: Schedule() if s.running else Schedule({s.waiting[0]: 1}),
        "it runs nothing although 1 requests are running and 3 wait",
    ),
    "waits forever": (forever_waiting, "it runs nothing although 0 requests are running and 4 wait"),
    "preempts forever": (take_turns_preempting, "it has preempted 20,000 times since the last token left"),
    "waits until the past": (lambda s: Schedule(until=-1.0), "waits until -1.0, which is not later than now"),
    "waits until now": (lambda s: Schedule(until=s.now), "waits until 0.0, which is not later than now"),
    "waits until NaN": (lambda s: Schedule(until=math.nan), "waits until nan, which is not later than now"),
    "waits until True": (lambda s: Schedule(until=True), "until must be a time in seconds or None, not True"),
    "waits until in words": (lambda s: Schedule(until="soon"), "until must be a time in seconds or None, not 'soon'"),
    "holds until NaN": (lambda s: Schedule({s.waiting[0]: 1}, until=math.nan), "until must be a time .* not nan"),
    "decodes in words": (lambda s: Schedule(decodes="all"), "decodes must be True or False, not 'all'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_named(name):
    # The longest request takes all 11 blocks.
    decide, sentence = BROKEN[name]
    with pytest.raises(ValueError, match=rf"^Own.schedule broke the rules in step \d+ \(at .* s\): .*{sentence}"):
        serve(at_once(FOUR), Own(decide, 2, 64), SECOND, KVCache(num_blocks=11, block_size=4))


@pytest.mark.parametrize("answer", [None, {}, [], 5, "all of them"])
def test_something_else_than_a_schedule_is_refused(answer):
    with pytest.raises(ValueError, match=r"Own.schedule must return a Schedule, not .*an idle step is Schedule\(\)"):
        serve(at_once(FOUR), Own(lambda state: answer), SECOND)


def test_a_padded_batch_must_run_as_one():
    def serve_padded(decide):
        policy = Own(decide, 2, 64)
        policy.padded = True
        return serve(at_once([10, 20]), policy, SECOND)

    def first_whole_then(later):
        return lambda s: later(s) if s.running else Schedule(dict.fromkeys(s.waiting, 20))

    with pytest.raises(ValueError, match=r"it gives 10 tokens to Request.*, but prompts are padded to 20"):
        serve_padded(lambda s: Schedule(all_of(s.waiting)))
    with pytest.raises(ValueError, match="it runs 1 of 2 requests, but a padded batch runs as one"):
        serve_padded(first_whole_then(lambda s: Schedule({s.running[0]: 1})))
    with pytest.raises(ValueError, match="it must give exactly 1 token to a decode of a padded batch"):
        serve_padded(first_whole_then(lambda s: Schedule(dict.fromkeys(s.running, 2))))
    with pytest.raises(ValueError, match=r"it preempts .*, but a padded batch runs to its end"):
        serve_padded(first_whole_then(lambda s: Schedule(preempt=s.running)))


def test_an_error_of_the_policy_itself_passes():
    class Oops(Exception):
        pass

    def fail(state):
        if state.running:
            raise Oops("in my own code")
        return Schedule(all_of(state.waiting[:1]))

    with pytest.raises(Oops, match="in my own code"):
        serve(at_once(FOUR), Own(fail), SECOND)
    with pytest.raises(ZeroDivisionError):
        serve(at_once(FOUR), Own(lambda state: 1 / 0), SECOND)


@pytest.mark.parametrize("bad", [None, 0, -1, math.nan, math.inf, 2.5, True, "8"])
def test_a_policy_needs_slots_that_can_be_counted(bad):
    with pytest.raises(ValueError, match=r"Own.max_num_seqs must be a whole number"):
        serve(at_once(FOUR), Own(lambda state: Schedule(), max_num_seqs=bad), SECOND)


@pytest.mark.parametrize("bad", [None, 0, -1, math.nan, -math.inf, 2.5, True, "8"])
def test_a_policy_needs_a_budget_that_can_be_counted(bad):
    with pytest.raises(ValueError, match=r"Own.max_num_batched_tokens must be a whole number"):
        serve(at_once(FOUR), Own(lambda state: Schedule(), max_num_batched_tokens=bad), SECOND)


@pytest.mark.parametrize(("field", "value"), [("emitted", 99), ("index", 7), ("blocks", 50), ("computed", 0)])
def test_a_policy_cannot_change_what_the_engine_knows(field, value):
    class Forger(Policy):
        max_num_seqs, max_num_batched_tokens = 4, 64

        def schedule(self, state):
            tokens = {request: request.remaining for request in (*state.running, *state.waiting)}
            for request in state.running:
                setattr(request, field, value)
            return Schedule(tokens)

    load = Workload(arrival=[0.0, 0.0, 1.0], prompt_tokens=[5, 5, 5], output_tokens=[4, 1, 3])
    with pytest.raises(ValueError, match="changed a request"):
        serve(load, Forger(), steptime.PowerLaw(1, 0, 1, 0.1))
