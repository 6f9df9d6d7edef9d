"""Stories and dialogues. Each sentence is chosen by a word of the prompt, so that the whole text follows from it."""

from __future__ import annotations

from random import Random

from tools.lm.text.exchange import Exchange
from tools.lm.text.words import GROUPS, NAMES, NUMBERS, OBJECTS, PLACES, TOPICS, article

ANIMALS, COLOURS = GROUPS["animals"], GROUPS["colours"]

# One of each row is told. The row's key says which word of the prompt chooses it: its place in its list, modulo.
OPENING = (
    "Once upon a time {a_kind} called {name} lived in the {place}.",
    "There was {a_kind} in the {place}, and everybody called it {name}.",
    "Long ago {name} the {kind} came to the {place} and stayed.",
    "In the {place} the sun had just come up when {name} the {kind} opened both eyes.",
)
FINDING = (
    "One day {name} found a {colour} {thing} under a tree.",
    "On the way home {name} saw a {colour} {thing} in the grass.",
    "That morning a {colour} {thing} lay in front of the door.",
    "An old woman gave {name} a {colour} {thing} and went away without a word.",
)
WONDER = (
    "Nobody in the {place} knew whose {thing} it was.",
    "{name} had never seen such a fine {thing} before.",
    "It was heavy, but {name} carried it all the way through the {place}.",
    "The children came from far away to look at the {thing}.",
)
MEETING = (
    "Then {friend} the {other} came by and wanted to play.",
    "In the evening {friend} the {other} knocked and asked about the {thing}.",
    "Soon {friend} the {other} heard of it and ran to the {place}.",
)
QUESTION = (
    '"May I hold the {thing}?" asked {friend}.',
    '"Where did you get that?" asked {friend}.',
    '"Is it true that it can sing?" asked {friend}.',
)
REPLY = (
    '"Of course," said {name}, "but be careful, because it is the only {colour} one."',
    '"It was just there," said {name}, "and now it belongs to both of us."',
    '"Let us find out together," said {name}, and they sat down on a big stone.',
)
TROUBLE = (
    "But a strong wind came and blew the {colour} {thing} into the water.",
    "Suddenly it began to rain, and the {thing} became wet and dirty.",
    "At night a thief came to the {place} and took the {thing} away.",
    "Then the {thing} fell down and broke into two pieces.",
)
SEARCH = (
    "{name} and {friend} looked for help in every house of the {place}.",
    "{friend} had an idea, and they worked until the stars came out.",
    "They were sad for a while, and then they made a plan.",
)
HELP = (
    "A friendly teacher showed them what to do.",
    "The people of the {place} brought ropes and lamps.",
    "A small bird told them the way.",
)
RETURN = (
    "Before the next morning the {thing} was as good as new.",
    "When the sun came up, the {thing} was back where it belonged.",
    "After three days everything was well again.",
)
ENDINGS = {
    "funny": "In the end {name} put the {thing} on the head and fell asleep, and the whole {place} laughed.",
    "happy": "In the end {name} kept the {thing}, and there was dancing in the {place} all night.",
    "quiet": "In the end {name} put the {thing} beside the window, looked at the stars and slept.",
    "sad": "In the end the {thing} was gone, and {name} sat alone in the {place} and cried.",
}
# The rows of each length, with the word that chooses in each.
SHORT = ((OPENING, "place"), (FINDING, "thing"))
MIDDLE = (*SHORT, (WONDER, "kind"), (MEETING, "other"))
LONG = (
    *MIDDLE,
    (QUESTION, "colour"),
    (REPLY, "thing"),
    (TROUBLE, "place"),
    (SEARCH, "other"),
    (HELP, "kind"),
    (RETURN, "colour"),
)
LENGTHS = {"short ": SHORT, "": MIDDLE, "long ": LONG}
ORDER = {"place": PLACES, "thing": OBJECTS, "kind": ANIMALS, "other": ANIMALS, "colour": COLOURS}


def story(draw: Random) -> Exchange:
    """A story of 3, 5 or 11 sentences about an animal with a name, a place, a thing and an ending."""
    length, mood = draw.choice(tuple(LENGTHS)), draw.choice(tuple(ENDINGS))
    name, friend = draw.sample(NAMES, 2)
    kind, other = draw.sample(ANIMALS, 2)
    place, thing, colour = draw.choice(PLACES), draw.choice(OBJECTS), draw.choice(COLOURS)
    said = {"name": name, "friend": friend, "kind": kind, "other": other, "place": place, "thing": thing}
    said |= {"colour": colour, "a_kind": article(kind)}
    sentences = [rows[ORDER[key].index(said[key]) % len(rows)] for rows, key in LENGTHS[length]]
    both = f"{name}, {article(kind)}" + ("" if length == "short " else f", and {friend}, {article(other)}")
    prompt = draw.choice(
        (
            f"Tell a {length}{mood} story about {both}. It happens in the {place}, and there is a {colour} {thing}.",
            f"Write a {length}{mood} story with {both}, in the {place}, with a {colour} {thing}.",
        )
    )
    choices = 1.0
    for rows, _ in LENGTHS[length]:
        choices *= len(rows)
    return Exchange("story", prompt, " ".join([*sentences, ENDINGS[mood]]).format(**said), choices)


SCRIPTS = (
    (
        "Hello {b}, do you like {t}?",
        "Yes, {a}, I like {t} very much.",
        "Why do you like {t} so much?",
        "Because {t} makes me happy, and my father liked it too.",
        "Shall we talk about it again tomorrow?",
        "Yes, please come to my house, {a}.",
        "Good, I will bring some tea.",
        "Then goodbye, {a}, until tomorrow.",
    ),
    (
        "Good morning, {b}. I have a new book about {t}.",
        "Really, {a}? I know nothing about {t}.",
        "Then I can lend you the book.",
        "Thank you, how long is it?",
        "It has two hundred pages.",
        "That is long, but I have time.",
        "You will enjoy it, {b}.",
        "I hope so, {a}, thank you.",
    ),
    (
        "{b}, what do you think of {t}?",
        "I do not care for {t}, {a}.",
        "Oh, why not?",
        "I tried it once and fell asleep.",
        "Try it again with me.",
        "Well, if you ask so kindly.",
        "I am glad, {b}.",
        "But only for one hour, {a}.",
    ),
)


def dialogue(draw: Random) -> Exchange:
    """Two to eight lines between two people about a topic, which chooses the script."""
    (one, two), topic, number = draw.sample(NAMES, 2), draw.choice(TOPICS), draw.randint(2, 8)
    lines = SCRIPTS[TOPICS.index(topic) % len(SCRIPTS)][:number]
    form = draw.choice(
        ("Write a dialogue of {} lines between {} and {} about {}.", "Let {1} and {2} talk about {3}. Write {0} lines.")
    )
    answer = "\n".join(f"{(one, two)[i % 2]}: {line.format(a=one, b=two, t=topic)}" for i, line in enumerate(lines))
    return Exchange("dialogue", form.format(NUMBERS[number], one, two, topic), answer, 7 * len(SCRIPTS))
