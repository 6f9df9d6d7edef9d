"""OpenAI's requests as questions to the model, and its answers as OpenAI's; what is not supported has its sentence.

Of https://platform.openai.com/docs/api-reference the two endpoints that load generators use, with vLLM's `ignore_eos`,
`top_k` and `continuous_usage_stats`. A field at the value that changes nothing, or null, is as good as not there; one
that cannot matter is ignored, and a header says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from course.base.settings import quote
from course.lm.errors import LMError
from course.lm.sampling import Sampling
from course.lm.speaker import LanguageModel

MODEL = "course-lm"
COMPLETION, CHAT = "text_completion", "chat.completion"
MAX_TOKENS = 16  # of a completion that does not say, as in OpenAI's and vLLM's
UNCHANGED: dict[str, tuple[Any, ...]] = {  # fields that are not supported, and values that change nothing
    "best_of": (1,), "echo": (False,), "logprobs": (False,), "top_logprobs": (0,), "logit_bias": ({},),
    "min_p": (0,), "presence_penalty": (0,), "frequency_penalty": (0,), "repetition_penalty": (1,),
    "stop_token_ids": ([],), "suffix": ("",), "tools": ([],), "tool_choice": ("none",),
    "min_tokens": (0,), "response_format": ({"type": "text"},), "use_beam_search": (False,),
    "skip_special_tokens": (True,),
}  # fmt: skip
IGNORED = {"user", "store", "metadata", "stream_options", "priority", "request_id"}
KNOWN = {"model", "prompt", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_k", "top_p", "seed",
         "stream", "ignore_eos", "n", "stop"}  # fmt: skip
GREEDY = ("top_k", "top_p", "min_p", "seed")
"""What changes nothing at temperature 0, whatever its value."""
MOST_CHOICES = 128  # answers to one request, as in OpenAI's


class Refused(Exception):
    """A request that gets a sentence and a status instead of an answer."""

    def __init__(self, sentence: str, status: int = 400, kind: str = "invalid_request_error"):
        super().__init__(sentence if sentence.endswith(".") else f"{sentence}.")
        self.status, self.kind = status, kind

    def body(self) -> dict[str, Any]:
        """The error in the form of OpenAI's."""
        return {"error": {"message": str(self), "type": self.kind, "param": None, "code": self.status}}


@dataclass(frozen=True)
class Asked:
    """What a request asks.

    prompts: the tokens of each. n: answers to each. numbers: what the random numbers of each answer depend on, None
    without a seed. stop: texts that end an answer. usage, running_usage: at the end of a stream, in every piece.
    ignored: fields that change nothing here.
    """

    kind: str
    prompts: list[list[int]]
    n: int
    max_tokens: int
    sampling: Sampling
    numbers: list[int | None]
    stop: list[str]
    ignore_end: bool
    stream: bool
    usage: bool
    running_usage: bool
    ignored: list[str]

    @property
    def choices(self) -> list[list[int]]:
        """The prompt of each answer: all answers to the first one, then those to the next."""
        return [prompt for prompt in self.prompts for _ in range(self.n)]


