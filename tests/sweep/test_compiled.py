"""The compiled loop: the engine's own runs, to the last bit, or not used; and the rows say which served.

Without numba the same function runs as the Python that it is.
"""

import random
import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given

from course import SLO, KVCache, Workload, lengths, policies, serve, steptime
from course.engine import serving
from course.sweep import OneProcess, capacity, compiled, loop, rows_file, sweep
from course.sweep.fast import compiled_loop, log_of
from tests.engine.test_plain import differences
from tests.helpers import strategies
from tests.helpers.sizes import size
from tests.helpers.strategies import examples, fresh
from tests.sweep import designs

numba = pytest.mark.skipif(find_spec("numba") is None, reason='numba is not installed: pip install "numba>=0.68"')
LOOPS = [pytest.param(lambda: loop.loop, id="as it is"), pytest.param(compiled_loop, id="compiled", marks=numba)]
H100 = steptime.recorded("h100-llama3-8b")
MODELS = [H100, *strategies.OUR_MODELS, strategies.Somebodys(t0=5e-3, c=2e-4, alpha=0.5, prefill=2e-5, context=5e-8)]


def served(run, *case):
    """The Run, and whether `run` served it."""
    logs = []

    def instead(engine):
        logs.append(log_of(engine, run))
        return logs[-1]

    before = serving.LOOP.set(instead)
    try:
        return serve(*case), logs[-1] is not None
    finally:
        serving.LOOP.reset(before)


