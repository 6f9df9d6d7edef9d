"""Lab 07: every key, and every number in what it asks and says, computed from the scenario."""

from functools import cache

import numpy as np
import pytest

from course import policies, traces
from course.engine.serving import serve
from course.lessons import load
from course.lessons.lab07 import by_hand, decision, exercises, live_words, long_prompt, prompt_chunks, rush
from course.lessons.lab07.long_prompt import CHAT_ANSWER, CHAT_RATE, DEFAULT, EVERY, PROMPT, SLOTS, STEP, THEORY, WHOLE
from course.lessons.lab07.prompt_chunks import seconds_a_pair, seconds_of_steps
from course.steptime import Step
from tests.helpers.places import SOLUTIONS
from tests.helpers.texts import About, agree, right_option, right_words, sentence, with_numbers

LAB = load("07")
SOURCE = (SOLUTIONS / "07_chunked_prefill.py").read_text(encoding="utf-8")
DEEPER = (SOLUTIONS / "07_chunked_prefill_deeper.py").read_text(encoding="utf-8")
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


def tokens_alone(chunk: int) -> float:
    """Recorded seconds of a step with so many prompt tokens, and nothing else."""
    return STEP(Step(0, 0, ((chunk, 0),)))


def floor() -> About:
    """Prompt tokens from which a recorded step takes 10% longer than one of a single token: about 128."""
    return About(next(n for n in range(1, 512) if tokens_alone(n) > 1.1 * tokens_alone(1)), 0.1)


def delay(budget: int) -> float:
    """By how many per cent the first explorer's long prompt waits longer than in one step."""
    whole, cut = (long_prompt.moment(each, 0, PROMPT, 12) for each in (WHOLE, budget))
    return 100 * float(cut.run.ttft[cut.long] / whole.run.ttft[whole.long] - 1)


def at_512():
    """The first explorer with a budget of 512."""
    return long_prompt.moment(512, 0, PROMPT, 12)


@cache
def facts() -> dict[str, tuple]:
    whole, cut, capped = found(WHOLE), found(CHUNK), found(SHARED, CAP)
    kv = THEORY.model.kv_bytes_per_token
    now, repaired = rush.graphs(rush.NOW), rush.graphs(rush.REPAIR)
    computed = now.run.steps.decodes + now.run.steps.prefill_tokens
    running, resident = now.run.steps.running.mean(), rush.PROMPT + rush.ANSWER / 2
    moment, one_step = at_512(), long_prompt.moment(WHOLE, 0, PROMPT, 12)
    ttft, ttft_whole = (float(each.run.ttft[each.long]) for each in (moment, one_step))
    steps = len(moment.chunk_steps[0])
    return {
        "p99": (CHUNK, steps, 99),
        "p99 a": (About(cut.itl["p99"] / whole.itl["p99"]),),
        "p99 c": (1 / 2,),
        "p99 d": (About(cut.itl["max"] / whole.itl["max"]),),
        "p99 b answer": (steps, steps),
        "p99 d answer": (99,),
        "p99 why": tuple(1e3 * each.itl[name] for name in ("p99", "max") for each in (whole, cut)),
        "newcomers": (WHOLE, 99, whole.chat_ttft["p99"], CHUNK),
        "newcomers a": (20, 2),
        "newcomers b": (whole.chat_ttft["p99"] / 2, 1 / 2),
        "newcomers c": (cut.chat_ttft["p99"],),
        "newcomers b answer": (99,),
        "newcomers why": (SHARED, CAP, 1e3 * capped.chat_ttft["p99"]),
        "steps twin": (exercises.STEPS_TWIN[2], exercises.STEPS_TWIN[1], exercises.STEPS_TWIN[0]),
        "chunk hint": (exercises.GRID,),
        "chunk plain": (512, exercises.GRID),
        "chunk twin": (1e3 * exercises.LIMIT_TWIN,),
        "share 6": (0,),
        "decision hint": (2, 2),
        "decision plain": (99,),
        "decision twin": (99, 1e3 * decision.SOONER),
        "decision 2": (99,),
        "quiz share-a-step": (10,),
        "quiz share-a-step a": (10,),
        "quiz long-kv": (PROMPT, kv),
        "quiz long-kv a": (kv * PROMPT / 1e9, PROMPT, kv),
        "quiz long-kv b": (kv * 1_000 / 1e9, 1_000),
        "quiz long-kv c": (4 * kv * PROMPT / 1e9, 4, 8, 32),
        "quiz cause a": (running, resident, running * resident * kv / 1e9),
        "quiz cause b": (running, SLOTS, rush.graphs(rush.BEFORE).running.max()),
        "quiz measure a": (computed.mean(), computed.max()),
        "quiz measure c": (1e3 * now.run.itl.max(),),
        "quiz repair a": (2,),
        "quiz repair b": (rush.REPAIR, 95, np.percentile(repaired.run.ttft, 95)),
        "quiz repair c": (64,),
        "quiz slo": (99, 100, 1e3 * long_prompt.STALL),
        "quiz slo a": (99, whole.itl["max"], EVERY, 100 * share_of_stalls(), 99),
        "quiz slo b": (CHAT_ANSWER,),
        "quiz slo c": (99,),
        "quiz short": (SHARED,),
        "quiz short a": (CHUNK,),
        "quiz short b": (CAP, About(SHARED - CAP, 0.05)),
        "quiz short c": (128,),
        "quiz small": (128,),
        "quiz small a": (128, About(tokens_alone(128) / tokens_alone(512), 0.05), 512),
        "quiz long": (steps,),
        "quiz long a": (steps,),
        "quiz long c": (About(ttft / ttft_whole - 1, 0.05), ttft, ttft_whole),
    }


