"""Recorded steps with prompt chunks: read as written, read off between points, and physically sound for the H100."""

from __future__ import annotations

import json

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.gpu.recordings import prefill_chunks
from course.lessons.lab07.recording import RecordedStep
from course.steptime import Step, files

H100 = prefill_chunks()
MODEL = steptime.Roofline("llama-3.1-8b", "H100")
STEP = RecordedStep(H100, MODEL.per_context)


@pytest.fixture
def made(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """A recording by a formula: 1 s + 0.01 s a token + 1e-4 s a token and cached token."""
    points = [(0, 0)] + [(c, k) for c in (10, 20, 40) for k in sorted({0, 40, 80 - c}) if k + c <= 80]
    columns = {
        "chunk": [c for c, _ in points],
        "cached": [k for _, k in points],
        "seconds": [1 + 0.01 * c + 1e-4 * c * k for c, k in points],
        "attention": ["flash"] * len(points),
    }
    columns |= {name: columns["seconds"] for name in ("low", "high", "other_seconds")}
    provenance = {"card": "A card", "date": "2026-01-01"}
    facts = {"kernel": "prefill_chunks", "model": "toy", "decodes": 4, "decode_context": 100, "provenance": provenance}
    (tmp_path / "made.json").write_text(json.dumps(facts | {"points": columns}))
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    prefill_chunks.cache_clear()
    yield prefill_chunks("made")
    prefill_chunks.cache_clear()


def test_a_recording_is_read_as_it_was_written(made) -> None:
    assert made.badge == "recorded: A card, 2026-01-01" and made.decodes == 4
    assert list(made.lines) == [0, 10, 20, 40]
    cached, seconds = made.lines[20]
    assert cached.tolist() == [0, 40, 60] and seconds == pytest.approx([1.2, 1.28, 1.32])
    with pytest.raises(ValueError, match=r"no recording of prefill_chunks is called 'other'; there are made"):
        prefill_chunks("other")
    with pytest.raises(ValueError, match="read-only"):
        made.seconds[0] = 1


def test_the_steps_of_a_prompt_are_read_off_straight_lines(made) -> None:
    assert made.steps(80, 20) == pytest.approx([1.2 + 0.002 * cached for cached in (0, 20, 40, 60)])
    assert made.steps(40, 40) == pytest.approx([1.4])
    with pytest.raises(ValueError, match="no chunk of 15: recorded were 10, 20, 40"):
        made.steps(60, 15)
    for prompt in (50, 100):  # no whole number of chunks; more than was recorded
        with pytest.raises(ValueError, match="must be whole chunks within that"):
            made.steps(prompt, 20)


def test_the_step_time_is_read_off_between_points(made) -> None:
    step = RecordedStep(made, 0.001)
    recorded = (4, 100)  # decodes and their context
    assert step(Step(*recorded, ((20, 40),))) == pytest.approx(1.28)
    assert step(Step(*recorded, ((30, 20),))) == pytest.approx(1 + 0.3 + 30 * 20e-4)
    assert step(Step(4, 150, ((20, 40),))) == pytest.approx(1.28 + 50 * 0.001)
    assert step(Step(14, 100, ((20, 40),))) == pytest.approx(1 + 0.3 + 30 * 40e-4)  # ten decodes more: ten tokens
    assert step(Step(*recorded, ((10, 40), (10, 40)))) == pytest.approx(1.2 + 20e-4 * (40 - 5))  # the same pairs
    assert step(Step(9, 300, ())) == pytest.approx(1.2) and step(Step(1, 1, ())) == pytest.approx(0.901)
    base, slope = step.decode_line(9)
    assert base + slope * 300 == step(Step(9, 300, ()))
    with pytest.raises(ValueError, match="chunks of up to 40 tokens, and a step asks for 41: lower max_num_batched"):
        step(Step(*recorded, ((41, 0),)))


def test_a_run_on_recorded_times_adds_them_up(made) -> None:
    alone = Workload(arrival=[0], prompt_tokens=[80], output_tokens=[1])
    run = serve(alone, policies.Continuous(4, 24), RecordedStep(made, 0))
    # Chunks of 24 without decodes count as 20 with the four that were recorded; the last chunk has 8 tokens.
    expected = [1 + 0.01 * (c - 4) + 1e-4 * (c - 4) * k for c, k in ((24, 0), (24, 24), (24, 48), (8, 72))]
    assert run.steps.seconds == pytest.approx(expected)


def test_the_h100_says_where_it_comes_from() -> None:
    assert "h100_prefill_chunks" in files.names("prefill_chunks")
    assert "h100_prefill_chunks" not in files.names("decode_step")
    for key in ("card", "driver", "torch", "cudnn", "date", "command", "how"):
        assert H100.provenance[key]
    assert "H100" in H100.card and H100.badge.startswith("recorded: NVIDIA H100")
    assert H100.model == MODEL.model.name and H100.decode_context == 700 * H100.decodes


def test_the_h100s_times_are_what_a_gpu_can_do() -> None:
    assert (H100.low <= H100.seconds).all() and (H100.seconds <= H100.high).all()
    assert (H100.seconds <= H100.other_seconds).all() and set(H100.attention) == {"flash", "cudnn"}
    for chunk, cached, seconds in zip(H100.chunk.tolist(), H100.cached.tolist(), H100.seconds, strict=True):
        modelled = MODEL(Step(H100.decodes, H100.decode_context, ((chunk, cached),) if chunk else ()))
        # The model is a floor; chunks of 32 and 64 behind 20,000 tokens cost most above it.
        assert modelled < seconds < 2.1 * modelled, (chunk, cached)
    firsts = [seconds[0] for _, seconds in H100.lines.values()]
    assert (np.diff(firsts) > 0).all()  # more tokens, more time
    for chunk in (256, 512, 1_024, 2_048, 4_096, 8_192):
        cached, seconds = H100.lines[chunk]
        assert (np.diff(seconds) > 0).all()  # more to attend to, more time
        line = np.interp(cached, cached[[0, -1]], seconds[[0, -1]])
        assert line == pytest.approx(seconds, rel=0.06)  # attention is linear in what is cached


def test_a_run_on_the_h100s_times() -> None:
    load = Workload(arrival=[0], prompt_tokens=[32_768], output_tokens=[3])
    whole = serve(load, policies.Continuous(64, 2_048), STEP)
    # 16 chunks of 2,048 without the 32 decodes: each counts as 2,016 tokens, without the K and V of the decodes.
    missing = 16 * MODEL.per_context * H100.decode_context
    assert whole.ttft[0] == pytest.approx(H100.steps(32_768, 2_048).sum() - missing, rel=0.02)
    with pytest.raises(ValueError, match="lower max_num_batched_tokens"):
        serve(load, policies.Continuous(64, 32_768), STEP)
