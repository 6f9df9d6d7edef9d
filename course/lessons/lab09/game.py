"""The game of lab 09: seven blocks for four requests, and somebody has to go."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Request, Schedule, State

SLOTS, BUDGET = 3, 64
POOL = KVCache(7, block_size=4)
FOUR = ((0, 12, 6), (0, 12, 7), (2, 4, 3), (3, 8, 3))  # when each comes, tokens of its prompt and of its answer


class FirstOut(Policy):
    """Whenever blocks are short, the request goes that was admitted first."""

    def __init__(self, max_num_seqs: int):
        self.max_num_seqs = max_num_seqs

    def schedule(self, state: State) -> Schedule:
        """All who run go on, as far as there are blocks; then newcomers in order."""
        running, gone = list(state.running), list[Request]()
        plan = state.plan(decodes=False)
        while running:
            plan = state.plan(decodes=False)
            for request in gone:
                plan.release(request)
            if all(plan.take(request, request.remaining, if_fit=request.remaining) for request in running):
                break
            gone.append(running.pop(0))
        tokens = {request: request.remaining for request in running}
        for request in () if gone else state.waiting[: state.free_slots]:
            if not plan.take(request, request.remaining, if_fit=request.remaining):
                break
            tokens[request] = request.remaining
        return Schedule(tokens, tuple(gone))


VICTIM = Game(
    id="victim",
    title="Whom to send away?",
    goal=f"{POOL.num_blocks} blocks of {POOL.block_size} tokens, {SLOTS} slots. Who grows needs more blocks; if none "
    "is free, send somebody away: all of it is computed again, in one step.",
    asks=tuple(Ask(float(at), prompt, answer) for at, prompt, answer in FOUR),
    max_num_seqs=SLOTS,
    cache=POOL,
    scores=(
        Score("mean time to an answer [steps]", scores.mean_answer, "{:.2f}"),
        Score("tokens computed again", scores.recomputed, "{:.0f}"),
    ),
    rivals={
        "last in goes": lambda: policies.Continuous(SLOTS, BUDGET),
        "first in goes": lambda: FirstOut(SLOTS),
        "least computed goes": lambda: policies.FewestComputed(SLOTS, BUDGET),
    },
    hand=frozenset({"preempt"}),
    shows=frozenset({"prompt"}),
    best=6.5,
)
