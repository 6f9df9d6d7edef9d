"""Lab 07: every number that its text states, computed. The tolerance of each is the last digit that the text shows."""

import numpy as np
import pytest

from course import Workload, policies, serve, traces
from course.lessons.lab07 import long_prompt, prompt_chunks
from course.lessons.lab07.exercises import prefill_seconds
from course.lessons.lab07.long_prompt import PROMPT, STEP, WHOLE
from course.lessons.lab07.prompt_chunks import CARD_STEP, RECORDING
from course.steptime import Step


def found(budget, cap=0, step_time=STEP):
    return long_prompt.outcome(long_prompt.requests(), long_prompt.engine(budget, cap), step_time)


def test_the_question():
    today = found(WHOLE)
    assert today.itl["p50"] == pytest.approx(0.0055, abs=5e-5) and today.itl["p99"] == pytest.approx(0.0072, abs=5e-5)
    assert today.itl["max"] == pytest.approx(0.954, abs=5e-4) and today.stalled(0.1) == pytest.approx(0.088, abs=5e-4)
    assert 1 / today.stalled(0.1) == pytest.approx(11, abs=0.5)  # "one chat in eleven"
    assert today.long_ttft == pytest.approx(0.954, abs=5e-4)
    assert today.chat_ttft["p99"] == pytest.approx(0.795, abs=5e-4)
    load = long_prompt.requests()
    assert len(load) <= 2_000 and (load.class_ == "long").sum() == 10 and (load.class_ == "chat").sum() == 1_600
    assert np.diff(load.arrival[load.class_ == "long"]) == pytest.approx(20)


@pytest.mark.parametrize(
    ("budget", "cap", "long", "chat", "p99", "longest", "stalled"),
    [(WHOLE, 0, 954, 795, 7.2, 954.1, 0.088), (8_192, 0, 981, 791, 7.2, 305.4, 0.089),
     (2_048, 0, 991, 802, 7.2, 80.6, 0), (512, 0, 1_007, 822, 13.9, 20.7, 0), (256, 0, 1_099, 920, 8.7, 10.9, 0),
     (128, 0, 1_842, 1_730, 7.2, 8.1, 0), (2_048, 512, 1_034, 35, 17.0, 27.9, 0)],
)  # fmt: skip
def test_the_table_that_surprises(budget, cap, long, chat, p99, longest, stalled):
    here = found(budget, cap)
    assert 1e3 * here.long_ttft == pytest.approx(long, abs=0.5)
    assert 1e3 * here.chat_ttft["p99"] == pytest.approx(chat, abs=0.5)
    assert 1e3 * here.itl["p99"] == pytest.approx(p99, abs=0.05)
    assert 1e3 * here.itl["max"] == pytest.approx(longest, abs=0.05)
    assert here.stalled(0.1) == pytest.approx(stalled, abs=5e-4)
    assert here.itl["max"] <= here.run.steps.seconds.max()  # no gap is longer than a step


def test_predictions():
    whole, cut, capped = found(WHOLE), found(512), found(2_048, 512)
    assert 1.8 < cut.itl["p99"] / whole.itl["p99"] < 2.2  # "it about doubles"
    assert 40 < whole.itl["max"] / cut.itl["max"] < 60  # "about a fiftieth"
    assert 1 < cut.chat_ttft["p99"] / whole.chat_ttft["p99"] < 1.05 and capped.chat_ttft["p99"] < 0.036
    assert cut.long_ttft / whole.long_ttft == pytest.approx(1.05, abs=0.01)
    assert RECORDING.steps(PROMPT, 512).sum() / RECORDING.steps(PROMPT, 8_192).sum() == pytest.approx(1.22, abs=5e-3)
    gaps, weights = cut.run.itl_weighted
    assert weights[gaps > 0.01].sum() / weights.sum() > 0.01  # "over 1% of the tokens"


def test_who_stalls_is_littles_law():
    today = found(WHOLE)
    streaming = (today.run.e2e - today.run.ttft)[today.chats].mean()
    assert streaming == pytest.approx(1.80, abs=5e-3)
    assert streaming / 20 == pytest.approx(0.09, abs=5e-4)
    assert 8 * streaming == pytest.approx(14, abs=0.5) and 64 * 8 * streaming == pytest.approx(919, abs=0.5)
    assert pytest.approx(0.02, abs=1e-3) == 919 / (8 * 20 * 300)
    gaps, weights = today.run.itl_weighted
    assert weights[gaps > 0.1].sum() / weights.sum() == pytest.approx(0.0003, abs=5e-5)
    assert found(512).long_ttft / 64 == pytest.approx(0.016, abs=5e-4)


