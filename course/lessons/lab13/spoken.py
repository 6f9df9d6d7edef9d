"""The small model speaks with drafts: of its own draft model, or of the longest suffix that was seen before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from course import lm
from course.lm.prompts import held_out_prompts
from course.lm.tokenizer import Tokenizer
from course.policies import Continuous, Drafting

ALL = held_out_prompts()
DRAFT, SUFFIX = "draft model", "longest suffix"
LONGEST = 3  # tokens of a suffix
LINES = 9  # of words that are shown
Piece = tuple[str, str]


def _first(kind: str) -> int:
    return next(place for place, prompt in enumerate(ALL) if prompt.kind == kind)


PROMPTS = {"a story": _first("story"), "a dialogue": _first("dialogue"), "a count": _first("count"),
           "how many?": _first("how many"), "an addition": _first("add")}  # fmt: skip


@dataclass(frozen=True)
class Spoken:
    """pieces: (text, "accepted", "rejected" or "own"). steps: of the model. tokens: of the answer, its end too."""

    pieces: tuple[Piece, ...]
    drafted: int
    accepted: int
    steps: int
    tokens: int


@cache
def models() -> tuple[lm.LanguageModel, lm.LanguageModel]:
    """The model and its draft."""
    return lm.load(), lm.load("draft")


def speak(prompt: str, draft: str, k: int, seen: int) -> Spoken:
    """The answer to one of PROMPTS with k drafts a step. seen: answers to other prompts that the suffixes come from."""
    place = PROMPTS[prompt]
    if draft == SUFFIX:
        return by_suffix(place, k, seen)
    return by_model(place, k)


@cache
def by_model(place: int, k: int) -> Spoken:
    """The draft model drafts, the model verifies; both run here."""
    model, small = models()
    policy = Drafting(Continuous(1, 512), k)
    run = lm.serve_live(lm.Questions.at_once([ALL[place].turns]), policy, model, draft=small, waits=False)
    answer = run.step_time.answers[0]  # type: ignore[union-attr]
    tokens, at, said = answer.tokens, answer.prompt_tokens, model.tokenizer
    pieces: list[Piece] = []
    for where, drafted, right in answer.drafted:
        pieces += [(said.decode([token]), "own") for token in tokens[at:where]]
        pieces += [(said.decode([token]), "accepted") for token in drafted[:right]]
        pieces += [(said.decode([token]), "rejected") for token in drafted[right:]]
        at = where + right
    pieces += [(said.decode([token]), "own") for token in tokens[at:]]
    found = run.summary()
    return Spoken(
        tuple(pieces),
        int(found["drafted_tokens"]),
        int(found["accepted_tokens"]),
        len(run.steps),
        len(tokens) - answer.prompt_tokens,
    )


# Without a model


@cache
def tokenizer() -> Tokenizer:
    """The model's, without its weights."""
    return Tokenizer(lm.loading.ROOM / "tokenizer.json")


@cache
def answers() -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """(prompt, answer) of each committed prompt in tokens: what the model says there."""
    said = tokenizer()
    return tuple((tuple(said.prompt(one.turns)), (*said.encode(one.answer), said.end)) for one in ALL)


