"""Timelines: bars that add up, lanes that are free, a request that is followed, titles that fit."""

import itertools

import numpy as np
import pytest

from course import Workload, policies, serve, steptime
from course.figures.timelines import KINDS, lanes, spans, timelines
from course.workload import lengths

STEP = steptime.recorded("h100-llama3-8b")


def runs_of(slots, output_cv, requests=16):
    """Sixteen requests under each policy."""
    load = Workload.poisson(
        rate=10, num_requests=requests, prompt_tokens=1024, output_tokens=lengths.lognormal(64, output_cv)
    )
    each = (policies.Static(slots), policies.Dynamic(slots, 0.1), policies.Continuous(slots, 2048))
    return {
        name: serve(load, policy, STEP) for name, policy in zip(("static", "dynamic", "continuous"), each, strict=True)
    }


@pytest.mark.parametrize("output_cv", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("slots", [2, 4, 8])
def test_the_bars_of_a_request_add_up_and_no_two_share_a_lane(slots, output_cv):
    for name, run in runs_of(slots, output_cv).items():
        bars = spans(run)
        total = np.zeros(len(run))
        for span in bars.values():
            np.add.at(total, span.request, span.end - span.start)
        assert np.allclose(total, run.e2e)
        assert len(bars["wasted"].request) == 0 or name != "continuous"
        for kinds in (("waiting",), ("prefill", "decode", "wasted")):
            for lane in range(slots if kinds != ("waiting",) else len(run)):
                held = sorted(
                    (start, end)
                    for kind in kinds
                    for start, end, at in zip(bars[kind].start, bars[kind].end, bars[kind].lane, strict=True)
                    if at == lane
                )
                assert all(a[1] <= b[0] for a, b in itertools.pairwise(held))
        assert max(bars["decode"].lane.max(), bars["prefill"].lane.max()) < slots


def test_wasted_bars_are_the_wasted_slot_steps():
    second_a_step = steptime.PowerLaw(t0=1, c=0, alpha=1)
    at_once = Workload(np.zeros(8), np.full(8, 4), np.arange(1, 9))
    run = serve(at_once, policies.Static(4), second_a_step)
    bars = spans(run)["wasted"]
    assert (bars.end - bars.start).sum() == run.steps.wasted.sum() > 0


def test_lanes_are_reused_at_the_moment_they_are_free():
    assert lanes(np.array([0.0, 0.0, 1.0, 1.5]), np.array([1.0, 3.0, 2.0, 2.0])).tolist() == [0, 1, 0, 2]
    assert lanes(np.array([]), np.array([])).tolist() == []


def test_a_request_is_followed_in_every_panel_on_one_clock():
    runs = runs_of(4, 1.0)
    figure = timelines(runs, follow=5)
    assert [trace.name for trace in figure.data] == ["waiting", "prefill", "decode", "padding"]
    decode = figure.data[KINDS.index("decode")]
    assert sum(opacity == 1 for opacity in decode.marker.opacity) == len(runs)
    titles = " ".join(annotation.text for annotation in figure.layout.annotations)
    assert titles.count("request 5:") == len(runs)
    assert figure.layout.xaxis.range[1] >= max(run.response.max() for run in runs.values())
    assert all(opacity == 1 for trace in timelines(runs).data for opacity in trace.marker.opacity)


@pytest.mark.parametrize("height", [250, 300, 440])
def test_titles_leave_the_waiting_line_free(height):
    """A title is at most as high as the room above the waiting line, but for the smallest that one can read."""
    figure = timelines(runs_of(3, 1.0, 12), follow=5, height=height)
    low, high = figure.layout.yaxis.range
    a_lane = (height - 28 - 48) / (high - low)
    titles = [note for note in figure.layout.annotations if "last answer" in note.text]
    assert len(titles) == 3 and all(note.font.size <= max(11, 1.1 * a_lane) for note in titles)
