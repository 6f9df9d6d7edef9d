"""Random workloads small enough that every step of them can be kept. Nothing here knows vLLM or the course.

A workload is a dict that goes into JSON. arrival: the step in which each request comes; prompt, output: tokens.
slots, budget, blocks, size: max_num_seqs, max_num_batched_tokens, KV blocks and tokens of a block. And if they are not
the defaults: threshold (long_prefill_token_threshold), chunked, full_isl (scheduler_reserve_full_isl), watermark,
async, prefix. starts: with prefix, (source, tokens) of each request: its prompt starts with so many tokens of the
shared text number `source`, or of what request number -1 - source was asked and answered; the rest is its own.
"""

import random
from typing import Any

COUNTS = {
    "roomy": 100, "tight": 200, "nochunk": 50, "labs": 40, "prefix": 100, "turns": 100, "crowded": 150,
    "watermark": 60, "async": 60,
}  # fmt: skip
"""Workloads of each kind. prefix: prompts start alike; turns: a prompt may also start with an earlier answer; crowded:
most do, of few texts, more come at once and blocks are fewer."""
SETTINGS_OF_LABS = ((4, 6, 2), (4, 6, 0), (64, 2_048, 512), (64, 512, 256), (64, 8_192, 1_024), (256, 2_048, 0))
"""Slots, token budget and threshold as the labs on long prompts and on KV memory have them."""


def make(kind: str, seed: int) -> dict[str, Any]:
    """The workload of this kind and seed, the same in every Python."""
    draw = random.Random(f"{kind}, {seed}")
    if kind == "labs":
        return {"seed": seed, **_labs(draw)}
    size, many = draw.choice([1, 4, 16]), draw.randint(4, 28)
    slots = draw.randint(1, 10)
    budget = max(slots, draw.choice([5, 12, 24, 48, 100, 400]))
    prompt = [draw.randint(1, draw.choice([8, 50, 150])) for _ in range(many)]
    output = [draw.randint(1, draw.choice([1, 12, 45])) for _ in range(many)]
    gap = draw.choice([0, 1, 2, 6, 20])
    arrival = [sum(gaps) for gaps in _prefixes([draw.randint(0, gap) for _ in range(many)])]
    made: dict[str, Any] = {"seed": seed, "arrival": arrival, "prompt": prompt, "output": output}
    if kind == "crowded":
        slots, made["arrival"] = slots + draw.randint(2, 8), [step // 3 for step in arrival]
        budget = max(slots, budget)
    if kind in ("prefix", "turns", "crowded"):
        share = {"prefix": 0, "turns": 0.35, "crowded": 0.6}[kind]
        made |= {"prefix": True, "starts": _starts(draw, made, share, 1 if kind == "crowded" else 3)}
    most = max(-(-(asked + answer) // size) for asked, answer in zip(prompt, output, strict=True))
    spare = {"roomy": most * slots, "tight": most // 2, "prefix": 2 * most, "turns": 2 * most, "crowded": most}.get(
        kind, most
    )
    blocks = most + (spare if kind == "roomy" else draw.randint(0, spare))
    if kind == "nochunk":
        longest = max(asked + answer for asked, answer in zip(prompt, output, strict=True))
        made["chunked"], budget = False, max(slots, longest + draw.randint(0, 40))
    elif draw.random() < 0.4:
        made["threshold"] = draw.choice([1, 3, 8, 25])
    if kind != "roomy" and draw.random() < 0.3:
        made["full_isl"] = False
    if kind == "watermark":
        made["watermark"] = draw.choice([0.05, 0.1, 0.25])
        blocks += int(blocks * made["watermark"])
    if kind == "async":
        made["async"] = True
    return made | {"slots": slots, "budget": budget, "blocks": blocks, "size": size}


def _labs(draw: random.Random) -> dict[str, Any]:
    """Chats that stream and a few long prompts among them, or a single long one; in blocks of 16."""
    slots, budget, threshold = draw.choice(SETTINGS_OF_LABS)
    many, long = draw.choice([1, 2, 6, 20]), 12 if budget < 10 else draw.choice([2_048, 8_192, 32_768])
    chats = 2 if budget < 10 else 200
    prompt = [long if i == 0 or draw.random() < 0.15 else draw.randint(1, 2 * chats) for i in range(many)]
    output = [draw.randint(1, 60) for _ in range(many)]
    arrival = [sum(gaps) for gaps in _prefixes([draw.randint(0, 12) for _ in range(many)])]
    most = max(-(-(asked + answer) // 16) for asked, answer in zip(prompt, output, strict=True))
    blocks = draw.choice([most + draw.randint(0, 20), 2_588])
    return {
        "arrival": arrival, "prompt": prompt, "output": output, "slots": slots, "budget": budget,
        "blocks": max(blocks, most), "size": 16, **({"threshold": threshold} if threshold else {}),
    }  # fmt: skip


def _starts(draw: random.Random, made: dict[str, Any], turns: float, texts: int) -> list[tuple[int, int]]:
    """How prompts start: with one of so many texts, or, that share of them, with an earlier prompt and its answer."""
    starts: list[tuple[int, int]] = []
    for i, tokens in enumerate(made["prompt"]):
        if i and draw.random() < turns:
            before = draw.randrange(i)
            shared = draw.randint(1, made["prompt"][before] + made["output"][before])
            starts.append((-1 - before, shared))
            made["prompt"][i] = shared + draw.choice([0, 0, draw.randint(1, 20)])
        else:
            starts.append((draw.randrange(texts), min(tokens, draw.randint(1, 120))))
    return starts


def _prefixes(values: list[int]) -> list[list[int]]:
    return [values[: end + 1] for end in range(len(values))]


def tokens_of(load: dict[str, Any], request: int) -> list[int]:
    """All tokens of a request, prompt and answer, as numbers: equal ones only where the workload shares them."""
    own = [(request + 1) * 1_000_000 + place for place in range(load["prompt"][request] + load["output"][request])]
    if "starts" not in load:
        return own
    source, shared = load["starts"][request]
    text = [source * 1_000 + place for place in range(shared)] if source >= 0 else tokens_of(load, -1 - source)
    return text[:shared] + own[shared:]
