"""Games for the board, one of each kind: slots, orders, a token budget, KV blocks, deadlines, tenants."""

from __future__ import annotations

from functools import cache
from itertools import combinations

from course import policies
from course.engine.step import Step
from course.explore import scores
from course.explore.board import Ask, Game, Score
from course.lessons.lab09.game import FirstOut
from course.memory.kvcache import KVCache
from course.policies.base import State


def one(_step: Step) -> float:
    """A step is a second, whatever is in it."""
    return 1.0


def by_tokens(step: Step) -> float:
    """20 ms, and 1 ms for each token of a prompt."""
    return 0.020 + 0.001 * step.prefill_tokens


class EarliestDue(policies.Continuous):
    """Continuous batching that admits first what is due first."""

    def queue(self, state: State, waiting):
        return sorted(waiting, key=lambda request: request.due)


ANSWER = Score("mean time to an answer [steps]", scores.mean_answer, "{:.2f}")
WASTED = Score("wasted slot-steps", scores.wasted, "{:.0f}")
STEPS = Score("steps", scores.steps, "{:.0f}")
SIX = ((0, 2), (0, 7), (0, 3), (1, 6), (3, 1), (4, 2))  # arrival, answer

SLOTS = Game(
    id="slots", title="Be the scheduler", goal="Two slots, six questions.", max_num_seqs=2, step_time=one,
    asks=tuple(Ask(float(at), 1, answer, guess=answer) for at, answer in SIX),
    scores=(ANSWER, WASTED, STEPS), best=14 / 3,
    rivals={"static": lambda: policies.Static(2), "continuous": lambda: policies.Continuous(2, 64)},
)  # fmt: skip
ORDER = Game(  # 06: several prompts in a small budget, where order and chunks are chosen
    id="order", title="Whose prompt first?", goal="12 tokens a step.", max_num_seqs=3, step_time=one,
    max_num_batched_tokens=12, hand=frozenset({"tokens"}), shows=frozenset({"prompt"}),
    asks=(Ask(0.0, 30, 2), Ask(0.0, 6, 4), Ask(0.0, 4, 3), Ask(1.0, 10, 2)),
    scores=(Score("mean time to a first token [steps]", scores.mean_first, "{:.2f}"), ANSWER),
    rivals={"in order": lambda: policies.Continuous(3, 12), "shortest first": lambda: policies.ShortestFirst(3, 12)},
)  # fmt: skip
BUDGET = Game(
    id="budget", title="Hand out tokens", goal="100 tokens a step.", max_num_seqs=3, step_time=by_tokens, unit="ms",
    max_num_batched_tokens=100, hand=frozenset({"tokens"}), shows=frozenset({"prompt"}), span=0.5,
    asks=(Ask(0.0, 8, 12), Ask(0.0, 8, 10), Ask(0.05, 90, 3), Ask(0.15, 10, 4)),
    scores=(Score("longest gap [ms]", lambda board: 1e3 * scores.longest_gap(board), "{:.0f}"),
            Score("mean TTFT [ms]", lambda board: 1e3 * scores.mean_first(board), "{:.0f}")),
    rivals={"whole prompts": lambda: policies.Continuous(3, 100),
            "chunks of 20": lambda: policies.Continuous(3, 100, long_prefill_token_threshold=20)},
)  # fmt: skip
BLOCKS = Game(  # 09: whom to send away
    id="blocks", title="Whom to send away?", goal="8 blocks of 4 tokens.", max_num_seqs=3, step_time=one,
    cache=KVCache(8, block_size=4), hand=frozenset({"preempt"}), shows=frozenset({"prompt"}),
    asks=(Ask(0.0, 8, 14), Ask(0.0, 12, 5), Ask(0.0, 4, 9), Ask(3.0, 8, 3)),
    scores=(ANSWER, Score("tokens computed again", scores.recomputed, "{:.0f}")),
    rivals={"last in goes": lambda: policies.Continuous(3, 64), "first in goes": lambda: FirstOut(3)},
)  # fmt: skip
DUE = Game(  # 15: deadlines on the cards
    id="due", title="Who is in a hurry?", goal="Each answer has a deadline.", max_num_seqs=2, step_time=one,
    asks=tuple(Ask(float(at), 1, n, guess=n, due=due) for (at, n), due in zip(SIX, (9, 7, 12, 14, 4, 5), strict=True)),
    scores=(Score("answers too late", scores.late, "{:.0f}"), ANSWER), shows=frozenset({"guess", "due"}),
    rivals={"in order": lambda: policies.Continuous(2, 64), "earliest due first": lambda: EarliestDue(2, 64)},
)  # fmt: skip
TENANTS = Game(  # 17: two tenants, of whom one asks more
    id="tenants", title="Whose turn?", goal="Two tenants share two slots.", max_num_seqs=2, step_time=one,
    asks=tuple(Ask(float(at), 1, n, guess=n, tenant=who) for (at, n), who in zip(SIX, "AAABAB", strict=True)),
    scores=(Score("mean time of the slower tenant [steps]", scores.worst_tenant, "{:.2f}"), ANSWER),
    shows=frozenset({"guess", "tenant"}),
    rivals={"in order": lambda: policies.Continuous(2, 64),
            "shortest first": lambda: policies.ShortestFirst(2, 64, by="guess")},
)  # fmt: skip
GAMES = {game.id: game for game in (SLOTS, ORDER, BUDGET, BLOCKS, DUE, TENANTS)}


def best_answer(game: Game) -> float:
    """The least mean time to an answer of a game of slots, by trying every admission.

    Written without the engine: a step lasts one, a prompt is computed in the step in which its first token leaves.
    """
    asks, slots = game.asks, game.max_num_seqs

    @cache
    def least(time: int, running: tuple, waiting: tuple) -> float:
        waiting = tuple(sorted({*waiting, *(row for row, ask in enumerate(asks) if ask.arrival == time)}))
        all_came = all(ask.arrival <= time for ask in asks)
        if not running and not waiting and all_came:
            return 0.0
        found = float("inf")
        for count in range(min(slots - len(running), len(waiting)) + 1):
            for new in combinations(waiting, count):
                here = (*running, *((asks[row].answer, row) for row in new))
                if not here and all_came:
                    continue
                done = sum(left == 1 for left, _ in here) * (time + 1)
                rest = tuple(sorted((left - 1, row) for left, row in here if left > 1))
                left_over = tuple(row for row in waiting if row not in new)
                found = min(found, done + least(time + 1, rest, left_over))
        return found

    return (least(0, (), ()) - sum(ask.arrival for ask in asks)) / len(asks)
