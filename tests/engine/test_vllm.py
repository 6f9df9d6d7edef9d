"""The engine does what vLLM's own scheduler did, step by step: tests/data/vllm/, recorded by `make vllm-check`.

Compared are: who got how many tokens in each step, who was preempted before it, how many blocks were in use, and when
each token left.
"""

import json
from collections import Counter
from functools import lru_cache, partial

import pytest

from course import KVCache, Workload, policies, serve, steptime
from course.engine.plain import PlainEngine
from course.engine.serving import finish
from course.models.engine_defaults import DEFAULT_ENGINE_VERSION, RECORDED
from tests.helpers import vllm_runs

VERSIONS = ("0.19.1", "0.33.0")
EQUAL = ("roomy", "tight", "nochunk", "labs")
SHARING = ("prefix", "turns", "crowded")
"""Kinds in which all runs are equal, without prefix caching and with it."""
SECOND = steptime.PowerLaw(t0=1, c=0, alpha=1)


def plain(load, policy, cache):
    """The run of the loop that is written to be read."""
    engine = PlainEngine(policy, SECOND, cache)
    engine.follow(load)
    return finish(engine)


ENGINES = {
    "fast": lambda load, policy, cache: serve(load, policy, SECOND, cache),
    "plain": plain,
    "asked before every step": lambda load, policy, cache: serve(load, policy, SECOND, cache, honour_until=False),
}
"""Ways to serve: (workload, policy, cache) to a Run whose steps take a second each."""


@lru_cache(maxsize=16)
def recorded(kind, version):
    """(workload, run of vLLM) for each workload of the kind."""
    loads, runs = vllm_runs.recorded(kind)
    return [(load, vllm_runs.of_vllm(run)) for load, run in zip(loads, runs[version]["runs"], strict=True)]


def differences(kind, version, serve_it=ENGINES["fast"], policy=policies.Continuous, more=0, follow=None, change=dict):
    """{seed: where the course's run parts from vLLM's}.

    more: blocks that the course has besides. follow: the version that it follows, if another. change: what becomes of
    each workload before the course serves it.
    """
    found = {}
    for load, theirs in recorded(kind, version):
        load = change(load)
        chosen = vllm_runs.policy(load, follow or version, policy), vllm_runs.cache(load, follow or version, more)
        mine = vllm_runs.of_course(serve_it(vllm_runs.workload(load), *chosen))
        if parts := vllm_runs.first_difference(mine, theirs):
            found[load["seed"]] = parts
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", EQUAL + SHARING)
def test_every_run_is_equal_to_vllms(kind, version, engine):
    assert differences(kind, version, ENGINES[engine]) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_recorded_has_what_is_hard(version):
    seen = Counter()
    for kind in EQUAL:
        for load, run in recorded(kind, version):
            preempted = Counter(request for step in run.steps for request in step[2])
            seen["preempted"] += bool(preempted)
            seen["preempted twice"] += max(preempted.values(), default=0) > 1
            seen["several at once"] += any(len(step[2]) > 1 for step in run.steps)
            seen["a threshold"] += "threshold" in load
            seen["admitted by the first chunk"] += not load.get("full_isl", True)
            seen["no chunks"] += not load.get("chunked", True)
            seen["pauses"] += any(b[0] > a[0] + 1 for a, b in zip(run.steps, run.steps[1:], strict=False))
            seen["every block in use"] += any(step[3] == load["blocks"] for step in run.steps)
    assert min(seen.values()) >= 20, seen


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_recorded_of_prefixes_has_what_is_hard(version):
    seen = Counter()
    for kind in SHARING:
        for load, run in recorded(kind, version):
            again = Counter(request for _, request, _ in run.hits)
            seen["a hit"] += bool(again)
            seen["found after a preemption"] += max(again.values(), default=0) > 1
            seen["preempted"] += any(step[2] for step in run.steps)
            seen["part of an answer found"] += any(
                source < 0 and found > load["prompt"][-1 - source]
                for _, request, found in run.hits
                for source, _ in [load["starts"][request]]
            )
            seen["every block in use"] += any(step[3] == load["blocks"] for step in run.steps)
    assert min(seen.values()) >= 30, seen


