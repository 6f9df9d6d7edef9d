"""A prediction that is drawn: a curve, committed before the lab shows the true one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from course.explore.sketch import Sketch


@dataclass(frozen=True)
class Drawing:
    """A curve to be drawn before the lab shows it.

    id: the name used in `lab.predict(id)` and `lab.recap(id)`. question: what is drawn. sketch: its axes, the true
    curve and the beliefs that a drawing may show. answers: what is said to each belief, by its id. why: one or two
    sentences for every drawing. after: the prediction whose answer can be read from the curve; it is committed first.

    Raises ValueError: a belief without an answer, or an answer without a belief.
    """

    id: str
    question: str
    sketch: Sketch
    answers: Mapping[str, str]
    why: str
    after: str = ""

    def __post_init__(self) -> None:
        if set(self.answers) != set(self.sketch.beliefs):
            raise ValueError(
                f"prediction {self.id!r}: it answers the beliefs {', '.join(self.answers) or 'none'}, and its sketch"
                f" knows {', '.join(self.sketch.beliefs) or 'none'}"
            )

    @property
    def beliefs(self) -> tuple[str, ...]:
        """The ids of its beliefs, as those of a Prediction."""
        return tuple(self.sketch.beliefs)

    def said(self, drawn: Sequence[float]) -> str:
        """What is said to a drawing: the largest gap, the belief that it shows, and why the curve is as it is."""
        judged = self.sketch.judge(drawn)
        return " ".join(filter(None, [judged.sentence, self.answers.get(judged.belief, ""), self.why]))

    def in_words(self, values: Sequence[float]) -> str:
        """A curve as text: "1 at 1 slot, 7.4 at 128 slots"."""
        pairs = zip(values, self.sketch.columns, strict=True)
        return ", ".join(f"{self.sketch.words(y)} at {self.sketch.place(x)}" for y, x in pairs)
