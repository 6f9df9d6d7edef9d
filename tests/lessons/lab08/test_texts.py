"""Lab 08: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import policies, serve
from course.exercises.spec import LETTERS, LabSpec
from course.lessons import load
from course.lessons.lab08 import card_memory, decision, kv_pool, live_words, small_pool, tables, tasks
from course.lessons.lab08.exercises import OTHER, QWEN
from course.models import model
from course.steptime import PowerLaw
from course.workload import Workload, lengths
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, numbers, parts, right_option, right_words, sentence

LAB = load("08")
SOURCE = (SOLUTIONS / "08_kv_budgeting.py").read_text(encoding="utf-8")
LENGTH = 8_192


def more(lab: LabSpec) -> dict[str, str]:
    """What `parts` does not name: what a solution says, twins, the ticket, tasks."""
    found = {}
    for exercise in lab.exercises:
        found[f"{exercise.id} worked"] = exercise.worked
        if twin := exercise.twin:
            name = f"{exercise.id} twin"
            found |= {f"{name} hint": twin.hint, f"{name} plain": twin.plain}
            found |= {f"{name} {i}": mistake.hint for i, mistake in enumerate(twin.mistakes)}
    found |= {"ticket story": lab.ticket.story, "ticket setting": lab.ticket.setting}
    for task in lab.tasks:
        name = f"task {task.id}"
        found |= {name: task.text, f"{name} answer": task.answer, f"{name} miss": getattr(task, "miss", "")}
        for letter, (option, hint) in zip(LETTERS, getattr(task, "options", ()), strict=False):
            found[f"{name} {letter}"] = f"{option} | {hint}"
    return found


TEXTS = {name: text for name, text in (parts(LAB) | more(LAB)).items() if numbers(text)}


@cache
def held() -> float:
    """Tokens that a sequence of the batch holds at a random moment."""
    return kv_pool.PROMPT + kv_pool.ANSWER * (1 + kv_pool.ANSWER_CV**2) / 2


@cache
def gain(cv: float) -> float:
    """Tokens/s of continuous over static batching where somebody always waits: lab 04, with 32 slots."""
    drawn = lengths.lognormal(256, cv) if cv else 256
    load = Workload.poisson(1e6, 2_000, 512, drawn, 0)
    step = PowerLaw(5.5e-3, 30e-6, 1, prefill=25e-6, context=45e-9)
    static, continuous = (
        serve(load, policy, step).makespan for policy in (policies.Static(32), policies.Continuous(32, 8_192))
    )
    return static / continuous


@cache
def facts() -> dict[str, tuple]:
    few, many = (kv_pool.under_load(slots=n) for n in (24, 48))
    at_start, room = kv_pool.hour(kv_pool.GQA, 2.0, 256), kv_pool.hour(kv_pool.GQA, 2.0, 23)
    residents, printed = kv_pool.TOKENS / held(), kv_pool.TOKENS / LENGTH
    llama, old = (card_memory.spec(name) for name in ("llama-3.1-8b", "llama-2-7b"))
    sizes = (QWEN.head_dim, QWEN.kv_bytes_per_element, 8 * QWEN.kv_bytes_per_element)
    other = (OTHER.num_layers, OTHER.num_heads, OTHER.num_kv_heads, OTHER.head_dim, 8 * OTHER.kv_bytes_per_element)
    fits_on_average = (decision.ANSWER / 2) / decision.ANSWER
    return {
        "five": (printed, LENGTH, kv_pool.PROMPT, kv_pool.ANSWER, kv_pool.ANSWER_CV),
        "five a": (int(printed),),
        "five b": (tasks.POOL["slots"],),
        "five c": (residents,),
        "five d": (About(kv_pool.TOKENS / kv_pool.PROMPT, 0.02),),
        "five why": (held(), kv_pool.TOKENS, held(), residents),
        "five a answer": (LENGTH,),
        "five b answer": (tasks.POOL["slots"], int(tasks.POOL["slots"] / residents)),
        "slots": (few.rate, few.slots, many.slots),
        "slots b": (1 / 5,),
        "slots c": (2,),
        "slots why": (
            *(len(few.run), few.tokens_per_second, many.tokens_per_second, few.preemptions, many.preemptions),
            *(About(many.recomputed, 0.07), 2),
        ),
        "token hint": (2,),
        "token 1": (2, QWEN.kv_bytes_per_element),
        "token plain": (5, 2, *sizes),
        "token worked": (2,),
        "token twin": (32, *other),
        "token twin hint": (2,),
        "token twin plain": (5,),
        "token twin 1": (2,),
        "residents 0": (2, 1 / 2),
        "residents 2": (1 / 2, 1),
        "residents 3": (2, 1, 2, 1),
        "residents plain": (2, kv_pool.TOKENS, 1 / 2),
        "residents worked": (2,),
        "residents twin": (6_000, 1_000),
        "residents twin plain": (2, 1 / 2),
        "residents twin 0": (0, 1 / 2),
        "residents twin hint": (0,),
        "slots 0": (1 / 2, 2),
        "slots 1": (2,),
        "slots plain": (1, 1, 1),
        "slots twin": (3, 2),
        "slots twin 0": (2, 3),
        "slots twin 1": (1 / 2,),
        "decide 0": (fits_on_average,),
        "decide 2": (decision.FIVE, decision.FIVE),
        "quiz limit": (kv_pool.TOKENS / 32_768, 32_768, 1_500),
        "quiz limit c": (About(kv_pool.TOKENS / 1_500, 0.03), kv_pool.TOKENS / 32_768, 32_768, 1_500),
        "quiz gqa": (old.kv_bytes_per_token / llama.kv_bytes_per_token,),
        "quiz gqa a": (llama.num_kv_heads,),
        "quiz blame": (500, 60, 100, 40),
        "quiz blame a": (500 - 60,),
        "quiz blame b": (500 - 60 - 100 / 2 - 40,),
        "quiz blame c": (500 - 60 - 100 - 40,),
        "quiz little": (1, 11),
        "quiz little a": (1 * 11,),
        "quiz little b": (1, 11),
        "quiz next b": (100, 2),
        "quiz repair": (at_start.preemptions,),
        "ticket story": (at_start.longest_gap,),
        "ticket setting": (
            *(room.slots, at_start.slots, at_start.preemptions),
            round(at_start.arriving_tokens_per_second) - round(room.arriving_tokens_per_second),
        ),
        "task printed": (10,),
        "task small": (32, 1.5, tasks.CARD["gpu_memory_utilization"]),
        "task room": (tasks.BUSY, 100 * tasks.NEARLY),
        "task room answer": (2,),
        "task bytes": (tasks.BUSY, 95, tasks.SOON, 2),
        "task bytes answer": (95,),
        "task bytes miss": (95,),
        "task queue": (room.slots, 8 * llama.kv_bytes_per_element),
        "task queue c": (room.slots,),
    }


@pytest.mark.parametrize("name", TEXTS)
def test_the_numbers(name):
    # Formats such as {p95} are no numbers of the text.
    agree(TEXTS[name].replace("{p95}", "{}"), facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(TEXTS)


def test_the_sentences_of_the_notebook():
    few, many = (tables.on_recorded_steps(slots)[0] for slots in tables.SLOTS)
    sentence(SOURCE, "tells four stories here, in blocks of {} tokens", live_words.BLOCK_SIZE)
    assert abs(many / few - 1) < 0.02  # they hardly change on these steps either
    case = small_pool.small()
    held_by_d = case.held[:, 3]
    gone = np.flatnonzero((held_by_d[:-1] > 0) & (held_by_d[1:] == 0))[0] + 1
    back = np.flatnonzero(held_by_d[gone:])[0] + gone
    sentence(
        SOURCE,
        "A pool of {} blocks of {} tokens; {} requests with a prompt of {} tokens and an answer of {}.",
        *(small_pool.BLOCKS, small_pool.BLOCK_SIZE, small_pool.REQUESTS, small_pool.PROMPT, small_pool.ANSWER),
    )
    sentence(SOURCE, "They start with {} blocks each and soon hold {}", case.held[0, 0], case.held[1, 0])
    assert list(case.held[1]) == [3] * 4 and case.held[1].sum() == small_pool.BLOCKS
    assert gone == 5 and "In the sixth step each needs a fourth" in SOURCE and case.held[5, 0] == 4
    sentence(SOURCE, "no token for {} steps, and all end after {} steps", back - gone, len(case.run.steps))
    sentence(SOURCE, "instead of {}.", small_pool.ANSWER)
    assert list(np.flatnonzero(case.run.preempted)) == [2, 3]  # C and D, and nobody twice
    printed, ledger = kv_pool.TOKENS, card_memory.ledger("llama-3.1-8b", "RTX 4090", max_model_len=LENGTH).kv_tokens
    sentence(SOURCE, "here they leave {}% less", 100 * (1 - ledger / printed))
    full = kv_pool.under_load(rate=2.0)
    sentence(SOURCE, "| requests at once | {}, simulated {} | |", kv_pool.TOKENS / held(), full.in_batch)
    sentence(SOURCE, "| bytes a token | {} | |", model("llama-3.1-8b").kv_bytes_per_token)
    sentence(SOURCE, "here {} fit on average, not {}.", kv_pool.TOKENS / held(), kv_pool.TOKENS // LENGTH)
    (mine,) = (one for one in LAB.exercises if one.id == "slots")
    sentence(SOURCE, "(exercise {}: {})", 3, mine.solution(kv_pool.BLOCKS, 16, kv_pool.tokens_held()))
    drawn = kv_pool.requests(2.0).output_tokens
    sentence(
        SOURCE,
        "(fewer than {}: here answers have a mean of {} and a CV of {})",
        *(held() / kv_pool.BLOCK_SIZE, drawn.mean(), drawn.std() / drawn.mean()),
    )
    assert np.ceil(kv_pool.tokens_held() / kv_pool.BLOCK_SIZE).mean() < held() / kv_pool.BLOCK_SIZE
    sentence(SOURCE, "answers {} on average, CV {}.", kv_pool.ANSWER, kv_pool.ANSWER_CV)
    sentence(SOURCE, "Every prompt has {} tokens and every answer {}.", decision.PROMPT, decision.ANSWER)


def test_the_lines_that_an_engine_writes():
    assert kv_pool.start_up_log().splitlines() == [
        "GPU KV cache size: 41,408 tokens", "Maximum concurrency for 8,192 tokens per request: 5.05x"
    ]  # fmt: skip
    values = dict(line.split('{engine="0"} ') for line in decision.metrics().splitlines())
    assert float(values["vllm:num_requests_running"]) == decision.FIVE
    used = decision.FIVE * (decision.PROMPT + decision.ANSWER / 2) / kv_pool.TOKENS
    assert float(values["vllm:kv_cache_usage_perc"]) == pytest.approx(used, abs=5e-3) and used < 0.5
    assert "vLLM 0.19" in SOURCE.split("print(decision.metrics())")[0].rsplit("# %%", 2)[1]


def test_the_keys_of_the_predictions():
    five, slots = LAB.predictions
    fits = kv_pool.under_load(slots=256).in_batch  # as many as the pool lets in
    right_option(five, fits < 6, fits > 200, 25 < fits < 29, 38 < fits < 42)
    times = kv_pool.under_load(slots=48).tokens_per_second / kv_pool.under_load(slots=24).tokens_per_second
    right_option(slots, 0.95 < times < 1.05, 1.15 < times < 1.25, times > 1.8)


def test_the_keys_of_the_quiz():
    limit, full, gqa, weights = LAB.quiz
    shorter = kv_pool.TOKENS / 1_500  # sequences of the question that the pool holds
    right_option(limit, shorter < 2, shorter >= 256, 26 < shorter < 28)
    run = kv_pool.under_load(slots=48).run
    # Everybody is answered, some after a preemption, and what they lost is computed again.
    assert np.isfinite(run.e2e).all() and run.preempted.sum() and run.steps.dropped.sum()
    right_words(full, "preempts the last one admitted")
    right_words(gqa, "another checkpoint")
    small = card_memory.spec("llama-3.1-8b")
    plain, quantised = (
        card_memory.memory.ledger(small, "H100", max_model_len=LENGTH, weights_bytes=small.weights_bytes / part)
        for part in (1, 2)
    )
    a_token = quantised.spec.kv_bytes_per_token / plain.spec.kv_bytes_per_token
    grows = quantised.kv_tokens > plain.kv_tokens
    right_option(weights, a_token == 1 / 2, a_token == 1 and grows, a_token == 1 and not grows)


def test_the_keys_of_what_is_asked_again():
    blame, little = LAB.earlier
    right_option(blame, *(said == 500 - 60 - 100 - 40 for said in (440, 350, 300)))
    right_option(little, True, False, False)  # L = λ W = 1 x 11, whatever the arrivals


def test_the_keys_of_the_ticket():
    cause, measure, repair = LAB.ticket.questions
    today, before = (kv_pool.hour(kv_pool.GQA, 2.0, slots) for slots in (256, 23))
    slow = np.nanmedian(today.run.tpot) > 2 * np.nanmedian(before.run.tpot)
    full = today.pool_used.max() > 0.99 and today.preemptions > 0
    only_first = today.longest_gap < 2 * before.longest_gap  # nothing in the middle of an answer
    right_option(cause, slow, full, only_first)
    right_words(measure, "num_preemptions_total")
    assert before.preemptions == 0 and before.longest_gap < 0.3
    right_words(repair, "--max-num-seqs")
    assert today.arriving_tokens_per_second == pytest.approx(
        before.arriving_tokens_per_second, rel=0.03
    )  # "tokens/s as before"