def test_the_formula_of_a_step():
    assert STEP.launch == pytest.approx(0.28e-3, abs=5e-6) and STEP.weights == pytest.approx(4.97e-3, abs=5e-6)
    assert STEP.per_token == pytest.approx(17.9e-6, abs=5e-8) and STEP.per_pair == pytest.approx(0.67e-9, abs=5e-12)
    assert STEP.model.kv_bytes_per_token == 131_072
    assert STEP.weights / STEP.per_token == pytest.approx(277, abs=0.5)
    bandwidth = STEP.gpu.read_bandwidth
    for b, c, k, context in ((32, 512, 0, 700), (16, 64, 30_000, 500), (8, 4_096, 8_192, 900)):
        pairs = c * k + c * (c + 1) / 2
        by_hand = (
            STEP.launch + max(STEP.weights, STEP.per_token * (b + c)) + 131_072 * b * context / bandwidth
            + max(STEP.per_pair * pairs, 131_072 * (k + c) / bandwidth)
        )  # fmt: skip
        assert STEP(Step(b, b * context, ((c, k),))) == pytest.approx(by_hand, rel=0.01)  # the head, for each decode
    shares = {n: STEP.per_pair * n * (n + 1) / 2 / (STEP.per_token * n) for n in (2_048, 8_192, 32_768, 131_072)}
    assert [round(100 * share) for share in shares.values()] == [4, 15, 62, 246]


def test_chunks_add_readings_and_no_pairs():
    counts = {}
    for chunk in (64, 256, 512, 2_048, 8_192):
        steps = prompt_chunks.chunk_steps(PROMPT, chunk)
        assert len(steps) == PROMPT // chunk
        assert sum(step.prefill_pairs for step in steps) == PROMPT * (PROMPT + 1) // 2 == 536_887_296
        counts[chunk] = sum(step.prefill_context for step in steps) * STEP.model.kv_bytes_per_token / 1e9
    assert [round(value) for value in counts.values()] == [1_102, 277, 140, 37, 11]
    odd = prompt_chunks.chunk_steps(1_000, 300, 2, 50)
    assert [step.prefill_chunks for step in odd] == [((300, 0),), ((300, 300),), ((300, 600),), ((100, 900),)]
    assert all((step.decodes, step.decode_context) == (2, 50) for step in odd)
    slopes = {c: (t[-1] - t[0]) / (k[-1] * c) * 1e12 for c, (k, t) in RECORDING.lines.items() if c >= 64}
    assert [round(slopes[c]) for c in (64, 256, 512, 2_048, 8_192)] == [2_032, 1_492, 916, 906, 947]
    assert slopes[256] / slopes[2_048] == pytest.approx(1.6, abs=0.05)  # the quiz


def test_the_recording_beside_the_model():
    ratios = [RECORDING.seconds[0] / STEP(Step(32, 22_400, ()))]
    totals = {}
    for chunk in (64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192):
        took = RECORDING.steps(PROMPT, chunk)
        model = [STEP(step) for step in prompt_chunks.chunk_steps(PROMPT, chunk)]
        ratios += [took.max() / max(model), took.sum() / sum(model)]
        totals[chunk] = (took.sum(), sum(model))
    assert min(ratios) >= 1.2 and max(ratios) < 2.1  # "1.2 to 2.1 times as long"
    for chunk, real, modelled in ((512, 1.22, 1.12), (256, 1.79, 1.24)):
        assert totals[chunk][0] / totals[8_192][0] == pytest.approx(real, abs=5e-3)
        assert totals[chunk][1] / totals[8_192][1] == pytest.approx(modelled, abs=5e-3)
    assert totals[8_192] == (pytest.approx(1.34, abs=5e-3), pytest.approx(0.96, abs=5e-3))
    halves = [RECORDING.steps(PROMPT, chunk).mean() for chunk in (8_192, 4_096, 2_048, 1_024)]
    assert halves[:-1] == pytest.approx([2 * half for half in halves[1:]], rel=0.07)


def test_the_conclusions_survive_on_recorded_step_times():
    by = {setting: found(*setting, CARD_STEP) for setting in ((8_192, 0), (2_048, 0), (512, 0), (256, 0), (2_048, 512))}
    longest = [by[budget, 0].itl["max"] for budget in (8_192, 2_048, 512, 256)]
    assert longest == sorted(longest, reverse=True) and longest[0] == pytest.approx(0.4254, abs=5e-5)
    assert by[512, 0].itl["p99"] == max(by[budget, 0].itl["p99"] for budget in (8_192, 2_048, 512, 256))
    waits = [by[budget, 0].chat_ttft["p99"] for budget in (8_192, 2_048, 512, 256)]
    assert waits == sorted(waits) and by[2_048, 512].chat_ttft["p99"] == pytest.approx(0.056, abs=5e-4)
    assert by[2_048, 0].itl["max"] > 0.1 and by[2_048, 0].stalled() > 0.1  # 2,048 breaks a promise of 100 ms
    assert by[256, 0].long_ttft / by[8_192, 0].long_ttft == pytest.approx(1.62, abs=5e-3)
    assert found(256).long_ttft / found(8_192).long_ttft == pytest.approx(1.12, abs=5e-3)


def test_throughput_over_the_budget():
    trace = traces.read(traces.example())
    rates = {}
    for budget in (2_048, 512, 256, 128):
        engine = long_prompt.engine(budget)
        rates[budget] = [prompt_chunks.saturated_tokens_per_second(trace, engine, t) for t in (STEP, CARD_STEP)]
    assert [round(rate) for rate in rates[256]] == [31_831, 18_692]
    modelled, recorded = zip(*rates.values(), strict=True)
    assert max(modelled) == rates[256][0] and max(recorded) == rates[512][1]
    assert rates[128][0] / rates[2_048][0] < 0.75 and rates[128][1] / rates[2_048][1] < 0.67  # the quiz


