"""Exchanges about words: lists, spelling, word order, and what belongs together."""

from __future__ import annotations

from math import factorial
from random import Random

from tools.lm.text.exchange import Exchange
from tools.lm.text.words import DAYS, GROUP_OF, GROUPS, MONTHS, NUMBERS, OPPOSITES, THINGS, row, sentence


def listing(draw: Random) -> Exchange:
    """Some words of a group in alphabetical order, from a given one on."""
    group = draw.choice(tuple(GROUPS))
    words = GROUPS[group]
    number = draw.randint(2, min(12, len(words) - 1))
    start = draw.randint(0, len(words) - number)
    form = draw.choice(
        (
            "Name {} {} in alphabetical order, starting with {}.",
            "List {} {} from A to Z. Begin with {}.",
            "Give me {} {} by alphabet. Start with {}.",
        )
    )
    prompt = form.format(NUMBERS[number], group, words[start])
    return Exchange("list", prompt, sentence(", ".join(words[start : start + number])), len(words) ** (number - 1))


def spell(draw: Random) -> Exchange:
    """One to three words, letter by letter."""
    words = draw.sample(THINGS, draw.choice((1, 1, 1, 2, 3)))
    form = draw.choice(("Spell {}.", "How do you spell {}?", "Please spell {}.", "Which letters are in {}?"))
    answer = ", ".join("-".join(word) for word in words) + "."
    return Exchange("spell", form.format(row(words)), answer, 26.0 ** sum(map(len, words)))


def order(draw: Random) -> Exchange:
    """A list backwards, its n-th word, or two words said several times."""
    number = draw.randint(2, 8)
    words, form = draw.sample(THINGS, number), draw.randrange(3)
    listed = ", ".join(words)
    if form == 0:
        ask = draw.choice(("Say these words backwards: {}.", "Turn this list round: {}."))
        return Exchange("word order", ask.format(listed), sentence(", ".join(words[::-1])), factorial(number))
    if form == 1:
        place = draw.randrange(number)
        prompt = f"Which word is number {NUMBERS[place + 1]} in this list: {listed}?"
        return Exchange("word order", prompt, sentence(words[place]), number)
    times, said = draw.randint(2, 12), f"{draw.choice(GROUPS['colours'])} {words[0]}"
    return Exchange("word order", f"Say {said} {NUMBERS[times]} times.", sentence(", ".join([said] * times)), 11)


def knowledge(draw: Random) -> Exchange:
    """Opposites, days and months, and which word belongs to which group."""
    form = draw.randrange(4)
    if form == 0:
        pair = list(draw.choice(OPPOSITES))
        draw.shuffle(pair)
        ask = draw.choice(("What is the opposite of {}?", "Which word means the opposite of {}?", "What is not {}?"))
        return Exchange("knowledge", ask.format(pair[0]), sentence(pair[1]), 2 * len(OPPOSITES))
    if form == 1:
        names, what = draw.choice(((DAYS, "day"), (MONTHS, "month")))
        place, step = draw.randrange(len(names)), draw.choice((1, -1))
        side = "after" if step > 0 else "before"
        ask = draw.choice(("Which {} comes {} {}?", "What {} is {} {}?", "Tell me the {} {} {}."))
        return Exchange(
            "knowledge", ask.format(what, side, names[place]), f"{names[(place + step) % len(names)]}.", len(names)
        )
    word = draw.choice(tuple(GROUP_OF))
    group = GROUP_OF[word]
    others = [other for other in GROUPS if other != group]
    if form == 2:
        asked = group if draw.random() < 0.5 else draw.choice(others)
        ask = draw.choice(("Is {} among the {}?", "Does {} belong to the {}?", "Would you find {} among the {}?"))
        answer = f"{'Yes' if asked == group else 'No'}, {word} belongs to the {group}."
        return Exchange("knowledge", ask.format(word, asked), answer, 2 if asked == group else 2 * len(others))
    three = [word, *(draw.choice(GROUPS[other]) for other in draw.sample(others, 2))]
    draw.shuffle(three)
    ask = draw.choice(("Which of {} belongs to the {}?", "Which word belongs to the {1}: {0}?"))
    return Exchange("knowledge", ask.format(row(three), group), sentence(word), 3)
