"""The plain loop one step at a time: answers made by hand, refusals that change nothing, and what a Frame shows."""

import numpy as np
import pytest
from hypothesis import given

from course import KVCache, Workload, policies, steptime
from course.engine.answer import Broken
from course.engine.plain import PlainEngine
from course.engine.serving import Engine, finish
from course.policies import Request, Schedule
from tests.engine.test_plain import KINDS, differences, plainly
from tests.helpers.own_policies import Own
from tests.helpers.strategies import examples, fresh

SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)
STRANGER = Request(0.0, 5)
LOAD = Workload([0.0] * 4, [4, 11, 3, 3], [4, 2, 2, 2])
CACHE = KVCache(4, 4)


def policy(decide=None):
    return Own(decide, max_num_seqs=2, max_num_batched_tokens=10)


def at_work():
    """Two slots, a budget of 10 and 4 blocks of 4, 1 of them free: 0 decodes, 5 tokens of 1 are there, 2 and 3 wait."""
    engine = PlainEngine(policy(), SECOND, CACHE)
    engine.follow(LOAD)
    engine.close()
    engine.let_in()
    engine.step(begin(engine))
    return engine


def begin(engine):
    return Schedule({engine.waiting[0]: 4, engine.waiting[1]: 5})


def place(engine):
    """All that a refusal must leave as it was."""
    return (
        engine.now, engine.steps, engine.answered, engine.pool.free, list(engine.clock), list(engine.idle),
        [(each.index, each.computed, each.emitted, each.blocks) for each in (*engine.running, *engine.waiting)],
        [each.index for each in engine.decoding], [each.index for each in engine.prefilling],
        [list(column) for column in (engine.notes.tokens, engine.notes.chunks, engine.notes.stays)],
    )  # fmt: skip


