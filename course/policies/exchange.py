"""One who waits takes the slot of one who runs, which no order of the queue does."""

from course.policies.base import Request, Schedule, State


def exchanged(state: State, answer: Schedule, first: Request, last: Request, budget: float) -> Schedule:
    """The answer of a step with `first`, who waits, in the slot of `last`, who runs and is preempted.

    budget: tokens of the step. It is the same answer where what `first` computes does not fit, and where not all that
    decode go on.
    """
    if not answer.decodes:
        return answer
    tokens = {request: count for request, count in answer.tokens.items() if request is not last}
    decodes = state.decodes - (last not in state.prefilling)
    chunk = min(first.remaining, budget - sum(tokens.values()) - decodes)
    plan = state.plan()  # what all decodes need is taken
    plan.release(last)
    for request, count in tokens.items():
        plan.take(request, count)
    if chunk < 1 or not plan.take(first, int(chunk), if_fit=int(chunk)):
        return answer
    return Schedule({**tokens, first: int(chunk)}, preempt=[last], decodes=answer.decodes)