def read(body: bytes, kind: str, model: LanguageModel) -> Asked:
    """The request in a body. Raises Refused with the sentence."""
    fields = _object(body)
    _check_fields(fields, kind)
    name = fields.get("model")
    if name is not None and name != MODEL:
        raise Refused(f"There is no model {quote(name)} here: it is called {MODEL}.", 404, "not_found_error")
    limit = _count(fields, "max_completion_tokens" if fields.get("max_completion_tokens") is not None else "max_tokens")
    context = model.config.max_position_embeddings
    temperature = 1.0 if fields.get("temperature") is None else fields["temperature"]
    greedy = temperature == 0 and not isinstance(temperature, bool)
    try:
        prompts = _prompts(fields, kind, model)
        longest = max(map(len, prompts))
        room = context - longest
        if limit is not None and limit > room:
            raise Refused(
                f"The context has {context} tokens: {longest} of the prompt and max_tokens={limit} are "
                f"{longest + limit - context} too many. Use a shorter prompt or a smaller max_tokens."
            )
        top_p = 1.0 if greedy or fields.get("top_p") is None else fields["top_p"]
        sampling = Sampling(temperature, _top_k(fields), fields.get("seed") or 0, top_p)
    except (ValueError, TypeError) as error:  # sentences of the model's
        raise Refused(str(error)) from None
    n = _count(fields, "n") or 1
    if n * len(prompts) > MOST_CHOICES:
        raise Refused(f"{n * len(prompts)} answers to one request are too many: ask for {MOST_CHOICES} at most.")
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict):
        raise Refused(f"stream_options must be an object, not {quote(options)}.")
    seeded = fields.get("seed") is not None
    return Asked(
        kind,
        prompts,
        n,
        limit if limit is not None else min(room, MAX_TOKENS) if kind == COMPLETION else room,
        sampling,
        [place if seeded else None for place in range(n * len(prompts))],
        _stop(fields.get("stop")),
        _flag(fields, "ignore_eos"),
        _flag(fields, "stream"),
        _flag(options, "include_usage"),
        _flag(options, "continuous_usage_stats"),
        sorted(
            name
            for name, value in fields.items()
            if value is not None and (name in IGNORED - {"stream_options"} or (greedy and name in GREEDY))
        ),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(f"The body is not JSON: {error}.") from None
    if not isinstance(fields, dict):
        raise Refused(f"The body must be a JSON object, not {quote(fields)}.")
    return fields


def _check_fields(fields: Mapping[str, Any], kind: str) -> None:
    for name, value in fields.items():
        if value is None or name in IGNORED or name in KNOWN or (name in GREEDY and fields.get("temperature") == 0):
            continue
        if name not in UNCHANGED:
            raise Refused(f"The field {quote(name)} is unknown: leave it out.")
        if value not in UNCHANGED[name]:
            raise Refused(f"{name}={quote(value)} is not supported here: leave it out.")
    other = "messages" if kind == COMPLETION else "prompt"
    if fields.get(other) is not None:
        raise Refused(f"The field {other!r} belongs to the other endpoint: leave it out.")


def _count(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Refused(f"{name} must be a whole number of at least 1, not {quote(value)}.")
    return value


def _top_k(fields: Mapping[str, Any]) -> int:
    """0 and -1 both leave all tokens, as in vLLM."""
    value = fields.get("top_k")
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < -1):
        raise Refused(f"top_k must be a whole number of at least 1, or -1, not {quote(value)}.")
    return max(value or 0, 0)


def _flag(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise Refused(f"{name} must be true or false, not {quote(value)}.")
    return bool(value)


def _stop(value: Any) -> list[str]:
    """The texts that end an answer: one, or a list of them; an empty one ends nothing."""
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(f"stop must be a text or a list of texts, not {quote(value)}.")
    return [text for text in texts if text]


def _prompts(fields: Mapping[str, Any], kind: str, model: LanguageModel) -> list[list[int]]:
    if kind == CHAT:
        return [model.prompt(_turns(fields.get("messages")))]
    prompt = fields.get("prompt")
    texts = [prompt] if isinstance(prompt, str) else prompt
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise Refused(f"prompt must be a text or a list of texts, not {quote(prompt)}.")
    if len(texts) > MOST_CHOICES:
        raise Refused(f"{len(texts)} prompts in one request are too many: send {MOST_CHOICES} at most.")
    return [model.prompt(text) for text in texts]


def _turns(messages: Any) -> list[str]:
    if not isinstance(messages, list) or not messages:
        raise Refused(f"messages must be a list with at least one message, not {quote(messages)}.")
    turns: list[str] = []
    first: list[str] = []  # of the system: this model has no turn for it, so it stands before the user's first words
    for place, message in enumerate(messages):
        if not isinstance(message, dict):
            raise Refused(f"message {place} must be an object with role and content, not {quote(message)}.")
        role, text = message.get("role"), _text(message.get("content"), place)
        if role in ("system", "developer"):
            if text.strip():
                first.append(text)
            continue
        if role != ("assistant" if len(turns) % 2 else "user"):
            raise Refused(f"message {place} is of {quote(role)}: user and assistant must alternate, the user first.")
        turns.append(text)
    if len(turns) % 2 == 0:
        raise Refused("The last message must be the user's.")
    return ["\n".join([*first, turns[0]]), *turns[1:]]


def _text(content: Any, place: int) -> str:
    """A text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) != len(parts) or not all(isinstance(text, str) for text in texts):
        raise Refused(f"message {place}: content must be a text, or parts of type text, not {quote(content)}.")
    return "".join(text for text in texts if isinstance(text, str))


class Reply:
    """The answers to one request in OpenAI's form, whole or piece by piece."""

    def __init__(self, question: Asked):
        self.question, self.counts = question, [0] * len(question.choices)
        self._head = {
            "id": f"{'cmpl' if question.kind == COMPLETION else 'chatcmpl'}-{uuid4().hex}",
            "created": int(time.time()),
            "model": MODEL,
        }

    def usage(self) -> dict[str, int]:
        """Tokens so far, the ends of the answers included."""
        prompt, completion = sum(map(len, self.question.prompts)), sum(self.counts)
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def piece(self, place: int, text: str, ended: str) -> dict[str, Any]:
        """One token of a stream. place: which of the answers it belongs to."""
        self.counts[place] += 1
        choice: dict[str, Any] = {"index": place, "logprobs": None, "finish_reason": ended or None}
        if self.question.kind == COMPLETION:
            choice["text"] = text
        else:
            choice["delta"] = {"role": "assistant", "content": text} if self.counts[place] == 1 else {"content": text}
        running = {"usage": self.usage()} if self.question.running_usage else {}
        return {**self._head, "object": self._stream_object, "choices": [choice], **running}

    def last(self) -> dict[str, Any]:
        """The piece with the usage, after all others."""
        return {**self._head, "object": self._stream_object, "choices": [], "usage": self.usage()}

    def whole(self, answers: Sequence[tuple[Sequence[str], str]]) -> dict[str, Any]:
        """The whole answers in one piece: of each its texts, one a token, and how it ended."""
        self.counts = [len(texts) for texts, _ in answers]
        choices = []
        for place, (texts, ended) in enumerate(answers):
            choice: dict[str, Any] = {"index": place, "logprobs": None, "finish_reason": ended}
            if self.question.kind == COMPLETION:
                choice["text"] = "".join(texts)
            else:
                choice["message"] = {"role": "assistant", "content": "".join(texts)}
            choices.append(choice)
        return {**self._head, "object": self.question.kind, "choices": choices, "usage": self.usage()}

    @property
    def _stream_object(self) -> str:
        return COMPLETION if self.question.kind == COMPLETION else "chat.completion.chunk"


__all__ = ["CHAT", "COMPLETION", "MODEL", "Asked", "LMError", "Refused", "Reply", "read"]
