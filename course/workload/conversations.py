"""Requests that wait for answers: closed loops of users, and conversations whose prompts grow by their history.

Each function gives the arguments of a Workload.
"""

from typing import Any

import numpy as np

from course.base.settings import MAX_REQUESTS, MAX_TOKENS, real, seed_sequence, whole
from course.workload import arrivals
from course.workload.lengths import as_lengths, sample_lengths
from course.workload.sharing import forks, histories


def closed_loop(
    users: int,
    think_time: float,
    requests_per_user: int,
    prompt_tokens: Any,
    output_tokens: Any,
    think_cv: float,
    seed: int,
) -> dict[str, Any]:
    """See `Workload.closed_loop`."""
    users = whole("users", users, high=MAX_REQUESTS)
    rounds = whole("requests_per_user", requests_per_user, high=MAX_REQUESTS)
    think_time, think_cv = _checked_thinking(think_time, think_cv)
    n = _checked_size(users * rounds, f"{users:,} users with {rounds:,} requests each")
    prompts, outputs = as_lengths("prompt_tokens", prompt_tokens), as_lengths("output_tokens", output_tokens)
    arrival_rng, prompt_rng, output_rng, think_rng = _streams(seed)
    arrival = np.full(n, np.nan)
    arrival[:users] = np.sort(think_time * arrival_rng.random(users))
    think = arrivals.gaps(think_rng, think_time, think_cv, n)
    think[:users] = 0.0
    after = np.arange(n) - users
    after[:users] = -1
    return {
        "arrival": arrival,
        "prompt_tokens": sample_lengths("prompt_tokens", prompts, prompt_rng, n),
        "output_tokens": sample_lengths("output_tokens", outputs, output_rng, n),
        "after": after,
        "think_time": think,
        "name": "closed loop",
    }


def turns(
    rate: float,
    num_conversations: int,
    turns: Any,
    prompt_tokens: Any,
    output_tokens: Any,
    think_time: float,
    think_cv: float,
    system_tokens: int,
    seed: int,
    prefix_block_size: int | None,
) -> dict[str, Any]:
    """See `Workload.turns`."""
    rate = arrivals.checked_rate(rate)
    conversations = whole("num_conversations", num_conversations, high=MAX_REQUESTS)
    think_time, think_cv = _checked_thinking(think_time, think_cv)
    system_tokens = whole("system_tokens", system_tokens, low=0, high=MAX_TOKENS)
    new_text, answers = as_lengths("prompt_tokens", prompt_tokens), as_lengths("output_tokens", output_tokens)
    arrival_rng, prompt_rng, output_rng, think_rng, turn_rng = _streams(seed, 5)
    counts = sample_lengths("turns", as_lengths("turns", turns), turn_rng, conversations)
    # Summed as Python floats: a billion turns in each of five million conversations would overflow nothing here.
    n = _checked_size(
        int(counts.astype(np.float64).sum()), f"{conversations:,} conversations of {counts.mean():.4g} turns"
    )
    first = np.cumsum(counts) - counts  # where each conversation begins
    new_tokens = sample_lengths("prompt_tokens", new_text, prompt_rng, n)
    outputs = sample_lengths("output_tokens", answers, output_rng, n)
    prompts = system_tokens + _history(new_tokens + outputs, first, counts) + new_tokens
    arrival = np.full(n, np.nan)
    arrival[first] = arrivals.renewal(arrival_rng, rate, 1.0, conversations)
    after = np.arange(n) - 1
    after[first] = -1
    think = arrivals.gaps(think_rng, think_time, think_cv, n)
    think[first] = 0.0
    columns = {"arrival": arrival, "prompt_tokens": prompts, "output_tokens": outputs}
    columns |= {"after": after, "think_time": think, "name": "conversations"}
    if prefix_block_size is None:
        return columns
    size = whole("prefix_block_size", prefix_block_size, high=MAX_TOKENS)
    prefix = histories(np.cumsum(after < 0) - 1, prompts + outputs, system_tokens, size)
    return columns | {"prefix": prefix, "prefix_block_size": size, "prefix_answers": True}


def agents(
    rate: float,
    num_agents: int,
    branches: int,
    prompt_tokens: Any,
    output_tokens: Any,
    tool_time: float,
    system_tokens: int,
    seed: int,
    prefix_block_size: int,
) -> dict[str, Any]:
    """See `Workload.agents`."""
    rate, many = arrivals.checked_rate(rate), whole("num_agents", num_agents, high=MAX_REQUESTS)
    branches = whole("branches", branches, high=MAX_REQUESTS)
    tool_time = real("tool_time", tool_time, low=0, high=1e9)
    system_tokens = whole("system_tokens", system_tokens, low=0, high=MAX_TOKENS)
    size = whole("prefix_block_size", prefix_block_size, high=MAX_TOKENS)
    n = _checked_size(many * (branches + 1), f"{many:,} agents that fork into {branches:,}")
    new_text, answers = as_lengths("prompt_tokens", prompt_tokens), as_lengths("output_tokens", output_tokens)
    arrival_rng, prompt_rng, output_rng = _streams(seed, 3)
    prompts = sample_lengths("prompt_tokens", new_text, prompt_rng, n).reshape(many, branches + 1)
    outputs = sample_lengths("output_tokens", answers, output_rng, n).reshape(many, branches + 1)
    prompts[:, 0] += system_tokens
    trunk = prompts[:, 0] + outputs[:, 0]
    prompts[:, 1:] += trunk[:, None]
    arrival, after = np.full((many, branches + 1), np.nan), np.full((many, branches + 1), -1)
    arrival[:, 0] = arrivals.renewal(arrival_rng, rate, 1.0, many)
    after[:, 1:] = (branches + 1) * np.arange(many)[:, None]
    return {
        "arrival": arrival.ravel(),
        "prompt_tokens": prompts.ravel(),
        "output_tokens": outputs.ravel(),
        "after": after.ravel(),
        "think_time": np.where(after < 0, 0.0, tool_time).ravel(),
        "prefix": forks(trunk, (prompts + outputs)[:, 1:], system_tokens, size),
        "prefix_block_size": size,
        "prefix_answers": True,
        "name": "agents",
    }


def _history(turn_tokens: np.ndarray, first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Tokens of the same conversation before each turn: conversations of `counts` turns that begin at `first`."""
    before = np.cumsum(turn_tokens) - turn_tokens  # over all conversations
    return before - np.repeat(before[first], counts)


def _checked_thinking(think_time: float, think_cv: float) -> tuple[float, float]:
    return real("think_time", think_time, low=0, high=1e9), arrivals.checked_cv(think_cv, "think_cv")


def _checked_size(n: int, what: str) -> int:
    if n > MAX_REQUESTS:
        raise ValueError(f"{what} are {n:,} requests, and a workload holds at most {MAX_REQUESTS:,}: use fewer")
    return n


def _streams(seed: int, count: int = 4) -> list[np.random.Generator]:
    """Independent streams, one a property; the first three are those of the open workloads."""
    return [np.random.default_rng(child) for child in seed_sequence(seed).spawn(count)]