class Suffixes:
    """What followed each run of up to LONGEST tokens, and how often."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, ...], Counter[int]] = {}

    def copy(self) -> Suffixes:
        """The same suffixes, to which others can be added."""
        found = Suffixes()
        found._next = {suffix: after.copy() for suffix, after in self._next.items()}
        return found

    def read(self, tokens: Sequence[int], fresh: int) -> None:
        """The last `fresh` tokens are new."""
        for place in range(len(tokens) - fresh, len(tokens)):
            for long in range(1, min(LONGEST, place) + 1):
                self._next.setdefault(tuple(tokens[place - long : place]), Counter())[tokens[place]] += 1

    def drafts(self, tokens: Sequence[int], k: int) -> list[int]:
        """Up to k tokens: each the one that followed the longest suffix most often; fewer where none is known."""
        known, found = list(tokens), list[int]()
        while len(found) < k:
            suffixes = (self._next.get(tuple(known[-long:])) for long in range(LONGEST, 0, -1))
            after = next((one for one in suffixes if one), None)
            if after is None:
                break
            found.append(after.most_common(1)[0][0])
            known.append(found[-1])
        return found


def by_suffix(place: int, k: int, seen: int) -> Spoken:
    """The same with drafts from suffixes: no model drafts, and the known answer says what is accepted."""
    return with_suffixes(place, k, of_others(place, seen))


def of_others(place: int, seen: int) -> Suffixes:
    """The suffixes of so many other prompts with their answers."""
    table_ = Suffixes()
    for other in _others(place, seen):
        whole = [*answers()[other][0], *answers()[other][1]]
        table_.read(whole, len(whole))
    return table_


def with_suffixes(place: int, k: int, table_: Suffixes) -> Spoken:
    """The same with these suffixes, to which those of the prompt and its answer are added."""
    prompt, answer = answers()[place]
    known, decode = list(prompt), tokenizer().decode
    table_.read(known, len(known))
    pieces: list[Piece] = []
    drafted = accepted = steps = 0
    while len(known) < len(prompt) + len(answer):
        left = answer[len(known) - len(prompt) :]
        drafts = table_.drafts(known, k) if steps else []  # the step of the prompt has none
        right = next((i for i, token in enumerate(drafts) if i >= len(left) - 1 or token != left[i]), len(drafts))
        pieces += [(decode([token]), "accepted") for token in drafts[:right]]
        pieces += [(decode([token]), "rejected") for token in drafts[right:]]
        pieces.append((decode([left[right]]), "own"))
        known += left[: right + 1]
        table_.read(known, right + 1)
        drafted, accepted, steps = drafted + len(drafts), accepted + right, steps + 1
    return Spoken(tuple(pieces), drafted, accepted, steps, len(answer))


def _others(place: int, seen: int) -> list[int]:
    """So many other prompts, spread over all kinds."""
    order = np.random.default_rng(13).permutation(len(ALL)).tolist()
    return [other for other in order if other != place][:seen]


@cache
def suffix_acceptance(seen: int, k: int = 4) -> float:
    """The share of drafts that are accepted, over all committed prompts."""
    found = [by_suffix(place, k, seen) for place in range(len(ALL))]
    return sum(one.accepted for one in found) / max(1, sum(one.drafted for one in found))


def rows(found: Spoken) -> list[tuple[str, str]]:
    """The table beside the words."""
    share = f"{found.accepted / found.drafted:.0%}" if found.drafted else "-"
    return [
        ("", "this answer"),
        ("tokens", f"{found.tokens}"),
        ("steps of the model", f"{found.steps}"),
        ("tokens drafted", f"{found.drafted}"),
        ("of these accepted", f"{found.accepted} ({share})"),
    ]


def measured(k: int = 8, repeats: int = 3) -> dict[str, tuple[float, float]]:
    """Milliseconds of CPU time a token, without drafts and with k: the median of some turns on this machine."""
    model, small = models()
    plain = Continuous(1, 512)
    found: dict[str, tuple[float, float]] = {}
    for kind in ("a story", "how many?"):
        asked = lm.Questions.at_once([ALL[PROMPTS[kind]].turns])
        times: list[list[float]] = [[], []]
        for _ in range(repeats):
            for place, (policy, draft) in enumerate(((plain, None), (Drafting(plain, k), small))):
                run = lm.serve_live(asked, policy, model, draft=draft, waits=False, clock=time.process_time)
                times[place].append(1e3 * sum(run.seconds) / int(run.workload.output_tokens.sum()))
        found[kind] = (float(np.median(times[0])), float(np.median(times[1])))
    return found


def measured_here() -> str:
    """What both answers take here, in CPU time."""
    said = (f"{kind} {plain:.1f} and {fast:.1f} ms" for kind, (plain, fast) in measured().items())
    return f"CPU time a token, without drafts and with 8 [measured]: {'; '.join(said)}"