@pytest.mark.parametrize("version", VERSIONS)
def test_async_scheduling_is_vllms(version):
    """Equal only with it: few workloads are so small that a slot and blocks held for a step more change nothing."""
    overlapped = partial(serve, async_scheduling=True)
    assert differences("async", version, lambda load, policy, cache: overlapped(load, policy, SECOND, cache)) == {}
    assert len(differences("async", version)) > 50


class OneMoreGivesWay(policies.Continuous):
    """Out of blocks, it preempts one request more than it must."""

    def make_room(self, state):
        answer = super().make_room(state)
        if not answer.preempt or len(answer.tokens) < 2:
            return answer
        *kept, last = answer.tokens
        return policies.Schedule({request: answer.tokens[request] for request in kept}, [*answer.preempt, last])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("change", "at_least"),
    [
        ({"more": 1}, 100),
        ({"change": lambda load: {**load, "full_isl": not load.get("full_isl", True)}}, 90),
        ({"policy": OneMoreGivesWay}, 60),
    ],
    ids=["a block more", "the other reservation", "one more preempted"],
)
def test_another_rule_is_noticed(version, change, at_least):
    """Controls: of 200 tight runs, so many are no longer equal."""
    assert len(differences("tight", version, **change)) >= at_least


@pytest.mark.parametrize(("version", "other"), [("0.19.1", "0.33"), ("0.33.0", "0.19")])
def test_which_blocks_are_reused_first_is_noticed(version, other):
    """By the other release's rule: of the crowded runs without a threshold, whose meaning 0.33 also changed."""
    plain_ones = {load["seed"] for load, _ in recorded("crowded", version) if "threshold" not in load}
    assert len(differences("crowded", version, follow=other).keys() & plain_ones) >= 15


def test_the_versions_differ_where_the_table_says_so():
    """0.33 spares a request that is alone from the threshold: by 0.19's rule some runs of 0.33 come out otherwise."""
    other = differences("roomy", "0.33.0", follow="0.19")
    loads = {load["seed"]: load for load, _ in recorded("roomy", "0.33.0")}
    assert len(other) >= 10 and all("threshold" in loads[seed] for seed in other)
    assert differences("roomy", "0.33.0", follow="0.25").keys() == other.keys()  # the older rules until a newer row
    assert differences("roomy", "0.33.0", follow="vLLM 0.34.2") == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_watermark_is_vllms(engine):
    """Equal only with it: in half of the runs it binds."""
    assert differences("watermark", "0.33.0", ENGINES[engine]) == {}
    without = differences("watermark", "0.33.0", change=lambda load: {**load, "watermark": 0})
    assert len(without) > 20


def test_the_watermark_by_hand():
    """Ten blocks of 4 tokens, 2 of them (0.2 x 11) kept free while anybody runs: the third waits for the others."""
    load, cache = Workload([0.0] * 3, [12, 20, 4], [2, 2, 1]), KVCache(10, 4)
    keeping = KVCache(10, 4, prefix_caching=True)
    for watermark, ttft in ((0, [1, 1, 1]), (0.2, [1, 1, 3]), (0.99, [1, 3, 5])):
        policy = policies.Continuous(4, 64, engine_version="0.33", watermark=watermark)
        for serve_it in ENGINES.values():
            assert serve_it(load, policy, cache).ttft.tolist() == ttft, watermark
            assert serve_it(load, policy, keeping).ttft.tolist() == ttft, watermark
            assert serve_it(load, policy, None).ttft.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [policies.Continuous, policies.ShortestFirst])
def test_a_watermark_that_cannot_be_is_refused(kind):
    with pytest.raises(ValueError, match="watermark must be"):
        kind(8, 16, engine_version="0.33", watermark=-0.1)
    with pytest.raises(ValueError, match=r"vLLM 0\.19\.1 has no watermark: set it to 0, or follow engine_v"):
        kind(8, 16, engine_version="0.19.1", watermark=0.1)


