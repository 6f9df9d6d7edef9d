"""A run as a timeline: the Trace Event Format's rules, and the same times as the run."""

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np

from course import KVCache, Workload, policies, serve, steptime
from course.engine.trace_events import trace_events
from tests.cli.test_cli import call

LAW = steptime.PowerLaw(t0=5e-3, c=2e-3, alpha=0.9, prefill=1e-4, context=1e-6)
NEEDED = {"X": {"dur"}, "C": {"args"}, "M": {"args"}, "i": {"s"}}
"""Fields besides name, ph, pid, tid and ts, by phase, as the format's document asks for them."""


def short_of_blocks():
    load = Workload.poisson(40, 40, 60, 60, seed=1)
    return serve(load, policies.Continuous(16, 128), LAW, KVCache(40))


def by_track(document):
    """Spans by (process, track), in order of time."""
    spans = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append(event)
    return {track: sorted(events, key=lambda event: event["ts"]) for track, events in spans.items()}


def processes(document):
    """Numbers of the processes, in order."""
    return [event["pid"] for event in document["traceEvents"] if event["name"] == "process_name"]


def valid(document):
    """Every event has what the format asks for, and spans of one track follow one another."""
    assert set(document) == {"traceEvents", "displayTimeUnit"} and document["displayTimeUnit"] in ("ms", "ns")
    for event in json.loads(json.dumps(document, allow_nan=False))["traceEvents"]:
        assert {"name", "ph", "pid", "tid", "ts"} | NEEDED[event["ph"]] <= set(event)
        assert isinstance(event["name"], str) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ts"] >= 0 and event.get("dur", 0) >= 0
        # Perfetto takes the tracks 0 of all processes for one, and has another place for one with a process's number.
        assert event["ph"] == "M" or 0 < event["tid"] < min(processes(document))
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    for events in by_track(document).values():
        for one, following in pairwise(events):
            assert following["ts"] >= one["ts"] + one["dur"] - 1e-3  # times are rounded to a nanosecond


def test_the_document_is_valid_and_has_the_times_of_the_run():
    run = short_of_blocks()
    document = trace_events({"short": run})
    valid(document)
    assert run.preempted.any()  # else nobody waits twice
    spans = by_track(document)
    engine, requests = processes(document)
    steps = spans[engine, 1]
    assert np.allclose([event["ts"] for event in steps], 1e6 * run.steps.start, atol=1e-3)
    assert np.allclose([event["ts"] + event["dur"] for event in steps], 1e6 * run.steps.end, atol=2e-3)
    assert [event["args"]["decodes"] for event in steps] == run.steps.decodes.tolist()
    for row in range(len(run)):
        events = spans[requests, row + 1]
        assert events[0]["name"] == "waiting" and np.isclose(events[0]["ts"], 1e6 * run.arrival[row], atol=1e-3)
        assert np.isclose(events[-1]["ts"] + events[-1]["dur"], 1e6 * run.response[row], atol=2e-3)
        assert sum(event["name"] == "waiting" for event in events) == 1 + run.preempted[row]
        answers = [event for event in events if event["name"] == "answer"]
        assert run.preempted[row] or np.isclose(answers[0]["ts"], 1e6 * run.first_computed[row], atol=1e-3)
        assert np.isclose(sum(event["dur"] for event in events), 1e6 * run.e2e[row], atol=0.1)
    counters = [event for event in document["traceEvents"] if event["ph"] == "C" and event["name"] == "KV cache"]
    assert max(event["args"]["blocks"] for event in counters) == run.steps.blocks.max()


def test_whoever_leaves_without_an_answer_says_so():
    load = Workload([0.0, 0.0], [50, 50], [400, 5], patience=[float("nan"), 0.1])
    run = serve(load, policies.Continuous(1, 64), LAW)
    document = trace_events({"one slot": run})
    valid(document)
    (left,) = [event for event in document["traceEvents"] if event["ph"] == "i"]
    assert left["name"] == "gave up" and left["tid"] == 2 and np.isclose(left["ts"], 1e6 * run.response[1], atol=1e-3)
    assert [event["name"] for event in by_track(document)[processes(document)[1], 2]] == ["waiting"]


def test_a_padded_batch_and_several_runs():
    load = Workload.poisson(40, 20, 60, 20, seed=1)
    runs = {str(policy): serve(load, policy, LAW) for policy in (policies.Static(4), policies.Continuous(4, 128))}
    document = trace_events(runs)
    valid(document)
    assert len({event["pid"] for event in document["traceEvents"]}) == len(processes(document)) == 4


def test_the_command_writes_it_and_overwrites_nothing(tmp_path):
    file = tmp_path / "timeline.json"
    asked = "simulate", "--rate", 20, "--num-requests", 30, "--policy", "continuous,static", "--perfetto", file
    assert call(*asked).exit_code == 0
    document = json.loads(file.read_text())
    valid(document)
    names = [event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"]
    assert names == ["continuous: engine", "continuous: requests", "static: engine", "static: requests"]
    again = call(*asked)
    assert again.exit_code != 0 and "is there already: give the name of a new file" in again.stderr


def test_tracks_have_names():
    document = trace_events({"short": short_of_blocks()})
    tracks = [event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"]
    assert tracks[0] == "steps" and tracks[1:] == [f"request {row}" for row in range(40)]


def test_each_process_of_an_engine_has_three_counters_whose_names_say_the_unit():
    """Perfetto's importer names a counter by its name, a space and each key of args, once a process."""
    document = trace_events({name: short_of_blocks() for name in ("one", "other")})
    shown = {(event["pid"], f"{event['name']} {key}")
             for event in document["traceEvents"] if event["ph"] == "C" for key in event["args"]}  # fmt: skip
    names = ("running requests", "waiting requests", "KV cache blocks")
    assert shown == {(engine, name) for engine in processes(document)[::2] for name in names}
