"""What labs show as an engine's print is a text that the reader understands: the same numbers, no second arithmetic."""

import json
import re

import pytest

from course.lessons.lab02 import engine_log
from course.lessons.lab08 import kv_pool
from course.look import look, reading
from tests.helpers.places import ROOT

TENTH = 0.05  # of a token/s, or of a percent: a line has one digit behind the point
PRINTS = re.compile(
    r"reqs, Waiting: \d|GPU KV cache size: \d|Maximum concurrency for \d|Serving Benchmark Result|^vllm:"
)


@pytest.mark.parametrize("running", engine_log.RUNNING)
def test_a_line_of_lab_02_is_read_as_it_was_made(running):
    made = engine_log.line(running)
    ((row,),) = reading.read(f"{made}\n").rows.values()
    assert (row.running, row.waiting) == (made.running, made.waiting)
    assert row.output_rate == pytest.approx(made.answers, abs=TENTH)
    assert row.prompt_rate == pytest.approx(made.prompts, abs=TENTH)
    assert row.usage == pytest.approx(made.usage, abs=TENTH / 100)
    # What the lab computes from the line is what anybody computes from the print.
    assert row.running / row.output_rate == pytest.approx(engine_log.step(running), rel=1e-4)  # of its rounded rate


def test_several_such_lines_name_the_slots():
    lines = f"{engine_log.line(32)}\n" * 3
    assert [one["limit"] for one in look(lines).limits] == ["slots"]


@pytest.mark.parametrize("length", [2_048, 8_192, 16_384])
def test_the_start_of_lab_08_agrees_with_itself(length):
    (check,) = look(kv_pool.start_up_log(length)).checks
    assert (check.name, check.verdict) == ("concurrency", "equal")


def shown(path):
    """The lines of a notebook that learners see: its text cells, what cells print, and comments."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        outputs = [one for output in cell.get("outputs", ()) for one in (output.get("text", ()),)]
        data = [output.get("data", {}).get("text/plain", ()) for output in cell.get("outputs", ())]
        for part in (cell["source"], *outputs, *data):
            yield from ("".join(part)).splitlines()


@pytest.mark.parametrize("path", sorted((ROOT / "labs").glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_print_of_an_engine_in_a_lab_is_read(path):
    text = "\n".join(line.lstrip("# ") for line in shown(path))
    for match in PRINTS.finditer(text):
        begin = text.rfind("\n", 0, text.rfind("Avg prompt", 0, match.start()) + 1) + 1
        line = text[begin if "reqs" in match[0] else match.start() : text.find("\n", match.end())]
        assert reading.read(" ".join(line.split())).read, line


def test_some_labs_show_such_lines():
    paths = [path for path in (ROOT / "labs").glob("*.ipynb") if "reqs, Waiting: " in path.read_text(encoding="utf-8")]
    assert {path.stem[:2] for path in paths} >= {"02", "04"}
