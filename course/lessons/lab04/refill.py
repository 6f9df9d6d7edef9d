"""The exercise "write the refill": a policy made of one function, how an answer is tried, and the known wrong turns."""

from collections.abc import Callable, Mapping

import numpy as np

from course.engine.serving import serve
from course.policies import FromFunction, Request, State
from course.steptime import PowerLaw
from course.workload import Workload

Decide = Callable[[State], Mapping[Request, int]]


def refill_result(decide: Decide) -> dict[str, list[float]]:
    """When twelve requests are answered by the policy `decide`, in seconds: what the exercise compares.

    Whole-number step times, so that a learner can follow the run by hand. Raises ValueError as `serve` does.
    """
    load = Workload(
        arrival=np.array([0, 0, 0, 0, 0, 0, 3, 3, 9, 9, 40, 41]),
        prompt_tokens=np.array([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]),
        output_tokens=np.array([12, 2, 7, 3, 2, 9, 4, 1, 6, 2, 3, 2]),
    )
    run = serve(load, FromFunction(decide, max_num_seqs=4), PowerLaw(t0=1, c=0, alpha=1, prefill=0.2))
    return {"answered at [s]": run.response.tolist()}


def refill(state: State) -> dict[Request, int]:
    """Everybody who runs goes on, and newcomers take the free slots, whole prompts at once."""
    tokens = {request: request.remaining for request in state.running}
    free = state.max_num_seqs - len(state.running)
    for request in state.waiting[:free]:
        tokens[request] = request.remaining
    return tokens


def only_when_empty(state: State) -> dict[Request, int]:
    """Refills only when the whole batch has gone."""
    turn = state.running or state.waiting[: state.max_num_seqs]
    return {request: request.remaining for request in turn}


def forgets_the_running(state: State) -> dict[Request, int]:
    """Gives tokens to newcomers alone."""
    free = state.max_num_seqs - len(state.running)
    return {request: request.remaining for request in state.waiting[:free]}


def ignores_the_slots(state: State) -> dict[Request, int]:
    """Admits everybody."""
    return {request: request.remaining for request in (*state.running, *state.waiting)}


def counts_only_newcomers(state: State) -> dict[Request, int]:
    """Takes all slots for free."""
    return {request: request.remaining for request in (*state.running, *state.waiting[: state.max_num_seqs])}


def stops_for_newcomers(state: State) -> dict[Request, int]:
    """Lets the running stand still while somebody joins."""
    free = state.max_num_seqs - len(state.running)
    turn = state.waiting[:free] or state.running
    return {request: request.remaining for request in turn}


def one_at_a_time(state: State) -> dict[Request, int]:
    """Admits one newcomer a step."""
    tokens = {request: request.remaining for request in state.running}
    if state.waiting and len(state.running) < state.max_num_seqs:
        tokens[state.waiting[0]] = state.waiting[0].remaining
    return tokens


def one_token_each(state: State) -> dict[Request, int]:
    """Feeds prompts one token a step."""
    free = state.max_num_seqs - len(state.running)
    return dict.fromkeys((*state.running, *state.waiting[:free]), 1)