def test_the_docs_say_how_many_are_equal(root):
    section = (root / "docs" / "calibration.md").read_text().partition("## Equal to vLLM's own scheduler")[2]
    table = section.partition("\n## ")[0]
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("|")}
    for kind in (*EQUAL, *SHARING, "async", "watermark"):
        for version, one in vllm_runs.recorded(kind)[1].items():
            many, cell = len(one["runs"]), rows[kind].split("|")[3 + VERSIONS.index(version)]
            assert cell.strip() == f"{many} of {many}"
            assert one["vllm"] == version and one["date"] >= "2026-11-29"


def test_the_docs_name_the_default(root):
    said = f"{DEFAULT_ENGINE_VERSION} if it is left out"
    assert all(said in (root / "docs" / name).read_text() for name in ("calibration.md", "policies.md"))
    assert f"recorded on {RECORDED}" in (root / "docs" / "policies.md").read_text()
    versions = [one for kind in EQUAL for one in vllm_runs.recorded(kind)[1].values()]
    assert {one["date"] for one in versions if one["vllm"].startswith(DEFAULT_ENGINE_VERSION)} == {RECORDED}
    assert policies.Continuous(8, 16).engine_version == KVCache(8).engine_version == DEFAULT_ENGINE_VERSION


def test_by_hand():
    """A prompt of 10 tokens, 4 at a time: 0.33 takes it whole while it is alone, 0.19 never."""
    lone, two = Workload([0.0], [10], [2]), Workload([0.0, 0.0], [10, 1], [2, 1])
    for kind in (policies.Continuous, policies.ShortestFirst):
        settings = {"max_num_seqs": 2, "max_num_batched_tokens": 16, "long_prefill_token_threshold": 4}
        new, old = (kind(**settings, engine_version=version) for version in ("0.33", "0.19"))
        for serve_it in ENGINES.values():
            assert [serve_it(load, policy, None).ttft[0] for load in (lone, two) for policy in (new, old)] == [
                1,
                3,
                2,
                3,
            ]


@pytest.mark.parametrize("bad", ["latest", "", None, 33, "0.33 or so"])
def test_what_is_no_version_is_refused(bad):
    for make in (policies.Continuous, policies.ShortestFirst, KVCache):
        with pytest.raises(ValueError, match=r"an engine's version is written like 0\.19"):
            make(8, 16, engine_version=bad)
    policy = policies.Continuous(8, 16)
    policy.engine_version = bad
    with pytest.raises(ValueError, match=r"an engine's version is written like 0\.19"):
        serve(Workload([0.0], [1], [1]), policy, SECOND)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["roomy", "tight", "nochunk", "prefix", "watermark"])
def test_a_set_recorded_by_others(kind, version, shared):
    """As ours, but times and chunks one by one, and free blocks, which the roomy ones leave out.

    Where prefixes are shared, the tokens of the prompts are there; those of the answers are like no others.
    """
    path = shared / "accept" / "vllm_oracle" / f"{kind}-{version}.json"
    if not path.exists():
        pytest.skip("no sets of vLLM runs beside the project")
    for load in json.loads(path.read_text()):
        policy, cache = vllm_runs.policy(load, version), vllm_runs.cache(load, version)
        mine = vllm_runs.of_course(serve(vllm_runs.workload(load), policy, SECOND, cache))
        theirs = vllm_runs.of_vllm({
            "times": [[(end, 1) for end in ends] for ends in load["times"]],
            "chunks": [(*chunk, 1) for chunk in load["chunks"]],
            "preempted": load["preempted"],
            "hits": load["hits"] if load.get("prefix") else (),
            "used": [load["blocks"] - free for free in load["free"]] or [step[3] for step in mine.steps],
        })  # fmt: skip
        assert vllm_runs.first_difference(mine, theirs) is None, load["seed"]
