"""Small talk: greetings, what somebody said of themselves, one fact of each sort, and what the model does not know."""

from __future__ import annotations

from random import Random

from tools.lm.text.exchange import Exchange
from tools.lm.text.words import GROUPS, NAMES, OBJECTS, PLACES, TOPICS, article, sentence

ABILITIES = "I can count, add, spell, compare, make lists, and tell stories and dialogues."
UNKNOWN = "I do not know that. " + ABILITIES
GREETINGS = {
    "Hello!": "Hello! What shall I do for you?",
    "Hello.": "Hello! What shall I do for you?",
    "Hi!": "Hello! What shall I do for you?",
    "Good morning.": "Good morning! What shall I do for you?",
    "Good evening.": "Good evening! What shall I do for you?",
    "How are you?": "I am well, thank you. And you?",
    "I am well too.": "I am glad to hear that.",
    "Thank you.": "You are welcome.",
    "Thanks!": "You are welcome.",
    "Thank you very much.": "You are welcome.",
    "Goodbye.": "Goodbye, and come again!",
    "Bye!": "Goodbye, and come again!",
    "Who are you?": "I am a very small language model. " + ABILITIES,
    "What are you?": "I am a very small language model. " + ABILITIES,
    "What is your name?": "I have no name. I am a very small language model.",
    "What can you do?": ABILITIES,
    "Can you help me?": "Perhaps. " + ABILITIES,
    "Help!": "Perhaps. " + ABILITIES,
}
FAVOURITES = ("animals", "colours", "drinks", "fruits", "sports")


def greeting(draw: Random) -> Exchange:
    """Hello, thanks, goodbye, and what the model is. There are too few to hold any out."""
    prompt = draw.choice(tuple(GREETINGS))
    return Exchange("greeting", prompt, GREETINGS[prompt], len(set(GREETINGS.values())))


def chat(draw: Random) -> Exchange:
    """Two or three turns in which somebody says name, liking and home in some order, then asks for one of them."""
    name, liked, place = draw.choice(NAMES), draw.choice(GROUPS[draw.choice(FAVOURITES)]), draw.choice(PLACES)
    turns = [
        (draw.choice((f"I am {name}.", f"My name is {name}.")), f"Hello {name}! It is nice to meet you."),
        (draw.choice((f"I like {liked}.", f"I love {liked}.")), f"I see, {liked}. That is a good choice."),
        (
            draw.choice((f"I live near the {place}.", f"My home is near the {place}.")),
            f"The {place} must be a good place to live.",
        ),
    ]
    asks = (
        (("What is my name?", "Who am I?"), f"Your name is {name}.", len(NAMES)),
        (("What do I like?", "What do I love?"), f"You like {liked}.", sum(len(GROUPS[group]) for group in FAVOURITES)),
        (("Where do I live?", "Where is my home?"), f"You live near the {place}.", len(PLACES)),
    )
    said = draw.sample(range(3), draw.choice((2, 3)))
    asked, answer, choices = asks[draw.choice(said)]
    return Exchange("chat", draw.choice(asked), answer, choices, tuple(turns[i] for i in said))


def fact(draw: Random) -> Exchange:
    """Two or three facts about different people, each of another sort, and a question about one of them."""
    names = draw.sample(NAMES, 4)
    colour, thing, place = draw.choice(GROUPS["colours"]), draw.choice(OBJECTS), draw.choice(PLACES)
    age, job = draw.randint(2, 90), draw.choice(GROUPS["jobs"])
    facts = (
        (
            f"{names[0]} has a {colour} {thing}.",
            draw.choice(
                (
                    (f"Who has the {thing}?", f"{names[0]}.", 3),
                    (f"What colour is the {thing}?", sentence(colour), 12),
                    (f"What does {names[0]} have?", f"{names[0]} has a {colour} {thing}.", 12 * len(OBJECTS)),
                )
            ),
        ),
        (f"{names[1]} is in the {place}.", (f"Where is {names[1]}?", f"{names[1]} is in the {place}.", len(PLACES))),
        (f"{names[2]} is {age} years old.", (f"How old is {names[2]}?", f"{names[2]} is {age} years old.", 89)),
        (
            f"{names[3]} is {article(job)}.",
            (f"What does {names[3]} do?", f"{names[3]} is {article(job)}.", len(GROUPS["jobs"])),
        ),
    )
    chosen = draw.sample(facts, draw.choice((2, 3)))
    question, answer, choices = draw.choice(chosen)[1]
    return Exchange("fact", " ".join(text for text, _ in chosen) + " " + question, answer, choices)


def unknown(draw: Random) -> Exchange:
    """A question that nothing above answers, often with a word that is none; the answer says so."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    word = "".join(draw.choice(letters) for _ in range(draw.randint(2, 9)))
    thing, place, topic, name = draw.choice(OBJECTS), draw.choice(PLACES), draw.choice(TOPICS), draw.choice(NAMES)
    forms = (
        f"What is the capital of {word.capitalize()}?",
        f"Why is the {thing} so {word}?",
        f"Who invented the {thing}?",
        f"How far is it to the {place}?",
        f"What do you think about {topic}?",
        f"When was {name} born?",
        f"Explain {word} to me.",
        f"Translate {word} into {draw.choice(('English', 'French', 'German', 'Latin'))}.",
        f"What does {word} mean?",
        f"Write a {draw.choice(('poem', 'song', 'letter'))} about {draw.choice((topic, word))}.",
        f"Tell me about {draw.choice((word, word.capitalize(), topic))}.",
        f"Who is {name} {word.capitalize()}?",
        f"How do I {word} the {thing}?",
        f"{word.capitalize()} {draw.choice((thing, topic))} {word[::-1]}?",
        f"Is {word} better than {topic}?",
        f"Can you {word} a {thing}?",
    )
    return Exchange("unknown", draw.choice(forms), UNKNOWN, 2)
