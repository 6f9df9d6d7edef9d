"""One question to the small language model, answered step by step: tokens, KV cache, seconds of each step."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from course import lm
from course.lm.threads import one_thread

QUESTIONS = (
    "Spell hedgehog.",
    "What is 17 plus 25?",
    "Tell a short sad story about Mia, a fox. It happens in the garden, and there is a red kite.",
)
NAMES = ("Spell hedgehog.", "What is 17 plus 25?", "Tell a story about Mia, a fox.")
NAMED = tuple(zip(NAMES, QUESTIONS, strict=True))
"""The questions by names that fit into a list of choices."""
MOST_STEPS = 44
"""Of the longest of these answers."""
TRIES = 9  # an answer is computed so often, and each step gets the median of its seconds


@lru_cache(maxsize=1)
def model() -> lm.LanguageModel:
    """The small language model, loaded once."""
    return lm.load()


def kv_bytes() -> int:
    """Bytes that one token takes in the KV cache: a key and a value for each layer and KV head, in float32."""
    config = model().config
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 4


@dataclass(frozen=True)
class Answer:
    """An answer up to some step.

    prompt: the pieces of the prompt. said: those of the answer, one for each step, the sign that it ends included.
    step: how many of the steps have been done. seconds: of each step, none where nothing was measured.
    """

    prompt: tuple[str, ...]
    said: tuple[str, ...]
    step: int
    seconds: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def cached(self) -> int:
        """Tokens in the KV cache: the newest one is there only once the next step has computed it."""
        return len(self.prompt) + self.step - 1

    @property
    def computed(self) -> int:
        """Tokens that this step computes."""
        return len(self.prompt) if self.step == 1 else 1


def piece(token: int) -> str:
    """A token as people read it; a dot stands for the blank before a word."""
    return _special().get(token) or model().tokenizer.decode([token]).replace(" ", "·")


@lru_cache(maxsize=1)
def _special() -> dict[int, str]:
    """The tokens around a prompt, and the one that ends an answer."""
    tokenizer = model().tokenizer
    before, *_, behind = tokenizer.prompt("a")
    return {before: "[user]", behind: "[model]", tokenizer.end: "[end]"}


@lru_cache(maxsize=8)
def tokens(question: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens of the prompt and those of the answer, the end included."""
    said, _ = _run(question)
    return tuple(model().prompt(question)), said


def _run(question: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Compute an answer, each step by the clock: first the whole prompt, then one token at a time."""
    mind, prompt = model(), model().prompt(question)
    context = mind.config.max_position_embeddings
    cache = lm.PagedKV(mind.config, context, 1)
    said: list[int] = []
    seconds: list[float] = []
    given, computed = prompt, 0
    while not said or (said[-1] != mind.tokenizer.end and computed < context):
        began = time.perf_counter()
        logits = mind.forward(given, [len(given)], [computed], [range(context)], cache)
        seconds.append(time.perf_counter() - began)
        computed += len(given)
        said.append(int(logits[0].argmax()))
        given = said[-1:]
    return tuple(said), tuple(seconds)


@lru_cache(maxsize=8)
def seconds(question: str) -> tuple[float, ...]:
    """Seconds of each step on this machine, measured once: the medians of some runs."""
    with one_thread():
        _run(question)
        runs = [_run(question)[1] for _ in range(TRIES)]
    return tuple(np.median(runs, axis=0).tolist())


def upto(question: str, step: int) -> Answer:
    """The answer to a question after `step` steps, without a clock."""
    prompt, said = (tuple(map(piece, part)) for part in tokens(question))
    past = (f"The answer ended with step {len(said)}.",) if step > len(said) else ()
    return Answer(prompt, said, min(step, len(said)), (), past)


def timed(question: str, step: int) -> Answer:
    """The same with the seconds that its steps take on this machine."""
    return replace(upto(question, step), seconds=seconds(question))


def rows(answer: Answer) -> list[tuple[str, str]]:
    """Rows for a table: what this step computes, what comes out, and what is kept."""
    many = f"{answer.computed} token" + ("s" if answer.computed > 1 else "")
    found = [
        ("step", f"{answer.step} of {len(answer.said)}"),
        ("computed in it", many),
        ("the token that comes out", answer.said[answer.step - 1]),
        ("kept for later steps", f"{answer.cached} tokens"),
        ("bytes of what is kept", f"{answer.cached * kv_bytes():,}"),
    ]
    if answer.seconds:
        found.append(("this step took here", f"{1e3 * answer.seconds[answer.step - 1]:.1f} ms"))
    return found
