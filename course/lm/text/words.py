"""The words of the little world that the model speaks about. Each group is in alphabetical order; no word is in two groups."""

from __future__ import annotations

GROUPS: dict[str, tuple[str, ...]] = {
    "animals": tuple(
        "badger bear beaver camel cat cow deer dog donkey elephant fox giraffe goat hedgehog horse lion monkey mouse "
        "otter pig rabbit rat seal sheep squirrel tiger whale wolf zebra".split()
    ),
    "birds": tuple(
        "crow duck eagle finch goose gull hawk heron owl parrot peacock penguin pigeon raven robin sparrow stork "
        "swallow swan".split()
    ),
    "clothes": tuple(
        "apron belt boot cap cloak coat dress glove hat jacket sandal scarf shirt shoe skirt sock sweater vest".split()
    ),
    "colours": tuple("black blue brown golden green grey pink purple red silver white yellow".split()),
    "drinks": tuple("cider cocoa coffee juice lemonade milk punch soda syrup tea water".split()),
    "fruits": tuple(
        "apple apricot banana cherry coconut fig grape kiwi lemon mango melon papaya peach pear plum quince".split()
    ),
    "instruments": tuple(
        "banjo cello clarinet drum fiddle flute guitar harp horn lute oboe organ piano trumpet tuba violin".split()
    ),
    "jobs": tuple(
        "actor baker builder cook dancer doctor driver farmer judge miner nurse painter pilot potter sailor singer "
        "tailor teacher weaver writer".split()
    ),
    "sports": tuple(
        "archery boxing climbing cycling fencing football golf hockey judo rowing running skiing tennis".split()
    ),
    "tools": tuple(
        "axe broom brush chisel drill file hammer nail needle pliers rake saw scissors spade wrench".split()
    ),
    "trees": tuple("ash beech birch cedar elm hazel larch maple oak pine poplar spruce willow".split()),
    "vegetables": tuple(
        "bean beet cabbage carrot celery garlic leek lettuce onion parsnip pea pepper potato pumpkin radish spinach "
        "tomato turnip".split()
    ),
    "vehicles": tuple(
        "bicycle boat bus canoe car ferry lorry plane raft ship sledge taxi tractor train tram van".split()
    ),
}
NAMES = tuple(
    "Ada Alma Anna Ben Bruno Carl Clara Dario David Dora Edith Elsa Emil Emma Felix Fiona Frida Georg Greta Hanna Hugo "
    "Ida Igor Iris Jana Jonas Julia Karin Klara Kurt Lena Leo Lina Lukas Marta Max Mia Nils Nina Nora Olga Oscar Otto "
    "Paula Peter Quentin Ralf Rita Rosa Sara Simon Sven Tilda Tom Uma Ursula Vera Victor Walter Wanda Willi Yara "
    "Yusuf Zoe".split()
)
OBJECTS = tuple(
    "ball basket bell blanket book bottle box bucket button candle clock coin crown cup doll feather key kite "
    "ladder lamp lantern letter map mirror pencil puzzle ribbon ring rope shell spoon stone umbrella whistle".split()
)
PLACES = tuple(
    "attic bakery barn castle cave cellar church city desert forest garden hall harbour hospital kitchen library market "
    "meadow mill museum palace park school stable station temple theatre tower valley village workshop".split()
)
TOPICS = tuple(
    "bread chess dreams fishing games gardens history horses music painting rain reading ships snow stars summer "
    "trains winter".split()
)
DAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
MONTHS = tuple("January February March April May June July August September October November December".split())
NUMBERS = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty".split()
)
OPPOSITES = tuple(
    pair.split("-")
    for pair in (
        "above-below big-small clean-dirty day-night early-late empty-full far-near fast-slow first-last good-bad "
        "happy-sad hard-soft high-low hot-cold in-out left-right light-dark long-short loud-quiet old-new open-closed "
        "rich-poor strong-weak sweet-sour thick-thin up-down wet-dry"
    ).split()
)
GROUP_OF = {word: group for group, words in GROUPS.items() for word in words}
THINGS = tuple(sorted({*GROUP_OF, *OBJECTS, *PLACES}))  # every word that may be spelled, counted or turned round


def article(word: str) -> str:
    """`word` with "a" or "an" before it."""
    return ("an " if word[0] in "aeio" else "a ") + word


def sentence(text: str) -> str:
    """`text` with a capital first letter and a full stop."""
    return text[0].upper() + text[1:] + "."


def row(words: list[str] | tuple[str, ...]) -> str:
    """The words with "and" before the last: "red", "red and blue", "red, blue and green"."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
