"""`sweep`: rows in order, equal from every executor, refused ones among them, and what was there is not run again."""

import json
import random
import socket
import sys
import threading
import types
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import threadpoolctl

from course.sweep import OneProcess, Table, from_pool, on_ray, process_pool, rows_file, running, sweep
from course.sweep.grid import settings_of
from tests.sweep import designs

GRID = {"max_num_seqs": [4, 0, 16, 500], "rate": [5.0, 20.0]}


class Backwards:
    """Tasks are done in an order of its own, when somebody waits for the last."""

    def __init__(self, number):
        self.number, self.tasks = number, []

    def submit(self, task, *args):
        future = Future()
        self.tasks.append((future, task, args))
        if len(self.tasks) == self.number:
            random.Random(3).shuffle(self.tasks)
            for one, todo, given in self.tasks:
                one.set_result(todo(*given))
        return future


@pytest.fixture(scope="module")
def table():
    return sweep(designs.served, GRID, seeds=3, executor=OneProcess())


def test_rows_stand_in_the_order_of_the_grid_and_the_seeds(table):
    assert [(row.settings["max_num_seqs"], row.settings["rate"], row.seed) for row in table] == [
        (slots, rate, seed) for slots in (4, 0, 16, 500) for rate in (5.0, 20.0) for seed in range(3)
    ]
    assert all(list(row.settings) == ["max_num_seqs", "rate"] for row in table)
    assert repr(table) == "Table(24 runs of 8 settings, 12 refused)"


def test_a_row_is_what_the_design_returns_and_with_what_it_was_computed(table):
    row = table.rows[1]
    own = designs.served(seed=1, max_num_seqs=4, rate=5.0).summary()
    assert row.summary == {name: None if value != value else value for name, value in own.items()}
    assert row.versions["numpy"] == np.__version__ and row.versions["course"] and row.versions["python"]
    assert row.sweep == "tests.sweep.designs.served" and row.cpu_seconds > 0 and row.refused is None


def test_a_refused_run_is_a_row_with_its_sentence(table):
    refused = {row.settings["max_num_seqs"]: row.refused for row in table if row.refused}
    assert refused.keys() == {0, 500}
    assert refused[0] == "max_num_seqs must be a whole number from 1 to 1,000,000,000, not 0"
    assert "max_num_batched_tokens" in refused[500]
    assert all(not row.summary for row in table if row.refused)


@pytest.mark.parametrize("kind", ["threads", "pool", "default", "multiprocessing", "backwards"])
def test_rows_are_the_same_from_every_executor(table, kind):
    if kind == "threads":
        with ThreadPoolExecutor(3) as executor:
            found = sweep(designs.served, GRID, seeds=3, executor=executor)
    elif kind == "multiprocessing":
        import multiprocessing

        with multiprocessing.get_context("spawn").Pool(2) as pool:
            found = sweep(designs.served, GRID, seeds=3, executor=from_pool(pool))
    else:
        executor = {"pool": process_pool(2), "default": None, "backwards": Backwards(len(table))}[kind]
        found = sweep(designs.served, GRID, seeds=3, executor=executor)
    assert found == table and [row.line() for row in found] != []


