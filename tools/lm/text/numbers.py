"""Exchanges about numbers: sums, counting, who is older, how often a word is in a list."""

from __future__ import annotations

from random import Random

from tools.lm.text.exchange import Exchange
from tools.lm.text.words import GROUPS, NAMES, NUMBERS, sentence


def add(draw: Random) -> Exchange:
    """A sum or a difference of two numbers up to 99; the result is never below zero."""
    if draw.random() < 0.6:
        a, b = draw.randint(0, 50), draw.randint(0, 50)
        prompt = draw.choice(("What is {} plus {}?", "How much is {} and {} together?", "Add {} and {}.")).format(a, b)
        return Exchange("add", prompt, f"{a + b}.", 101)
    a = draw.randint(1, 99)
    b = draw.randint(0, a)
    prompt = draw.choice((f"What is {a} minus {b}?", f"Take {b} away from {a}.", f"How much is {a} less {b}?"))
    return Exchange("add", prompt, f"{a - b}.", 100)


def count(draw: Random) -> Exchange:
    """Counting up, down, in steps or in words. Who guesses is given the first number and must guess where to end."""
    form = draw.randrange(4)
    if form == 0:
        first = draw.randint(1, 30)
        last = first + draw.randint(2, 30)
        numbers, prompt = range(first, last + 1), f"Count from {first} to {last}."
    elif form == 1:
        first = draw.randint(8, 50)
        last = first - draw.randint(2, min(first - 1, 25))
        numbers, prompt = range(first, last - 1, -1), f"Count down from {first} to {last}."
    elif form == 2:
        step = draw.choice((2, 3, 5, 10))
        first = step * draw.randint(0, 5)
        last = first + step * draw.randint(3, 10)
        numbers, prompt = range(first, last + 1, step), f"Count from {first} to {last} in steps of {step}."
    else:
        first = draw.randint(1, 12)
        last = draw.randint(first + 2, 20)
        words = [NUMBERS[i] for i in range(first, last + 1)]
        prompt = f"Count in words from {NUMBERS[first]} to {NUMBERS[last]}."
        return Exchange("count", prompt, sentence(", ".join(words)), 18)
    return Exchange("count", prompt, ", ".join(map(str, numbers)) + ".", (29, 24, 8)[form])


def older(draw: Random) -> Exchange:
    """Two people, two ages: who is older, or younger."""
    (one, two), (x, y) = draw.sample(NAMES, 2), draw.sample(range(2, 90), 2)
    word = draw.choice(("older", "younger"))
    answer = one if (x > y) == (word == "older") else two
    facts = draw.choice(("{} is {} years old and {} is {} years old.", "{} is {} and {} is {}.")).format(one, x, two, y)
    return Exchange("older", f"{facts} Who is {word}?", f"{answer}.", 2)


def how_many(draw: Random) -> Exchange:
    """How often a word is in a list of 3 to 10 words, two or three of them different."""
    words = draw.sample(GROUPS[draw.choice(tuple(GROUPS))], draw.choice((2, 3)))
    items = [draw.choice(words) for _ in range(draw.randint(3, 10))]
    word = draw.choice(words)
    form = draw.choice(("How many times is {} in this list: {}?", "How often do you read {} here: {}?"))
    answer = sentence(NUMBERS[items.count(word)])
    return Exchange("how many", form.format(word, ", ".join(items)), answer, len(items) + 1)
