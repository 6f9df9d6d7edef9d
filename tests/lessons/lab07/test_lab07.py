"""Lab 07: what its conclusions rest on, on the recorded card and in theory. The numbers of its text: test_texts."""

import numpy as np
import pytest

from course import Workload, policies, serve, traces
from course.lessons.lab07 import long_prompt, prompt_chunks
from course.lessons.lab07.long_prompt import PROMPT, STEP, THEORY, WHOLE
from course.lessons.lab07.prompt_chunks import prefill_seconds, seconds_a_pair, seconds_of_steps
from course.steptime import Step


def found(budget, cap=0, step_time=STEP):
    return long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)


def test_a_gap_is_no_longer_than_a_step():
    for step_time in (STEP, THEORY):
        for setting in ((WHOLE, 0), (512, 0), (2_048, 512)):
            here = found(*setting, step_time)
            assert here.itl["max"] <= here.run.steps.seconds.max()


def test_who_stalls_is_littles_law():
    today = found(WHOLE)
    streaming = (today.run.e2e - today.run.ttft)[today.chats].mean()
    rate = today.chats.sum() / np.ptp(today.run.arrival)
    # Ten times a long prompt or three (two of the three share a step), 12 chats each: their number varies by a third.
    assert today.stalled() == pytest.approx(streaming / 20, rel=0.15)
    gaps, weights = today.run.itl_weighted
    share = rate * streaming / (rate * 20 * 300)
    assert share < weights[gaps > 0.1].sum() / weights.sum() < 1.4 * share  # two times in ten two steps are long


def test_the_formula_of_a_step():
    bandwidth = THEORY.gpu.read_bandwidth
    for b, c, k, context in ((32, 512, 0, 700), (16, 64, 30_000, 500), (8, 4_096, 8_192, 900)):
        pairs = c * k + c * (c + 1) / 2
        by_hand = (
            THEORY.launch + max(THEORY.weights, THEORY.per_token * (b + c)) + 131_072 * b * context / bandwidth
            + max(THEORY.per_pair * pairs, 131_072 * (k + c) / bandwidth)
        )  # fmt: skip
        assert THEORY(Step(b, b * context, ((c, k),))) == pytest.approx(by_hand, rel=0.01)  # the head, for each decode
    shares = {n: THEORY.per_pair * n * (n + 1) / 2 / (THEORY.per_token * n) for n in (2_048, 8_192, 32_768, 131_072)}
    assert [round(100 * share) for share in shares.values()] == [4, 15, 62, 246]


def test_chunks_add_readings_and_no_pairs():
    counts = {}
    for chunk in (64, 256, 512, 2_048, 8_192):
        steps = prompt_chunks.chunk_steps(PROMPT, chunk)
        assert len(steps) == PROMPT // chunk
        assert sum(step.prefill_pairs for step in steps) == PROMPT * (PROMPT + 1) // 2 == 536_887_296
        counts[chunk] = sum(step.prefill_context for step in steps) * THEORY.model.kv_bytes_per_token / 1e9
    assert [round(value) for value in counts.values()] == [1_102, 277, 140, 37, 11]
    odd = prompt_chunks.chunk_steps(1_000, 300, 2, 50)
    assert [step.prefill_chunks for step in odd] == [((300, 0),), ((300, 300),), ((300, 600),), ((100, 900),)]
    assert all((step.decodes, step.decode_context) == (2, 50) for step in odd)
    by_hand = STEP(Step(32, 32_768, ((2_048, 24_576),))) - STEP(Step(32, 32_768, ((2_048, 0),)))
    assert seconds_a_pair(2_048) == pytest.approx(by_hand / (2_048 * 24_576))
    theory = seconds_a_pair(2_048, THEORY)
    assert theory == pytest.approx(THEORY.per_pair)


def test_the_recording_beside_theory():
    totals = {}
    for chunk in prompt_chunks.CHUNKS:
        took, theory = (seconds_of_steps(PROMPT, chunk, step_time) for step_time in (STEP, THEORY))
        assert len(took) == len(theory) == PROMPT // chunk and took.sum() > theory.sum()
        totals[chunk] = took.sum() / theory.sum()
    assert max(totals, key=totals.get) in (128, 256)  # "small chunks cost more than it says"
    halves = [seconds_of_steps(PROMPT, chunk).mean() for chunk in (8_192, 4_096, 2_048, 1_024)]
    assert halves[:-1] == pytest.approx([2 * half for half in halves[1:]], rel=0.07)  # as many tokens, more K and V
    # A whole prompt was recorded, and what the model of the simulator reads off is that point.
    assert seconds_of_steps(PROMPT, PROMPT)[0] == pytest.approx(1.206, rel=0.01)


