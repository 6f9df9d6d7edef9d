"""Whether answer keys leak: how often the right option stands at each place, and how often it is the longest.

The rule: over all questions, each of these counts stays inside what chance gives. Where a question has k options, the
right one is at a given place, or the longest, with probability 1/k; the number over all questions is then a sum of such
draws, and the count must not be above its 97.5th percentile (nor, for a place, below its 2.5th). With 27 quiz questions
that is about 13 at one place; always the same place, or always the longest, is far outside.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from course.exercises.spec import Prediction, Question

MARGIN = 4
"""Characters by which an option must be longer than every other to look longer; less is not seen at a glance."""


def at_place(questions: Sequence[Prediction | Question], place: int) -> int:
    """How many right options stand at a place, counted from 0."""
    return sum(question.right == place for question in questions)


def longest(questions: Sequence[Prediction | Question]) -> int:
    """How many right options are clearly longer than all others."""
    return sum(_clearly(question, max) for question in questions)


def shortest(questions: Sequence[Prediction | Question]) -> int:
    """How many right options are clearly shorter than all others."""
    return sum(_clearly(question, min) for question in questions)


def bounds(chances: Sequence[float]) -> tuple[int, int]:
    """The 2.5th and 97.5th percentile of how many of independent events happen, each with its own chance."""
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1 - chance, chance])
    below = np.cumsum(distribution)
    return int(np.searchsorted(below, 0.025)), int(np.searchsorted(below, 0.975))


def chances(questions: Sequence[Prediction | Question], place: int = 0) -> list[float]:
    """The chance of each question to have its right option at a place, by guessing."""
    return [1 / len(question.options) if place < len(question.options) else 0.0 for question in questions]


def _clearly(question: Prediction | Question, which) -> bool:
    lengths = [len(option) for option in question.options]
    right = lengths.pop(int(question.right))
    return right >= max(lengths) + MARGIN if which is max else right <= min(lengths) - MARGIN
