"""Settings changed after construction are checked when serving starts, and change nothing of what was served."""

import math

import numpy as np
import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Policy, Schedule
from tests.helpers.asking import serve_asking

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
LOAD = Workload([0.0, 0.0, 1.0], [5, 6, 7], [3, 4, 1])
NO_NUMBER = [None, math.nan, math.inf, -1, "8", True, 10**400]

MAKE = {
    "Continuous": lambda: policies.Continuous(2, 8),
    "Static": lambda: policies.Static(2),
    "Dynamic": lambda: policies.Dynamic(2, 0.5),
}
CHANGED = [
    *[(name, "max_num_seqs", bad) for name in MAKE for bad in [*NO_NUMBER, 0, 2.5]],
    *[("Continuous", "max_num_batched_tokens", bad) for bad in [*NO_NUMBER, 0, 2.5, 1]],
    *[("Continuous", "long_prefill_token_threshold", bad) for bad in [*NO_NUMBER, 2.5]],
    *[("Dynamic", "max_queue_delay", bad) for bad in [*NO_NUMBER, 1e11]],
    *[("Continuous", name, 1) for name in ("enable_chunked_prefill", "scheduler_reserve_full_isl")],
]


@pytest.mark.parametrize("run", [serve, serve_asking])
@pytest.mark.parametrize(("kind", "name", "bad"), CHANGED, ids=lambda value: str(value)[:30])
def test_a_policy_is_checked_again(run, kind, name, bad):
    policy = MAKE[kind]()
    setattr(policy, name, bad)
    with pytest.raises(ValueError, match=rf"{name}(=| must be )"):
        run(LOAD, policy, SECOND)


@pytest.mark.parametrize(("kind", "name"), [*[(kind, "max_num_seqs") for kind in MAKE], ("Dynamic", "max_queue_delay")])
def test_a_setting_that_is_gone(kind, name):
    policy = MAKE[kind]()
    delattr(policy, name)
    with pytest.raises(ValueError, match=f"{name} must be .*, not None"):
        serve(LOAD, policy, SECOND)


def test_a_policy_changed_to_something_else_that_can_be():
    policy = policies.Continuous(2, 8)
    policy.max_num_seqs, policy.max_num_batched_tokens = 1, 64.0
    assert np.array_equal(serve(LOAD, policy, SECOND).e2e, serve(LOAD, policies.Continuous(1, 64), SECOND).e2e)


@pytest.mark.parametrize("run", [serve, serve_asking])
@pytest.mark.parametrize("bad", [*NO_NUMBER[:4], 1e11, "1"])
@pytest.mark.parametrize("name", ["t0", "c", "alpha", "prefill", "context", "pairs"])
def test_a_power_law_is_checked_again(run, name, bad):
    step_time = steptime.PowerLaw(t0=1, c=1, alpha=1, prefill=1, context=1, pairs=1)
    setattr(step_time, name, bad)
    with pytest.raises(ValueError, match=f"^{name} must be "):
        run(LOAD, policies.Static(2), step_time)


@pytest.mark.parametrize("name", ["launch", "weights", "per_token", "per_logits", "per_context", "per_pair"])
def test_a_roofline_is_checked_again(name):
    step_time = steptime.Roofline("llama-3.1-8b", "H100")
    setattr(step_time, name, math.nan)
    with pytest.raises(ValueError, match=f"^{name} must be a finite number"):
        serve(LOAD, policies.Static(2), step_time)


def test_a_run_keeps_the_limits_it_was_served_with():
    policy = policies.Continuous(2, 8)
    run, other = (serve(LOAD, policy, SECOND, KVCache(20)) for _ in range(2))
    before = run.summary()
    policy.max_num_seqs, policy.max_num_batched_tokens = 200, 800
    after = other.summary()
    assert (after["slot_utilisation"], after["token_utilisation"]) == (
        before["slot_utilisation"],
        before["token_utilisation"],
    )


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize(("name", "value", "budget"), [("max_num_seqs", 2, 40), ("max_num_batched_tokens", 4, 4)])
def test_what_is_changed_once_the_engine_is_made(name, value, budget, caching):
    """Slots were read when it was made; the budget is read again with each answer."""
    runs = []
    for loop in (Engine, PlainEngine):
        engine = loop(policies.Continuous(4, 40), SECOND, KVCache(40, 4, prefix_caching=caching))
        engine.follow(Workload(np.arange(20.0), [9] * 20, [7] * 20, prefix=[("a",)] * 20, prefix_block_size=4))
        setattr(engine.policy, name, value)
        runs.append(finish(engine))
        assert (runs[-1].steps.budget == budget).all()
    assert runs[0].response.tolist() == runs[1].response.tolist()


