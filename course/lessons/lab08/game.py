"""The game of lab 08: a pool that is too small for five answers, admitted whole or by what is there."""

from course import policies
from course.explore import scores
from course.explore.board import Ask, Game, Score
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Schedule, State

SLOTS, PROMPT, MOST = 4, 8, 12
POOL = KVCache(12, block_size=4)
FIVE = ((0, 10), (0, 12), (2, 2), (2, 5), (3, 5))  # when each comes, and tokens of its answer


class WholeAnswers(Policy):
    """Admits whoever has room for its prompt and for the longest answer that there can be. Nobody is ever preempted."""

    def __init__(self, max_num_seqs: int, num_blocks: int, longest: int):
        self.max_num_seqs, self.together = max_num_seqs, num_blocks // longest

    def schedule(self, state: State) -> Schedule:
        """All who decode go on, and newcomers join while the pool could hold everybody's longest answer."""
        room = max(0, min(state.free_slots, self.together - len(state.running)))
        return Schedule({request: request.remaining for request in state.waiting[:room]}, decodes=True)


def whole_answers() -> Policy:
    """The last token of an answer is never kept."""
    return WholeAnswers(SLOTS, POOL.num_blocks, int(POOL.blocks_for(PROMPT + MOST - 1)))


BLOCKS = Game(
    id="blocks",
    title="A pool that is too small",
    goal=f"{POOL.num_blocks} blocks of {POOL.block_size} tokens. Prompts have {PROMPT} tokens, answers {MOST} at most. "
    "Who grows needs more blocks; if none is free, send somebody away: it is computed again. "
    "Answer early, and compute little twice.",
    asks=tuple(Ask(float(at), PROMPT, answer) for at, answer in FIVE),
    max_num_seqs=SLOTS,
    cache=POOL,
    scores=(
        Score("mean time to an answer [steps]", scores.mean_answer, "{:.1f}"),
        Score("tokens computed again", scores.recomputed, "{:.0f}"),
    ),
    rivals={"room for whole answers": whole_answers, "while blocks are free": lambda: policies.Continuous(SLOTS, 64)},
    hand=frozenset({"preempt"}),
    best=7.4,
)
