"""Lab 07's exercise "share the step": a policy made of one function, how an answer is tried, and known wrong turns."""

from collections.abc import Callable, Mapping

import numpy as np

from course.engine.serving import serve
from course.policies import FromFunction, Request, State
from course.steptime import PowerLaw
from course.workload import Workload

Decide = Callable[[State, int], Mapping[Request, int]]


CAP, SLOTS, BUDGET = 5, 5, 12


def share_result(decide: Decide) -> dict[str, list[float]]:
    """First and last token of sixteen requests under the policy `decide`, in seconds: what the exercise compares.

    Whole-number step times, so that a learner can follow the run by hand. Raises ValueError as `serve` does.
    """
    load = Workload(
        arrival=np.array([0, 0, 4, 5, 5, 9, 10, 30, 31, *[50] * 7]),
        prompt_tokens=np.array([3, 4, 40, 30, 25, 3, 7, 2, 23, *[2] * 7]),
        output_tokens=np.array([20, 9, 3, 2, 4, 8, 3, 12, 2, *[3] * 7]),
    )
    policy = FromFunction(lambda state: decide(state, CAP), SLOTS, BUDGET)
    run = serve(load, policy, PowerLaw(t0=1, c=0, alpha=1))
    return {"first token at [s]": run.first_computed.tolist(), "answered at [s]": run.response.tolist()}


def share(state: State, cap: int) -> dict[Request, int]:
    """Decodes first; what is left of the budget goes to prompts, at most `cap` tokens each, those that run first."""
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = int(state.max_num_batched_tokens) - len(tokens)
    free = state.max_num_seqs - len(state.running)
    for request in (*state.running, *state.waiting[:free]):
        chunk = min(request.remaining, cap, left)
        if request not in tokens and chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


def without_cap(state: State, cap: int) -> dict[Request, int]:
    """The first prompt takes all that is left."""
    return share(state, int(state.max_num_batched_tokens))


def prompts_first(state: State, cap: int) -> dict[Request, int]:
    """Decodes get what prompts leave."""
    tokens: dict[Request, int] = {}
    left = int(state.max_num_batched_tokens)
    free = state.max_num_seqs - len(state.running)
    prompts = [request for request in state.running if request.remaining > 1]
    decodes = [request for request in state.running if request.remaining == 1]
    for request in (*prompts, *state.waiting[:free], *decodes):
        chunk = min(request.remaining, cap, left)
        if chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


def forgets_the_budget(state: State, cap: int) -> dict[Request, int]:
    """Every prompt gets its cap."""
    free = state.max_num_seqs - len(state.running)
    return {request: min(request.remaining, cap) for request in (*state.running, *state.waiting[:free])}


def forgets_the_slots(state: State, cap: int) -> dict[Request, int]:
    """Admits whoever waits, while there is budget."""
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = int(state.max_num_batched_tokens) - len(tokens)
    for request in (*state.running, *state.waiting):
        chunk = min(request.remaining, cap, left)
        if request not in tokens and chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


def forgets_the_waiting(state: State, cap: int) -> dict[Request, int]:
    """Nobody is let in while somebody runs."""
    turn = state.running or state.waiting[: state.max_num_seqs]
    tokens: dict[Request, int] = {}
    left = int(state.max_num_batched_tokens)
    for request in sorted(turn, key=lambda request: request.remaining > 1):
        chunk = min(request.remaining, cap, left)
        if chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


def cap_for_all(state: State, cap: int) -> dict[Request, int]:
    """All prompts together get `cap` tokens."""
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = min(cap, int(state.max_num_batched_tokens) - len(tokens))
    free = state.max_num_seqs - len(state.running)
    for request in (*state.running, *state.waiting[:free]):
        chunk = min(request.remaining, left)
        if request not in tokens and chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


def zero_chunks(state: State, cap: int) -> dict[Request, int]:
    """Hands out chunks of 0 tokens when the budget is gone."""
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = int(state.max_num_batched_tokens) - len(tokens)
    free = state.max_num_seqs - len(state.running)
    for request in (*state.running, *state.waiting[:free]):
        if request not in tokens:
            tokens[request] = min(request.remaining, cap, left)
            left -= tokens[request]
    return tokens


def whole_prompt_again(state: State, cap: int) -> dict[Request, int]:
    """Takes the size of the prompt for what is left of it."""
    tokens = {request: 1 for request in state.running if request.remaining == 1}
    left = int(state.max_num_batched_tokens) - len(tokens)
    free = state.max_num_seqs - len(state.running)
    for request in (*state.running, *state.waiting[:free]):
        chunk = min(request.prompt_tokens, cap, left)
        if request not in tokens and chunk > 0:
            tokens[request] = chunk
            left -= chunk
    return tokens


MISTAKES = (
    without_cap, prompts_first, forgets_the_budget, forgets_the_slots, forgets_the_waiting, cap_for_all, zero_chunks,
    whole_prompt_again,
)  # fmt: skip
