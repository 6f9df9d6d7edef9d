"""Recordings: what the recorder writes is what the reader reads, and the H100's says where it comes from."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from course import gpu
from course.gpu import recordings
from course.steptime import files
from tools.gpu import decode_step as record


def test_a_recording_is_read_as_it_was_written(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = gpu.device("numpy")
    grid = {"work": (8, 16), "threads": (2, 4), "batch": (1, 3)}
    told: list[str] = []
    found = record.profile(device, "a test", **grid, launches=2, rounds=2, told=told.append)
    assert told == ["round 1 of 2", "round 2 of 2"]
    (tmp_path / "mine.json").write_text(json.dumps(found))
    monkeypatch.setattr(files, "FOLDER", tmp_path)
    recordings.decode_step.cache_clear()
    mine = recordings.decode_step("mine")
    recordings.decode_step.cache_clear()
    assert mine.card == device.name and mine.badge == f"recorded: {device.name}, {found['provenance']['date']}"
    assert "the clock around each launch" in mine.provenance["how"] and mine.provenance["command"] == "a test"
    curve = mine.at(16, 4)
    assert curve.batch.tolist() == [1, 3] and (curve.seconds > 0).all() and np.isnan(curve.kernel_seconds).all()
    with pytest.raises(ValueError, match="mine has nothing for work 16 and 8 threads: the recording has work 8, 16"):
        mine.at(16, 8)
    with pytest.raises(ValueError, match="no recording of decode_step is called 'other'; there are mine"):
        recordings.decode_step("other")


def test_the_h100_says_where_it_comes_from() -> None:
    found = recordings.decode_step()
    assert "h100_decode_step" in files.names("decode_step") and "H100" in found.card
    for key in ("driver", "cupy", "runtime", "date", "command", "how"):
        assert found.provenance[key]
    assert found.badge.startswith("recorded: NVIDIA H100")


def test_the_h100s_times_are_what_a_launch_bound_kernel_gives() -> None:
    """Physics: a launch is the floor; the kernel alone is below it; 132 multiprocessors take 64 blocks like one."""
    found = recordings.decode_step()
    assert len(found.seconds) == len(record.WORK) * len(record.THREADS) * len(record.BATCH)
    assert (found.low <= found.seconds).all() and (found.seconds <= found.high).all()
    assert 1e-6 < found.empty_seconds < 50e-6
    for work in record.WORK:
        for threads in record.THREADS:
            curve = found.at(work, threads)
            assert curve.batch.tolist() == list(record.BATCH)
            assert (curve.kernel_seconds < curve.seconds).all()
            assert math.isclose(curve.kernel_seconds[0], curve.kernel_seconds[6], rel_tol=0.2)
            assert curve.kernel_seconds[-1] > curve.kernel_seconds[0]
    with pytest.raises(ValueError, match="read-only"):
        found.seconds[0] = 1