@pytest.mark.parametrize("name", with_numbers(LAB))
def test_the_numbers(name):
    agree(with_numbers(LAB)[name], facts()[name])


def test_no_value_is_for_a_text_that_is_gone():
    assert set(facts()) == set(with_numbers(LAB))


def test_the_story_and_the_setting_of_the_ticket():
    agree(LAB.ticket.story, (1 / 2, rush.RATE, rush.PROMPT, rush.ANSWER))
    agree(LAB.ticket.setting, (rush.NOW, rush.BEFORE))
    assert 0.4 < rush.graphs(rush.NOW).running.mean() / SLOTS < 0.5  # "half of the slots are free"


def test_the_keys_of_the_predictions():
    whole, cut = found(WHOLE), found(CHUNK)
    p99, newcomers = LAB.predictions
    times = cut.itl["p99"] / whole.itl["p99"]
    right_option(p99, 2.7 < times < 3.3, 0.95 < times < 1.05, 0.4 < times < 0.6, times < 0.1)
    wait = cut.chat_ttft["p99"]
    right_option(newcomers, wait < 0.03, 0.7 < wait < 0.9, 2.05 < wait < 2.15)


def test_the_keys_of_the_quiz():
    slo, short, small, long = LAB.quiz
    stalled, mended = found(WHOLE), found(SHARED)
    # The p99 over tokens and the mean TPOT hardly tell the two apart, the longest gap of each request does.
    over_tokens = stalled.itl["p99"] / mended.itl["p99"]
    means = np.nanmean(stalled.run.tpot) / np.nanmean(mended.run.tpot)
    over_chats = np.percentile(stalled.chat_gaps, 99) / np.percentile(mended.chat_gaps, 99)
    right_option(slo, *(times > 2 for times in (over_tokens, means, over_chats)))
    base = found(SHARED).chat_ttft["p99"]
    assert found(SHARED).run.steps.running.max() < SLOTS  # slots were free
    right_option(short, found(512).chat_ttft["p99"] < base, found(SHARED, 512).chat_ttft["p99"] < base / 2, False)
    right_option(small, throughput(128)[0] < 0.8 * throughput(2_048)[0], False, False)
    times = at_512().run.ttft[12] / long_prompt.moment(WHOLE, 0, PROMPT, 12).run.ttft[12]
    right_option(long, times > 10, times < 1, 1.25 < times < 1.4)


def test_the_keys_of_the_earlier_questions():
    step, kv = LAB.earlier
    right_words(step, "each of them")
    size = THEORY.model.kv_bytes_per_token * PROMPT / 1e9
    right_option(kv, *(abs(size - value) < 0.05 for value in (4.3, 0.13, 17)))


def test_the_keys_of_the_ticket():
    """Waiting, with slots and memory to spare and full steps: the budget; a larger one repairs it, and nothing else."""
    cause, measure, repair = LAB.ticket.questions
    now, before, repaired = (rush.graphs(budget) for budget in (rush.NOW, rush.BEFORE, rush.REPAIR))
    steps = now.run.steps
    full = (steps.decodes + steps.prefill_tokens).mean() / rush.NOW
    assert now.waiting[-1] > 100 and before.waiting[-1] == 0 and before.run.steps.running.max() <= SLOTS
    right_option(cause, False, steps.running.max() == SLOTS, full > 0.95)
    right_option(measure, full > 0.95, False, now.run.itl.max() > before.run.itl.max())
    slots = serve(now.run.workload, policies.Continuous(2 * SLOTS, rush.NOW), STEP)
    capped = serve(now.run.workload, long_prompt.engine(rush.NOW, 64), STEP)
    right_option(repair, *(np.percentile(run.ttft, 95) < 0.5 for run in (slots, repaired.run, capped)))


