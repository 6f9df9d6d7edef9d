"""A board: a few requests, a few slots, and the plain engine that takes one step at a time. No widgets here.

    board = Board(GAME)                       # what is to be scheduled
    board.play({"tokens": [[0, 3], [1, 5]]})  # one step, as somebody lays it down; Refused says which rule it breaks
    board.undo()
    board.moves                               # all there is to keep: the same moves give the same board

A move is a `Schedule` in plain data: `tokens` are pairs (row, tokens), `preempt` rows. A policy plays the same board
with `Board(GAME, policy)` and `step()`: hand, rivals and a learner's own function run through the same engine.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course.base import settings
from course.engine.answer import Broken
from course.engine.frame import Frame, Part
from course.engine.plain import PlainEngine
from course.engine.step import Step, StepTime
from course.explore.amounts import singular
from course.memory.kvcache import KVCache
from course.policies.base import Policy, Request, Schedule, State, fresh

MOST_STEPS = 300
"""Of one game: whoever has not finished by then never will."""
MOST_REQUESTS = 9
"""Of one game: each has a digit key."""
HANDS, CARDS = {"tokens", "preempt"}, {"prompt", "guess", "due", "tenant"}
Move = dict[str, list[Any]]
_REQUEST = re.compile(r"Request\((\d+), prompt=\d+, computed=\d+, emitted=\d+\)")
_ON_THE_BOARD = {
    r"and max_num_seqs is (\d+)": r"and the board has \1",
    r"and max_num_batched_tokens is (\d+)": r"and a step has room for \1",
    "preempt a request, or admit fewer": "send a request away, or let fewer in",
    r"preempts (request \d+), which is not running": r"sends \1 away, which has no slot",
    r"preempts (request \d+)": r"sends \1 away",
    "it preempts but runs nothing": "it sends somebody away and runs nothing",
    "neither running nor waiting": "neither in a slot nor in line",
    "raise num_blocks, or end its answer earlier": "it can never be answered here",
}
"""What the engine says of its settings, in the words that stand on a board."""


@dataclass(frozen=True)
class Ask:
    """One request of a game: arrival [s], tokens of its prompt and of its answer.

    guess: what a predictor says of the answer [tokens]. due: seconds after its arrival. tenant: whose it is. prefix:
    hashes of the leading blocks of its prompt, equal where all up to there is equal (a cache with prefix caching).
    """

    arrival: float
    prompt: int
    answer: int
    guess: float | None = None
    due: float | None = None
    tenant: str = ""
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Score:
    """A column of the table; less is better. of: from a board that is over to a number. text: how it is written."""

    name: str
    of: Callable[[Board], float]
    text: str = "{:.1f}"

    def words(self, value: float) -> str:
        """The number as the table shows it: sums of floats that are 107.5 in two orders are written alike."""
        return self.text.format(float(f"{value:.12g}"))

    def said(self, value: float) -> str:
        """Name, number and unit as a sentence has them."""
        name, _, unit = self.name.rstrip("]").partition(" [")
        return f"{name} {self.words(value)}{' ' if unit else ''}{unit}"


def one_second(_step: Step) -> float:
    """A step is a step, whatever is in it."""
    return 1.0


@dataclass(frozen=True, kw_only=True)
class Game:
    """What is played.

    hand: what a player decides besides who is admitted: "tokens", how many each request computes, and "preempt", who
        loses its slot and its blocks. What is not in hand is done as a policy does it: whoever decodes goes on.
    shows: what the cards say besides their number: "prompt", "guess", "due", "tenant".
    scores: the first one counts most. rivals: policies that are seen after the first finished game.
    unit: "steps", where a step is a second, or "ms". span: seconds on the time axis at first.
    best: the best `scores[0]` that there is; a test finds it by trying all.

    Raises ValueError for a game that cannot be played.
    """

    id: str
    title: str
    goal: str
    asks: tuple[Ask, ...]
    max_num_seqs: int
    scores: tuple[Score, ...]
    rivals: Mapping[str, Callable[[], Policy]]
    step_time: StepTime = one_second
    max_num_batched_tokens: float = math.inf
    cache: KVCache | None = None
    hand: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset()
    unit: str = "steps"
    span: float = 16.0
    best: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.asks) <= MOST_REQUESTS:
            raise ValueError(f"game {self.id!r} has {len(self.asks)} requests: give 1 to {MOST_REQUESTS}")
        arrivals = [ask.arrival for ask in self.asks]
        if arrivals != sorted(arrivals):
            raise ValueError(f"game {self.id!r}: give its requests in order of arrival, not at {arrivals}")
        for name, given, known in (("hand", self.hand, HANDS), ("shows", self.shows, CARDS)):
            if unknown := sorted(given - known):
                raise ValueError(f"game {self.id!r}: {name} may hold {sorted(known)}, not {unknown[0]!r}")
        if not self.scores or self.unit not in ("steps", "ms"):
            raise ValueError(f"game {self.id!r} needs a score, and the unit steps or ms, not {self.unit!r}")

    def time(self, seconds: float) -> str:
        """A time with its unit."""
        return f"{1e3 * seconds:.4g} ms" if self.unit == "ms" else f"{seconds:.4g} step{'s' if seconds != 1 else ''}"


class Refused(ValueError):
    """A move, or a policy's answer, that cannot be.

    rule: that of `engine.answer.Broken`, or "move" for data that is no move, "long" for a game that does not end,
    "function" for a policy that raised something else. rows: the requests that it is about.
    """

    def __init__(self, sentence: str, rule: str, rows: Sequence[int] = ()):
        super().__init__(singular(sentence))
        self.rule, self.rows = rule, tuple(rows)


class _Hand(Policy):
    """Holds a hand to the limits of its game; the answers are laid down, and never asked for."""

    def __init__(self, game: Game):
        self.max_num_seqs, self.max_num_batched_tokens = game.max_num_seqs, game.max_num_batched_tokens


class _Noted(Policy):
    """A policy whose last answer is kept, so that a board can show what broke a rule."""

    def __init__(self, policy: Policy):
        self._policy, self.answer = fresh(policy), None
        self.max_num_seqs, self.padded = policy.max_num_seqs, getattr(policy, "padded", False)

    @property
    def max_num_batched_tokens(self) -> float:  # type: ignore[override]
        """The policy's budget, which may be another one with each answer."""
        return getattr(self._policy, "max_num_batched_tokens", math.inf)

    def schedule(self, state: State) -> Any:
        """What the policy answers."""
        self.answer = None  # where it raises, nothing was asked for
        self.answer = self._policy.schedule(state)
        return self.answer


