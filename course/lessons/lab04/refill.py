"""The exercise "write the refill": how an answer is tried, the known wrong turns, and an answer that drives the engine.

A refill is a function of three things: `running` and `waiting`, {request: tokens it must compute before its next output
token}, in order of arrival, and the number of slots. It returns {request: tokens that it computes in the next step}.
"""

from collections.abc import Callable, Mapping

from course.policies import FromFunction, Request, State

Tokens = dict[int, int]
Refill = Callable[[Tokens, Tokens, int], Tokens]

PROBES: tuple[tuple[Tokens, Tokens, int], ...] = (
    ({1: 1, 3: 1}, {5: 40, 6: 512, 7: 8}, 4),
    ({}, {1: 30, 2: 20, 3: 64, 4: 7, 5: 12}, 4),
    ({1: 1, 2: 1, 4: 1}, {6: 100, 7: 50, 8: 9, 9: 3, 10: 11}, 3),
    ({2: 1, 9: 1}, {}, 8),
    ({2: 1}, {3: 300}, 2),
)


def refill(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Everybody who runs goes on, and newcomers take the free slots, whole prompts at once."""
    tokens = dict(running)
    free = slots - len(running)
    for request in list(waiting)[:free]:
        tokens[request] = waiting[request]
    return tokens


def only_when_empty(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Refills only when the whole batch has gone."""
    return dict(running) or {request: waiting[request] for request in list(waiting)[:slots]}


def forgets_the_running(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Gives tokens to newcomers alone."""
    return {request: waiting[request] for request in list(waiting)[: slots - len(running)]}


def ignores_the_slots(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Admits everybody."""
    return running | waiting


def counts_only_newcomers(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Takes all slots for free."""
    return running | {request: waiting[request] for request in list(waiting)[:slots]}


def stops_for_newcomers(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Lets the running stand still while somebody joins."""
    return forgets_the_running(running, waiting, slots) or dict(running)


def one_at_a_time(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Admits one newcomer a step."""
    tokens = dict(running)
    for request in list(waiting)[: min(slots - len(running), 1)]:
        tokens[request] = waiting[request]
    return tokens


def one_token_each(running: Tokens, waiting: Tokens, slots: int) -> Tokens:
    """Feeds prompts one token a step."""
    return dict.fromkeys(refill(running, waiting, slots), 1)


def as_policy(function: Refill, slots: int) -> FromFunction:
    """Return the function as a policy of the engine, which calls requests by their place in the workload, from 1."""

    def decide(state: State) -> Mapping[Request, int]:
        known = {request.index + 1: request for request in (*state.running, *state.waiting)}
        running, waiting = (
            {request.index + 1: request.remaining for request in group} for group in (state.running, state.waiting)
        )
        tokens = function(running, waiting, slots)
        strangers = [name for name in tokens if name not in known] if isinstance(tokens, Mapping) else [tokens]
        if strangers:
            raise ValueError(f"the refill returned {strangers[0]!r}, which is no request that runs or waits")
        return {known[name]: count for name, count in tokens.items()}

    return FromFunction(decide, max_num_seqs=slots)