def test_the_decision_is_the_largest_cap_that_keeps_both_promises():
    exercise = next(item for item in LAB.exercises if item.id == "decision")
    for limit, solution in ((decision.FIRST, exercise.solution), (decision.SOONER, exercise.twin.solution)):
        outcomes = {cap: decision.capped(cap) for cap in decision.CAPS}
        kept = [c for c, o in outcomes.items() if o.itl["max"] <= decision.GAP and o.chat_ttft["p99"] <= limit]
        assert solution == {decision.FLAG: max(kept)}
    # No budget alone does it, and slots are free.
    assert min(found(budget).chat_ttft["p99"] for budget in (256, 512, 1_024)) > 1
    assert decision.now().run.steps.running.max() < SLOTS
    page = decision.metrics_page()
    run, at = decision.now().run, decision.moment()
    assert at == run.arrival[run.workload.class_ == "long"].max() + 1 < run.makespan
    here = [request for request in range(len(run)) if run.arrival[request] <= at]
    gaps = np.concatenate([np.diff(times[times <= at]) for times in map(run.token_times, here)])
    assert f'vllm:inter_token_latency_seconds_bucket{{le="0.1"}} {(gaps <= 0.1).sum()}\n' in page
    assert f'vllm:inter_token_latency_seconds_bucket{{le="+Inf"}} {len(gaps)}\n' in page
    began = sum(run.token_times(request)[0] <= at for request in here)
    assert page.endswith(f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {began}')
    # Some wait though slots are free.
    running, waiting = (int(line.split()[1]) for line in page.splitlines()[:2])
    assert waiting > 0 and running < SLOTS / 2
    ended = sum(run.token_times(request)[-1] <= at for request in here)
    assert running + waiting == len(here) - ended


# What the notebooks say, sentence by sentence.


@cache
def core_sentences() -> dict[str, tuple]:
    today, cases, load_ = found(WHOLE), by_hand.cases(), long_prompt.requests()
    whole, budget, _ = cases.values()
    moment = at_512()
    caught, tokens = CHAT_RATE * streaming(), CHAT_RATE * EVERY * CHAT_ANSWER
    chunk, chunks = 512 - 12, len(moment.chunk_steps[0])
    newcomers = set(moment.run.workload.prompt_tokens[moment.newcomers.start :])
    return {
        "one H100, {} slots. {} chats arrive each second, with {} tokens in and about {} out. Every {} seconds a "
        "customer pastes a contract of {} tokens": (
            SLOTS, CHAT_RATE, long_prompt.CHAT_PROMPT, CHAT_ANSWER, EVERY, PROMPT,
        ),
        "from vLLM's {} to {}. Now **the text stops for nearly {} seconds**": (
            DEFAULT, WHOLE, About(today.itl["max"], 0.15),
        ),
        "the p99 of the gaps is {} ms, as before": (1e3 * today.itl["p99"],),
        "a gap that a reader notices, here above {} ms": (1e3 * long_prompt.STALL,),
        "The gaps of {} chats, counted by tokens": (int((load_.class_ == "chat").sum()),),
        "A long prompt of {} tokens arrives, and {} ms later a new chat with {}. A step takes 1 ms a token, but at "
        "least {} ms": (by_hand.PROMPT, by_hand.LATER, by_hand.NEW_PROMPT, by_hand.LEAST),
        "in one step, the prompt in front stops A and B for {} ms": (whole.longest_gap,),
        "A budget of {} leaves the prompt {} tokens a step. The longest gap is {} ms": (6, 6 - 2, budget.longest_gap),
        "Adding a cap of {} leaves room for the new chat": (2,),
        "| budget | tokens a step | {} | {} |": (6, 512),
        "| decodes | tokens a step | {} | {} |": (2, 12),
        "| chunk | tokens | {} | {} |": (6 - 2, chunk),
        "| prompt | tokens | {} | {} |": (by_hand.PROMPT, PROMPT),
        "| steps | | {} | {}, as simulated |": (len(budget.steps), len(moment.chunk_steps[0])),
        "Three newcomers with {} tokens each follow after {}, {} and {} ms": (
            *newcomers, *(1e3 * later for later in long_prompt.NEWCOMERS),
        ),
        "A budget of {} makes the contract's TTFT {}% longer, {} makes it {}%": (
            1_024, delay(1_024), 512, delay(512),
        ),
        "attention takes {}% longer in chunks of {} than of {} (recorded)": (
            100 * (seconds_a_pair(512) / seconds_a_pair(1_024) - 1), 512, 1_024,
        ),
        "Below some {} tokens ({} in theory)": (floor(), THEORY.weights / THEORY.per_token),
        "By Little's law {} chats stream: {} a second x {} gaps of {} ms. One step makes {} long gaps among "
        "the {} tokens of {} s: {}%": (
            caught, CHAT_RATE, CHAT_ANSWER, 1e3 * today.itl["mean"], caught, tokens, EVERY, 100 * caught / tokens,
        ),
        "Some {} chunks make {}%, and now the p99": (chunks, 100 * caught * chunks / tokens),
        "{} chats, a budget of {}: a chunk has 512 - 12 = {} tokens. A prompt of {} tokens takes 2,000 / 500 = {} "
        "steps": (
            12, 512, chunk, 2_000, 2_000 / chunk,
        ),
        "Complete it: {} chats, a prompt of {} tokens": (exercises.STEPS[2], exercises.STEPS[0]),
        "last step beside {} decodes with {} tokens each": (exercises.DECODES, exercises.CONTEXT),
        "a multiple of {}, that keeps that step within {} ms": (exercises.GRID, 1e3 * exercises.LIMIT),
        "a contract on the **recorded** H100, with {} times the budget.": (live_words.ON_THE_CARD,),
        "back at a budget of {}. You promise gaps of at most {} ms, and a p99 TTFT of chats below {} ms": (
            DEFAULT, 1e3 * decision.GAP, 1e3 * decision.FIRST,
        ),
        "the largest of {}, {} and {} that keeps both": tuple(sorted(decision.CAPS)),
    }  # fmt: skip


@pytest.mark.parametrize("template", core_sentences())
def test_the_sentences_of_the_core(template):
    sentence(SOURCE, template, *core_sentences()[template])


def test_what_the_case_by_hand_shows():
    whole, budget, cap = by_hand.cases().values()
    assert budget.new_ttft > whole.new_ttft > cap.new_ttft  # "waits for the last chunk", "leaves room"
    assert whole.long_ttft < budget.long_ttft < cap.long_ttft  # "the long prompt pays"
    assert whole.longest_gap > budget.longest_gap == cap.longest_gap


@cache
def sentences() -> dict[str, tuple]:
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
    kept = found(2_048, 16)
    sizes = {
        "The products of some {} tokens take as long": (About(knee, 0.02),),
        "What is recorded takes {} to {} times as long": (min(ratios), max(ratios)),
        "compute attention at a {} of the rate of": (
            About(THEORY.model.attention_flops_per_pair / seconds_a_pair(2_048) / THEORY.gpu.matrix_flops, 0.1),
        ),
        "chunks of {} and {} cost more than it says": (256, 512),
        "they take {}% and {}% longer, where theory says {}% and {}%": (
            *(100 * (longer(chunk) - 1) for chunk in (256, 512)),
            *(100 * (longer(chunk, step_time=THEORY) - 1) for chunk in (256, 512)),
        ),
        "One step for all {} tokens gains {}%": (PROMPT, 100 * (1 - longer(PROMPT))),
        "Without a cap the p99 over tokens is worst at {} in": (_worst(),),
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
        "The long prompt pays: {} ms with a cap of 512 instead of {} ms, {} ms with one of {}.": (
            *(1e3 * found(2_048, cap).long_ttft for cap in (512, 0, 1_024)), 1_024,
        ),
        "the p99 of the gaps, which goes from {} to {} ms": [1e3 * found(2_048, cap).itl["p99"] for cap in (0, 512)],
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
        "With 64 decodes, 20% of the tokens is a chunk of {} tokens": (64 * 0.2 / 0.8,),
        "The scores of {} tokens need {} MB a head": (10_000, 10_000**2 * 4 / 1e6),
        "{} s to its first token": (kept.long_ttft,),
        "a short one of {} tokens takes {} steps": (long_prompt.CHAT_PROMPT, -(-long_prompt.CHAT_PROMPT // 16)),
        "Below some {} a smaller cap": (About(knee, 0.02),),
    }  # fmt: skip
    return sizes


def _worst(theory: bool = False) -> int:
    """The budget with the highest p99 over tokens."""
    return max((8_192, 2_048, 512, 256, 128), key=lambda budget: found(budget, theory=theory).itl["p99"])


@pytest.mark.parametrize("template", sentences())
def test_the_sentences_of_the_deeper_notebook(template):
    sentence(DEEPER, template, *sentences()[template])


def test_where_reading_the_weights_is_nearly_all_both_say_twice_to_four_times():
    assert "At 64 and 128, where reading the weights is nearly all,\n# both say twice to four times." in DEEPER
    for chunk in (64, 128):
        assert 2 <= longer(chunk) <= 4 and 2 <= longer(chunk, step_time=THEORY) <= 4
