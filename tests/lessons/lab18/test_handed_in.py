"""From the report of lab 18 to the class: the design goes out, and what it is worth is computed again from it alone."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from course.cli import app
from course.exercises.export import export
from course.exercises.progress import Progress
from course.lessons import lab18
from course.lessons.lab18 import capstone, decision, scoring, service
from course.lessons.lab18.decision import FOUR, ONE
from course.lessons.lab18.search import REFERENCE, tried
from tests.helpers.sizes import size

SEEN, OTHERS = "requests a dollar on the seen day", "requests a dollar there"


def handed_in(folder: Path, monkeypatch: pytest.MonkeyPatch, design: Any) -> dict[str, Any]:
    """The export of a learner who has shown this report."""
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(folder))
    lab18.report(design)
    return export(Progress(folder), "1.0")


def counted(folder: Path, *exports: Any) -> dict[str, Any]:
    paths = []
    for number, one in enumerate(exports):
        paths.append(folder / f"{number}.json")
        paths[-1].write_text(json.dumps(one))
    result = CliRunner().invoke(app, ["class", *map(str, paths), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["labs"]["18"]


def test_a_report_hands_in_the_design_and_the_class_scores_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A score that somebody writes into the file, wherever it stands, is not read."""
    monkeypatch.setattr(decision, "OTHER_DAYS", service.UNSEEN[: size(2, 6)])
    capstone._worth.cache_clear()
    plain = handed_in(tmp_path / "a", monkeypatch, REFERENCE)
    assert plain["labs"]["18"]["design"] == asdict(REFERENCE)
    forged = handed_in(tmp_path / "b", monkeypatch, ONE)
    forged["labs"]["18"] |= {"score": 1e9, "designs": [{SEEN: 1e9}], SEEN: 1e9}
    found = counted(tmp_path, plain, forged)
    best, worst = found["designs"]
    # By the requests' own times and the price list, as tests/lessons/lab18/test_capstone.py counts them.
    served = scoring.score(REFERENCE, service.day())
    assert best[SEEN] == pytest.approx(served.per_dollar) and served.passed
    held = [tried(REFERENCE, seed) for seed in decision.OTHER_DAYS]
    assert best[OTHERS] == pytest.approx(sum(held) / len(held))
    assert best[f"of {len(held)} busier days held"] == sum(one > 0 for one in held)
    assert worst[SEEN] == 0.0 and OTHERS not in worst and found["refused"] == []
    assert worst["share of chat in time there"] < service.NEED
    capstone._worth.cache_clear()


@pytest.mark.parametrize(
    ("design", "said"),
    [
        ({"score": 1e9}, "has no setting 'score'"),
        ({**REFERENCE.changed(), "requests a dollar": 9e9}, "has no setting"),
        ({"card": "B200"}, "card is one of H100, H200, A100, L40S, not 'B200'"),
        ({"card": ["H100"]}, "card is one of"),
        ({"replicas": 10**9}, "replicas"),
        ({"replicas": float("inf")}, "replicas"),
        ({"tensor_parallel_size": 3}, "1, 2, 4 or 8 cards, not 3"),
        ({"enable_prefix_caching": "yes"}, "enable_prefix_caching"),
        ({"\x1b[2J": 1}, "has no setting"),
        ([], "no table of settings"),
        (1e9, "no table of settings"),
        (None, "no table of settings"),
    ],
)
def test_what_is_no_design_is_refused_with_a_sentence_and_the_learner_still_counts(
    design: Any, said: str, tmp_path: Path
) -> None:
    found = counted(
        tmp_path,
        {"form": "course progress", "schema": 1, "version": "1.0", "copy": 1, "labs": {"18": {"design": design}}},
    )
    assert found["began"] == 1 and found["designs"] == [] and said in found["refused"][0]
    assert "\x1b" not in found["refused"][0]


def test_the_latest_report_counts_and_a_reset_keeps_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for design in (ONE, FOUR):
        found = handed_in(tmp_path, monkeypatch, design)["labs"]["18"]["design"]
        assert capstone.made(found) == design
    assert Progress(tmp_path).forget("18", "2026-11-30_12-00-00") is not None
    assert export(Progress(tmp_path), "1.0")["labs"]["18"]["design"] == asdict(FOUR)
    monkeypatch.setenv("COURSE_PROGRESS_DIR", str(tmp_path))
    lab18.report(None)  # nothing handed in, nothing kept
    assert export(Progress(tmp_path), "1.0")["labs"]["18"]["design"] == asdict(FOUR)


def test_what_stands_in_the_progress_and_is_no_design_does_not_go_out() -> None:
    assert capstone.design_of({"boards": {"design": {"note": "my own words"}}}) is None
    assert capstone.design_of({"boards": {"design": "my own words"}}) is None
    assert capstone.design_of({"boards": {}}) is None
    whole = replace(REFERENCE, replicas=3)
    assert capstone.design_of({"boards": {"design": asdict(whole)}}) == asdict(whole)
