"""A step time read off a recording, tested on recordings that a known law made: the law comes back."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course import KVCache, Workload, policies, serve
from course.engine.step import StepTimeModel, with_checks
from course.steptime import PowerLaw, Recorded, Roofline, Step, files, recorded
from tests.helpers.strategies import examples

BATCHES, CONTEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256), (256, 1_024, 4_096, 16_384, 32_768)
CHUNKS, CACHED = (16, 64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384), (0, 2_048, 8_192, 24_576)
LAW = PowerLaw(t0=5e-3, c=2e-5, alpha=1, prefill=2e-5, context=5e-8)
PAIRS = PowerLaw(t0=5e-3, c=2e-5, alpha=1, prefill=2e-5, context=5e-8, pairs=1e-9)
CURVED = Roofline("llama-3.1-8b", "H100")
# The law is straight between all points; products and sums are taken in another order.
ROUNDING = {"rel": 1e-9}


def recording(law, beside=(0, 32, 8, 128), **changes):
    """What a recorder writes of a card that follows `law`: decodes alone, chunks alone, and both together."""
    rows = [(n, n * each, 0, 0) for n in BATCHES for each in CONTEXTS if n * each <= 262_144]
    rows += [
        (n, 1_024 * n, chunk, cached)
        for n in beside
        for cached in CACHED
        for chunk in CHUNKS
        if chunk + cached <= 32_768 and (n in (0, 32) or (chunk <= 2_048 and cached in (0, 8_192)))
    ]
    seconds = [law(Step(n, context, ((chunk, cached),) if chunk else ())) for n, context, chunk, cached in rows]
    counts = ("decodes", "decode_context", "chunk", "cached")
    columns = {key: list(values) for key, values in zip(counts, zip(*rows, strict=True), strict=True)}
    columns |= {"seconds": seconds, "low": [0.99 * one for one in seconds], "high": [1.01 * one for one in seconds]}
    facts = {"kernel": "llama_step", "model": "llama-3.1-8b", "weight_bytes": 15_009_316_864}
    return facts | {"provenance": {"card": "A card", "date": "2026-01-01"}, "points": columns} | changes


@pytest.fixture(scope="module")
def straight():
    return Recorded("made", recording(LAW))


@pytest.fixture(scope="module")
def curved():
    return Recorded("curved", recording(CURVED))


def decodes(most=256):
    return st.integers(1, most).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, min(n * 32_768, 262_144))))


CHUNK = st.integers(16, 16_384).flatmap(lambda chunk: st.tuples(st.just(chunk), st.integers(0, 32_768 - chunk)))


# The law comes back


@given(decodes(), CHUNK)
@examples(200)
def test_a_straight_law_comes_back(straight, decoding, chunk):
    for step in (Step(*decoding, ()), Step(0, 0, (chunk,)), Step(*decoding, (chunk,))):
        assert straight(step) == pytest.approx(LAW(step), **ROUNDING)


def test_what_grows_with_the_pairs_comes_back_nearly():
    # At a recorded size of chunk all is straight. Between two, a parabola lies up to (their distance)^2 / 8 pairs below
    # the line: 2.3% of a step at most, halfway from 8,192 to 16,384 tokens.
    model = Recorded("pairs", recording(PAIRS))
    assert max(model.misfit.values()) < 1e-9
    for chunk in CHUNKS:
        for cached in (0, 100, 2_048, 10_000, 16_000):
            step = Step(32, 32_768, ((chunk, cached),))
            assert model(step) == pytest.approx(PAIRS(step), **ROUNDING)
    for chunk in (24, 700, 3_000, 6_000, 12_288):
        step = Step(7, 7_000, ((chunk, 3_000),))
        assert PAIRS(step) <= model(step) < 1.025 * PAIRS(step)


def test_several_chunks_count_by_tokens_and_pairs():
    model = Recorded("pairs", recording(PAIRS))
    for chunks in (((256, 0), (256, 0)), ((512, 0),) * 8, ((500, 100), (300, 7_000), (224, 0))):
        assert model(Step(4, 4_000, chunks)) == pytest.approx(PAIRS(Step(4, 4_000, chunks)), **ROUNDING)
    tokens, pairs = 1_000, 1_000 * 500 + 500_500
    assert model.seconds(0, 0, tokens, pairs, 0) == model(Step(0, 0, ((1_000, 500),)))


def test_a_chunk_below_the_smallest_takes_as_long_as_that(straight):
    assert straight(Step(0, 0, ((1, 0),))) == straight(Step(0, 0, ((16, 0),)))


@given(decodes(), CHUNK)
@examples(200)
def test_a_curved_law_comes_back_nearly(curved, decoding, chunk):
    # The straight line between points up to twice apart cuts off the knee of the roofline: by 10.7% at most, in 150,000
    # steps drawn at random, where 200 decodes and 62 prompt tokens meet it.
    for step in (Step(*decoding, ()), Step(0, 0, (chunk,)), Step(*decoding, (chunk,))):
        assert curved(step) == pytest.approx(CURVED(step), rel=0.12)


def test_the_misfit_is_the_largest_distance_from_a_point():
    found = recording(LAW)
    where = found["points"]["decodes"].index(64)
    for key in ("seconds", "low", "high"):
        found["points"][key][where] *= 1.2
    bent = Recorded("bent", found)
    rows = zip(*(found["points"][key] for key in ("decodes", "decode_context", "chunk", "seconds")), strict=True)
    far = [abs(bent(Step(n, context, ())) / seconds - 1) for n, context, chunk, seconds in rows if not chunk]
    assert bent.misfit["decodes"] == max(far) > 0.05
    assert bent.misfit["prompts"] < 1e-9 and list(bent.misfit) == ["decodes", "prompts", "mixed"]
    assert f"decodes within {bent.misfit['decodes']:.1%}, prompts within 0.0%" in repr(bent)


def test_a_step_that_was_not_recorded_beside_decodes_is_computed_from_those_that_were():
    alone = Recorded("alone", recording(LAW, beside=(0,)))
    assert list(alone.misfit) == ["decodes", "prompts"]
    step = Step(200, 100_000, ((3_000, 5_000),))
    assert alone(step) == pytest.approx(LAW(step), **ROUNDING)


# More work never takes less time, whatever was recorded


@pytest.fixture(scope="module")
def noisy():
    """Every point is up to 10% off: the recording itself falls in many places."""
    rng = np.random.default_rng(1)
    return Recorded("noisy", recording(lambda step: CURVED(step) * rng.uniform(0.9, 1.1)))


@given(st.integers(1, 250), st.integers(1, 1_000), CHUNK, st.integers(1, 5))
@examples(300)
def test_more_work_never_takes_less_time(noisy, number, each, chunk, more):
    def seconds(number, each, *chunks):
        return noisy(Step(number, number * each, chunks)) * (1 + 1e-12)  # rounding

    tokens, cached = chunk
    for chunks in ((), (chunk,)):
        assert seconds(number + more, each, *chunks) >= noisy(Step(number, number * each, chunks))
        assert seconds(number, each + more, *chunks) >= noisy(Step(number, number * each, chunks))
    now = noisy(Step(number, number * each, (chunk,)))
    assert seconds(number, each, (min(tokens + more, 16_384), cached)) >= now
    assert seconds(number, each, (tokens, cached + more)) >= now
    assert now >= noisy(Step(number, number * each, ()))


# As the engine asks


@given(decodes(), st.sampled_from(["straight", "curved", "noisy"]))
@examples(100)
def test_the_line_of_decodes_is_the_step_time_to_the_last_bit(request, decoding, name):
    model = request.getfixturevalue(name)
    number, context = decoding
    base, slope = model.decode_line(number)
    assert base + slope * context == model(Step(number, context, ()))


def test_it_is_trusted_and_serves_the_same_as_a_plain_callable(noisy):
    assert with_checks(noisy) is noisy and noisy.source == "recorded"
    load = Workload.poisson(20, 200, 700, 60, seed=3)
    for policy in (policies.Continuous(32, 4_096), policies.Continuous(32, 300), policies.Static(8)):
        fast, plain = (serve(load, policy, one, KVCache(2_000)) for one in (noisy, lambda step: noisy(step)))
        assert np.array_equal(fast.e2e, plain.e2e)
        assert np.array_equal(fast.steps.end, plain.steps.end)


# Outside of what was recorded: tests/steptime/test_beyond.py


def test_a_prompt_may_be_recorded_whole_beyond_the_longest_context():
    found = recording(PAIRS)
    for chunk, cached in ((65_536, 0), (65_536, 2_048)):
        for key, value in {"decodes": 0, "decode_context": 0, "chunk": chunk, "cached": cached}.items():
            found["points"][key].append(value)
        seconds = PAIRS(Step(0, 0, ((chunk, cached),)))
        for key in ("seconds", "low", "high"):
            found["points"][key].append(seconds)
    whole = Recorded("whole", found)
    for chunk in (16_384, 65_536):
        assert whole(Step(16, 4_000, ((chunk, 0),))) == pytest.approx(PAIRS(Step(16, 4_000, ((chunk, 0),))), **ROUNDING)
    # Between the two a parabola lies up to (their distance)^2 / 8 pairs below the line, at 20% of a step here.
    step = Step(0, 0, ((32_768, 0),))
    assert PAIRS(step) < whole(step) < 1.25 * PAIRS(step)
    # How long a sequence was recorded still follows from the contexts that decodes were recorded with.
    assert whole.beyond(sequence=32_768, prompt=65_536) == ""
    assert whole.beyond(sequence=32_769) == "modelled beyond 32,768 tokens of a sequence"


def test_a_model_of_ones_own_may_say_how_long_a_request_may_be():
    class Short(StepTimeModel):
        longest = 100

        def seconds(self, decodes, decode_context, tokens, pairs, prefill_context):
            return 1.0

        def decode_line(self, decodes):
            return 1.0, 0.0

    assert serve(Workload([0.0], [96], [5]), policies.Continuous(1, 512), Short()).e2e.tolist() == [5]
    with pytest.raises(ValueError, match=r"request 0 grows to 101 tokens, and .* up to 100 tokens of a sequence"):
        serve(Workload([0.0], [97], [5]), policies.Continuous(1, 512), Short())


# Files


def test_a_recording_by_name_and_by_path(tmp_path, monkeypatch):
    (tmp_path / "h100_toy.json").write_text(json.dumps(recording(LAW)))
    (tmp_path / "kernel.json").write_text('{"kernel": "decode_step"}')
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    for name in ("h100-toy", "h100_toy", str(tmp_path / "h100_toy.json"), tmp_path / "h100_toy.json"):
        found = recorded(name)
        assert found.badge == "recorded: A card, 2026-01-01" and found.model == "llama-3.1-8b"
    with pytest.raises(ValueError, match="no recording of llama_step is called 'h200_toy'; there are h100_toy"):
        recorded("h200-toy")
    with pytest.raises(ValueError, match="the name of a recording must be text, not 7"):
        recorded(7)
    for name, text in (("torn.json", '{"kernel":'), ("latin.json", None), ("none.json", "")):
        if text:
            (tmp_path / name).write_text(text)
        elif text is None:
            (tmp_path / name).write_bytes(b"\xff\xfe\xff")
        with pytest.raises(ValueError, match=f"{name} cannot be read as a recording: "):
            recorded(tmp_path / name)


def without(found, key):
    return {name: value for name, value in found.items() if name != key}


def with_points(**columns):
    found = recording(LAW)
    return found | {"points": found["points"] | columns}


POINTS = recording(LAW)["points"]
EACH = [n and context / n for n, context in zip(POINTS["decodes"], POINTS["decode_context"], strict=True)]
ONE_CONTEXT = [i for i, chunk in enumerate(POINTS["chunk"]) if chunk or EACH[i] == 256]
BAD = {
    "no object": ([], "it has no kernel, model, weight_bytes, provenance, points"),
    "a missing fact": (without(recording(LAW), "model"), "it has no model"),
    "no date": (recording(LAW, provenance={"card": "A card"}), r"it has no provenance\.date"),
    "a missing column": (recording(LAW, points=without(POINTS, "seconds")), r"it has no points\.seconds"),
    "another kernel": (recording(LAW, kernel="decode_step"), "it is one of 'decode_step', not of llama_step"),
    "NaN": (with_points(seconds=[float("nan"), *POINTS["seconds"][1:]]), "seconds must be a list of finite numbers"),
    "text": (with_points(chunk=["many", *POINTS["chunk"][1:]]), "chunk must be a list of whole numbers from 0"),
    "null": (with_points(low=[None, *POINTS["low"][1:]]), "low must be a list of finite numbers"),
    "negative": (with_points(cached=[-1, *POINTS["cached"][1:]]), "cached must be a list of whole numbers from 0"),
    "half a decode": (with_points(decodes=[0.5, *POINTS["decodes"][1:]]), "decodes must be a list of whole numbers"),
    "a chunk beyond all memory": (with_points(chunk=[*POINTS["chunk"][:-1], 10**9]), "chunk must be .* to 131072"),
    "more decodes beside a chunk": (with_points(decodes=[*POINTS["decodes"][:-1], 300]), "decodes than the 256 of"),
    "no time at all": (with_points(seconds=[0, *POINTS["seconds"][1:]]), "seconds must be a list .* from 1e-12 to 1e"),
    "torn columns": (with_points(high=POINTS["high"][:-1]), "one value per point, with at least one point"),
    "not sorted": (with_points(low=POINTS["high"]), "low, seconds and high must be sorted"),
    "milliseconds": (
        with_points(**{key: [1e3 * one for one in POINTS[key]] for key in ("seconds", "low", "high")}),
        "reads the weights at .* bytes/s: are the times in seconds?",
    ),
    "less context than decodes": (with_points(decode_context=[0] * len(POINTS["low"])), "decode_context is a sum over"),
    "a point twice": (
        recording(LAW, points={key: [*values, values[0]] for key, values in POINTS.items()}), "the same point twice"
    ),
    "one context a batch": (
        recording(LAW, points={key: [values[i] for i in ONE_CONTEXT] for key, values in POINTS.items()}),
        "batch 1 was recorded with one context, and a line needs two",
    ),
    "no chunk alone": (recording(LAW, beside=(8, 32)), "it needs steps of decodes alone and steps of a chunk alone"),
    "chunks only behind cached tokens": (
        with_points(cached=[c or 7 * (chunk > 0) for c, chunk in zip(POINTS["cached"], POINTS["chunk"], strict=True)]),
        "each chunk needs a point with nothing cached",
    ),
    "weights of no number": (recording(LAW, weight_bytes="15 GB"), "weight_bytes of bad must be a whole number"),
}  # fmt: skip


def cut(rows):
    """The recording of the law without the others."""
    return recording(LAW, points={key: [values[i] for i in rows] for key, values in POINTS.items()})


def test_a_recording_that_was_stopped_is_used_as_far_as_it_goes():
    """Points without the second one that a line needs are left out, and change nothing."""
    every = range(len(POINTS["chunk"]))
    largest, batch = max(POINTS["chunk"]), max(POINTS["decodes"])
    context = [n and c // n for n, c in zip(POINTS["decodes"], POINTS["decode_context"], strict=True)]
    alone = [i for i in every if POINTS["chunk"][i] == largest and not POINTS["decodes"][i] and POINTS["cached"][i]]
    without = Recorded("stopped", cut([i for i in every if POINTS["chunk"][i] != largest]))
    found = Recorded("stopped", cut([i for i in every if i not in alone]))
    assert without.left_out == 0 < found.left_out
    assert f", {found.left_out} left out)" in repr(found) and "left out" not in repr(without)
    for step in (Step(8, 8_000, ()), Step(4, 900, ((100, 50),)), Step(0, 0, ((64, 700),))):
        assert found(step) == without(step)
    assert found.beyond(prompt=largest).startswith("modelled beyond") and not Recorded("whole", recording(LAW)).beyond(
        prompt=largest
    )
    least = min(context[i] for i in every if POINTS["decodes"][i] == batch and not POINTS["chunk"][i])
    rest = [i for i in every if POINTS["decodes"][i] != batch or (not POINTS["chunk"][i] and context[i] == least)]
    assert Recorded("stopped", cut(rest)).left_out == 1


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_no_recording_is_refused(kind):
    found, sentence = BAD[kind]
    with pytest.raises(ValueError, match=sentence):
        Recorded("bad", found)
