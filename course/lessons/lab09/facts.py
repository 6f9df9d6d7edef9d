"""The numbers in the texts of lab 09, from the runs that they speak of, and what must hold beside them."""

from __future__ import annotations

from functools import cache
from typing import Any

from course.lessons.lab09 import attention, decision, deeper, figures, pool, tasks
from course.lessons.lab09.pool import BLOCK, SPEC, STEP, TOKENS
from course.lessons.lab09.victims import frees_most
from course.models import model
from course.steptime import Step

WORKED, HELD = (20, 100, 41), (37, 70, 3)  # tokens that three sequences hold
TWIN_BLOCK, PIECE = 32, 128  # tokens
PREFILL, PREFILL_TWIN = 40_000, 50_000  # prompt tokens/s of the exercise and its twin
QWEN = model("qwen2-7b")  # whose sizes Qwen2.5-7B has
VICTIM_TOKENS = 900  # of the quiz
FIND_L, FIND_W = 96, 8  # requests that run, and seconds that each does, of the question from lab 03
STALL, CLIENT = 3, 8  # seconds and connections, of the question from lab 16
DECODES, WATERMARK = 97, 0.05  # requests of the quiz; of the texts
LARGER_BUDGET, BOTH = 16_384, 2  # tokens a step, of the ticket; K and V, out and back
PROMISE_TWIN = 0.1  # seconds
GIVEN = (BLOCK, pool.SLOTS, VICTIM_TOKENS, FIND_L, FIND_W, STALL, CLIENT, SPEC.num_layers, SPEC.num_kv_heads,
         SPEC.head_dim, pool.BUDGET, pool.REQUESTS, DECODES, pool.LONGEST, WATERMARK, LARGER_BUDGET, BOTH)  # fmt: skip