def test_rows_are_the_same_from_a_dask_cluster(table, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install distributed")
    from course.sweep import on_dask

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster:
        assert sweep(designs.served, GRID, seeds=3, executor=on_dask(cluster.scheduler_address)) == table


@pytest.mark.cpu_limit(300)
def test_rows_are_the_same_from_a_real_ray(table, monkeypatch):
    """A cluster of its own on this machine, which takes some twenty seconds to start."""
    ray = pytest.importorskip("ray", reason='Ray is not installed: pip install "ray[client]"')
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # of a machine with much to do
    try:
        assert sweep(designs.served, GRID, seeds=3, executor=on_ray()) == table
    finally:
        ray.shutdown()


class StrangePool:
    """What `on_ray` needs of Ray: a Pool with an address. Addresses of nobody raise what Ray raises."""

    ended = False

    def __init__(self, ray_address):
        if ray_address is not None:
            raise Exception("The current node timed out during startup")

    def apply_async(self, task, args, callback, error_callback):
        assert callable(error_callback)
        callback(task(*args))

    def terminate(self):
        StrangePool.ended = True


def test_rows_are_the_same_from_rays_pool(table, monkeypatch):
    """Against a stand-in, for those who have no Ray."""
    module = types.ModuleType("ray.util.multiprocessing")
    module.Pool = StrangePool
    for name in ("ray", "ray.util"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[name].__spec__ = ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "ray.util.multiprocessing", module)
    assert sweep(designs.served, GRID, seeds=3, executor=on_ray()) == table and StrangePool.ended
    with pytest.raises(
        ConnectionError, match=r"no Ray cluster answers at 10\.0\.0\.5:6379 \(Exception: The current node timed"
    ):
        sweep(designs.served, GRID, executor=on_ray("10.0.0.5:6379"))


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n", None])
def test_who_is_no_ray_cluster_is_told_before_ray_tries(monkeypatch, says):
    """Ray itself tries for three quarters of a minute. None: nobody listens."""
    for name in ("ray", "ray.util", "ray.util.multiprocessing"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[name].__spec__ = ModuleSpec(name, None)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = f"ray://127.0.0.1:{listening.getsockname()[1]}"
        if says is not None:
            listening.listen()

            def answer():
                with listening.accept()[0] as there:
                    there.sendall(says)

            threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(ConnectionError, match=rf"no Ray cluster answers at {address} \(.*`ray start --head`"):
            sweep(designs.served, GRID, executor=on_ray(address))
    with pytest.raises(ValueError, match=r"the address of a Ray cluster is such as ray://10\.0\.0\.5:10001, not 'ray:"):
        sweep(designs.served, GRID, executor=on_ray("ray://"))


def test_the_last_bit_does_not_depend_on_the_cores():
    """A BLAS adds up 200,000 products in as many parts as it has threads."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        alone = [designs.adds(seed=seed, number=200_000)["sum"] for seed in range(5)]
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        found = sweep(designs.adds, {"number": [200_000]}, seeds=5, executor=OneProcess())
    assert [row.summary["sum"] for row in found] == alone


def test_what_json_lacks_is_none_and_what_numpy_has_is_plain(tmp_path):
    found = sweep(designs.numbers, [{"x": 0.1, "word": "b"}, {"x": np.float64(7)}], executor=OneProcess(),
                  resume=tmp_path / "s.jsonl")  # fmt: skip
    assert found.rows[0].summary == {"x": 0.1 / 3, "nan": None, "inf": None, "seed": 0, "word": "b", "yes": True}
    assert tuple(rows_file.read(tmp_path / "s.jsonl")) == found.rows


def test_a_bug_is_a_row_too_and_is_tried_again(tmp_path):
    path, told = tmp_path / "s.jsonl", []
    found = sweep(designs.stumbles, {"place": range(4)}, executor=OneProcess(), resume=path)
    assert [row.failed for row in found] == [False, True, False, False]
    sweep(designs.stumbles, {"place": range(4)}, executor=OneProcess(), resume=path, tell=lambda *n: told.append(n))
    assert told == [(3, 4), (4, 4)] and len(rows_file.read(path)) == 5
    assert [row.refused for row in found] == [
        None,
        "ZeroDivisionError: division by zero",
        "it was refused without a sentence",
        "a design must return a Run or a mapping of numbers, not 5",
    ]


# Files


def calls(log):
    return sorted(log.read_text().splitlines()) if log.exists() else []


def test_what_is_there_is_not_run_again(tmp_path):
    log, path = tmp_path / "log", tmp_path / "s.jsonl"
    grid = {"log": [str(log)], "place": [0, 1]}
    first = sweep(designs.slow, grid, seeds=2, executor=OneProcess(), resume=path)
    assert calls(log) == ["0 0", "0 1", "1 0", "1 1"] and len(path.read_text().splitlines()) == 4
    told = []
    again = sweep(designs.slow, grid | {"place": [1, 2, 0]}, seeds=[1, 0], resume=path, executor=OneProcess(),
                  tell=lambda done, runs: told.append((done, runs)))  # fmt: skip
    assert calls(log) == ["0 0", "0 1", "1 0", "1 1", "2 0", "2 1"]
    assert told == [(4, 6), (5, 6), (6, 6)]
    assert [(row.settings["place"], row.seed) for row in again] == [(1, 1), (1, 0), (2, 1), (2, 0), (0, 1), (0, 0)]
    assert set(map(repr, first)) <= set(map(repr, again)), "what was kept is what was run, CPU seconds too"
    other = sweep(designs.numbers, {"x": [1.0]}, resume=path, executor=OneProcess())
    assert len(other) == 1 and len(rows_file.read(path)) == 7, "another design's rows stay, and count for nothing"


def test_the_order_of_the_names_makes_no_other_run(tmp_path):
    path, told = tmp_path / "s.jsonl", []
    first = sweep(designs.numbers, {"x": [1.0], "word": ["a"]}, executor=OneProcess(), resume=path)
    more = {"executor": OneProcess(), "resume": path, "tell": lambda *runs: told.append(runs)}
    assert sweep(designs.numbers, {"word": ["a"], "x": [1.0]}, **more) == first and told == [(1, 1)]


def test_ctrl_c_between_a_row_and_its_count_tells_of_the_row(tmp_path, monkeypatch):
    path, told, add = tmp_path / "s.jsonl", [], rows_file._add

    def add_and_stop(file, row):
        add(file, row)
        if row.settings["x"] == 2.0:
            raise KeyboardInterrupt

    monkeypatch.setattr(rows_file, "_add", add_and_stop)
    with pytest.raises(KeyboardInterrupt):
        sweep(designs.numbers, {"x": [1.0, 2.0, 3.0]}, executor=OneProcess(), resume=path,
              tell=lambda *n: told.append(n))  # fmt: skip
    assert told[-1] == (len(rows_file.read(path)), 3) == (2, 3)


@pytest.mark.parametrize("cut", [1, 2, 40, -1])
def test_a_last_line_that_was_cut_off_is_run_again(tmp_path, cut):
    path, grid = tmp_path / "s.jsonl", {"x": [1.0, 2.0, 3.0]}
    whole = sweep(designs.numbers, grid, executor=OneProcess(), resume=path)
    content = path.read_bytes()
    begin = content[:-1].rfind(b"\n") + 1
    path.write_bytes(content[: begin + cut] if cut > 0 else content[:cut])
    assert [row.settings["x"] for row in rows_file.read(path)] == [1.0, 2.0]
    ran = []
    assert sweep(designs.numbers, grid, executor=OneProcess(), resume=path, tell=lambda *n: ran.append(n)) == whole
    assert ran == [(2, 3), (3, 3)]
    assert [row.settings["x"] for row in rows_file.read(path)] == [1.0, 2.0, 3.0]
    path.write_bytes(content[:10])
    assert rows_file.read(path) == [] and sweep(designs.numbers, grid, executor=OneProcess(), resume=path) == whole


def test_rows_of_other_versions_count_and_are_named(tmp_path):
    path, grid = tmp_path / "s.jsonl", {"x": [1.0, 2.0]}
    sweep(designs.numbers, grid, executor=OneProcess(), resume=path)
    path.write_text(path.read_text().replace(np.__version__, "1.0"))
    (note,) = sweep(designs.numbers, grid, executor=OneProcess(), resume=path).notes
    assert note == "2 rows of the file were computed with numpy 1.0, not with what is here: they may differ"


@pytest.mark.parametrize(
    "content",
    ["hello\n", "hello", '{"a": 1}\n', "[1]\n", '{"sweep": 3}\n', "3", '{"x": ', "\0\n", None],
)  # fmt: skip
def test_a_file_that_is_no_sweeps_is_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.mkdir() if content is None else path.write_text(content)
    with pytest.raises((ValueError, OSError), match=r"notes\.txt"):
        sweep(designs.numbers, {"x": [1.0]}, executor=OneProcess(), resume=path)
    assert content is None or path.read_text() == content


def test_a_row_with_a_wrong_part_is_named(tmp_path):
    path = tmp_path / "s.jsonl"
    sweep(designs.numbers, {"x": [1.0]}, executor=OneProcess(), resume=path)
    row = json.loads(path.read_text())
    path.write_text(path.read_text() + json.dumps(row | {"seed": "one"}) + "\n")
    with pytest.raises(ValueError, match=r"s\.jsonl, row 2: seed must not be 'one'"):
        rows_file.read(path)


# Where it runs


def test_a_lambda_takes_turns_here_and_says_so():
    found = sweep(lambda *, seed, x: {"x": x + seed}, {"x": [1, 2]})
    assert [row.summary["x"] for row in found] == [1, 2] and found.notes == (running.ALONE,)


def test_lost_workers_are_a_sentence_and_keep_what_was_done(tmp_path):
    path = tmp_path / "s.jsonl"
    with pytest.raises(ConnectionError, match=r"the workers are gone \(.*What was done is in the file"):
        sweep(designs.ends, {"place": [0, 1]}, executor=process_pool(1), resume=path)
    assert {row.settings["place"] for row in rows_file.read(path)} <= {0}


BAD = {
    "no list": ({"x": 5}, "x must have a list of values, such as [32, 64], not 5"),
    "text": ({"x": "abc"}, "x must have a list of values"),
    "none": ({"x": []}, "x has no values: give at least one, or leave it out"),
    "empty": ([], "the grid is empty: there is nothing to run"),
    "a number": (5, "grid must be a dict of lists, or an iterable of settings, not 5"),
    "a list of numbers": ([5], "the settings of a run must be a dict, not 5"),
    "seed": ({"seed": [1]}, "a setting is called by a word other than seed, not 'seed'"),
    "nan": ({"x": [float("nan")]}, "x must be a finite number, a word, True, False or None, not nan"),
    "a load": ({"x": [[1, 2]]}, "x must be a finite number, a word, True, False or None, not [1, 2]"),
    "too many": ({name: range(101) for name in "abc"}, "the grid has 1,030,301 combinations, more than 1,000,000"),
    "without end": (({"x": x} for x in iter(int, 1)), None),
}


@pytest.mark.parametrize("name", [name for name in BAD if BAD[name][1]])
def test_bad_grids_are_a_sentence(name):
    grid, sentence = BAD[name]
    with pytest.raises(ValueError) as error:
        sweep(designs.numbers, grid, executor=OneProcess())
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("design", "more", "sentence"),
    [
        (5, {}, "design must be a function of a seed and settings, not 5"),
        (designs.numbers, {"seeds": 0}, "seeds must be a whole number from 1"),
        (designs.numbers, {"seeds": []}, "there are no seeds"),
        (designs.numbers, {"seeds": [-1]}, "a seed must be"),
        (designs.numbers, {"executor": 3}, "an executor must have submit, as in concurrent.futures; 3 has not"),
    ],
)
def test_bad_arguments_are_a_sentence(design, more, sentence):
    with pytest.raises(ValueError) as error:
        sweep(design, {"x": [1.0]}, **more)
    assert sentence in str(error.value)


def test_equal_settings_are_run_once_and_true_is_not_one():
    assert settings_of([{"a": 1, "b": 2}, {"b": 2, "a": 1}]) == [{"a": 1, "b": 2}]
    assert [type(one["a"]) for one in settings_of({"a": [1, True, 1.0, 1]})] == [int, bool, float]


def test_an_empty_table_has_no_best():
    with pytest.raises(ValueError, match="no row has a number called 'x': every run was refused"):
        Table(()).best("x")
