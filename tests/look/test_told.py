"""What a text says in other shapes than a log's: refusals in any words, sentences, JSON, tables."""

import json
from pathlib import Path

import pytest

from course.look import look

CASES = json.loads((Path(__file__).parents[1] / "data" / "look" / "told.json").read_text(encoding="utf-8"))


def named(text):
    try:
        return [one["limit"] for one in look(text).limits]
    except ValueError as error:
        assert "no line is known here" in str(error)
        return []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_small_forms_of_public_pastes(case):
    """Their lines are rewritten, with the numbers that decide."""
    assert named(case["text"]) == [case["limit"]] * bool(case["limit"])


WAYS = {
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "in a list": lambda text: "\n".join(f"    - {line}" for line in text.splitlines()),
    "docker": lambda text: "\n".join(f"vllm-1  | {line}" for line in text.splitlines()),
    "kubectl": lambda text: "\n".join(f"2026-04-05T11:00:00.123456789Z {line}" for line in text.splitlines()),
    "JSON": lambda text: "\n".join(json.dumps({"level": "ERROR", "message": line}) for line in text.splitlines()),
    "syslog": lambda text: "\n".join(f"Apr 22 15:35:31 host bash[1]: {line}" for line in text.splitlines()),
    "in a sentence": lambda text: f"Since the update I get this: `{text}`, and nothing helps.",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", [one for one in CASES if "\n" not in one["text"]], ids=lambda case: case["source"])
def test_the_same_line_in_other_surroundings(case, way):
    assert named(WAYS[way](case["text"])) == named(case["text"])


@pytest.mark.parametrize("changed", ["3.86", "9.00"])
def test_a_goodput_above_what_was_answered_differs(changed):
    block = (
        "=== Serving Benchmark Result ===\nSuccessful requests: 100\nBenchmark duration (s): 26.67\n"
        "Request throughput (req/s): 3.75\nRequest goodput (req/s): {}\n"
    )
    verdicts = {one.name: one.verdict for one in look(block.format(3.5)).checks}
    assert verdicts == {"requests/s": "equal", "goodput": "possible"}
    assert {one.name: one.verdict for one in look(block.format(changed)).checks}["goodput"] == "differs"


def test_flags_of_other_engines():
    (limit,) = look("srv send_error: the request exceeds the available context size").limits
    assert "--ctx-size" in limit["flag"] and "--max-model-len" not in limit["flag"]
    (limit,) = look("RuntimeError: [TM][ERROR] CUDA runtime error: out of memory").limits
    assert "--cache-max-entry-count" in limit["flag"]


@pytest.mark.parametrize("source", ["vllm 24082", "tt-inference-server 1446", "sglang 17216"])
def test_a_number_that_is_not_printed_is_not_checked(source):
    """It is computed from the others: that it agrees with them says nothing."""
    (text,) = (one["text"] for one in CASES if one["source"] == source)
    assert "requests/s" not in {one.name for one in look(text).checks}
