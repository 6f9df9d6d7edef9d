"""Lab 06's exercise "fill a step": how an answer is tried, known wrong turns, an answer that drives the engine.

A fill is a function of four things: `decoding`, the requests that decode, as a list; `prompts`, {request: tokens of its
prompt that are left}, oldest first; the token budget of a step; and the share of it that prompts may take. It returns
{request: tokens that it computes in the next step}.
"""

from collections.abc import Callable, Mapping

from course.policies import FromFunction, Request, State

Tokens = dict[int, int]
Fill = Callable[[list[int], Tokens, int, float], Tokens]

PROBES: tuple[tuple[list[int], Tokens, int, float], ...] = (
    ([1, 3], {5: 9, 6: 4, 7: 30}, 40, 0.5),
    ([1], {2: 3, 4: 9}, 40, 1.0),
    ([1, 2, 3, 4, 6, 8], {9: 30}, 8, 0.5),
    ([], {5: 100, 6: 100}, 64, 0.25),
    ([1, 2, 3, 4], {9: 30}, 4, 1.0),
    ([4, 7, 9], {}, 8, 0.5),
    ([1, 2], {3: 5, 4: 20, 5: 7}, 32, 0.5),
    ([1], {2: 9, 3: 4}, 20, 0.5),
    ([1], {2: 30}, 7, 0.5),
    ([1, 2, 3], {4: 30}, 5, 1.0),
)


def fill(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Decodes first; prompts in order, split where they must be, up to their share and what the decodes leave."""
    tokens = dict.fromkeys(decoding, 1)
    room = min(int(share * budget), budget - len(decoding))
    for request, left in prompts.items():
        if room > 0:
            tokens[request] = min(left, room)
            room -= tokens[request]
    return tokens


def whole_budget(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Prompts take all that the decodes leave."""
    return fill(decoding, prompts, budget, 1.0)


def prompts_first(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Decodes wait while there is a prompt."""
    return fill([], prompts, budget, share) or dict.fromkeys(decoding, 1)


def share_each(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Each prompt gets the share of its own."""
    tokens, room = dict.fromkeys(decoding, 1), budget - len(decoding)
    for request, left in prompts.items():
        chunk = min(left, int(share * budget), room)
        if chunk > 0:
            tokens[request], room = chunk, room - chunk
    return tokens


def never_splits(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """A prompt runs only if all of it fits."""
    tokens, room = dict.fromkeys(decoding, 1), min(int(share * budget), budget - len(decoding))
    for request, left in prompts.items():
        if left <= room:
            tokens[request], room = left, room - left
    return tokens


def one_prompt(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Only the oldest prompt joins."""
    return fill(decoding, dict(list(prompts.items())[:1]), budget, share)


def forgets_the_decodes(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """The decodes come on top of the budget."""
    return dict.fromkeys(decoding, 1) | fill([], prompts, budget, share)


def zero_chunks(decoding: list[int], prompts: Tokens, budget: int, share: float) -> Tokens:
    """Hands out 0 tokens when the room is gone."""
    return dict.fromkeys(decoding, 1) | dict.fromkeys(prompts, 0) | fill(decoding, prompts, budget, share)


def as_policy(function: Fill, max_num_seqs: int, budget: int, share: float) -> FromFunction:
    """An engine policy that asks the function before every step. Requests are numbered in order of arrival, from 1.

    The engine raises ValueError where the answer is no dictionary, or breaks the budget.
    """

    def decide(state: State) -> Mapping[Request, int]:
        there = [*state.running, *state.waiting[: max_num_seqs - len(state.running)]]
        by_number = {request.index + 1: request for request in there}
        decoding = [request.index + 1 for request in state.running if request.remaining == 1 and request.emitted]
        prompts = {number: one.remaining for number, one in by_number.items() if number not in decoding}
        tokens = function(decoding, prompts, budget, share)
        if not isinstance(tokens, Mapping):
            raise ValueError("your function returns no dictionary: return {request: tokens}")
        strangers = [number for number in tokens if number not in by_number]
        if strangers:
            raise ValueError(f"request {strangers[0]!r} is neither in decoding nor in prompts")
        return {by_number[number]: count for number, count in tokens.items()}

    return FromFunction(decide, max_num_seqs, budget)
