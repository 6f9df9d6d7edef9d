"""The one error of the language model."""

from __future__ import annotations


class LMError(ValueError):
    """What is wrong with a prompt, a file or a call to the language model, and what to do about it."""
