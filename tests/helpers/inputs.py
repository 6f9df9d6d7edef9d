"""Random inputs for the functions that the labs ask for, drawn without a look at their probes."""

from __future__ import annotations

import random
from typing import Any

from course.lessons.lab03.one_engine import STEP
from course.lessons.lab10.lookup import keys_of
from course.steptime import PowerLaw


def refills(draw: random.Random) -> tuple[Any, ...]:
    """Some run, some wait, and at least as many slots as run."""
    running = draw.randint(0, 6)
    waiting = draw.randint(0, 8)
    names = iter(range(1, 99, draw.randint(1, 2)))
    return (
        {next(names): 1 for _ in range(running)},
        {next(names): draw.randint(1, 600) for _ in range(waiting)},
        max(1, running + draw.randint(0, 5)),
    )


def shares(draw: random.Random) -> tuple[Any, ...]:
    """Decodes, prompts, a budget that holds at least the decodes, and a cap."""
    names = iter(range(1, 99, draw.randint(1, 2)))
    decoding = [next(names) for _ in range(draw.randint(0, 6))]
    prompts = {next(names): draw.randint(1, 50) for _ in range(draw.randint(0, 6))}
    return decoding, prompts, max(1, len(decoding) + draw.randint(0, 60)), draw.randint(1, 40)


def fills(draw: random.Random) -> tuple[Any, ...]:
    """Decodes, prompts, a budget that holds at least the decodes, and the share of the prompts."""
    decoding, prompts, budget, _ = shares(draw)
    return decoding, prompts, budget, draw.choice([0.1, 0.25, 0.5, 0.8, 1.0])


def streams(draw: random.Random) -> tuple[Any, ...]:
    """A request that was sent, and the moments of two tokens or more."""
    sent = draw.uniform(0, 20)
    moments, now = [], sent
    for _ in range(draw.randint(2, 9)):
        now += draw.uniform(0.01, 2)
        moments.append(now)
    return sent, moments


def floors(draw: random.Random) -> tuple[Any, ...]:
    """A batch and a context."""
    return draw.choice([1, 2, 7, 64, 300, 1_000]), draw.choice([16, 128, 1_024, 8_192])


def capacities(draw: random.Random) -> tuple[Any, ...]:
    """A step time, a prompt, an answer, a context and slots: of lab 03's curve, or small ones that weigh more."""
    if draw.random() < 0.5:
        slots, prompt, output = draw.randint(8, 128), draw.randint(16, 2_000), draw.randint(128, 600)
        return STEP, prompt, output, prompt + output // 2, slots
    slots, prompt, output = draw.randint(2, 5), draw.randint(2, 60), draw.randint(5, 20)
    step = PowerLaw(
        1e-4, draw.uniform(1e-3, 3e-3), 1, prefill=draw.uniform(1e-4, 1e-3), context=draw.uniform(1e-4, 1e-3)
    )
    return step, prompt, output, prompt + output // 2, slots