def drawn(seed):
    """A load, a policy of any settings, a step time and perhaps a cache, often too small."""
    draw = random.Random(seed)
    n, big = draw.choice([1, 3, 8, 30, 80]), draw.choice([8, 60, 400])
    gaps = {
        "at once": lambda: 0.0,
        "on a grid": lambda: draw.choice([0, 0, 0.125, 0.25, 2.5]),
        "at random": lambda: draw.expovariate(draw.choice([1, 20, 100])),
    }[draw.choice(["at once", "on a grid", "at random"])]
    prompts = [draw.randint(1, big) for _ in range(n)]
    answers = [draw.randint(1, draw.choice([3, 20, 60])) for _ in range(n)]
    longest = max(a + b - 1 for a, b in zip(prompts, answers, strict=True))
    load = Workload(np.cumsum([gaps() for _ in range(n)]).tolist(), prompts, answers)
    slots, more = draw.choice([1, 2, 4, 8, 32, 64]), {}
    budget = max(slots, draw.choice([1, 4, 16, 64, 256, 2048]))
    if draw.random() < 0.2:
        budget, more["enable_chunked_prefill"] = max(budget, longest), False
    elif draw.random() < 0.4:
        more["long_prefill_token_threshold"] = draw.choice([1, 3, 16, 100])
    if draw.random() < 0.3:
        more["scheduler_reserve_full_isl"] = False
    if draw.random() < 0.3:
        more |= {"engine_version": "0.33", "watermark": draw.choice([0.0, 0.01, 0.1, 0.5])}
    cache = None
    if draw.random() < 0.8:
        block = draw.choice([1, 2, 4, 16])
        need = -(-longest // block)
        cache = KVCache(need + draw.choice([0, 1, 3, need, 4 * need, 50 * need]), block)
    return load, policies.Continuous(slots, budget, **more), draw.choice(MODELS), cache


@pytest.mark.parametrize("of", LOOPS)
def test_random_runs_are_the_engines_to_the_bit(of):
    run, preempted, chunks = of(), 0, 0
    for seed in range(size(small=150, whole=2_000)):
        case = drawn(seed)
        want = serve(*case)
        found, did = served(run, *case)
        assert did and not (what := differences(want, found)), f"{seed}: {what} {case}"
        assert repr(want.summary()) == repr(found.summary()) and want.log.idle.tolist() == found.log.idle.tolist()
        preempted += bool(want.preempted.any())
        chunks += len(want.log.chunks) > len(case[0])
    assert preempted > 20 and chunks > 20, "the cases have what is difficult"


@pytest.mark.parametrize("of", LOOPS)
@pytest.mark.parametrize("kind", ["continuous", "storms", "many_in_chunks"])
def test_runs_of_the_engines_own_tests_are_equal_or_left_to_it(of, kind):
    run, ran = of(), []

    @given(getattr(strategies, kind)())
    @examples(40, 10)
    def equal(case):
        found, did = served(run, case.load, fresh(case.policy), case.step_time, case.cache)
        assert not (what := differences(case.served(), found)), f"{what}: {case}"
        ran.append(did)

    equal()
    assert any(ran)


@pytest.mark.parametrize("of", LOOPS)
def test_long_runs_outgrow_the_first_arrays(of):
    load = Workload([0.0, 0.0, 50.0], [5, 7, 9], [6_000, 3, 4])
    case = load, policies.Continuous(2, 4), steptime.PowerLaw(0.125, 0, 1), None
    found, did = served(of(), *case)
    assert did and len(found.log.clock) > 6_000 and not differences(serve(*case), found)
    many = Workload([0.0] * 60, [200] * 60, [3] * 60)
    case = many, policies.Continuous(60, 60), steptime.PowerLaw(0.125, 0, 1), KVCache(700, 16)
    found, did = served(of(), *case)
    assert did and not differences(serve(*case), found)


class Own(policies.Continuous):
    """Another policy, though it says nothing else."""


PLENTY = policies.Continuous(4, 64)
STEP = steptime.PowerLaw(0.005, 1e-4, 1)
TWO = Workload([0.0, 0.1], [10, 20], [3, 4])
LEFT = {
    "another policy": (TWO, Own(4, 64), STEP, None),
    "shortest first": (TWO, policies.ShortestFirst(4, 64), STEP, None),
    "a callable": (TWO, PLENTY, lambda step: 0.01, None),
    "prefixes": (TWO, PLENTY, STEP, KVCache(100, prefix_caching=True)),
    "swapping": (TWO, PLENTY, STEP, KVCache(100, host_blocks=10)),
    "patience": (Workload([0.0, 0.1], [10, 20], [3, 4], patience=[1.0, 1.0]), PLENTY, STEP, None),
    "turns": (Workload([0.0, np.nan], [10, 20], [3, 4], after=[-1, 0], think_time=[0, 1]), PLENTY, STEP, None),
    "a client's cap": (Workload([0.0, 0.1], [10, 20], [3, 4], max_concurrency=1), PLENTY, STEP, None),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_it_cannot_do_is_left_to_the_engine(name):
    found, did = served(loop.loop, *LEFT[name])
    assert not did and not differences(serve(*LEFT[name]), found)


def test_a_method_put_into_the_policy_is_heard():
    policy = policies.Continuous(4, 64)
    policy.room = lambda state: 1
    assert not served(loop.loop, TWO, policy, STEP)[1]


def test_it_refuses_in_the_engines_words():
    huge = Workload([0.0], [1000], [10])
    for case in ((huge, PLENTY, STEP, KVCache(4)), (huge, policies.Continuous(4, 64, False), STEP, None)):
        with pytest.raises(ValueError) as want:
            serve(*case)
        with pytest.raises(ValueError) as found:
            served(loop.loop, *case)
        assert str(want.value) == str(found.value)


# Of a sweep


@pytest.fixture
def as_it_is(monkeypatch):
    """Sweeps that use the loop as it is, whether numba is there or not."""
    module, of_rows, of_capacity = (import_module(f"course.sweep.{name}") for name in ("fast", "row", "capacity"))
    monkeypatch.setattr(module, "compiled_loop", lambda: loop.loop)
    for one in (import_module("course.sweep.running"), of_capacity):
        monkeypatch.setattr(one, "extra", lambda *names: None)
    for one in (of_rows, of_capacity):
        monkeypatch.setattr(one, "find_spec", lambda name: name)


def test_rows_say_which_loop_served_and_are_equal(as_it_is, tmp_path):
    grid = {"max_num_seqs": [4, 0, 16], "rate": [5.0, 20.0]}
    want = sweep(designs.served, grid, seeds=2, executor=OneProcess())
    found = sweep(designs.served, grid, seeds=2, executor=OneProcess(), fast=True, resume=tmp_path / "s.jsonl")
    assert found == want and {row.loop for row in want} == {"engine"}
    assert {row.loop for row in found if not row.refused} == {"compiled"}
    assert {row.loop for row in rows_file.read(tmp_path / "s.jsonl")} == {"compiled", "engine"}
    assert serving.LOOP.get() is None, "nobody else is served so"
    mixed = sweep(designs.two_policies, {"rate": [5.0]}, executor=OneProcess(), fast=True)
    assert [row.loop for row in mixed] == ["compiled, engine"]


def test_files_that_do_not_say_were_the_engines(tmp_path):
    path = tmp_path / "s.jsonl"
    table = sweep(designs.numbers, {"x": [1.0]}, executor=OneProcess(), resume=path)
    path.write_text(path.read_text().replace(', "loop": "engine"', ""))
    assert tuple(rows_file.read(path)) == table.rows and rows_file.read(path)[0].loop == "engine"


def test_capacity_says_which_loop_served(as_it_is):
    def load(seed):
        return Workload.poisson(1, 200, lengths.lognormal(300, 1.0), lengths.lognormal(30, 1.0), seed=seed)

    asked = policies.Continuous(16, 256), STEP, KVCache(500), load, SLO(ttft=0.5)
    want, found = capacity(*asked, seeds=2), capacity(*asked, seeds=2, fast=True)
    assert found == want and (want.loop, found.loop) == ("engine", "compiled")


def test_without_numba_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled_loop.cache_clear()
    with pytest.raises(ImportError, match=r'fast is not installed .*: pip install -e "\.\[fast\]"'):
        sweep(designs.numbers, {"x": [1.0]}, executor=OneProcess(), fast=True)
    with pytest.raises(ImportError, match="fast is not installed"):
        capacity(PLENTY, STEP, None, TWO, SLO(ttft=0.5), fast=True)
    with pytest.raises(ImportError, match="fast is not installed"), compiled():
        pass
    with pytest.raises(ValueError, match="fast must be True or False, not 3"):
        sweep(designs.numbers, {"x": [1.0]}, executor=OneProcess(), fast=3)
