"""Two forms of twelve items for a test before and after, from the labs' own questions and with their computed keys."""

from __future__ import annotations

from course.exercises.spec import LETTERS, Question
from course.lessons import available, load

LABS = ("01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "13", "16")
FORMS = {"A": 0, "B": 1}
"""Which question of a lab's quiz a form has."""
PEOPLE = 20


def items(form: str) -> list[tuple[str, Question]]:
    """The twelve items of a form as (lab, question), in the order of the labs."""
    return [(number, load(number).quiz[FORMS[form]]) for number in LABS if number in available()]


def key(form: str) -> list[str]:
    """The right letters; `keys()` of each lesson has shown by its runs that they are right."""
    return [LETTERS[int(question.right)] for _, question in items(form)]


def page() -> str:
    """docs/instructor/forms.md."""
    lines = [
        "# Two forms of twelve items",
        "",
        "Written by `make notebooks` from the labs' quizzes, one question a lab. Half of a class takes form A before",
        "and B after, the other half B before and A after: then neither form nor order explains a gain. With fewer",
        f"than {PEOPLE} people in each half a difference says nothing; none is claimed here, nobody took them.",
    ]
    for form in FORMS:
        lines += ["", f"## Form {form}"]
        for place, (_, question) in enumerate(items(form), start=1):
            lines += ["", f"{place}. {' '.join(question.question.split())}"]
            lines += [f"    - {LETTERS[n]}) {option}" for n, option in enumerate(question.options)]
    lines += ["", "## Keys", "", "| | " + " | ".join(str(n + 1) for n in range(len(items("A")))) + " |"]
    lines += ["|---" * (len(items("A")) + 1) + "|"]
    lines += [f"| {form} | {' | '.join(key(form))} |" for form in FORMS]
    lines += ["| lab | " + " | ".join(number for number, _ in items("A")) + " |"]
    return "\n".join(lines) + "\n"