def pools(draw: random.Random) -> tuple[Any, ...]:
    """Blocks, tokens of a block, and the lengths of some sequences, of which one fits with its deviation."""
    if draw.random() < 0.1:  # all as long: as many as the pool holds to the last block
        many, blocks = draw.randint(2, 9), draw.randint(1, 9)
        return many * blocks, 16, [16 * blocks] * draw.randint(2, 5)
    block = draw.choice([1, 16, 64])
    tokens = [draw.randint(1, 900) for _ in range(draw.randint(2, 40))]
    return draw.randint(m := 3 * (max(tokens) // block + 1), 20 * m), block, tokens


def plans(draw: random.Random) -> tuple[Any, ...]:
    """Moments of a plan, and how long each request took."""
    planned, now = [], 0.0
    for _ in range(draw.randint(1, 9)):
        planned.append(now)
        now += draw.choice([0.25, 0.5, 1.0, 3.0])
    return planned, [draw.choice([0.125, 0.5, 1.25, 4.0]) for _ in planned]


def queues(draw: random.Random) -> tuple[Any, ...]:
    """Tenants that wait with their prompts, and what some of them were served."""
    waiting = [(draw.choice("ABN"), draw.randint(1, 40)) for _ in range(draw.randint(0, 9))]
    return waiting, {name: draw.randint(0, 60) for name in "ABN"}


def days_served(draw: random.Random) -> tuple[Any, ...]:
    """Requests kept and asked by class, near the share that must be kept; cards, dollars an hour, seconds."""
    asked = {"chat": draw.randint(80, 900), "docs": draw.randint(20, 90)}
    kept = {name: round(many * draw.choice((0.9, 0.945, 0.955, 0.97, 1.0))) for name, many in asked.items()}
    return kept, asked, draw.randint(1, 8), draw.choice((0.75, 1.4, 2.5, 3.5)), draw.uniform(10, 60)


def due(draw: random.Random) -> tuple[Any, ...]:
    """(arrival, seconds promised, prompt tokens) of some that wait, oldest first, and a time when some are too late."""
    arrivals = sorted(round(draw.uniform(0, 2), 3) for _ in range(draw.randint(0, 7)))
    waiting = [(arrival, draw.choice((0.5, 0.8, 2.0)), draw.randint(16, 16_000)) for arrival in arrivals]
    return waiting, round(draw.uniform(1.5, 2.5), 3)


def victims(draw: random.Random) -> tuple[Any, ...]:
    """Tokens that each of some requests has computed, often the same, and who is spared."""
    few = [draw.randint(1, 900) for _ in range(draw.randint(1, 4))]
    computed = [draw.choice(few) for _ in range(draw.randint(2, 7))]
    return computed, draw.choice([0, draw.randrange(len(computed))])


def gaps(draw: random.Random) -> tuple[Any, ...]:
    """Gaps between arrivals, how many more are wanted, and the longest window: about as often long enough as not."""
    mean = draw.choice([2.0, 8.0, 40.0])
    found = tuple(round(draw.expovariate(1 / mean), 2) + 0.01 for _ in range(draw.randint(1, 12)))
    return found, draw.choice([1, 2, 4]), draw.choice([10.0, 20.0, 50.0])


def prompts(draw: random.Random) -> tuple[Any, ...]:
    """A prompt, the keys of what an earlier one left, perhaps with a block evicted, and the block size."""
    block = draw.choice([1, 2, 4, 16])
    text = [draw.randint(1, 3) for _ in range(draw.randint(1, 5 * block))]
    known = keys_of(text, block)
    kept = set(sorted(known, key=repr)[draw.choice([0, 0, 1]) :])
    prompt = text[: draw.randint(1, len(text))] if draw.random() < 0.5 else [*text, *(draw.randint(1, 3) for _ in "ab")]
    return prompt, kept, block


def captures(draw: random.Random) -> tuple[Any, ...]:
    """Batches of some steps, and sizes of graphs in any order."""
    sizes = draw.sample([1, 2, 4, 8, 16, 24, 32], draw.randint(1, 5))
    return [draw.randint(1, 40) for _ in range(draw.randint(1, 12))], sizes


def verifications(draw: random.Random) -> tuple[Any, ...]:
    """A plain step, a pass of the draft, steps that verify ever more drafts, and an acceptance."""
    plain, each = draw.uniform(3, 20), draw.uniform(0.02, 1.2)
    steps = [plain * (1 + each * k) for k in range(1, draw.randint(3, 8))]
    return plain, draw.uniform(0.05, 0.6), steps, draw.uniform(0.2, 0.95)


def step_times(draw: random.Random) -> tuple[Any, ...]:
    """A plain step, a pass of the draft, a step that verifies, its drafts, and an acceptance."""
    plain = draw.uniform(3, 20)
    return plain, draw.uniform(0.05, 3), plain * draw.uniform(1, 4), draw.randint(1, 7), draw.uniform(0.2, 0.95)


def deadlines(draw: random.Random) -> tuple[Any, ...]:
    """Those who wait, some of them hopeless, between two seconds: nobody has to start just now."""
    waiting = [(float(draw.randint(0, 20)), 10 * draw.randint(1, 9)) for _ in range(draw.randint(0, 8))]
    return waiting, draw.randint(0, 12) + 0.3, 10


def buckets(draw: random.Random) -> tuple[Any, ...]:
    """A bucket's level, seconds since, its rate and burst, and two costs that it can hold."""
    burst = draw.randint(100, 2_000)
    costs = draw.randint(1, burst), draw.randint(1, burst)
    return draw.randint(0, burst), draw.randint(0, 20), draw.randint(10, 200), burst, *costs


def two_queues(draw: random.Random) -> tuple[Any, ...]:
    """Numbers of requests in two queues, how many run, and the largest batch."""
    most, numbers = draw.randint(1, 6), list(range(1, 9))
    draw.shuffle(numbers)
    few, many = draw.randint(0, 4), draw.randint(0, 4)
    return sorted(numbers[:few]), sorted(numbers[few : few + many]), draw.randint(0, most), most


def prompt_lengths(draw: random.Random) -> tuple[Any, ...]:
    """Tokens of prompts, and a step for edges."""
    found = [draw.choice([draw.randint(1, 90), draw.randint(1, 600)]) for _ in range(draw.randint(2, 12))]
    return found, draw.choice([1, 4, 16, 64])


def ragged(draw: random.Random) -> tuple[Any, ...]:
    """Decodes, and prompts of a few tokens, some of none."""
    return draw.randint(0, 4), [draw.choice([0, 1, 2, 5, 30]) for _ in range(draw.randint(0, 6))]


def shared_steps(draw):
    stays = draw.uniform(0.1, 3)
    step = stays + draw.uniform(1, 40)
    cards = draw.choice([1, 2, 4, 8])
    return [
        step,
        stays,
        cards,
        draw.randint(1, 90),
        draw.uniform(0.005, 0.05),
        draw.randint(1, 256),
        draw.uniform(1, 5),
    ]


def engines(draw: random.Random) -> tuple[Any, ...]:
    """Requests that wait and that run, of some engines; equal loads are frequent."""
    many = draw.randint(2, 5)
    return [draw.choice([0, 0, 1, 2]) for _ in range(many)], [draw.randint(0, 8) for _ in range(many)]


DRAWS = {
    ("01", "reader"): streams,
    ("02", "floor"): floors,
    ("03", "capacity"): capacities,
    ("04", "refill"): refills,
    ("05", "shrink"): gaps,
    ("06", "fill"): fills,
    ("07", "share"): shares,
    ("08", "slots"): pools,
    ("09", "victim"): victims,
    ("10", "lookup"): prompts,
    ("11", "edges"): prompt_lengths,
    ("11", "pack"): ragged,
    ("12", "loop"): captures,
    ("13", "speed_up"): step_times,
    ("13", "how_many"): verifications,
    ("14", "cost"): shared_steps,
    ("14", "route"): engines,
    ("15", "joins"): two_queues,
    ("15", "last"): deadlines,
    ("16", "felt"): plans,
    ("17", "bucket"): buckets,
    ("17", "fair"): queues,
    ("18", "score"): days_served,
    ("18", "order"): due,
}
"""By lab and exercise."""
