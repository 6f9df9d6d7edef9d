"""`course simulate` with a policy from a file, and with classes of requests: the numbers of `serve`, and sentences."""

import json

import pytest
from typer.testing import CliRunner

from course import Workload, lengths, policies, serve, steptime
from course.cli import app

SMALL = ["simulate", "--rate", "20", "--num-requests", "60", "--unlimited-kv", "--max-num-seqs", "4"]
MINE = """
from course.policies import Continuous

class LongestFirst(Continuous):
    def __init__(self, max_num_seqs, max_num_batched_tokens=1_000, by="prompt_tokens"):
        super().__init__(max_num_seqs, max_num_batched_tokens)
        self.by = by

    def queue(self, state, waiting):
        return sorted(waiting, key=lambda request: -getattr(request, self.by))
"""


class LongestFirst(policies.Continuous):
    def queue(self, state, waiting):
        return sorted(waiting, key=lambda request: -request.prompt_tokens)


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def simulated(*args):
    result = call(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def file(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def load():
    return Workload.gamma(20, 1.0, 60, lengths.lognormal(512, 1), lengths.lognormal(128, 1), seed=0)


def test_a_policy_of_ones_own_has_the_numbers_of_serve(file):
    path = file(MINE)
    roofline = steptime.Roofline("llama-3.1-8b", "H100")
    (run,) = simulated(*SMALL, "--policy-file", path)["runs"]
    assert run["name"] == "LongestFirst"
    assert run["summary"]["ttft_mean"] == serve(load(), LongestFirst(4, 1_000), roofline).summary()["ttft_mean"]
    typed = simulated(*SMALL, "--policy-file", path, "--max-num-batched-tokens", 64, "--policy", "continuous,static")
    assert [run["name"] for run in typed["runs"]] == ["continuous", "static", "LongestFirst"]
    found = typed["runs"][2]["summary"]["ttft_mean"]
    assert found == serve(load(), LongestFirst(4, 64), roofline).summary()["ttft_mean"]


def test_a_setting_that_the_class_does_not_take_has_no_effect(file):
    path = file(MINE)
    result = call(*SMALL, "--policy-file", path, "--long-prefill-token-threshold", 5)
    assert "--long-prefill-token-threshold has no effect: no policy of this run is " in result.stderr
    assert "has no effect" not in call(*SMALL, "--policy-file", path, "--max-num-batched-tokens", 64).stderr


def test_the_class_is_named_where_there_are_several(file):
    path = file(MINE + "class Other(LongestFirst):\n    pass\n")
    result = call(*SMALL, "--policy-file", path)
    assert (
        result.exit_code and "mine.py defines LongestFirst, Other: say which one, as in --policy-file" in result.stderr
    )
    assert simulated(*SMALL, "--policy-file", f"{path}:Other")["runs"][0]["name"] == "Other"
    result = call(*SMALL, "--policy-file", f"{path}:Third")
    assert result.exit_code and "mine.py defines no policy 'Third'; it has LongestFirst, Other" in result.stderr


FAULTS = {
    "no Python": ("class :\n", "mine.py, line 1: this is no Python: "),
    "an error when it is read": ("a = 1\nb = a / 0\n", "mine.py, line 2: it could not be read: ZeroDivisionError"),
    "it leaves": ("import sys\nsys.exit(3)\n", "mine.py, line 2: it could not be read: SystemExit: 3"),
    "no policy": ("from course.policies import Continuous\n", "mine.py defines no policy: write a class with schedule"),
    "a setting without a default": (
        MINE.replace("max_num_batched_tokens=1_000, by=", "max_num_batched_tokens, weight, by="),
        "mine.py: LongestFirst needs weight, which no option gives: give it a default",
    ),
    "an error when it is made": (
        MINE.replace("self.by = by", "self.by = bye"),
        "mine.py, line 7: LongestFirst could not be made: NameError: name 'bye' is not defined",
    ),
    "an error while it serves": (
        MINE.replace("getattr(request, self.by)", "request.prompt"),
        "mine.py, line 10: LongestFirst failed while it served: AttributeError",
    ),
    "a broken rule": (
        MINE + "    def schedule(self, state):\n        return None\n",
        "LongestFirst.schedule must return a Schedule, not None",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(file, fault):
    text, sentence = FAULTS[fault]
    result = call(*SMALL, "--policy-file", file(text))
    assert result.exit_code and sentence in result.stderr.replace("\n", " "), result.stderr
    assert "Traceback" not in result.stderr and not result.stdout


def test_a_file_that_is_not_there(tmp_path):
    assert "there is no such file" in call(*SMALL, "--policy-file", tmp_path / "none.py").stderr
    (tmp_path / "mine.txt").write_text(MINE)
    assert "the name of a Python file ends in .py" in call(*SMALL, "--policy-file", tmp_path / "mine.txt").stderr


# Classes of requests

CLASSES = ["simulate", "--unlimited-kv", "--num-requests", 100, "--class"]


def test_classes_have_their_own_rates_and_lengths_and_are_reported_one_by_one():
    chat, docs = "chat:rate=9,prompt-tokens=100,deadline_ms=300", "docs:rate=1,prompt_tokens=4000,prompt_cv=0"
    found = simulated(*CLASSES, chat, "--class", docs, "--output-tokens", 50, "--seed", 3)
    parts = {
        "chat": Workload.gamma(9, 1, 90, lengths.lognormal(100, 1), lengths.lognormal(50, 1), seed=3),
        "docs": Workload.gamma(1, 1, 10, 4_000, lengths.lognormal(50, 1), seed=4),
    }
    run = serve(Workload.mix(parts), policies.Continuous(64, 2_048), steptime.Roofline("llama-3.1-8b", "H100"))
    assert found["workload"]["n"] == 100 and found["runs"][0]["summary"]["ttft_mean"] == run.summary()["ttft_mean"]
    classes = found["runs"][0]["classes"]
    for name in parts:
        assert classes[name]["ttft_mean"] == pytest.approx(run.ttft[run.workload.class_ == name].mean(), rel=1e-12)
    table = call(*CLASSES, chat, "--class", docs).stdout
    assert "TTFT p95, chat" in table and "TPOT p95, docs" in table
    assert "classes" not in simulated(*SMALL)["runs"][0]


def test_a_policy_of_ones_own_may_use_deadlines_of_classes(file):
    path = file(MINE.replace("-getattr(request, self.by)", "request.due"))
    found = simulated(*CLASSES, "a:rate=90", "--class", "b:rate=10,deadline_ms=10", "--policy-file", path,
                      "--policy", "continuous", "--max-num-seqs", 4)["runs"]  # fmt: skip
    assert found[1]["classes"]["b"]["ttft_mean"] < 0.5 * found[0]["classes"]["b"]["ttft_mean"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("chat", "--class takes a name and settings, as in --class chat:rate=9"),
        ("chat:prompt_tokens=5", "--class chat needs a rate"),
        ("chat:rate=9,speed=3", "--class takes rate, prompt_tokens, .*, not 'speed=3'"),
        ("chat:rate=many", "--class chat: rate must be a number, not 'many'"),
        ("chat:rate=1,rate=2", "--class chat gives rate twice"),
        ("chat:rate=-1", "the rate of --class chat must be"),
        ("chat:rate=1,deadline_ms=-5", "deadline_ms of --class chat must be"),
    ],
)
def test_what_is_wrong_with_a_class_is_said(text, sentence):
    import re

    result = call(*CLASSES, text)
    assert result.exit_code and re.search(sentence, result.stderr.replace("\n", " ")), result.stderr


def test_classes_beside_a_rate_or_a_trace_are_refused():
    assert "each --class has a rate of its own: leave out --rate" in call(*CLASSES, "a:rate=1", "--rate", 5).stderr
    assert "leave out --class" in call("simulate", "--trace", "x.csv", "--class", "a:rate=1").stderr
    assert "--class gives 'a' twice" in call(*CLASSES, "a:rate=1", "--class", "a:rate=2").stderr