def test_the_conclusions_are_those_of_theory():
    for step_time in (STEP, THEORY):
        settings = ((8_192, 0), (2_048, 0), (512, 0), (256, 0), (2_048, 512))
        by = {setting: found(*setting, step_time) for setting in settings}
        longest = [by[budget, 0].itl["max"] for budget in (8_192, 2_048, 512, 256)]
        assert longest == sorted(longest, reverse=True)
        assert by[512, 0].itl["p99"] == max(by[budget, 0].itl["p99"] for budget in (8_192, 2_048, 512, 256))
        waits = [by[budget, 0].chat_ttft["p99"] for budget in (8_192, 2_048, 512, 256)]
        assert waits[-1] == max(waits) and by[2_048, 512].chat_ttft["p99"] < 0.1 * waits[0]
    assert found(2_048).itl["max"] > 0.1 > found(1_024).itl["max"]  # "breaks a promise of 100 ms, which 1,024 keeps"


def test_throughput_over_the_budget():
    trace = traces.read(traces.example())
    rates = {}
    for budget in (2_048, 512, 256, 128):
        engine = long_prompt.engine(budget)
        rates[budget] = [prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (THEORY, STEP)]
    theory, recorded = zip(*rates.values(), strict=True)
    assert max(theory) == rates[256][0] and max(recorded) == rates[512][1]


def test_throughput_counts_prompts_and_answers():
    """Two prompts of 4 tokens and two answers of 3, one slot, and a second for each step."""
    load = Workload(arrival=[0, 5], prompt_tokens=[4, 4], output_tokens=[3, 3])
    rate = prompt_chunks.saturated_tokens_per_second(load, policies.Continuous(1, 64), lambda step: 1.0)
    # The second is let in at 3 s: until then 4 prompt tokens and 3 of the answer.
    assert rate == pytest.approx((4 + 3) / 3)


def test_the_trace():
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > 2_048
    assert long.mean() == pytest.approx(0.135, abs=5e-4) and 1 / long.mean() == pytest.approx(7, abs=0.5)
    assert trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum() == pytest.approx(0.40, abs=5e-3)
    assert trace.prompt_tokens.max() == 7_651
    stops = {}
    for budget, cap in ((8_192, 0), (2_048, 0), (1_024, 0), (2_048, 512)):
        here = long_prompt.outcome(trace.scaled(8), long_prompt.engine(budget, cap))
        stops[budget, cap] = (here.gaps > 0.05).mean()
    assert stops[8_192, 0] > 0.5 > stops[2_048, 512] > stops[1_024, 0] == 0


def test_orders():
    few = long_prompt.requests(num_chats=300)
    mixed = long_prompt.outcome(few, long_prompt.engine(2_048))
    apart = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 2_048))
    assert mixed.itl["max"] < 0.2 and apart.itl["max"] > 10 * apart.run.steps.seconds.max()
    steps = apart.run.steps
    assert not ((steps.decodes > 0) & (steps.prefill_tokens > 0)).any() and steps.prefill_tokens.max() == 2_048
    assert repr(apart.run.policy) == "PrefillFirst(max_num_seqs=64, chunked_prefill_size=2048)"


def test_what_is_often_said():
    one, four = (prefill_seconds(STEP, 2_000, chunk) for chunk in (2_000, 512))
    assert 1 < four / one < 1.3
    assert [-(-10_000 // budget) for budget in (8_192, 2_048, 512)] == [2, 5, 20]
    whole, cut = (long_prompt.moment(budget, 0) for budget in (WHOLE, 512))
    assert whole.run.ttft[12] < cut.run.ttft[12]
    begins, ends = cut.chunk_steps
    steps = cut.run.steps
    inside = (steps.start >= begins[0]) & (steps.end <= ends[-1])
    assert inside.sum() == 66 and (steps.decodes[inside] > 0).all() and (steps.prefill_tokens[inside] > 0).all()
    halfway = STEP(Step(64, 64 * 700, ((16, PROMPT // 2),)))
    assert 16 / (64 + 16) == 0.2 and PROMPT // 16 * halfway > 5 * whole.run.ttft[12]


def test_break_it():
    load = long_prompt.requests()
    with pytest.raises(ValueError, match="need 33067 tokens in one step"):
        serve(load, policies.Continuous(64, 8_192, enable_chunked_prefill=False), STEP)
    off = serve(load, policies.Continuous(64, WHOLE, enable_chunked_prefill=False), STEP)
    sent, _ = np.histogram(off.steps.end, 10.1 + np.arange(11) / 10, weights=off.steps.useful)
    assert (sent == 0).all()
    by_cap = {cap: found(2_048, cap) for cap in (512, 64, 16)}
    assert by_cap[16].long_ttft > 3 * by_cap[64].long_ttft and PROMPT // 16 == 2_048
    assert -(-long_prompt.CHAT_PROMPT // 16) == 13
    assert by_cap[16].chat_ttft["p99"] > 1.1 * by_cap[512].chat_ttft["p99"]
    with pytest.raises(ValueError, match="smaller than one decode for each of max_num_seqs=64"):
        policies.Continuous(max_num_seqs=64, max_num_batched_tokens=32)
    crowd = Workload.poisson(rate=22, num_requests=900, prompt_tokens=200, output_tokens=300)
    narrow, wide = (serve(crowd, long_prompt.engine(budget), STEP) for budget in (72, 2_048))
    assert np.percentile(narrow.ttft, 99) > 20 * np.percentile(wide.ttft, 99)