def test_the_trace():
    trace = traces.read(traces.example())
    long = trace.prompt_tokens > 2_048
    assert long.mean() == pytest.approx(0.135, abs=5e-4) and 1 / long.mean() == pytest.approx(7, abs=0.5)
    assert trace.prompt_tokens[long].sum() / trace.prompt_tokens.sum() == pytest.approx(0.40, abs=5e-3)
    assert trace.prompt_tokens.max() == 7_651
    stops = {}
    for budget, cap in ((8_192, 0), (2_048, 0), (1_024, 0), (2_048, 512)):
        here = long_prompt.outcome(trace.scaled(8), long_prompt.engine(budget, cap), CARD_STEP)
        stops[budget, cap] = (here.gaps > 0.05).mean()
        if budget == 8_192:
            long_steps = here.run.steps.seconds > 0.05
            assert long_steps.sum() / here.run.makespan == pytest.approx(1.5, abs=0.05)
            assert (here.run.e2e - here.run.ttft).mean() == pytest.approx(2.7, abs=0.05)
    assert [round(100 * share) for share in stops.values()] == [85, 85, 0, 9]
    assert CARD_STEP(Step(20, 26_000, ((1_700, 0),))) < 0.05 < CARD_STEP(Step(20, 26_000, ((1_900, 0),)))


def test_orders():
    few = long_prompt.requests(num_chats=300)
    mixed = long_prompt.outcome(few, long_prompt.engine(2_048))
    apart = long_prompt.outcome(few, prompt_chunks.PrefillFirst(64, 2_048))
    assert mixed.itl["max"] == pytest.approx(0.080, abs=5e-4) and apart.itl["max"] == pytest.approx(1.019, abs=5e-4)
    assert apart.run.steps.seconds.max() == pytest.approx(0.081, abs=5e-4)
    steps = apart.run.steps
    assert not ((steps.decodes > 0) & (steps.prefill_tokens > 0)).any() and steps.prefill_tokens.max() == 2_048
    assert repr(apart.run.policy) == "PrefillFirst(max_num_seqs=64, chunked_prefill_size=2048)"


def test_what_is_often_said():
    one, four = (prefill_seconds(STEP, 2_000, chunk) for chunk in (2_000, 512))
    assert four / one == pytest.approx(1.02, abs=5e-3)
    assert RECORDING.steps(2_048, 512).sum() / RECORDING.steps(2_048, 2_048).sum() == pytest.approx(1.27, abs=5e-3)
    assert [-(-10_000 // budget) for budget in (8_192, 2_048, 512)] == [2, 5, 20]
    whole, cut = (long_prompt.moment(budget, 0, PROMPT, 12) for budget in (WHOLE, 512))
    assert (whole.run.ttft[12], cut.run.ttft[12]) == (pytest.approx(0.952, abs=5e-4), pytest.approx(1.001, abs=5e-4))
    begins, ends = cut.chunk_steps
    steps = cut.run.steps
    inside = (steps.start >= begins[0]) & (steps.end <= ends[-1])
    assert inside.sum() == 66 and (steps.decodes[inside] > 0).all() and (steps.prefill_tokens[inside] > 0).all()
    halfway = STEP(Step(64, 64 * 700, ((16, PROMPT // 2),)))
    assert 16 / (64 + 16) == 0.2 and PROMPT // 16 * halfway == pytest.approx(16, abs=0.5)


def test_break_it():
    load = long_prompt.requests()
    with pytest.raises(ValueError, match="need 33067 tokens in one step"):
        serve(load, policies.Continuous(64, 8_192, enable_chunked_prefill=False), STEP)
    off = serve(load, policies.Continuous(64, WHOLE, enable_chunked_prefill=False), STEP)
    sent, _ = np.histogram(off.steps.end, 10.1 + np.arange(9) / 10, weights=off.steps.useful)
    assert (sent == 0).all()
    by_cap = {cap: found(2_048, cap) for cap in (512, 64, 16)}
    assert by_cap[16].long_ttft == pytest.approx(12.7, abs=0.05) and PROMPT // 16 == 2_048
    assert by_cap[16].itl["max"] == pytest.approx(by_cap[64].itl["max"], abs=1e-4)
    assert -(-long_prompt.CHAT_PROMPT // 16) == 13
    assert by_cap[16].chat_ttft["p99"] > 2 * by_cap[512].chat_ttft["p99"]
    with pytest.raises(ValueError, match="smaller than one decode for each of max_num_seqs=64"):
        policies.Continuous(max_num_seqs=64, max_num_batched_tokens=32)
    crowd = Workload.poisson(rate=30, num_requests=900, prompt_tokens=200, output_tokens=300)
    narrow, wide = (serve(crowd, long_prompt.engine(budget), STEP) for budget in (72, 2_048))
    assert "queue grew" in narrow.warnings[0] and not wide.warnings
