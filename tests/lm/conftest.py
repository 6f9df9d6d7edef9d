"""The models, loaded once, and the committed prompts as tokens."""

from __future__ import annotations

import pytest

from course import lm
from course.lm.prompts import Prompt, held_out_prompts


@pytest.fixture(scope="session")
def model() -> lm.LanguageModel:
    """The course's model."""
    return lm.load()


@pytest.fixture(scope="session")
def draft() -> lm.LanguageModel:
    """The draft, small enough for the plain reference."""
    return lm.load("draft")


@pytest.fixture(scope="session")
def prompts() -> list[Prompt]:
    """The committed prompts."""
    return held_out_prompts()


@pytest.fixture(scope="session")
def wanted(model: lm.LanguageModel, prompts: list[Prompt]) -> list[list[int]]:
    """The tokens of each committed prompt's answer, the end included."""
    return [[*model.tokenizer.encode(one.answer), model.tokenizer.end] for one in prompts]


@pytest.fixture(scope="session")
def asked(model: lm.LanguageModel, prompts: list[Prompt]) -> list[list[int]]:
    """The tokens of each committed prompt."""
    return [model.prompt(one.turns) for one in prompts]
