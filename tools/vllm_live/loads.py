"""What vLLM is asked, under which settings: four servers, and the loads that each of them answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from course import lm
from course.lm.prompts import held_out_prompts
from course.policies import Continuous

BLOCK = 32  # vLLM's attention on a CPU takes multiples of it
CONTEXT = 512


@dataclass(frozen=True)
class Server:
    """One start of `vllm serve`. blocks: as --num-gpu-blocks-override; vLLM keeps one of them for itself."""

    name: str
    policy: Continuous
    blocks: int
    caching: bool


@dataclass(frozen=True)
class Ask:
    """One request. due: seconds after the load begins. answer: what the course's own model says, in tokens."""

    due: float
    prompt: list[int]
    answer: list[int]


@dataclass(frozen=True)
class Load:
    """Requests for one server. title: as tables call it. make: the requests, the same every time."""

    name: str
    server: str
    title: str
    make: Callable[[lm.LanguageModel], list[Ask]]


SERVERS = (
    Server("wide", Continuous(8, 256), 170, caching=True),
    Server("wide_uncached", Continuous(8, 256), 170, caching=False),
    Server("four_slots", Continuous(4, 256), 170, caching=False),
    Server("small_pool", Continuous(4, 64), 32, caching=False),
)


def questions(model: lm.LanguageModel) -> list[Ask]:
    """24 of the committed prompts, short ones, 12 a second."""
    chosen = Random(1).sample([one for one in held_out_prompts() if len(one.turns) == 1], 24)
    return _asked(model, [one.turns for one in chosen], rate=12.0, seed=1)


def cut(model: lm.LanguageModel) -> list[Ask]:
    """Conversations of 80 to 200 tokens before a question that has a short answer: a budget of 64 cuts them."""
    draw = Random(2)
    return _asked(model, [_conversation(model, draw, draw.randint(80, 200), longest=15) for _ in range(16)], 5.0, 2)


def preempted(model: lm.LanguageModel) -> list[Ask]:
    """Conversations of about 200 tokens before a request for a story or a dialogue: answers outgrow a small pool."""
    draw = Random(3)
    turns = [_conversation(model, draw, draw.randint(180, 220), shortest=65) for _ in range(20)]
    return _asked(model, turns, rate=8.0, seed=3)


def prefix(model: lm.LanguageModel) -> list[Ask]:
    """One long conversation before 24 different questions."""
    longest = max(held_out_prompts(), key=lambda one: len(one.turns))
    start = (*longest.turns, longest.answer)
    chosen = Random(4).sample([one for one in held_out_prompts() if len(one.turns) == 1], 24)
    return _asked(model, [(*start, *one.turns) for one in chosen], rate=6.0, seed=4)


def long_prompt(model: lm.LanguageModel) -> list[Ask]:
    """Eighteen short questions with long answers, and among them three conversations of about 430 tokens."""
    draw = Random(5)
    chats = draw.sample([one for one in held_out_prompts() if len(one.turns) == 1 and len(one.answer) > 120], 18)
    turns = [one.turns for one in chats]
    for place in (15, 10, 5):
        turns.insert(place, _conversation(model, draw, 430, longest=15))
    return _asked(model, turns, rate=6.0, seed=5)


LOADS = (
    Load("questions_8", "wide", "24 questions, 8 slots", questions),
    Load("prefix_on", "wide", "a shared prefix, caching on", prefix),
    Load("prefix_off", "wide_uncached", "a shared prefix, caching off", prefix),
    Load("long_256", "wide_uncached", "long prompts among chats, budget 256", long_prompt),
    Load("questions_4", "four_slots", "24 questions, 4 slots", questions),
    Load("cut_64", "small_pool", "a budget of 64 cuts prompts", cut),
    Load("preempted", "small_pool", "a pool that preempts", preempted),
    Load("long_64", "small_pool", "long prompts among chats, budget 64", long_prompt),
)


def _asked(model: lm.LanguageModel, turns: Sequence[Sequence[str]], rate: float, seed: int) -> list[Ask]:
    """The requests with Poisson arrivals, and the answers that NumPy gives."""
    draw, due, asked = Random(seed), 0.0, []
    for one, words in zip(turns, model.answers(turns), strict=True):
        answer = [*model.tokenizer.encode(words), model.tokenizer.end]
        asked.append(Ask(round(due, 4), model.prompt(one), answer))
        due += draw.expovariate(rate)
    return asked


def _conversation(
    model: lm.LanguageModel, draw: Random, tokens: int, *, shortest: int = 0, longest: int = 10**9
) -> tuple[str, ...]:
    """Exchanges of the committed prompts up to about so many tokens, then one with an answer of a given length."""
    single = [one for one in held_out_prompts() if len(one.turns) == 1]
    last = draw.choice([one for one in single if shortest <= len(model.tokenizer.encode(one.answer)) <= longest])
    turns: tuple[str, ...] = last.turns
    for one in draw.sample(single, len(single)):  # all that fit, so that it ends close to `tokens`
        longer = (*one.turns, one.answer, *turns)
        if len(model.tokenizer.prompt(longer)) <= tokens:
            turns = longer
    return turns
