"""A prompt with the one right answer to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exchange:
    """What is asked and what is right.

    The answer is a function of the prompt and of what was said before, so "right" means equal, letter by letter.
    `choices` is the number of answers that have the form of a right one: who guesses evenly among them is right once
    in `choices` times. `earlier` holds the prompts and answers that must come first, where the prompt refers to them.
    """

    kind: str
    prompt: str
    answer: str
    choices: float
    earlier: tuple[tuple[str, str], ...] = ()

    @property
    def turns(self) -> list[str]:
        """The conversation up to the answer that is wanted: prompt, answer, ..., prompt."""
        return [turn for pair in self.earlier for turn in pair] + [self.prompt]
