"""The numbers in what a lab asks and says, so that a test can compute each of them.

`parts` gives every text of a lab its name, `numbers` reads the numbers in one, words such as "twice" and "a quarter"
among them, and `agree` holds them against computed ones, each to the last digit that the text shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from course.exercises.curve import Drawing
from course.exercises.spec import LETTERS, LabSpec, Prediction, Question

WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "sixteen": 16, "twenty": 20, "fifty": 50, "hundred": 100, "thousand": 1_000,
    "half": 1 / 2, "halves": 1 / 2, "halved": 1 / 2, "third": 1 / 3, "quarter": 1 / 4, "fifth": 1 / 5, "sixth": 1 / 6,
    "tenth": 1 / 10, "thirtieth": 1 / 30, "fiftieth": 1 / 50,
    "twice": 2, "double": 2, "doubles": 2, "doubled": 2, "triples": 3, "tripled": 3, "fourfold": 4, "tenfold": 10,
}  # fmt: skip
# Names with digits in them are no numbers: Llama-3.1-8b, --chunk-2, V1, H100, fp8, arXiv:2403.02310, p99 is 99.
NAME = re.compile(r"arXiv:[\d.]+|\b[A-Za-z]+-\d[\w.-]*\b|--[\w-]+|\b(?!p\d)[A-Za-z_]+\d\w*")
NUMBER = re.compile(
    r"(?<![\w.])p(?P<percentile>\d+)\b|(?<![\w.,])(?P<digits>\d[\d,]*(?:\.\d+)?)|\b(?P<word>"
    + "|".join(WORDS)
    + r")\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class About:
    """A number of which the text gives less than its digits say: "about a hundred times" for 96."""

    value: float
    within: float = 0.1  # of the value


@dataclass(frozen=True)
class Shown:
    """A number as a text shows it, and half of its last digit."""

    text: str
    value: float
    slack: float


def numbers(text: str) -> list[Shown]:
    """The numbers in a text, in order: digits, percentiles (p99 is 99), and the words above; "one" is too common."""
    found = []
    for match in NUMBER.finditer(NAME.sub("", text)):
        if match["word"]:
            found.append(Shown(match[0], WORDS[match[0].lower()], 1e-9))
            continue
        digits = (match["percentile"] or match["digits"]).rstrip(",").replace(",", "")
        decimals = len(digits.partition(".")[2])
        found.append(Shown(match[0], float(digits), 0.5 * 10.0**-decimals))
    return found


def parts(lab: LabSpec) -> dict[str, str]:
    """Every text of a lab by a name of its own: "p99", "p99 a", "p99 a answer", "p99 why", "little hint", "grow c"."""
    found = {}
    for prediction in lab.predictions:
        found[prediction.id] = prediction.question
        found[f"{prediction.id} why"] = prediction.why
        if isinstance(prediction, Drawing):
            found |= {f"{prediction.id} {belief}": text for belief, text in prediction.answers.items()}
            continue
        found |= {f"{prediction.id} {letter}": text for letter, text in zip(LETTERS, prediction.options, strict=False)}
        found |= {
            f"{prediction.id} {letter} answer": text
            for letter, text in zip(LETTERS, prediction.answers, strict=False)
            if text
        }
    for exercise in lab.exercises:
        found[f"{exercise.id} hint"] = exercise.hint
        found[f"{exercise.id} plain"] = exercise.plain
        if exercise.twin:
            found[f"{exercise.id} twin"] = exercise.twin.question
        found |= {f"{exercise.id} {i}": mistake.hint for i, mistake in enumerate(exercise.mistakes)}
    for question in lab.questions:
        # Predictions and questions may share a name.
        found[f"quiz {question.id}"] = question.question
        for letter, option, why in zip(LETTERS, question.options, question.explanations, strict=False):
            found[f"quiz {question.id} {letter}"] = f"{option} | {why}"
    return found


def with_numbers(lab: LabSpec) -> dict[str, str]:
    """Those of the texts that have a number in them."""
    return {name: text for name, text in parts(lab).items() if numbers(text)}


Values = Sequence[float | About]


def agree(text: str, values: Values | Callable[[], Values]) -> None:
    """Fail unless the numbers of the text are these, in this order, each to the last digit shown.

    values: they, or where they take long to compute a function that does.
    """
    values = values() if callable(values) else values
    shown = numbers(text)
    told = ", ".join(number.text for number in shown)
    assert len(shown) == len(values), f"{len(shown)} numbers ({told}) and {len(values)} values for: {text}"
    for number, value in zip(shown, values, strict=True):
        if isinstance(value, About):
            slack, value = value.within * abs(value.value), value.value
        else:
            slack = number.slack * (1 + 1e-9)
        assert abs(number.value - value) <= slack, f"the text says {number.text}, computed is {value:.6g}: {text}"


def sentence(source: str, template: str, *values: float | About) -> None:
    """Fail unless the source has the template, with numbers in place of its braces, and they agree with the values.

    The source is that of a notebook: line ends and the comment signs at the start of a line count as blanks.
    """
    plain = " ".join(re.sub(r"(?m)^# ?", "", source).split())
    pattern = reduce(lambda joined, piece: joined + r"([\d.,]*\d|(?i:" + "|".join(WORDS) + "))" + piece,
                     map(re.escape, template.split("{}")))  # fmt: skip
    found = re.findall(pattern, plain)
    assert found, f"the text has no {template!r}"
    for match in found:
        agree(" ".join([match] if isinstance(match, str) else match), values)


def right_option(question: Prediction | Question, *holds: bool) -> None:
    """Fail unless exactly one of the conditions holds, one for each option, and the key says that one."""
    assert len(holds) == len(question.options), f"{question.id} has {len(question.options)} options, not {len(holds)}"
    true = [place for place, hold in enumerate(holds) if hold]
    assert len(true) == 1, f"{question.id}: {len(true)} options are true, and one should be"
    assert question.right == true[0], (
        f"{question.id}: the key says {LETTERS[question.right]}, computed is {LETTERS[true[0]]}"
    )


def right_words(question: Prediction | Question, words: str) -> None:
    """Fail unless these words stand in the right option, and in no other. For what is a fact and no number."""
    found = [place for place, option in enumerate(question.options) if words in option]
    assert found == [question.right], f"{question.id}: {words!r} is in {found}, the key says {question.right}"
