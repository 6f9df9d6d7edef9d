"""Lab 07: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import traces
from course.exercises import load
from course.lessons.lab07 import long_prompt, prompt_chunks, share
from course.lessons.lab07.exercises import prefill_seconds
from course.lessons.lab07.long_prompt import CHAT_ANSWER, CHAT_RATE, EVERY, PROMPT, STEP, THEORY, WHOLE
from course.lessons.lab07.prompt_chunks import seconds_a_pair, seconds_of_steps
from course.steptime import Step
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("07")
SOURCE = (SOLUTIONS / "07_chunked_prefill.py").read_text(encoding="utf-8")
CHUNK, CAP, SHARED = 512, 512, 2_048  # of the predictions


@cache
def found(budget: int, cap: int = 0, theory: bool = False):
    step_time = THEORY if theory else STEP
    return long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)


@cache
def streaming() -> float:
    """Seconds that a chat streams."""
    today = found(WHOLE)
    return float((today.run.e2e - today.run.ttft)[today.chats].mean())


def share_of_stalls() -> float:
    """Of all tokens, those after a gap that a reader notices."""
    gaps, weights = found(WHOLE).run.itl_weighted
    return float(weights[gaps > long_prompt.STALL].sum() / weights.sum())


def longer(chunk: int, than: int = 8_192, step_time=STEP) -> float:
    """How many times as long a prompt takes in chunks."""
    return float(seconds_of_steps(PROMPT, chunk, step_time).sum() / seconds_of_steps(PROMPT, than, step_time).sum())


@cache
def throughput(budget: int) -> tuple[float, float]:
    """Tokens/s of the trace, in theory and recorded."""
    trace, engine = traces.read(traces.example()), long_prompt.engine(budget)
    theory, recorded = (prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (THEORY, STEP))
    return theory, recorded


@cache
def facts() -> dict[str, tuple]:
    whole, cut, capped = found(WHOLE), found(CHUNK), found(SHARED, CAP)
    chunks = PROMPT // CHUNK
    theory, recorded = (1 - low / high for low, high in zip(throughput(128), throughput(2_048), strict=True))
    in_theory = found(CHUNK, theory=True).long_ttft / found(WHOLE, theory=True).long_ttft
    return {
        "p99": (1e3 * whole.itl["p50"], EVERY, PROMPT, whole.itl["max"], CHUNK, chunks, 99),
        "p99 a": (About(cut.itl["p99"] / whole.itl["p99"]),),
        "p99 b": (EVERY, 99),
        "p99 c": (1 / 2,),
        "p99 d": (About(cut.itl["max"] / whole.itl["max"]),),
        "p99 why": (
            *(1e3 * found.itl[name] for name in ("p99", "max") for found in (whole, cut)),
            *(whole.itl["max"], CHAT_RATE * streaming(), 100 * share_of_stalls(), 99, chunks, chunks, 1, 99),
        ),
        "newcomers": (99, 1e3 * whole.chat_ttft["p99"], CHUNK),
        "newcomers a": (20, 2),
        "newcomers b": (1 / 2, 1 / 2),
        "newcomers c": (About(cut.chat_ttft["p99"] / whole.chat_ttft["p99"] - 1),),
        "newcomers why": (1e3 * cut.chat_ttft["p99"], 1e3 * capped.chat_ttft["p99"], SHARED, CAP),
        "long": (chunks, CHUNK, PROMPT),
        "long b": (About(cut.long_ttft / whole.long_ttft - 1),),
        "long c": (2,),
        "long d": (chunks,),
        "long why": (
            100 * (cut.long_ttft / whole.long_ttft - 1), whole.long_ttft, cut.long_ttft, 100 * (in_theory - 1),
        ),
        "chunk hint": (64,),
        "share hint": (share.SLOTS, share.BUDGET, share.CAP, 1),
        "share 6": (0,),
        "quiz slo": (1e3 * long_prompt.STALL,),
        "quiz slo a": (99, whole.itl["max"], EVERY, 100 * share_of_stalls(), 99),
        "quiz slo b": (CHAT_ANSWER,),
        "quiz slo c": (99,),
        "quiz short": (SHARED,),
        "quiz short a": (CHUNK,),
        "quiz short b": (CAP, About(SHARED - CAP, 0.05)),
        "quiz short c": (128,),
        "quiz small": (128,),
        "quiz small a": (About(THEORY.weights / THEORY.per_token, 0.02), About(recorded, 0.1), About(theory, 0.12)),
        "quiz order": (2_048,),
        "quiz attention": (PROMPT, chunks),
        "quiz attention b": (chunks,),
        "quiz attention a": (
            PROMPT * (PROMPT + 1) / 2 / 1e6, seconds_a_pair(256) / seconds_a_pair(2_048), 256, 2_048,
        ),
        "quiz partial": (0.19, 4),
        "quiz partial a": (4,),
    }  # fmt: skip


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_keys_of_the_predictions():
    whole, cut = found(WHOLE), found(CHUNK)
    p99, newcomers, long = LAB.predictions
    times = cut.itl["p99"] / whole.itl["p99"]
    right_option(p99, 2.7 < times < 3.3, 0.95 < times < 1.05, 0.4 < times < 0.6, times < 0.1)
    waits = cut.chat_ttft["p99"] / whole.chat_ttft["p99"]
    right_option(newcomers, cut.chat_ttft["p99"] < 0.03, 0.4 < waits < 0.6, 1.25 < waits < 1.4)
    more = cut.long_ttft / whole.long_ttft
    right_option(long, more < 1, 1.25 < more < 1.4, 1.8 < more < 2.2, more > 10)


def test_the_keys_of_the_quiz():
    slo, short, small, order, attention, partial = LAB.quiz
    stalled, mended = found(WHOLE), found(SHARED)
    # The p99 over tokens and the mean TPOT hardly tell the two apart, the longest gap of each request does.
    over_tokens = stalled.itl["p99"] / mended.itl["p99"]
    means = np.nanmean(stalled.run.tpot) / np.nanmean(mended.run.tpot)
    over_chats = np.percentile(stalled.chat_gaps, 99) / np.percentile(mended.chat_gaps, 99)
    right_option(slo, *(times > 2 for times in (over_tokens, means, over_chats)))
    base = found(SHARED).chat_ttft["p99"]
    assert found(SHARED).run.steps.running.max() < long_prompt.SLOTS  # slots were free
    right_option(short, found(512).chat_ttft["p99"] < base, found(SHARED, 512).chat_ttft["p99"] < base / 2, False)
    right_option(small, throughput(128)[0] < 0.8 * throughput(2_048)[0], False, False)
    few = long_prompt.requests(num_chats=300)
    apart = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 2_048))
    smaller = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 512))
    mixed = long_prompt.outcome(few, long_prompt.engine(2_048))
    protects = [here.itl["max"] < 0.2 for here in (apart, smaller, mixed)]
    right_option(order, *protects)
    pairs = [sum(step.prefill_pairs for step in prompt_chunks.chunk_steps(PROMPT, size)) for size in (PROMPT, 512)]
    right_option(attention, pairs[1] == pairs[0], pairs[1] > pairs[0], pairs[1] < pairs[0])
    right_words(partial, "refuses to start")


# What the notebook says, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    today, load_ = found(WHOLE), long_prompt.requests()
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > 2_048
    knee = THEORY.weights / THEORY.per_token
    card = long_prompt.outcome(trace.scaled(8), long_prompt.engine(8_192))
    meets = float((card.run.e2e - card.run.ttft).mean())
    heavy = float((card.run.steps.seconds > 0.05).sum() / card.run.makespan)
    plain = Step(32, 32 * 1_024, ())
    ratios = [STEP(plain) / THEORY(plain)]
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (seconds_of_steps(PROMPT, chunk, step_time) for step_time in (STEP, THEORY))
        ratios += [took.max() / theory.max(), took.sum() / theory.sum()]
    whole_step = seconds_of_steps(PROMPT, PROMPT)
    tokens = CHAT_RATE * EVERY * CHAT_ANSWER
    caught = CHAT_RATE * streaming()
    kept = found(2_048, 16)
    sizes = {
        "with {} tokens in and about {} out, and while they stream a token comes every {} ms": (
            long_prompt.CHAT_PROMPT, CHAT_ANSWER, 1e3 * today.itl["p50"],
        ),
        "continuous batching with {} slots. {} chats arrive each second": (long_prompt.SLOTS, CHAT_RATE),
        "a prompt of {} tokens, once in {} seconds": (PROMPT, EVERY),
        "The p99 of the time between two tokens is {} ms": (1e3 * today.itl["p99"],),
        "here one above {} ms.": (1e3 * long_prompt.STALL,),
        "Now {} chats and a long prompt every {} s": (int((load_.class_ == "chat").sum()), EVERY),
        "long as computing some {} tokens.)": (About(knee, 0.02),),
        "token budget of a step was raised to {}, so": (WHOLE,),
        "A budget of {} is no engine's default. `vllm serve` {} takes {} on this card": (WHOLE, 0.19, 8_192),
        "then a prompt of {} runs in {} chunks and a rest": (PROMPT, PROMPT // 8_192),
        "The products of some {} tokens take as long": (About(knee, 0.02),),
        "one chat in {} stops for nearly {} seconds": (About(1 / today.stalled(), 0.05), About(today.itl["max"], 0.15)),
        "the steps of all {} layers of Llama-3.1-8B for a prompt of {} tokens, with {} decodes in each": (
            THEORY.model.num_layers, PROMPT, prompt_chunks.DECODES,
        ),
        "What is recorded takes {} to {} times as long": (min(ratios), max(ratios)),
        "compute attention at a {} of the rate of": (
            About(THEORY.model.attention_flops_per_pair / seconds_a_pair(2_048) / THEORY.gpu.matrix_flops, 0.1),
        ),
        "chunks of 512 take {}% longer where theory says {}%, and chunks of 256 take {}% longer where it says {}%": (
            100 * (longer(512) - 1), 100 * (longer(512, step_time=THEORY) - 1),
            100 * (longer(256) - 1), 100 * (longer(256, step_time=THEORY) - 1),
        ),
        "One step for all {} tokens gains only {}%": (PROMPT, 100 * (1 - longer(PROMPT))),
        "without a cap the p99 over tokens is worst at {} in": (_worst(),),
        "over tokens is worst at {} in both": (_worst(theory=True),),
        "at 256 the long prompt waits {}% longer than at 8,192, in theory {}%": (
            100 * (found(256).long_ttft / found(8_192).long_ttft - 1),
            100 * (found(256, theory=True).long_ttft / found(8_192, theory=True).long_ttft - 1),
        ),
        "that 2,048 breaks a promise of {} ms, which 1,024": (100,),
        "launching the kernels of a step [s] | {} ms": (1e3 * THEORY.launch,),
        "reading them once [s] | {} ms": (1e3 * THEORY.weights,),
        "a little more for a decode | {} µs": (1e6 * THEORY.per_token,),
        "| $m$ | bytes of K and V of one token | {} |": (THEORY.model.kv_bytes_per_token,),
        "q = {} ns": (1e9 * THEORY.per_pair,),
        "without a cap it is *worst* at {}. Why?": (_worst(),),
        "A long prompt finds some {} chats streaming. One step of {} s makes {} long gaps, {} steps of {} ms make"
        " {} times as many. Of the {} tokens of {} s the first are {}%, the second {}%": (
            caught, whole_step[0], caught, PROMPT // 512, 1e3 * found(512).long_ttft / 64, PROMPT // 512, tokens, EVERY,
            100 * caught / tokens, 100 * 64 * caught / tokens,
        ),
        "The long prompt pays: {} ms with a cap of 512 instead of {} ms, {} ms with one of {}.": (
            *(1e3 * found(2_048, cap).long_ttft for cap in (512, 0, 1_024)), 1_024,
        ),
        "the p99 of the gaps, which goes from {} to {} ms": [1e3 * found(2_048, cap).itl["p99"] for cap in (0, 512)],
        "a notch of {} s every {} s": (today.itl["max"], EVERY),
        "Its longest prompt has {}. Even so, one request in {} has more than {} tokens, and these hold {}% of all": (
            trace.prompt_tokens.max(), About(1 / long.mean(), 0.07), 2_048,
            100 * trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum(),
        ),
        "At {} requests a second:": (8,),
        "with a budget of 8,192 there are {} of them each second: an answer that streams for {} s meets {}": (
            heavy, meets, About(heavy * meets, 0.1),
        ),
        "step with more than some {} prompt tokens takes over {} ms": (
            About(next(c for c in range(1_000, 3_000, 10) if STEP(Step(20, 26_000, ((c, 0),))) > 0.05), 0.05), 50,
        ),
        "With 64 decodes that is a chunk of {} tokens": (64 * 0.2 / 0.8,),
        "the scores of {} tokens need {} MB a head": (10_000, 10_000**2 * 4 / 1e6),
        "A prompt of {} tokens runs in chunks of {}. How many query-key pairs": (2_000, 512),
        "{} s to its first token": (kept.long_ttft,),
        "a short one of {} tokens takes {} steps": (long_prompt.CHAT_PROMPT, -(-long_prompt.CHAT_PROMPT // 16)),
        "Below some {} a smaller cap": (About(knee, 0.02),),
        "With {} chats a second and {} tokens a step": (22, 72),
        "on the recorded card below {}.": (_best_recorded(),),
    }  # fmt: skip
    return sizes


def _worst(theory: bool = False) -> int:
    """The budget with the highest p99 over tokens."""
    return max((8_192, 2_048, 512, 256, 128), key=lambda budget: found(budget, theory=theory).itl["p99"])


def _best_recorded() -> int:
    """The budget with the most tokens/s on the recorded card."""
    return max((2_048, 512, 256, 128), key=lambda budget: throughput(budget)[1])


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_notebook(template):
    sentence(SOURCE, template, *sentences()[template])


def test_what_is_often_said():
    one, several = (prefill_seconds(STEP, 2_000, chunk) for chunk in (2_000, 512))
    steps = -(-2_000 // 512)
    sentence(SOURCE, "in chunks of 512 takes {} steps instead of one, so its TTFT is {} times as long", steps, steps)
    assert several / one < 1.2
