"""Lab 07: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import traces
from course.exercises import load
from course.lessons.lab07 import long_prompt, prompt_chunks, share
from course.lessons.lab07.exercises import prefill_seconds
from course.lessons.lab07.long_prompt import CHAT_ANSWER, CHAT_RATE, EVERY, PROMPT, STEP, WHOLE
from course.lessons.lab07.prompt_chunks import CARD_STEP, RECORDING
from course.steptime import Step
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("07")
SOURCE = (SOLUTIONS / "07_chunked_prefill.py").read_text(encoding="utf-8")
CHUNK, CAP, SHARED = 512, 512, 2_048  # of the predictions


@cache
def found(budget: int, cap: int = 0, recorded: bool = False):
    step_time = CARD_STEP if recorded else STEP
    return long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)


@cache
def streaming() -> float:
    """Seconds that a chat streams."""
    today = found(WHOLE)
    return float((today.run.e2e - today.run.ttft)[today.chats].mean())


def share_of_stalls() -> float:
    """Of all tokens, those after a gap of a second."""
    gaps, weights = found(WHOLE).run.itl_weighted
    return float(weights[gaps > long_prompt.STALL].sum() / weights.sum())


def longer(chunk: int, than: int = 8_192) -> float:
    """How many times as long a prompt takes in chunks, on the recorded card."""
    return float(RECORDING.steps(PROMPT, chunk).sum() / RECORDING.steps(PROMPT, than).sum())


def seconds_a_pair(chunk: int) -> float:
    cached, took = RECORDING.lines[chunk]
    return float((took[-1] - took[0]) / (cached[-1] * chunk))


@cache
def throughput(budget: int) -> tuple[float, float]:
    """Tokens/s of the trace, modelled and recorded."""
    trace, engine = traces.read(traces.example()), long_prompt.engine(budget)
    modelled, recorded = (prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (STEP, CARD_STEP))
    return modelled, recorded


@cache
def facts() -> dict[str, tuple]:
    whole, cut, capped = found(WHOLE), found(CHUNK), found(SHARED, CAP)
    chunks = PROMPT // CHUNK
    modelled, recorded = (1 - low / high for low, high in zip(throughput(128), throughput(2_048), strict=True))
    return {
        "p99": (1e3 * whole.itl["p50"], EVERY, PROMPT, CHUNK, chunks, 99),
        "p99 a": (1 / 50,),
        "p99 b": (1 / 2,),
        "p99 c": (EVERY, 99),
        "p99 d": (About(cut.itl["p99"] / whole.itl["p99"]),),
        "p99 why": (
            *(1e3 * found.itl[name] for name in ("p99", "max") for found in (whole, cut)),
            *(CHAT_RATE * streaming(), 100 * share_of_stalls(), 99, chunks, chunks, 1, 99),
        ),
        "newcomers": (99, 1e3 * whole.chat_ttft["p99"], CHUNK),
        "newcomers a": (20, 2),
        "newcomers b": (1 / 2, 1 / 2),
        "newcomers why": (1e3 * cut.chat_ttft["p99"], 1e3 * capped.chat_ttft["p99"], SHARED, CAP),
        "long": (chunks, CHUNK, PROMPT),
        "long a": (chunks,),
        "long c": (2,),
        "long d": (5, 25),
        "long why": (
            About(100 * (cut.long_ttft / whole.long_ttft - 1), 0.12), 1e3 * whole.long_ttft, cut.long_ttft, CHUNK,
            100 * (longer(CHUNK) - 1), 8_192,
        ),
        "chunk hint": (64,),
        "share hint": (share.SLOTS, share.BUDGET, share.CAP, 1),
        "share 6": (0,),
        "quiz slo": (1e3 * long_prompt.STALL,),
        "quiz slo a": (99, EVERY, 100 * share_of_stalls(), 99),
        "quiz slo b": (CHAT_ANSWER,),
        "quiz slo c": (99,),
        "quiz short": (SHARED,),
        "quiz short a": (CHUNK,),
        "quiz short b": (CAP, About(SHARED - CAP, 0.05)),
        "quiz short c": (128,),
        "quiz small": (128,),
        "quiz small b": (About(STEP.weights / STEP.per_token, 0.02), About(modelled, 0.1), About(recorded, 0.1)),
        "quiz order": (2_048,),
        "quiz attention": (PROMPT, chunks),
        "quiz attention a": (chunks,),
        "quiz attention b": (
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
    right_option(p99, times < 0.1, 0.4 < times < 0.6, 0.95 < times < 1.05, 1.7 < times < 2.3)
    assert 40 < whole.itl["max"] / cut.itl["max"] < 60  # "like the longest gap"
    waits = cut.chat_ttft["p99"] / whole.chat_ttft["p99"]
    right_option(newcomers, cut.chat_ttft["p99"] < 0.03, 0.4 < waits < 0.6, 1 < waits < 1.1)
    more = [cut.long_ttft / whole.long_ttft, longer(CHUNK)]
    right_option(long, min(more) > 10, max(more) < 1, 1.8 < min(more) < 2.2, min(more) > 1.05 and max(more) < 1.25)


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
    right_option(small, False, throughput(128)[0] < 0.8 * throughput(2_048)[0], False)
    few = long_prompt.requests(num_chats=300)
    apart = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 2_048))
    smaller = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 512))
    mixed = long_prompt.outcome(few, long_prompt.engine(2_048))
    protects = [here.itl["max"] < 0.1 for here in (apart, mixed, smaller)]
    right_option(order, *protects)
    pairs = [sum(step.prefill_pairs for step in prompt_chunks.chunk_steps(PROMPT, size)) for size in (PROMPT, 512)]
    right_option(attention, pairs[1] > pairs[0], pairs[1] == pairs[0], pairs[1] < pairs[0])
    right_words(partial, "refuses to start")


# What the notebook says, sentence by sentence.


@cache
def sentences() -> dict[str, tuple]:
    today, load_ = found(WHOLE), long_prompt.requests()
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > 2_048
    knee = STEP.weights / STEP.per_token
    card = long_prompt.outcome(trace.scaled(8), long_prompt.engine(8_192), CARD_STEP)
    meets = float((card.run.e2e - card.run.ttft).mean())
    heavy = float((card.run.steps.seconds > 0.05).sum() / card.run.makespan)
    decodes, context = RECORDING.decodes, RECORDING.decode_context
    ratios = [RECORDING.seconds[0] / STEP(Step(decodes, context, ()))]
    modelled = {}
    for chunk in (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192):
        took, model = RECORDING.steps(PROMPT, chunk), [STEP(step) for step in prompt_chunks.chunk_steps(PROMPT, chunk)]
        ratios += [took.max() / max(model), took.sum() / sum(model)]
        modelled[chunk] = sum(model)
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
        "The products of some {} tokens take as long": (About(knee, 0.02),),
        "the steps of all {} layers of Llama-3.1-8B for a prompt of {} tokens, with {} decodes in each": (
            STEP.model.num_layers, PROMPT, decodes,
        ),
        "what is recorded takes {} to {} times as long": (About(min(ratios), 0.05), About(max(ratios), 0.03)),
        "chunks of 512 take {}% longer where the model says {}%, and chunks of 256 take {}% longer where it says {}%": (
            100 * (longer(512) - 1), 100 * (modelled[512] / modelled[8_192] - 1),
            100 * (longer(256) - 1), 100 * (modelled[256] / modelled[8_192] - 1),
        ),
        "the p99 over tokens is worst at {}, a": (_worst(recorded=True),),
        "at 256 the long prompt waits {}% longer than at 8,192, in the model {}%": (
            100 * (found(256, recorded=True).long_ttft / found(8_192, recorded=True).long_ttft - 1),
            100 * (found(256).long_ttft / found(8_192).long_ttft - 1),
        ),
        "that 2,048 breaks a promise of {} ms": (100,),
        "launching the kernels of a step [s] | {} ms": (1e3 * STEP.launch,),
        "reading them once [s] | {} ms": (1e3 * STEP.weights,),
        "a little more for a decode | {} µs": (1e6 * STEP.per_token,),
        "| $m$ | bytes of K and V of one token | {} |": (STEP.model.kv_bytes_per_token,),
        "q = {} ns": (1e9 * STEP.per_pair,),
        "it is *worst* at {}. Why?": (_worst(),),
        "A long prompt finds some {} chats streaming. One step of a second makes {} long gaps, {} steps of {} ms make"
        " {} times as many. Of the {} tokens of {} s the first are {}%, the second {}%": (
            caught, caught, PROMPT // 512, 1e3 * found(512).long_ttft / 64, PROMPT // 512, tokens, EVERY,
            100 * caught / tokens, 100 * 64 * caught / tokens,
        ),
        "{} ms instead of {} ms. Its": (1e3 * found(2_048, 512).long_ttft, 1e3 * found(2_048).long_ttft),
        "Its longest prompt has {}. Even so, one request in {} has more than {} tokens, and these hold {}% of all": (
            trace.prompt_tokens.max(), About(1 / long.mean(), 0.07), 2_048,
            100 * trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum(),
        ),
        "At {} requests a second, on recorded": (8,),
        "with a budget of 8,192 there are {} of them each second: an answer that streams for {} s meets {}": (
            heavy, meets, About(heavy * meets, 0.1),
        ),
        "step with more than some {} prompt tokens takes over {} ms": (
            About(next(c for c in range(1_000, 3_000, 10) if CARD_STEP(Step(20, 26_000, ((c, 0),))) > 0.05), 0.05), 50,
        ),
        "With 64 decodes that is a chunk of {} tokens": (64 * 0.2 / 0.8,),
        "the scores of {} tokens need {} MB a head": (10_000, 10_000**2 * 4 / 1e6),
        "A prompt of {} tokens runs in chunks of {}. How many query-key pairs": (2_000, 512),
        "{} s to its first token": (kept.long_ttft,),
        "a short one of {} tokens takes {} steps": (long_prompt.CHAT_PROMPT, -(-long_prompt.CHAT_PROMPT // 16)),
        "Below some {} a smaller cap": (About(knee, 0.02),),
        "With {} chats a second and {} tokens a step": (30, 72),
        "on the recorded card below {}.": (_best_recorded(),),
    }  # fmt: skip
    return sizes


def _worst(recorded: bool = False) -> int:
    """The budget with the highest p99 over tokens."""
    return max((8_192, 2_048, 512, 256, 128), key=lambda budget: found(budget, recorded=recorded).itl["p99"])


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
    assert several / one < 1.1
