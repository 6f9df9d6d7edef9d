"""Lab 16's three result files: what each should say, what people read in it instead, and the hint for that."""

from collections.abc import Mapping
from typing import Any

from course.exercises.compare import as_number, brief, same
from course.lessons.lab16 import three_files

RTOL = 2e-3  # below what tells any two of these numbers apart

_nightly, _gateway, _peak = (three_files.contents(name) for name in three_files.NAMES)
_tokens = _gateway["total_output_tokens"] / _gateway["completed"]
_due = _peak["num_prompts"] / _peak["request_rate"]
_e2e = _peak["mean_e2el_ms"] / 1e3

RIGHT = {
    "nightly": _nightly["completed"] / _nightly["duration"],  # requests/s
    "gateway": float("nan"),  # ms a token: the file cannot say
    "peak": _peak["duration"] - _e2e - _due,  # seconds
}

READ_INSTEAD: dict[str, tuple[tuple[float, str], ...]] = {
    "nightly": (
        (
            _nightly["request_throughput"],
            "That is what the file says. Divide its own counts by its own seconds: which requests are in it?",
        ),
        (
            (_nightly["completed"] - _nightly["failed"]) / _nightly["duration"],
            "The failed ones are not among the completed: you took them off twice.",
        ),
        (_nightly["output_throughput"], "Those are tokens a second. The question is requests."),
        (_nightly["failed"] / _nightly["duration"], "Those are the failures a second."),
    ),
    "gateway": (
        (0.0, "No engine makes tokens in no time. Which two other times in the file are equal?"),
        (
            _gateway["mean_e2e_latency_ms"] / _tokens,
            "That spreads the wait for the first token over all tokens. It would be ours only if the first token took "
            "no longer than any other.",
        ),
        (
            _gateway["mean_e2e_latency_ms"] / (_tokens - 1),
            "That takes TTFT for zero. The file does not say when the first token was made, only that all arrived "
            "together.",
        ),
        (
            1e3 / _gateway["output_throughput"],
            "That is 1 / throughput of all requests together. One request is slower than that by the number that run "
            "at the same time.",
        ),
    ),
    "peak": (
        (_peak["duration"] - _due, "That is how late it was answered. It was sent an E2E earlier."),
        (0.0, "Compare the rate that was asked for with the one that was reached: where did the others stay?"),
        (_peak["duration"] - _e2e, "That is when it was sent, on the clock of the test. When was it due?"),
        (_due, "That is when it was due. When was it really sent?"),
        (_e2e, "That is the mean E2E, which begins when a request is sent."),
        (_peak["p99_ttft_ms"] / 1e3, "That is the p99 of TTFT in the file, which begins when a request is sent."),
    ),
}


def first_wrong(answers: Any) -> str:
    """The first of the three answers that is wrong, as text; "all right", or "still open" where one is missing.

    answers: a mapping from the names of the files to numbers, None where there is no answer yet. ValueError for
    anything else, NotImplementedError where all three are None.
    """
    if not isinstance(answers, Mapping) or set(answers) != set(RIGHT):
        raise ValueError(f"the answer must be a dictionary with the keys {', '.join(map(repr, RIGHT))}")
    given = {name: answers[name] for name in RIGHT if answers[name] is not None and answers[name] is not ...}
    if not given:
        raise NotImplementedError
    for name, value in given.items():
        if as_number(value) is None:
            raise ValueError(f"{name} is {brief(value)}: give a number, float('nan') where the file cannot say")
        if not same(value, RIGHT[name], RTOL):
            known = [wrong for wrong, _ in READ_INSTEAD[name] if same(value, wrong, RTOL)]
            return f"{name}: {brief(known[0] if known else value)}"
    return "all right" if len(given) == len(RIGHT) else "still open"
