"""The functions that lab 16 asks for, and the plausible wrong ones.

Lengths of time are in seconds. What the wrong ones do is said by the hints in `lab16.py`.
"""

import math

NAN = float("nan")


def felt_ttft(planned, seconds):
    """TTFT from the plan, for a client with one request in flight: it sends late while an answer is late."""
    free, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        free = max(free, moment) + took
        found.append(free - moment)
    return found


def as_written(planned, seconds):
    """Takes the times as the client wrote them down."""
    return list(seconds)


def never_idle(planned, seconds):
    """Takes the client for busy from the first request on."""
    total, found = 0.0, []
    for moment, took in zip(planned, seconds, strict=True):
        total += took
        found.append(total - moment)
    return found


def without_its_own(planned, seconds):
    """Leaves the request's own time out."""
    return [whole - took for whole, took in zip(felt_ttft(planned, seconds), seconds, strict=True)]


def one_step_back(planned, seconds):
    """Waits for the answer before, as if that one had been sent on time."""
    found, before = [], 0.0
    for moment, took in zip(planned, seconds, strict=True):
        found.append(max(before, moment) + took - moment)
        before = moment + took
    return found


def moments(planned, seconds):
    """Gives the moments of the first tokens instead of the waits for them."""
    return [moment + whole for moment, whole in zip(planned, felt_ttft(planned, seconds), strict=True)]


def ours(tool, value, tokens, ttft):
    """TPOT under the course's definition from what a tool calls the time per token of one request; seconds."""
    if value is None or tokens < 2:
        return NAN
    if tool == "guidellm 0":
        return value * tokens / (tokens - 1)
    if tool in ("guidellm", "llmperf"):
        return (value * tokens - ttft) / (tokens - 1)
    return value


def ttft_left_in(tool, value, tokens, ttft):
    """Leaves the first token in the times of guidellm and llmperf."""
    return ours("guidellm 0" if tool in ("guidellm", "llmperf") else tool, value, tokens, ttft)


def all_tokens(tool, value, tokens, ttft):
    """Divides by all tokens instead of all but the first."""
    if value is None or tokens < 2:
        return NAN
    return (value * tokens - ttft) / tokens if tool in ("guidellm", "llmperf") else value


def null_is_zero(tool, value, tokens, ttft):
    """Takes null for 0."""
    return 0.0 if value is None else ours(tool, value, tokens, ttft)


def one_token_is_zero(tool, value, tokens, ttft):
    """Gives an answer of one token a TPOT of 0."""
    return 0.0 if value is not None and tokens < 2 else ours(tool, value, tokens, ttft)


def ttft_everywhere(tool, value, tokens, ttft):
    """Takes the first token out of guidellm 0 as well."""
    return ours("llmperf" if tool == "guidellm 0" else tool, value, tokens, ttft)


def fewest_requests(percent: float, confidence: float) -> int:
    """The smallest n for which the largest of n independent values is above the percentile with this confidence."""
    return math.ceil(math.log(1 - confidence) / math.log(percent / 100))
