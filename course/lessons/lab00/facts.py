"""The numbers in the texts of lab 00, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

from course.exercises import minutes
from course.lessons.lab00 import answer, machines, tasks, together, traffic
from course.models import engine_defaults
from course.models.gpus import gpu

PROMPT, TOKENS = 512, 21  # check 1
TWIN_PROMPT, TWIN_TOKENS = 128, 101
RATE, HOUR, SHARE = 12, 3_600, 0.01  # check 2: requests/s, seconds, share above the p99
TWIN_RATE, DAY, TWIN_SHARE = 5, 86_400, 0.05
BURSTS, CV, DRAWS = 10, 3, 20  # of the second prediction: requests/s, of the gaps, other draws
ABOUT = 5  # ms of a decode step, roughly
QUIZ_PROMPT, QUIZ_ANSWER = 500, 100
TAIL, MARK, TICKS = 2, 200, (10, 100)  # s; ms; ms
PART_MINUTES = 15

GIVEN = (PROMPT, TOKENS, RATE)


@cache
def draws() -> tuple[float, ...]:
    """The share above the mean in other draws of the bursts, in per cent, sorted."""
    found = (
        traffic.Traffic(BURSTS, traffic.run(float(BURSTS), float(CV), seed), False) for seed in range(1, DRAWS + 1)
    )
    return tuple(sorted(100 * one.above_mean for one in found))


def weights_here() -> int:
    """Weights of the small language model."""
    model = answer.model()
    layers = sum(part.size for layer in model.layers for part in vars(layer).values())
    return int(model.embedding.size + model.norm.size + layers)


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    prefill, decode = together.prefill_on_h100(PROMPT), together.on_h100(1)
    sixteen, card = together.on_h100(16), machines.h100()
    wild, calm = traffic.traffic(float(BURSTS), float(CV)), traffic.traffic(float(RATE), 1.0)
    return {
        "part_minutes": PART_MINUTES,
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "slots": traffic.SLOTS,
        "weights_millions": weights_here() / 1e6,
        "kv_here": answer.kv_bytes(),
        "kv_h100": machines.H100.model.kv_bytes_per_token,
        "billions": round((machines.H100.model.parameters or 0) / 1e9),
        "prefill_ms": 1e3 * prefill,
        "decode_ms": 1e3 * decode,
        "about_ms": ABOUT,
        "all_ms": together.MOST * ABOUT,
        "sixteen_ms": 1e3 * sixteen,
        "sixteen_times": sixteen / decode,
        "reading_ms": 1e3 * card.reading,
        "multiply_ms": 1e3 * card.computing,
        # Bursts
        "rate": BURSTS,
        "cv": CV,
        "mean_ms": 1e3 * wild.mean,
        "median_ms": 1e3 * wild.percentile(50),
        "p99_s": wild.percentile(99),
        "above": wild.above_mean,
        "least": draws()[0],
        "most": draws()[-1],
        "draws": DRAWS,
        "check_p99_ms": 1e3 * calm.percentile(99),
        # Check 1
        "answer_s": prefill + (TOKENS - 1) * decode,
        "one_more_s": prefill + TOKENS * decode,
        "decodes_s": (TOKENS - 1) * decode,
        "prefills_s": TOKENS * prefill,
        "each_prefill_s": PROMPT * prefill,
        "mixed": 1e3 * prefill + (TOKENS - 1) * decode,
        "step_each_s": prefill + (PROMPT + TOKENS - 1) * decode,
        "thousand": 1_000,
        "prefill_s": prefill,
        "decode_s": decode,
        "hour_s": HOUR,
        "hundred": round(1 / SHARE),
        "twin_prompt": TWIN_PROMPT,
        "twin_prefill_ms": 1e3 * together.prefill_on_h100(TWIN_PROMPT),
        "twin_tokens": TWIN_TOKENS,
        "twin_s": together.prefill_on_h100(TWIN_PROMPT) + (TWIN_TOKENS - 1) * decode,
        "twin_less_s": (TWIN_TOKENS - 1) * decode - together.prefill_on_h100(TWIN_PROMPT),
        # Check 2
        "people": RATE * HOUR * SHARE,
        "all_people": RATE * HOUR,
        "below_people": RATE * HOUR * (1 - SHARE),
        "second_people": RATE * SHARE,
        "minute_people": RATE * 60 * SHARE,
        "minute_all": RATE * 60,
        "p95_people": RATE * HOUR * TWIN_SHARE,
        "half_people": RATE * HOUR / 2,
        "twin_rate": TWIN_RATE,
        "twin_people": TWIN_RATE * DAY * TWIN_SHARE,
        "twin_p99_people": TWIN_RATE * DAY * SHARE,
        # The test
        "quiz_prompt": QUIZ_PROMPT,
        "quiz_answer": QUIZ_ANSWER,
        "quiz_sum": QUIZ_PROMPT + QUIZ_ANSWER,
        "quiz_more": QUIZ_ANSWER + 1,
        "quiz_decodes": QUIZ_ANSWER - 1,
        "quiz_ratio": QUIZ_PROMPT / QUIZ_ANSWER,
        "hour_people": BURSTS * HOUR,
        "tail_s": TAIL,
        "tail_thousandth": BURSTS * HOUR / 1_000,
        "tail_hundredth": BURSTS * HOUR * SHARE,
        "tail_twentieth": BURSTS * HOUR * TWIN_SHARE,
        "tick_a": TICKS[0],
        "tick_b": TICKS[1],
        "mark": MARK,
        "log_plus": MARK + 20,
        "log_twice": 2 * MARK,
        "log_step": 1_000 - TICKS[1],
        "log_difference": (MARK + 1_000 - TICKS[1]) / 1e3,
        "log_right": MARK * TICKS[1] / TICKS[0] / 1e3,
    }


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    shares = (100 * traffic.traffic(float(BURSTS), float(CV)).above_mean, *draws())
    said = len(answer.tokens(answer.QUESTIONS[0])[1])
    steps = len(answer.seconds(answer.QUESTIONS[0])) - said  # beyond one for each token of an answer
    hour, ratio = BURSTS * HOUR, TICKS[1] / TICKS[0]
    calm, wild = (traffic.traffic(float(BURSTS), cv) for cv in (1.0, float(CV)))
    ends = wild.run.arrival[-1] / calm.run.arrival[-1]
    return {
        "mean": tuple(all(abs(share - about) <= 6 for share in shares) for about in (50, 20, 1)),
        "steps": tuple(
            one == QUIZ_ANSWER + steps for one in (QUIZ_PROMPT + QUIZ_ANSWER, QUIZ_ANSWER + 1, QUIZ_ANSWER, 5)
        ),
        "cache": "keys and values of one token",
        "weights": "reading the weights",
        "tail": (*(abs(count - hour * SHARE) < 1 for count in (hour / 1_000, hour / 100, hour / 20)), False),
        "log": tuple(abs(place - MARK * ratio) < 1 for place in (MARK + 20, 2 * MARK, MARK + 900, 10 * MARK)),
        "bursts": (
            bool(abs(ends - 1) > 0.05), bool(wild.arrivals.max() > 1.5 * calm.arrivals.max()), False, False,
        ),
    }  # fmt: skip


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    base, slope = zip(*(together.STEP.decode_line(count) for count in (1, 16)), strict=True)
    more = together.on_h100(16) - together.on_h100(1)
    caches = together.CONTEXT * (16 * slope[1] - slope[0])
    parts = [value for name, value in minutes.read("00")["core"]["sections"].items() if name.startswith("Part")]
    wild = traffic.traffic(float(BURSTS), float(CV))
    return {
        "what fifteen more add is mostly the reading of their caches": caches > 0.7 * more > 0.7 * (base[1] - base[0]),
        "reading takes most of a step, and about as long as said": abs(1e3 * machines.h100().reading - ABOUT) < 0.1,
        "sixteen are fewer than the H100 could take for nothing": machines.h100().sequences > 200,
        "those few wait ten times as long as the mean": abs(wild.percentile(99) / wild.mean - 10) < 1,
        "each part has about the minutes said": len(parts) == 2 and max(parts) <= PART_MINUTES < min(parts) + 2,
        "tasks ask for ten and for twenty times": (tasks.GAIN, tasks.FAR) == (10, 20),
    }  # fmt: skip