def empty(held: tuple[int, ...], size: int) -> int:
    """Places that hold nothing, of whole blocks or pieces."""
    return sum(-(-tokens // size) * size - tokens for tokens in held)


def listed(values: tuple[int, ...]) -> str:
    """Numbers as in a sentence: "37, 70 and 3"."""
    *first, last = (f"{value:,}" for value in values)
    return f"{', '.join(first)} and {last}"


def break_even(a_token: float, prefill: float) -> float:
    """GB/s from which copying out and back is faster than computing again, one request by itself."""
    return 2 * a_token * prefill / 1e9


@cache
def prefill_alone() -> float:
    """Prompt tokens/s of one long step on the recorded steps."""
    return 2_048 / STEP(Step(0, 0, ((2_048, 0),)))


@cache
def prefill_beside() -> float:
    """Prompt tokens/s that a step takes longer for, beside the decodes of this pool."""
    running, chunk = round(pool.out_of_blocks().running), 400
    return chunk / (STEP(Step(running, TOKENS, ((chunk, 0),))) - STEP(Step(running, TOKENS, ())))


@cache
def lost_time() -> float:
    """Share of the tokens/s that computing again costs, against copies that take no time."""
    return 1 - pool.out_of_blocks().tokens_per_second / pool.out_of_blocks(bandwidth=pool.FREE).tokens_per_second


def facts() -> dict[str, Any]:
    """Every number that the texts show."""
    start, paged = pool.out_of_blocks(), pool.placed(pool.PAGED)
    longest = pool.placed(pool.MAX)
    load, mark = pool.requests(), pool.out_of_blocks(watermark=WATERMARK)
    few = pool.out_of_blocks(victim=pool.FEWEST)
    a_token, qwen = SPEC.kv_bytes_per_token, QWEN.kv_bytes_per_token
    tuesday, free = frees_most(), pool.out_of_blocks(bandwidth=pool.FREE)
    took = tuesday.run.last_computed - tuesday.run.first_computed
    worst, other = figures.two_readers(tuesday)
    again = load.output_tokens.sum() * (1 / start.tokens_per_second - 1 / free.tokens_per_second)
    on = pool.out_of_blocks(prefix_caching=True)
    most = max(attention.recording().ratios) - 1
    return {
        # The question, earlier labs, predictions, tasks
        "prompt_mean": load.prompt_tokens.mean(), "answer_mean": load.output_tokens.mean(),
        "find_rate": FIND_L // FIND_W, "find_times": FIND_L * FIND_W, "find_inverse": FIND_W / FIND_L,
        "again": start.again, "slower": lost_time(), "scattered_more": most,
        "again_us": 1e6 * again / start.run.steps.dropped.sum(), "answer_us": 1e6 / start.tokens_per_second,
        "short_gap": tasks.SHORT_GAP,
        # The text
        "times_running": paged.running / longest.running,
        "times_speed": paged.tokens_per_second / longest.tokens_per_second,
        "hand_piece": figures.PIECE, "hand_block": figures.SMALL, "hand_places": figures.PLACES,
        "hand_a": figures.HAND["A"], "hand_b": figures.HAND["B"], "hand_c": figures.HAND["C"],
        "hand_empty": empty(tuple(figures.HAND.values())[:2], figures.PIECE),
        "hand_blocks_empty": empty(tuple(figures.HAND.values()), figures.SMALL),
        "half_block": (BLOCK - 1) / 2, "waste_formula": (BLOCK - 1) / 2 * paged.running / paged.mean(paged.taken),
        "waste_simulated": paged.empty, "a_token": a_token, "prefill_alone": prefill_alone(),
        "even": break_even(a_token, prefill_alone()), "even_beside": break_even(a_token, prefill_beside()),
        "even_below": max(b for b in tasks.BANDWIDTHS if b < tasks.break_even()), "even_above": tasks.break_even(),
        "beside": prefill_beside(), "mark_speed": mark.tokens_per_second, "mark_lost": mark.preemptions,
        "lost": start.preemptions, "few_lost": few.preemptions,
        "speed": start.tokens_per_second,
        "found_again": decision.found_again(on) / on.run.steps.dropped.sum(), "speed_on": on.tokens_per_second,
        # Exercises
        "worked": listed(WORKED), "worked_empty": empty(WORKED, BLOCK), "worked_sum": sum(WORKED),
        "worked_taken": sum(WORKED) + empty(WORKED, BLOCK), "piece": PIECE, "worked_reserved": empty(WORKED, PIECE),
        "held": listed(HELD), "waste": empty(HELD, BLOCK), "waste_taken": sum(HELD) + empty(HELD, BLOCK),
        "waste_held": sum(HELD), "waste_piece": empty(HELD, PIECE), "waste_half": len(HELD) * (BLOCK - 1) / 2,
        "waste_together": -sum(HELD) % BLOCK, "twin_block": TWIN_BLOCK, "waste_twin": empty(HELD, TWIN_BLOCK),
        "waste_twin_taken": sum(HELD) + empty(HELD, TWIN_BLOCK), "prefill": PREFILL, "prefill_twin": PREFILL_TWIN,
        "crossover": break_even(a_token, PREFILL), "crossover_way": break_even(a_token, PREFILL) / 2,
        "crossover_kv": 2 * break_even(a_token, PREFILL), "crossover_bits": 8 * break_even(a_token, PREFILL),
        "qwen_token": qwen,
        "crossover_twin": break_even(qwen, PREFILL_TWIN), "crossover_twin_way": break_even(qwen, PREFILL_TWIN) / 2,
        "example_bytes": 65_536, "example_rate": 20_000, "example": break_even(65_536, 20_000),
        "promise": decision.PROMISE, "promise_twin": PROMISE_TWIN, "moment": decision.MOMENT,
        # The ticket and the quiz
        "ticket_times": tuesday.most, "ticket_lost": tuesday.preemptions, "ticket_took_s": took[worst],
        "ticket_other_s": took[other], "most_last": start.most,
        "last_more": start.tokens_per_second / tuesday.tokens_per_second - 1,
        "victim_mb": VICTIM_TOKENS * a_token / 1e6, "victim_half": VICTIM_TOKENS * a_token / 2e6,
        "victim_layer": VICTIM_TOKENS * a_token / SPEC.num_layers / 1e6, "pieces_running": longest.running,
        "paged_running": paged.running,
        **deeper.facts(),
    }  # fmt: skip


def keys() -> dict[str, tuple[bool, ...] | str]:
    """Which option of each question is true; of a question about no number, words of the right one."""
    start, tuesday, answers = pool.out_of_blocks(), frees_most(), pool.requests().output_tokens
    slower, ratio = lost_time(), max(attention.recording().ratios)
    worst, other = figures.two_readers(tuesday)
    pieces = pool.placed(pool.MAX)
    joined = int((pieces.run.admitted > 0).sum())  # while others ran
    return {
        "unsent": "that it did not send",
        "in_system": (False, FIND_L / FIND_W == 12, False),
        "lost": (abs(slower - start.again) < 0.05, 0.1 < slower < 0.17, slower < 0.03),
        "pages": (ratio > 1.2, False, ratio < 1.03),  # any block holds any 16 tokens: none is too small
        "cause": (answers[worst] > answers[other], tuesday.run.preempted[worst] > 100, start.running > pool.SLOTS),
        "next": "how often this request",
        "repair": "whom the engine sends away",
        "token": tuple(abs(mb - VICTIM_TOKENS * SPEC.kv_bytes_per_token / 1e6) < 1 for mb in (3.7, 59, 118)),
        "refill": "the preempted one",
        "share": "97 + 900 tokens",
        "paging": (
            joined > 0.9 * pool.REQUESTS and 5 * pieces.running < start.running + 1,
            joined == 0,
            pieces.mean(pieces.taken) < 0.9 * TOKENS,
        ),
    }


def claims() -> dict[str, bool]:
    """What the texts say beyond their numbers."""
    start, mark = pool.out_of_blocks(), pool.out_of_blocks(watermark=WATERMARK)
    true, packed = (
        pool.placed(pool.TRUE, compaction=seconds) for seconds in (None, 2 * SPEC.kv_bytes_per_token / 4.8e12)
    )
    least, gap = (pool.out_of_blocks(victim=pool.FEWEST), pool.out_of_blocks(slots=80))
    on = pool.out_of_blocks(prefix_caching=True)
    return {
        "the whole card would preempt nobody": start.run.steps.running.max() * 412 < 10 * TOKENS,
        "most of a reserved piece is empty, and the pool is full": pool.placed(pool.MAX).empty > 0.75,
        "pieces of the true length leave holes, and pushing them together costs little": (
            packed.used > 1.05 * true.used and packed.tokens_per_second > true.tokens_per_second
        ),
        "half of an answer is still to come": 0.35 < packed.empty < 0.45,
        "watermark 0.05 loses less and is faster": (
            mark.preemptions < 0.1 * start.preemptions and mark.tokens_per_second > 1.1 * start.tokens_per_second
        ),
        "the fewest computed tokens: twice the preemptions, less lost, faster": (
            least.preemptions > 2 * start.preemptions
            and least.again < start.again
            and least.tokens_per_second > start.tokens_per_second
        ),
        "80 slots are calm and faster than 1,024": (
            gap.longest_gap < tasks.SHORT_GAP and gap.tokens_per_second > start.tokens_per_second
        ),
        "the same requests lose their blocks whether copied or not": (
            pool.out_of_blocks(bandwidth=pool.FREE).preemptions == start.preemptions
        ),
        "a watermark of 0.2 is no faster than 80 slots": (
            pool.out_of_blocks(watermark=0.2).tokens_per_second < gap.tokens_per_second
        ),
        "prefix caching finds part of it and hardly helps": (
            0.1 < decision.found_again(on) / on.run.steps.dropped.sum() < 0.3
            and on.tokens_per_second < 1.05 * start.tokens_per_second
        ),
        "three requests by hand": empty(tuple(figures.HAND.values()), figures.SMALL) == 7,
        "the patch of the ticket counts fewer preemptions, and one request has most of them": (
            frees_most().preemptions < start.preemptions / 3 and frees_most().most > frees_most().preemptions / 2
        ),
        "the best of the decision is the one that is asked for": decision.best() == (decision.MAX_NUM_SEQS, 80),
        "chats need more than one request by itself, since a step is paid for anyway": prefill_beside()
        > prefill_alone(),
        "72 slots keep the twin's promise, and 80 do not": (
            decision.worst(decision.MAX_NUM_SEQS, 72)[0] <= PROMISE_TWIN < decision.worst(decision.MAX_NUM_SEQS, 80)[0]
        ),
        **deeper.claims(),
        "between the two bandwidths": tasks.break_even() > break_even(SPEC.kv_bytes_per_token, prefill_alone()),
    }