class Board:
    """A game under way. policy: who plays it, in place of moves.

    frames: what each step did to whom; a step without parts that compute is one in which nothing ran. first, answered:
    when each row got its first token, and its whole answer [s]. emitted_at: when tokens reached its reader.
    recomputed: tokens lost by preemption.

    Raises Refused for moves that cannot be.
    """

    def __init__(self, game: Game, policy: Policy | None = None, moves: Sequence[Any] = ()):
        self.game, self.policy = game, policy
        self.moves: list[Move] = []
        self._deal()
        for move in moves:
            self.play(move)

    def _deal(self) -> None:
        game = self.game
        self.player: Any = _Hand(game) if self.policy is None else _Noted(self.policy)
        self.engine = PlainEngine(self.player, game.step_time, game.cache)
        self.requests = [
            self.engine.submit(
                Request(
                    ask.arrival,
                    ask.prompt,
                    guess=ask.guess,
                    tenant=ask.tenant or None,
                    deadline=ask.due,
                    prefix=ask.prefix,
                    prefix_block_size=game.cache.block_size if game.cache and ask.prefix else None,
                ),
                output_tokens=ask.answer,
            )
            for ask in game.asks
        ]
        self.engine.close()  # nobody else will come: a last batch need not be full
        self.engine.let_in()
        self.frames: list[Frame] = []
        self.first: dict[int, float] = {}
        self.answered: dict[int, float] = {}
        self.emitted_at: dict[int, list[float]] = {row: [] for row in range(len(game.asks))}
        self.recomputed = 0

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.engine.now

    @property
    def over(self) -> bool:
        """Whether all have their answers."""
        return self.engine.done

    @property
    def waiting(self) -> list[int]:
        """Rows in line, those that lost their slot first."""
        return [request.index for request in self.engine.waiting]

    @property
    def lanes(self) -> dict[int, int]:
        """From a row to the slot that it holds."""
        return {row: lane for row, lane in self._places() if row not in self.answered}

    def _places(self) -> list[tuple[int, int]]:
        return self.engine.lanes.places([request.index for request in self.engine.running])

    def play(self, raw: Any) -> Frame:
        """One step as it was laid down. Raises Refused, and the board stays as it was."""
        move = self._move_of(raw)
        if len(self.moves) >= MOST_STEPS:
            raise Refused(f"a game has at most {MOST_STEPS} steps: go back, or begin again", "long")
        whole = "tokens" not in self.game.hand
        for row, count in [] if whole else move["tokens"]:
            if row in self.waiting and count > (most := self.requests[row].remaining):
                # The engine would cut it to what it needs, in silence.
                raise Refused(f"request {row + 1} needs {most} tokens, not {count:,}", "chunk", [row])
        schedule = Schedule(
            {self.requests[row]: self.requests[row].remaining if whole else count for row, count in move["tokens"]},
            tuple(self.requests[row] for row in move["preempt"]),
            decodes=whole,
        )
        try:
            frame = self._advance(schedule)
        except Broken as error:
            raise self._refused(error, move["tokens"]) from None
        except ValueError as error:  # the engine has broken off: the same board again
            self._replay(self.moves)
            raise Refused(_in_words(str(error)), "move") from None
        self.moves.append(move)
        return frame

    def step(self) -> Frame:
        """One step of the policy. Raises Refused where it breaks a rule; then the board plays no more."""
        if len(self.frames) >= MOST_STEPS:
            raise Refused(f"it has not finished after {MOST_STEPS} steps", "long")
        try:
            return self._advance(None)
        except Broken as error:
            raise self._refused(error, self.asked()) from None
        except Exception as error:
            kind, said = type(error).__name__, str(error).rstrip(".")
            said = said if isinstance(error, ValueError) else f"{kind}: {said}".rstrip(": ")
            raise Refused(said, "function") from error

    def asked(self) -> list[list[int]]:
        """What the last answer of the policy asked for, as pairs (row, tokens); what cannot be read is left out."""
        tokens = getattr(getattr(self.player, "answer", None), "tokens", None)
        pairs = tokens.items() if isinstance(tokens, Mapping) else ()
        return [[one.index, count] for one, count in pairs if isinstance(one, Request) and type(count) is int]

    def undo(self) -> None:
        """The board before the last move."""
        self._replay(self.moves[:-1])

    def _replay(self, moves: Sequence[Move]) -> None:
        self.moves = []
        self._deal()
        for move in moves:
            self.play(move)

    def _advance(self, schedule: Schedule | None) -> Frame:
        engine, start, line = self.engine, self.engine.now, tuple(self.waiting)
        computed = {request.index: request.computed for request in engine.running}
        frame = engine.step(schedule)
        if frame is None:  # nothing ran: time has passed, and whoever has a slot stood still
            parts = tuple(Part(lane, row, 0, 0, None, "") for row, lane in self._places())
            frame = Frame(start, engine.now, parts, line, ())
        self.recomputed += sum(computed[row] for row in frame.preempted)
        padded = engine.limits.padded
        for row in frame.sent:
            self.first.setdefault(row, frame.end)
        for part in frame.parts:
            self.emitted_at[part.row] += [] if padded else [frame.end] * part.emitted
        for row in frame.sent if padded else [part.row for part in frame.parts if part.ended]:
            self.answered[row] = frame.end
        self.frames.append(frame)
        return frame

    def _move_of(self, raw: Any) -> Move:
        """A move from outside as plain, bounded data."""
        if not isinstance(raw, dict):
            raise Refused("a move says who gets tokens and who is sent away", "move")
        tokens, preempt = raw.get("tokens", []), raw.get("preempt", [])
        if not all(isinstance(part, list) and len(part) <= len(self.requests) for part in (tokens, preempt)):
            raise Refused("a move names each request once at most", "move")
        if not all(isinstance(pair, list) and len(pair) == 2 and all(type(v) is int for v in pair) for pair in tokens):
            raise Refused("tokens are pairs of a request and a number of tokens", "move")
        rows = [row for row, _ in tokens]
        for row in [*rows, *preempt]:
            if type(row) is not int or not 0 <= row < len(self.requests):
                raise Refused(f"there is no request {settings.quote(row)}", "move")
        if len(set(rows)) < len(rows):
            raise Refused("a request gets its tokens once in a step", "move", rows)
        if preempt and "preempt" not in self.game.hand:
            raise Refused("in this game nobody is sent away", "move", preempt)
        return {"tokens": [list(pair) for pair in tokens], "preempt": list(preempt)}

    def _refused(self, error: Broken, asked: Sequence[Sequence[int]]) -> Refused:
        """The engine's own sentence, in the words of the board."""
        sentence = str(error).partition("): ")[2] or str(error)
        rows = [request.index for request in error.requests]
        if error.rule == "slots":  # of all that would run, those for whom there is none
            joining = [row for row, _ in asked if row not in self.lanes]
            rows = joining[max(0, self.game.max_num_seqs - len(self.lanes)) :]
        return Refused(_in_words(sentence), error.rule, rows)


def _in_words(sentence: str) -> str:
    """A sentence of the engine with requests by the number on their cards, and settings as the board names them."""
    sentence = _REQUEST.sub(lambda match: f"request {int(match[1]) + 1}", sentence)
    for engine, board in _ON_THE_BOARD.items():
        sentence = re.sub(engine, board, sentence)
    return sentence


def played(game: Game, policy: Policy) -> tuple[Board, Refused | None]:
    """A policy from the first to the last step, and how it broke off, if it did."""
    board = Board(game, policy)
    try:
        while not board.over:
            board.step()
    except Refused as refused:
        return board, refused
    return board, None
