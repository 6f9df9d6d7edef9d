"""Words of the command line of an engine whose options are not all known here: options, values, what stands alone."""

from collections.abc import Mapping, Sequence

from course.base.settings import quote
from course.flags import variables

Options = dict[str, str | bool]


def options_of(
    words: Sequence[str], alone: frozenset[str], short: Mapping[str, str], dash: str = "-"
) -> tuple[str | None, Options, list[str]]:
    """(the word that belongs to no option, options by their long names, notes). The last of two counts.

    alone: options that take no value. short: other spellings of an option. dash: what parts the words of a name.
    ValueError if two words belong to no option.
    """
    model: str | None = None
    options: Options = {}
    notes: list[str] = []
    place = 0
    while place < len(words):
        word, place = words[place], place + 1
        if not word.startswith("-") or word == "-":
            if word.startswith("$") and list(variables.empty(word)):
                notes.append(f"{word} is a shell variable without a value, and what it stands for is not read")
            elif model is not None:
                raise ValueError(f"{quote(word)} belongs to no option, and the model is {quote(model)} already")
            else:
                model = word
            continue
        name, equals, value = word.partition("=")
        head = name[: len(name) - len(name.lstrip("-"))]
        name = head + name.lstrip("-").replace("_" if dash == "-" else "-", dash)
        name = short.get(name, name)
        value_text: str | bool = value if equals else True
        if not equals and name not in alone and place < len(words) and not _is_option(words[place]):
            value_text, place = words[place], place + 1
            while place < len(words) and model is not None and not _is_option(words[place]):
                value_text, place = f"{value_text} {words[place]}", place + 1  # several values
        if name in options and options[name] != value_text:
            notes.append(f"{name} is given twice: the last one counts, {quote(value_text)}")
        options[name] = value_text
    return model, options, notes


def _is_option(word: str) -> bool:
    """Whether a word is an option and no value: "-1" is a number."""
    return word.startswith("-") and len(word) > 1 and not word[1:].replace(".", "", 1).isdigit()
