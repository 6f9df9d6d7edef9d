"""The words of the little world that the model speaks about.

Each group is in alphabetical order, and no word is in two groups. The model learned these: whoever changes one must
train it again.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


GROUPS: dict[str, tuple[str, ...]] = {
    "animals": _words(
        "badger bear beaver camel cat cow deer dog donkey elephant fox giraffe goat hedgehog horse lion monkey mouse "
        "otter pig rabbit rat seal sheep squirrel tiger whale wolf zebra"
    ),
    "birds": _words(
        "crow duck eagle finch goose gull hawk heron owl parrot peacock penguin pigeon raven robin sparrow stork "
        "swallow swan"
    ),
    "clothes": _words(
        "apron belt boot cap cloak coat dress glove hat jacket sandal scarf shirt shoe skirt sock sweater vest"
    ),
    "colours": _words("black blue brown golden green grey pink purple red silver white yellow"),
    "drinks": _words("cider cocoa coffee juice lemonade milk punch soda syrup tea water"),
    "fruits": _words(
        "apple apricot banana cherry coconut fig grape kiwi lemon mango melon papaya peach pear plum quince"
    ),
    "instruments": _words(
        "banjo cello clarinet drum fiddle flute guitar harp horn lute oboe organ piano trumpet tuba violin"
    ),
    "jobs": _words(
        "actor baker builder cook dancer doctor driver farmer judge miner nurse painter pilot potter sailor singer "
        "tailor teacher weaver writer"
    ),
    "sports": _words("archery boxing climbing cycling fencing football golf hockey judo rowing running skiing tennis"),
    "tools": _words("axe broom brush chisel drill file hammer nail needle pliers rake saw scissors spade wrench"),
    "trees": _words("ash beech birch cedar elm hazel larch maple oak pine poplar spruce willow"),
    "vegetables": _words(
        "bean beet cabbage carrot celery garlic leek lettuce onion parsnip pea pepper potato pumpkin radish spinach "
        "tomato turnip"
    ),
    "vehicles": _words("bicycle boat bus canoe car ferry lorry plane raft ship sledge taxi tractor train tram van"),
}
NAMES = _words(
    "Ada Alma Anna Ben Bruno Carl Clara Dario David Dora Edith Elsa Emil Emma Felix Fiona Frida Georg Greta Hanna Hugo "
    "Ida Igor Iris Jana Jonas Julia Karin Klara Kurt Lena Leo Lina Lukas Marta Max Mia Nils Nina Nora Olga Oscar Otto "
    "Paula Peter Quentin Ralf Rita Rosa Sara Simon Sven Tilda Tom Uma Ursula Vera Victor Walter Wanda Willi Yara "
    "Yusuf Zoe"
)
OBJECTS = _words(
    "ball basket bell blanket book bottle box bucket button candle clock coin crown cup doll feather key kite "
    "ladder lamp lantern letter map mirror pencil puzzle ribbon ring rope shell spoon stone umbrella whistle"
)
PLACES = _words(
    "attic bakery barn castle cave cellar church city desert forest garden hall harbour hospital kitchen library "
    "market meadow mill museum palace park school stable station temple theatre tower valley village workshop"
)
TOPICS = _words(
    "bread chess dreams fishing games gardens history horses music painting rain reading ships snow stars summer "
    "trains winter"
)
DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = _words("January February March April May June July August September October November December")
NUMBERS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
OPPOSITES = tuple(
    pair.split("-")
    for pair in _words(
        "above-below big-small clean-dirty day-night early-late empty-full far-near fast-slow first-last good-bad "
        "happy-sad hard-soft high-low hot-cold in-out left-right light-dark long-short loud-quiet old-new open-closed "
        "rich-poor strong-weak sweet-sour thick-thin up-down wet-dry"
    )
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
