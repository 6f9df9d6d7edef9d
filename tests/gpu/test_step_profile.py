"""What a recording of steps asks for, and the recordings that the course brings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from course import gpu
from course.gpu import step_profile
from course.gpu.queues import queue
from course.gpu.transformer import Llama, Shape
from course.models import model
from course.steptime import files, recorded

RECORDINGS = {
    **dict.fromkeys(("h100_llama3_8b", "h100_llama3_1b"), 3.35e12),
    **dict.fromkeys(("h200_llama3_8b_flash", "h200_llama3_8b_verify"), 4.8e12),
}
"""Names, and the bytes/s of the data sheet of their cards."""


def test_points_fit_into_the_cache_and_come_once() -> None:
    for room in (4_096, 65_536, 262_144):
        points = list(step_profile.points(room))
        assert len(set(points)) == len(points) > 10
        for decodes, context, chunk, cached in points:
            assert decodes + chunk > 0
            assert decodes * context + chunk + cached <= room
            assert max(context, chunk + cached) <= step_profile.FARTHEST
    # The batch at 1,024 tokens comes first: it is what a recording that is cut off should have.
    first = [(batch, 1_024, 0, 0) for batch in step_profile.BATCHES if batch * 1_024 <= room]
    assert points[: len(first)] == first
    # And each batch that fits at all has a point that fills the cache to within a block a decode.
    for batch in step_profile.BATCHES:
        most = max(context for decodes, context, chunk, _ in points if decodes == batch and not chunk)
        assert most == step_profile.FULLEST or room - batch * most < 16 * batch


def test_drafts_are_verified_as_the_newest_tokens_of_their_sequence() -> None:
    found = list(step_profile.verify_points(65_536))
    assert len(set(found)) == len(found) > 10
    assert all(sequences * context <= 65_536 for sequences, _, context in found)
    shape = Shape(layers=1, hidden=64, inner=64, heads=2, kv_heads=1, width=32, vocabulary=64)
    llama = Llama(queue(gpu.device("numpy")), shape, blocks=16, max_tokens=64, max_positions=128)
    llama.fill_cache()
    step = step_profile.verify_step_at(llama, (3, 2, 40), np.random.default_rng(0))
    here = step.inputs.here
    assert here["lengths"].tolist() == [40] * 3
    assert here["positions"].reshape(3, 3).tolist() == [[37, 38, 39]] * 3
    assert len(np.unique(here["table"])) == 9  # blocks: 3 of each of 3 sequences
    step.run()
    assert np.all(np.isfinite(step.logits()))


def test_the_step_of_a_point_runs_on_a_cpu_too() -> None:
    shape = Shape(layers=1, hidden=64, inner=64, heads=2, kv_heads=1, width=32, vocabulary=64)
    llama = Llama(queue(gpu.device("numpy")), shape, blocks=16, max_tokens=64, max_positions=128)
    llama.fill_cache()
    step = step_profile.step_at(llama, (3, 20, 17, 30), np.random.default_rng(0))
    step.run()
    assert step.logits().shape == (4, 64)
    assert np.all(np.isfinite(step.logits()))


def test_without_a_gpu_nothing_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(gpu.KernelError, match="steps are recorded as CUDA graphs"):
        step_profile.record(gpu.device("numpy"), model("llama-3.1-8b"), tmp_path / "a.json", command="none")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_hold_what_they_say(name: str) -> None:
    recording = files.read("llama_step", name)
    columns = recording["points"]
    assert set(columns) == set(step_profile.COLUMNS)
    assert len({len(column) for column in columns.values()}) == 1
    low, middle, high = (np.array(columns[part]) for part in ("low", "seconds", "high"))
    assert np.all((low > 0) & (low <= middle) & (middle <= high))
    for needed in ("card", "driver", "cupy", "date", "command", "how", "clocks"):
        assert recording["provenance"][needed]
    # No step is faster than reading the weights at the data sheet's bandwidth.
    assert middle.min() > recording["weight_bytes"] / RECORDINGS[name]
    decodes, context, chunk = (np.array(columns[part]) for part in ("decodes", "decode_context", "chunk"))
    alone = (chunk == 0) & (context == 1_024 * decodes)
    order = np.argsort(decodes[alone])
    # More decodes take longer, but for a few percent between neighbours that are equal work.
    assert np.all(np.diff(middle[alone][order]) > -0.03 * middle[alone][order][1:])
    # Nor than reading the keys and values of its decodes besides.
    assert np.all(middle > (recording["weight_bytes"] + context * recording["kv_bytes_per_token"]) / RECORDINGS[name])
    # And a step time reads it off to within the scatter of its points.
    assert recorded(name.replace("_", "-")).misfit["decodes"] < 0.05


def test_an_engines_attention_is_recorded_where_it_was_asked_for() -> None:
    recording = files.read("llama_step", "h200_llama3_8b_flash")
    columns = {name: np.array(values) for name, values in recording["points"].items()}
    chunk = columns["chunk"] > 0
    assert set(columns["form"][chunk]) == {"flash", "cudnn"} == set(columns["form"]) - {"fused", "library"}
    assert columns["decodes"].max() == 1_024
    assert columns["decode_context"].max() > 600_000  # of a card that holds 640,000 to 900,000 beside an 8B
    assert {16, 16_384} <= set(columns["chunk"][columns["cached"] == 65_536])


def test_steps_that_verify_are_recorded_at_all_points_that_were_asked_for() -> None:
    recording = files.read("llama_step", "h200_llama3_8b_verify")
    verified = recording["verify"]
    assert {column for column in verified} == set(step_profile.VERIFY_COLUMNS)
    wanted = set(step_profile.verify_points(max(recording["points"]["decode_context"])))
    each = np.array(verified["context"]) // verified["sequences"]
    assert set(zip(verified["sequences"], verified["drafts"], each.tolist(), strict=True)) == wanted