# what is answered -> the rule that it breaks, and the rows that this hits
REFUSED = {
    "nothing": (lambda e: Schedule(), "idle", [0, 1, 2, 3]),
    "waiting for yesterday": (lambda e: Schedule(until=0.5), "idle", []),
    "no dict": (lambda e: Schedule([1]), "kind", []),
    "a stranger": (lambda e: Schedule({STRANGER: 1}), "unknown", [-1]),
    "a number for a request": (lambda e: Schedule({2: 1}), "unknown", []),
    "two tokens for a decode": (lambda e: Schedule({e.running[0]: 2}), "chunk", [0]),
    "more than is left": (lambda e: Schedule({e.running[1]: 7}), "chunk", [1]),
    "half a token": (lambda e: Schedule({e.running[1]: 0.5}), "chunk", [1]),
    "no token": (lambda e: Schedule({e.running[1]: 0}), "chunk", [1]),
    "a third slot": (lambda e: Schedule({e.waiting[0]: 3}, decodes=True), "slots", [0, 2]),
    "over the budget": (
        lambda e: Schedule({e.running[1]: 11}, preempt=[e.running[1]], decodes=True),
        "budget",
        [0, 1],
    ),
    "over the blocks": (lambda e: Schedule({e.running[1]: 6}, decodes=True), "blocks", [1]),
    "preempting one that waits": (lambda e: Schedule(preempt=[e.waiting[0]], decodes=True), "preempt", [2]),
    "preempting one twice": (lambda e: Schedule(preempt=[e.running[1]] * 2, decodes=True), "preempt", [1]),
    "preempting and nothing else": (lambda e: Schedule(preempt=[e.running[1]]), "idle", [1]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_its_rule_and_changes_nothing(name):
    answer, rule, rows = REFUSED[name]
    engine = at_work()
    before = place(engine)
    with pytest.raises(Broken, match=r"^Own.schedule broke the rules in step 1 \(at 1 s\): ") as refusal:
        engine.step(answer(engine))
    assert refusal.value.rule == rule
    assert sorted(request.index for request in refusal.value.requests) == rows
    assert place(engine) == before

    engine.step(Schedule({engine.running[1]: 3}, decodes=True))  # and the game goes on
    assert [(each.index, each.computed) for each in engine.running] == [(0, 5), (1, 8)]


@pytest.mark.parametrize("name", REFUSED)
def test_the_fast_loop_refuses_by_the_same_rule(name):
    answer, rule, _ = REFUSED[name]

    def decide(state):  # which names waiting and running as an engine does
        return begin(state) if not state.running else answer(state)

    engine = Engine(policy(decide), SECOND, CACHE)
    engine.follow(LOAD)
    with pytest.raises(Broken, match=r"^Own.schedule broke the rules in step 1 \(at 1 s\): ") as refusal:
        engine.run()
    assert refusal.value.rule == rule


def test_a_game_by_hand():
    """Every move is a Schedule. The policy could have made it, so the run is that of a policy that does."""
    moves = [
        lambda e: Schedule({e.waiting[0]: 4, e.waiting[1]: 5}),
        lambda e: Schedule({e.waiting[0]: 3}, preempt=[e.running[1]], decodes=True),
        lambda e: Schedule(decodes=True),
        lambda e: Schedule({e.waiting[-1]: 3}, decodes=True),
    ]
    engine = PlainEngine(policy(), SECOND, CACHE)
    engine.follow(LOAD)
    engine.close()
    engine.let_in()
    frames = [engine.step(move(engine)) for move in moves]
    assert [frame.waiting for frame in frames] == [(2, 3), (1, 3), (1, 3), (1,)]
    assert [frame.preempted for frame in frames] == [(), (1,), (), ()]
    assert [[(part.lane, part.row, part.prefill, part.emitted) for part in frame.parts] for frame in frames] == [
        [(0, 0, 4, 1), (1, 1, 5, 0)],
        [(0, 0, 0, 1), (1, 2, 3, 1)],
        [(0, 0, 0, 1), (1, 2, 0, 1)],
        [(0, 0, 0, 1), (1, 3, 3, 1)],
    ]
    assert [frame.sent for frame in frames] == [(0,), (2,), (), (3,)]
    assert [part.ended for part in frames[3].parts] == ["length", ""]
    assert engine.answered == 2 and [each.index for each in engine.running] == [3]
    while not engine.done:
        turn = engine.running or engine.waiting[:1]
        engine.step(Schedule({request: min(10, request.remaining) for request in turn}))

    turns = iter(moves)

    def again(state):
        move = next(turns, None)
        if move is not None:
            return move(state)
        return Schedule({request: min(10, request.remaining) for request in (state.running or state.waiting[:1])})

    other = Engine(policy(again), SECOND, CACHE)
    other.follow(LOAD)
    assert not differences(finish(engine), finish(other))


def test_without_a_schedule_nobody_is_asked_while_nobody_is_there():
    asked = []

    def decide(state):
        asked.append(state.now)
        return Schedule({request: request.remaining for request in (*state.running, *state.waiting)})

    engine = PlainEngine(Own(decide), SECOND)
    engine.follow(Workload([5.0], [3], [2]))
    engine.close()
    assert engine.step() is None and engine.now == 5 and not asked
    assert [each.index for each in engine.waiting] == [0]
    assert engine.step().start == 5 and asked == [5.0]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_say_what_the_run_says(kind):
    @given(KINDS[kind]())
    @examples(12)
    def told(case):
        engine = PlainEngine(fresh(case.policy), case.step_time, case.cache)
        engine.follow(case.load)
        engine.close()
        frames = []
        while not engine.done:
            frames += [frame for frame in [engine.step()] if frame]
        run, steps = plainly(case), plainly(case).steps
        assert [frame.start for frame in frames] == steps.start.tolist()
        assert [frame.end for frame in frames] == steps.end.tolist()
        assert [len(frame.parts) for frame in frames] == steps.running.tolist()
        if not run.retries.any():  # those told to come again are nowhere to be seen
            assert [len(frame.waiting) for frame in frames] == steps.queue.tolist()
        assert [sum(part.emitted for part in frame.parts) for frame in frames] == steps.useful.tolist()
        assert [len(frame.preempted) for frame in frames] == steps.preemptions.tolist()
        for frame in frames:
            lanes = [part.lane for part in frame.parts]
            assert lanes == sorted(set(lanes)) and max(lanes) < case.policy.max_num_seqs
            assert all(part.padding == 0 for part in frame.parts) or run.batch_answers
        sent = {row: frame.end for frame in frames for row in frame.sent}
        first = run.response if run.batch_answers else run.first_computed
        assert np.array_equal([sent.get(row, np.nan) for row in range(len(run))], first, equal_nan=True)

    told()


def test_padding_in_a_batch():
    engine = PlainEngine(policies.Static(2), SECOND)
    engine.follow(Workload([0.0, 0.0], [3, 5], [1, 3]))
    engine.close()
    frames = [engine.step() for _ in range(3)]
    shown = [[(part.prefill, part.padding, part.emitted, part.ended) for part in frame.parts] for frame in frames]
    assert shown == [
        [(3, 2, 1, "length"), (5, 0, 1, "")],
        [(0, 1, 0, "length"), (0, 0, 1, "")],
        [(0, 1, 0, "length"), (0, 0, 1, "length")],
    ]
    assert [frame.sent for frame in frames] == [(), (), (0, 1)]
