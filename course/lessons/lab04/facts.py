"""The numbers in the texts of lab 04, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from course import policies, queueing
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab04 import as_vllm, live_words, night, other_loads, refill, side_by_side, tasks, three_batchers
from course.lessons.lab04.other_loads import TRACE
from course.lessons.lab04.side_by_side import at_once, slot_utilisation
from course.lessons.lab04.three_batchers import BUDGET, BY_HAND, CHAT, CLAIM, FEW, FOLLOWED, SLOTS, STEP
from course.models import engine_defaults
from course.models.gpus import gpu

WASTE, WASTE_TWIN = (100, 20, 80), (60, 10, 30, 50)
RATIO, RATIO_TWIN = (400, 50, 110, 80), (90, 20, 40)  # answers [tokens] of one static batch
HAND_SLOTS = 2
ARRIVE, ARRIVE_TWIN = 20, 28  # requests/s of the decision
CHOICES = (16, 32, 64, 128, 256)  # slots that the decision offers
FLOOR_GB, FLOOR_TB_S = 16, 2  # of the earlier question
PROMPT, ANSWER, LIGHT = 512, 256, 3  # tokens of the chat on average; requests/s that both policies keep up with
FEW_SLOTS, SHORT, LONG = 8, 20, 2_000
RECORDED = 65_536  # prompt tokens of the largest step that was recorded
QUIET = slice(5, 8)  # hours of the night, from 1 o'clock

GIVEN = (SLOTS, PROMPT, ANSWER, three_batchers.GRUMBLED, three_batchers.WAITED, FOLLOWED,
         FEW["num_requests"], FEW["slots"], len(CHAT), SHORT, ARRIVE, ARRIVE_TWIN)  # fmt: skip


def padding(answers: tuple[int, ...]) -> int:
    """Slot-steps of padding of a static batch with these answers."""
    return len(answers) * max(answers) - sum(answers)


def ratio(answers: tuple[int, ...]) -> float:
    """What continuous batching gains over batches like this one, where every step costs the same."""
    return max(answers) * len(answers) / sum(answers)


def keeps_up(arrive: float) -> int:
    """The smallest of the choices that delivers the tokens of so many requests/s."""
    return next(slots for slots in CHOICES if delivered(slots) >= arrive * CHAT.output_tokens.mean())


def delivered(slots: int) -> float:
    """Tokens/s of continuous batching at a spread of 1."""
    return three_batchers.gain(slots, 1.0).continuous


def listed(values: tuple[int, ...]) -> str:
    """Numbers as in a sentence: "6, 1, 2 and 3"."""
    *first, last = (f"{value:,}" for value in values)
    return f"{', '.join(first)} and {last}"


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    chat, few = three_batchers.gain(SLOTS, 1.0), three_batchers.gain(FEW_SLOTS, 1.0)
    longest = queueing.lognormal_gain(batch=SLOTS, output_cv=1.0)
    need = queueing.demand(prompt_tokens=PROMPT, output_tokens=ANSWER, output_cv=1.0)
    hand = three_batchers.by_hand()
    few_answers = three_batchers.one_trace(1.0, 0.1)["static"].workload.output_tokens
    running, waiting, slots = refill.PROBES[0]
    dark, lit = night.night(), night.night(continuous=True)
    return {
        "engine": engine_defaults.VERSION,
        "default_slots": engine_defaults.batch(gpu("H100"))[0],
        "floor_gb": FLOOR_GB,
        "floor_tb_s": FLOOR_TB_S,
        "floor_gb_s": 1_000 * FLOOR_TB_S,
        "floor_inverse": FLOOR_TB_S / FLOOR_GB,
        "floor_ms": FLOOR_GB // FLOOR_TB_S,
        "claim": f"{100 * (CLAIM[0] - 1):.0f} to {100 * (CLAIM[1] - 1):.0f}%",
        "gain": chat.gain,
        "gain_few": few.gain,
        "few_slots": FEW_SLOTS,
        "close": tasks.CLOSE,
        "short_answer": few_answers[FOLLOWED - 1],
        "asked": len(live_words.ASKED),
        "vllm_asked": len(as_vllm.run()),
        "vllm_same": as_vllm.same_words(),
        # By hand
        "hand_answers": listed(BY_HAND),
        "hand_slots": HAND_SLOTS,
        "hand_slot_steps": HAND_SLOTS * len(hand["static"].steps),
        "hand_tokens": sum(BY_HAND),
        "hand_padding": hand["static"].steps.wasted.sum(),
        "hand_refilled": len(hand["continuous"].steps),
        "hand_longest": np.mean([max(BY_HAND[:2]), max(BY_HAND[2:])]),
        "hand_mean": int(np.mean(BY_HAND)),
        "hand_gain": len(hand["static"].steps) / len(hand["continuous"].steps),
        # The chat
        "longest": ANSWER * longest.gain,
        "formula": longest.gain,
        "drawn": chat.drawn_bound,
        "static_rate": queueing.static_capacity(need, longest, STEP, max_num_seqs=SLOTS).requests_per_s,
        "continuous_rate": queueing.continuous_capacity(
            need, STEP, max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET
        ).requests_per_s,
        # Exercises and the decision
        "waste": padding(WASTE),
        "waste_answers": listed(WASTE),
        "waste_twin": padding(WASTE_TWIN),
        "waste_twin_answers": listed(WASTE_TWIN),
        "ratio": ratio(RATIO),
        "ratio_answers": listed(RATIO),
        "ratio_twin": ratio(RATIO_TWIN),
        "ratio_twin_answers": listed(RATIO_TWIN),
        "refill_running": str(running),
        "refill_waiting": str(waiting),
        "refill_slots": slots,
        "refill_result": str(refill.refill(running, waiting, slots)),
        "choices": listed(CHOICES),
        "keeps_up": keeps_up(ARRIVE),
        "keeps_up_twin": keeps_up(ARRIVE_TWIN),
        # The ticket and the quiz
        "evening_s": dark.median[0],
        "night_s": dark.median[QUIET].mean(),
        "night_busy": dark.busy[QUIET].mean(),
        "night_rate": min(night.RATES),
        "quiet_from": (night.EVENING + QUIET.start) % 24,
        "quiet_to": (night.EVENING + QUIET.stop) % 24,
        "fill_more": SLOTS - 1,
        "fill_s": (SLOTS - 1) / min(night.RATES),
        "repaired_s": lit.median[QUIET].max(),
        "light_rate": LIGHT,
        **_deeper(),
    }


def _deeper() -> dict[str, Any]:
    """Those of the optional notebook."""
    padded = [SLOTS * TRACE.prompt_tokens[row : row + SLOTS].max() for row in range(0, len(TRACE), SLOTS)]
    return {
        "e2e_slo": int(other_loads.E2E_SLO),
        "rate_low": other_loads.STOPS[0],
        "long_delay_s": int(max(other_loads.DELAYS)),
        "batches": len(CHAT) // SLOTS,
        "most_slots": max(three_batchers.BATCHES),
        "batches_most": len(CHAT) // max(three_batchers.BATCHES),
        "widest": int(max(three_batchers.SPREADS)),
        "trace_prompt": TRACE.prompt_tokens.mean(),
        "trace_answer": TRACE.output_tokens.mean(),
        "trace_shortest": TRACE.prompt_tokens.min(),
        "trace_longest": TRACE.prompt_tokens.max(),
        "trace_step": next(tokens for tokens in padded if tokens > RECORDED),
        "recorded_step": RECORDED,
        "said_static": "50 to 70%",  # published, without a source that could be run
        "said_continuous": "80 to 95%",
        "window_s": 30,
    }


@cache
def full(slots: int = SLOTS) -> dict[str, Run]:
    """The chat at saturation under each policy."""
    return side_by_side.serve_each(at_once(CHAT), side_by_side.three_policies(slots), STEP)


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    times = three_batchers.gain(SLOTS, 1.0).gain
    runs, dark = full(), night.night()
    waits = bool((dark.median_wait > 0.8 * dark.median)[QUIET].all())
    equal = three_batchers.gain(SLOTS, 0.0).gain
    light = side_by_side.serve_each(CHAT.scaled(LIGHT), side_by_side.three_policies(SLOTS), STEP)
    more = light["static"].makespan / light["continuous"].makespan  # the tokens are the same
    return {
        "gain": (times > 0.8 * SLOTS, 3.6 < times < 4.4, CLAIM[0] <= times <= CLAIM[1], times < 1.1),
        "floor": (False, 1e3 * FLOOR_GB / (1e3 * FLOOR_TB_S) == FLOOR_GB // FLOOR_TB_S, False),
        "cause": (dark.busy[QUIET].min() > 0.5, waits, False),
        "measure": "before the first step",
        "repair": "continuous batching",
        "why": (
            1 - runs["static"].steps.seconds.sum() / runs["static"].makespan > 0.01,
            runs["continuous"].steps.wasted.sum() == 0 < runs["static"].steps.wasted.sum(),
            1 - runs["continuous"].steps.seconds.sum() / runs["continuous"].makespan > 0.01,
        ),
        "size": "each step decides anew",
        "equal": (abs(equal - 1) < 0.05, equal > 3, 1.05 <= equal <= 3),
        "below": (more < 0.95, 0.95 <= more <= 1.05, more > 1.05),  # but for the drain after the last arrival
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    four, six = (serve(CHAT.scaled(r), policies.Static(SLOTS), STEP) for r in (three_batchers.GRUMBLED,
                                                                               three_batchers.WAITED))  # fmt: skip
    small, large = three_batchers.gain(FEW_SLOTS, 1.0), three_batchers.gain(SLOTS, 1.0)
    chat, runs, dark = large, full(), night.night()
    alone = side_by_side.saturated_gain(STEP, max_num_seqs=SLOTS, output_cv=1.0, prompt_tokens=1)
    by_night = {
        name: _median_by_night(policy)
        for name, policy in (("more", policies.Static(2 * SLOTS)), ("dynamic", policies.Dynamic(SLOTS, 0.1)))
    }
    dynamic = serve(night.load(), policies.Dynamic(SLOTS, 0.1), STEP)
    steps = len(runs["continuous"].steps)
    return {
        "at 4 requests/s people grumble": 30 < np.percentile(four.e2e, 95) < 60,
        "at 6 they wait for minutes, and the GPU is busy": (
            np.percentile(six.e2e, 95) > 120 and six.steps.seconds.sum() / six.makespan > 0.98
        ),
        "nobody wants many of the slot-steps": slot_utilisation(six) < 0.5,
        "some answers have only 20 tokens and some 2,000": CHAT.output_tokens.min()
        < SHORT
        < LONG
        < CHAT.output_tokens.max(),
        "more slots make both policies faster": large.static > small.static and large.continuous > small.continuous,
        "the quoted gain was measured where answers are alike": (
            CLAIM[0] <= three_batchers.gain(SLOTS, 0.1).gain <= CLAIM[1]
        ),
        "the longest of a chat's batch is about four times the mean": 3.6 < chat.bound < 4.4,
        "most slot-steps of static batching are padding": slot_utilisation(runs["static"]) < 0.5,
        "prompts make the gain smaller than the formula": chat.gain < chat.drawn_bound < chat.bound
        and chat.gain < alone.gain,
        "the worked example has 5 of padding": padding((6, 1)) == 5,
        "a step with 32 requests has fewer than a hundred tokens": (
            (CHAT.output_tokens.sum() + CHAT.prompt_tokens.sum()) / steps < 100
        ),
        "the smallest that keeps up is more than the server has": SLOTS < keeps_up(ARRIVE) < keeps_up(ARRIVE_TWIN),
        "the evening has fifteen times the traffic": max(night.RATES) == 15 * min(night.RATES),
        "the wait is nine tenths of the time": abs((dark.median_wait / dark.median)[QUIET].mean() - 0.9) < 0.05,
        "twice the slots wait for more requests": by_night["more"] > 1.5 * dark.median[QUIET].max(),
        "a dynamic batcher helps by night": by_night["dynamic"] < 0.1 * dark.median[QUIET].min(),
        "and not by day": slot_utilisation(dynamic) < 0.7,
        "by night a batch takes a minute and more to fill": (
            np.median(serve(CHAT.scaled(min(night.RATES)), policies.Static(SLOTS), STEP).e2e) > 60
        ),
        "vLLM's refills are those of the exercise, in every step": all(
            refill.refill(one.running, one.waiting, as_vllm.run().engine["max_num_seqs"]) == one.tokens
            for one in as_vllm.decisions()
        ),
        "no larger step was recorded": not STEP.beyond(prompt=RECORDED) and bool(STEP.beyond(prompt=RECORDED + 1)),
        "a delay of ten seconds helps nobody at a low rate": _median(1, 10.0) > 3 * _median(1, 0.1),
    }


def _median(rate: float, delay: float) -> float:
    return float(np.median(serve(CHAT.scaled(rate), policies.Dynamic(SLOTS, delay), STEP).e2e))


def _median_by_night(policy: policies.Policy) -> float:
    """Median time to an answer in the quiet hours [s]."""
    run = serve(night.load(), policy, STEP)
    quiet = (run.arrival >= QUIET.start * night.HOUR) & (run.arrival < QUIET.stop * night.HOUR)
    return float(np.median(run.e2e[quiet]))
