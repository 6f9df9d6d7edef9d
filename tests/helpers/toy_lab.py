"""A small lab with one exercise of each kind, for the tests of the exercise engine."""

from __future__ import annotations

from course.exercises import Exercise, LabSpec, Mistake, Prediction, Question


class Doubles:
    """A stand-in for a policy: `schedule` answers every state."""

    def schedule(self, state):
        return [2 * value for value in state]


class Forgets:
    def schedule(self, state):
        return [value for value in state]


class Breaks:
    def schedule(self, state):
        raise ValueError("slot 3 was given out twice: give each slot to one request")


def drive(policy) -> float:
    """What an engine does: ask the policy a few times and use its answer."""
    return float(sum(sum(policy.schedule(state)) for state in ([1, 2], [3, 4])))


TOY = LabSpec(
    "98",
    "A toy",
    40,
    predictions=(
        Prediction(
            "p99", "What happens to p99?", ("It falls.", "It stays.", "It rises."), "c", "Bursts fill the slots."
        ),
        Prediction("mean", "And to the mean?", ("It falls.", "It rises."), 1, "The tail is part of it."),
    ),
    exercises=(
        Exercise(
            "little",
            "Little's law",
            12.0,
            (
                Mistake(12_000, "Milliseconds and seconds are mixed."),
                Mistake(0.75, "This divides where it multiplies."),
            ),
            hint="Write down the units.",
        ),
        Exercise(
            "area",
            "A function",
            lambda width, height: width * height,
            (
                Mistake(lambda width, height: width + height, "This adds."),
                Mistake(lambda width, height: [][0], "This reads beyond the end."),
            ),
            probes=((2, 3.5), (4, 5.0), (10, 10.0)),
        ),
        Exercise(
            "policy",
            "A policy",
            Doubles(),
            (Mistake(Forgets(), "Nothing is doubled."), Mistake(Breaks(), "Look at who has slot 3.")),
            evaluate=drive,
        ),
    ),
    quiz=(
        Question("q1", "Which law?", (("Little's", "It holds for any run."), ("Moore's", "That is about chips.")), "a"),
        Question("q2", "Which unit?", (("ms", "Convert first."), ("s", "Seconds everywhere.")), "b"),
    ),
)
