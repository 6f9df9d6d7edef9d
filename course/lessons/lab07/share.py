"""Lab 07's exercise "share the step": how an answer is tried, known wrong turns, an answer that drives the engine.

A share is a function of four things: `decoding`, the requests that decode, as a list; `prompts`, {request: tokens of
its prompt that are left}, first those that run and then those that wait; the token budget; and the cap for one prompt.
It returns {request: tokens that it computes in the next step}.
"""

from collections.abc import Callable, Mapping

from course.policies import FromFunction, Request, State

Tokens = dict[int, int]
Share = Callable[[list[int], Tokens, int, int], Tokens]

PROBES: tuple[tuple[list[int], Tokens, int, int], ...] = (
    ([1, 3], {5: 40, 6: 7, 7: 30}, 12, 5),
    ([1], {2: 3, 4: 9}, 40, 8),
    ([1, 2, 3, 4], {9: 30}, 4, 8),
    ([], {5: 100, 6: 100}, 64, 64),
    ([1, 2], {3: 2, 4: 2, 5: 2, 8: 20}, 16, 5),
    ([4, 7, 9], {}, 8, 4),
    ([1, 2], {3: 30, 4: 9}, 10, 5),
    ([1, 3, 5], {7: 8, 9: 31, 11: 23}, 12, 27),
)


def share(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Decodes first; what is left of the budget goes to prompts, at most `cap` tokens each."""
    tokens = dict.fromkeys(decoding, 1)
    for request, left in prompts.items():
        chunk = min(left, cap, budget - sum(tokens.values()))
        if chunk > 0:
            tokens[request] = chunk
    return tokens


def without_cap(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """The first prompt takes all that is left."""
    return share(decoding, prompts, budget, budget)


def prompts_first(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Decodes get what prompts leave."""
    tokens = share([], prompts, budget, cap)
    return tokens | dict.fromkeys(decoding[: budget - sum(tokens.values())], 1)


def forgets_the_budget(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Every prompt gets its cap."""
    return dict.fromkeys(decoding, 1) | {request: min(left, cap) for request, left in prompts.items()}


def forgets_the_decodes(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Prompts share the whole budget, and the decodes come on top."""
    return dict.fromkeys(decoding, 1) | share([], prompts, budget, cap)


def leaves_out_the_decodes(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Only prompts get tokens."""
    return share([], prompts, budget - len(decoding), cap)


def cap_for_all(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """All prompts together get `cap` tokens."""
    return share(decoding, prompts, min(budget, len(decoding) + cap), cap)


def zero_chunks(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Hands out chunks of 0 tokens when the budget is gone."""
    return dict.fromkeys(prompts, 0) | share(decoding, prompts, budget, cap)


def never_cuts(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """A prompt waits unless its whole chunk fits into what is left of the budget."""
    tokens = dict.fromkeys(decoding, 1)
    for request, left in prompts.items():
        if min(left, cap) <= budget - sum(tokens.values()):
            tokens[request] = min(left, cap)
    return tokens


def one_prompt(decoding: list[int], prompts: Tokens, budget: int, cap: int) -> Tokens:
    """Only the first prompt joins the decodes."""
    return share(decoding, dict(list(prompts.items())[:1]), budget, cap)


def as_policy(function: Share, max_num_seqs: int, budget: int, cap: int) -> FromFunction:
    """An engine policy that asks the function before every step. Requests are numbered in the order in which they came.

    The engine raises ValueError where the answer is no dictionary, or breaks the budget.
    """
    numbers: dict[Request, int] = {}

    def decide(state: State) -> Mapping[Request, int]:
        free = max_num_seqs - len(state.running)
        there = (*state.running, *state.waiting[:free])
        for request in there:
            numbers.setdefault(request, len(numbers))
        decoding = [numbers[request] for request in state.running if request.remaining == 1]
        prompts = {numbers[request]: request.remaining for request in there if numbers[request] not in decoding}
        tokens = function(decoding, prompts, budget, cap)
        if not isinstance(tokens, Mapping):
            raise ValueError("your function returns no dictionary: return {request: tokens}")
        by_number = {numbers[request]: request for request in there}
        unknown = [number for number in tokens if number not in by_number]
        if unknown:
            raise ValueError(f"request {unknown[0]!r} is neither in decoding nor in prompts")
        return {by_number[number]: count for number, count in tokens.items()}

    return FromFunction(decide, max_num_seqs, budget)
