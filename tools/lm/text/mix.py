"""Exchanges of every kind in given shares, put together to conversations; what training never sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from random import Random

from tools.lm.text.exchange import Exchange
from tools.lm.text.lists import knowledge, listing, order, spell
from tools.lm.text.numbers import add, count, how_many, older
from tools.lm.text.stories import dialogue, story
from tools.lm.text.talk import chat, fact, greeting, unknown

KINDS: dict[str, Callable[[Random], Exchange]] = {
    "add": add,
    "count": count,
    "older": older,
    "how many": how_many,
    "list": listing,
    "spell": spell,
    "word order": order,
    "knowledge": knowledge,
    "story": story,
    "dialogue": dialogue,
    "chat": chat,
    "fact": fact,
    "greeting": greeting,
    "unknown": unknown,
}
# Shares in the training text: more of what is hard to learn.
TRAINING = (11, 8, 7, 11, 8, 7, 10, 9, 9, 6, 6, 7, 1, 4)
# Shares in a serving load: answers of one word beside long ones, so that their lengths in tokens have a coefficient of
# variation of about 1, as those of chats have.
SERVING = (4, 12, 3, 3, 10, 5, 6, 5, 24, 16, 3, 4, 3, 2)
# First words that are written small by somebody in a hurry; names are not among them.
COMMON = (
    "Add Bye Can Count Does Explain Give Good Goodbye Hello Help Hi How Is Let List My Name Please Say Spell Take Tell "
    "Thank Thanks Translate Turn What When Where Which Who Why Would Write"
)
NEVER_HELD_OUT = "greeting"
LONGEST_CONVERSATION = 8  # exchanges


def normal(prompt: str) -> str:
    """The prompt without what two ways to type it may differ in: capitals and the last sign."""
    return prompt.lower().rstrip(".?!")


def held_out(exchange: Exchange) -> bool:
    """Whether an exchange is kept out of training: one in forty, told by a hash of all that was said."""
    if exchange.kind == NEVER_HELD_OUT:
        return False
    said = "\n".join([*(prompt for prompt, _ in exchange.earlier), exchange.prompt])
    return int.from_bytes(sha256(normal(said).encode()).digest()[:4], "big") % 40 == 0


def exchanges(seed: int, *, shares: tuple[int, ...] = SERVING, held: bool = True) -> Iterator[Exchange]:
    """Endless exchanges of all kinds, either all held out (greetings excepted) or none. The same for the same seed."""
    draw = Random(f"{seed} {held}")
    names = tuple(KINDS)
    while True:
        make = KINDS[draw.choices(names, shares)[0]]
        exchange = make(draw)
        while held_out(exchange) != held and exchange.kind != NEVER_HELD_OUT:
            exchange = make(draw)
        yield exchange


def of_kind(kind: str, seed: int, number: int, *, tries: int = 200_000) -> list[Exchange]:
    """Up to `number` different held-out exchanges of one kind; fewer where the kind has not more."""
    draw = Random(f"{kind} {seed}")
    found: dict[tuple, Exchange] = {}
    for _ in range(tries):
        if len(found) >= number:
            break
        exchange = KINDS[kind](draw)
        if held_out(exchange) or kind == NEVER_HELD_OUT:
            found.setdefault((exchange.earlier, exchange.prompt), exchange)
    return list(found.values())


def careless(prompt: str, draw: Random) -> str:
    """The prompt as somebody in a hurry types it: small first letter unless it is a name, or no last sign."""
    first, _, rest = prompt.partition(" ")
    if draw.random() < 0.7 and first in COMMON.split():
        prompt = f"{first.lower()} {rest}" if rest else first.lower()
    return prompt.rstrip(".?!") if draw.random() < 0.7 else prompt


def conversation(source: Iterator[Exchange], draw: Random) -> list[tuple[str, str]]:
    """Prompts and answers of one training conversation: half have one exchange, the others two to eight in a row."""
    number = 1 if draw.random() < 0.5 else min(LONGEST_CONVERSATION, 2 + int(draw.expovariate(0.5)))
    said: list[tuple[str, str]] = []
    for _ in range(number):
        exchange = next(source)
        hurry = draw.random() < 0.15
        for prompt, answer in (*exchange.earlier, (exchange.prompt, exchange.answer)):
            said.append((careless(prompt, draw) if hurry else prompt, answer))
    return said


def conversations(seed: int) -> Iterator[list[tuple[str, str]]]:
    """Endless training conversations, without anything held out."""
    draw, source = Random(f"conversation {seed}"), exchanges(seed, shares=TRAINING, held=False)
    while True:
        yield conversation(source, draw)