def test_a_schedule_put_into_a_policy_object_counts():
    """Not only one written into a class of its own: the fast loops only know what the built-in ones say."""

    def one_at_a_time(state):
        turn = (state.running or state.waiting)[:1]
        return Schedule({request: request.remaining for request in turn})

    policy = policies.Continuous(2, 8)
    policy.schedule = one_at_a_time
    assert serve(LOAD, policy, SECOND).steps.running.max() == 1
    policy.schedule = lambda state: None
    with pytest.raises(ValueError, match=r"Continuous.schedule must return a Schedule, not None"):
        serve(LOAD, policy, SECOND)


def test_a_batch_that_is_not_to_be_padded_is_not():
    policy = policies.Static(2)
    policy.padded = False
    run = serve(LOAD, policy, SECOND)
    assert run.steps.prefill_tokens.sum() == 5 + 6 + 7  # the shorter prompt computes what it has, not 6
    assert np.array_equal(run.steps.wasted, np.zeros(len(run.steps)))


def test_seconds_put_into_a_step_time_are_looked_at():
    step_time = steptime.PowerLaw(t0=1, c=0, alpha=1)
    step_time.seconds = lambda *sums: math.nan
    with pytest.raises(ValueError, match="the step time must be a finite number"):
        serve(LOAD, policies.Continuous(2, 8), step_time)
    step_time.seconds = lambda *sums: 2.0
    with pytest.raises(ValueError, match="decode_line and seconds must agree"):
        serve(LOAD, policies.Continuous(2, 8), step_time)


class Bare:
    """A policy that only has what it must have."""

    max_num_seqs = 4

    def __init__(self, decide):
        self.schedule = decide


def whole_prompts(state):
    return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})


def test_a_policy_need_not_inherit_from_policy():
    class Inherits(Policy):
        max_num_seqs = 4

        def schedule(self, state):
            return whole_prompts(state)

    bare, inherits = (serve(LOAD, policy, SECOND) for policy in (Bare(whole_prompts), Inherits()))
    assert np.array_equal(bare.e2e, inherits.e2e)
    assert not bare.batch_answers and bare.limits.max_num_batched_tokens == math.inf
    assert bare.summary()["requests"] == 3


@pytest.mark.parametrize("bad", [None, 1, "yes", math.nan])
def test_padded_is_true_or_false(bad):
    policy = Bare(whole_prompts)
    policy.padded = bad
    with pytest.raises(ValueError, match=r"Bare.padded must be True or False, not "):
        serve(LOAD, policy, SECOND)


@pytest.mark.parametrize("far", [10**400, 1e300, math.inf])
def test_waiting_very_long_ends_at_the_next_arrival_or_is_refused(far):
    def for_three(state):
        return whole_prompts(state) if state.running or len(state.waiting) == 3 else Schedule(until=far)

    assert serve(LOAD, Bare(for_three), SECOND).admitted.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"broke the rules in step 0 .*nothing will change by waiting"):
        serve(LOAD, Bare(lambda state: Schedule(until=far)), SECOND)


@pytest.mark.parametrize("past", [-(10**400), -1, 0, math.nan])
def test_waiting_for_the_past_is_refused(past):
    with pytest.raises(ValueError, match=r"waits until .*, which is not later than now"):
        serve(LOAD, Bare(lambda state: Schedule(until=past)), SECOND)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def test_an_error_without_words_passes_as_it_is():
    def fail(state):
        raise Silent

    with pytest.raises(Silent):
        serve(LOAD, Bare(fail), SECOND)


def test_an_error_without_words_in_a_step_time_is_named_by_its_kind():
    class Wordless(Silent, ValueError):
        pass

    class Model(steptime.StepTimeModel):
        def seconds(self, *sums):
            return 1.0

        def decode_line(self, decodes):
            raise Wordless

    with pytest.raises(ValueError, match=r"decode_line must return .* for 2 decodes: Wordless"):
        serve(LOAD, policies.Static(2), Model())


class Mute:
    def __repr__(self):
        raise RuntimeError("no words")

    def __eq__(self, other):
        raise RuntimeError("no comparing")

    def __hash__(self):
        return 1


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Schedule(preempt=[Mute()]), "it preempts something of type Mute that cannot be shown, which is not running"),
        (Schedule(preempt=[np.zeros(2)]), r"it preempts array\(\[0., 0.\]\), which is not running"),
        (Schedule(tokens={Mute(): 1}), "it runs something of type Mute that cannot be shown, which is neither"),
        (Schedule(tokens=Mute()), "tokens must be a dict .* something of type Mute"),
        (Schedule(until=Mute()), "until must be a time in seconds or None, not something of type Mute"),
        (Mute(), "schedule must return a Schedule, not something of type Mute that cannot be shown"),
    ],
)
def test_answers_that_cannot_even_be_shown(answer, sentence):
    with pytest.raises(ValueError, match=sentence):
        serve(LOAD, Bare(lambda state: answer), SECOND)
