"""Constants on their way to another card, another model, and a file: by hand from the data sheets."""

import json
from math import sqrt

import pytest

from course import calibration
from course.calibration import Constant, Fit, Shape
from course.models import gpus, model

LLAMA = model("llama-3.1-8b")
PRO, RTX4090 = gpus.gpu("RTX PRO 6000"), gpus.gpu("RTX 4090")
# Data sheets: 1792 and 1008 GB/s, 503.8 and 165.2 TFLOP/s; Llama-3.1-8B reads 15.0 GB of weights a step.
BANDWIDTH, COMPUTE = 1792 / 1008, 503.8 / 165.2
WEIGHTS = LLAMA.step_weight_bytes / 1792e9
SECONDS = {"per_step": 0.0124, "per_sequence": 3e-5, "per_prompt_token": 4e-5, "per_context_token": 8e-8}


@pytest.fixture
def fit() -> Fit:
    constants = {name: Constant(name, seconds, seconds / 1.2, 0.02, 0.004) for name, seconds in SECONDS.items()}
    return Fit("a run", calibration.shape_of(LLAMA), PRO, constants, 0.003, {"ttft": {"mean": 0.01}}, ("a note",))


def test_to_another_card(fit):
    there = fit.scaled_to("RTX 4090")
    kept = SECONDS["per_step"] - WEIGHTS
    assert there.constants["per_step"] == pytest.approx(WEIGHTS * BANDWIDTH + kept)
    assert there.constants["per_context_token"] == pytest.approx(SECONDS["per_context_token"] * BANDWIDTH)
    assert there.constants["per_prompt_token"] == pytest.approx(SECONDS["per_prompt_token"] * sqrt(COMPUTE))
    assert there.constants["per_sequence"] == SECONDS["per_sequence"]
    assert there.compute_range == (1.0, pytest.approx(COMPUTE))
    assert there.step_time.source == "predicted: llama-3.1-8b on RTX-4090, from a run on RTX-PRO-6000"
    account = there.account.split("\n")
    assert [line.split(" = ")[0] for line in account] == list(SECONDS)
    assert (
        "8.38 ms to read the weights x 1.78 (bandwidth), and 4.02 ms of the engine's own, kept as they are"
        in account[0]
    )
    assert "x 1.75: halfway, in ratio, between x 1 (FLOP/s do not count) and x 3.05" in account[2]


def test_ends_of_what_is_not_known(fit):
    for factor in (1.0, COMPUTE):
        there = fit.scaled_to(RTX4090, compute=factor)
        assert there.constants["per_prompt_token"] == pytest.approx(factor * SECONDS["per_prompt_token"])
        assert "given; the ends are x 1" in there.why["per_prompt_token"]
    whole = fit.scaled_to(RTX4090, step_overhead=0)
    assert whole.constants["per_step"] == pytest.approx(SECONDS["per_step"] * BANDWIDTH)
    none = fit.scaled_to(RTX4090, step_overhead=SECONDS["per_step"])
    assert none.constants["per_step"] == pytest.approx(SECONDS["per_step"])


def test_to_the_same_card_and_back(fit):
    assert fit.scaled_to().constants == pytest.approx(SECONDS)
    # A step faster than its weights can be read: all of it scales.
    quick = {name: Constant(name, s, s, 0, 0) for name, s in (SECONDS | {"per_step": 0.005}).items()}
    there = Fit("fast", fit.shape, PRO, quick, 0.003, {}).scaled_to(RTX4090)
    assert there.constants["per_step"] == pytest.approx(0.005 * BANDWIDTH)


def test_to_another_model(fit):
    other = model("llama-2-7b")
    there = fit.scaled_to(model=other)
    ratio = other.step_weight_bytes / LLAMA.step_weight_bytes
    assert there.constants["per_step"] == pytest.approx(WEIGHTS * ratio + SECONDS["per_step"] - WEIGHTS)
    work = other.layer_parameters / LLAMA.layer_parameters
    assert there.constants["per_prompt_token"] == pytest.approx(SECONDS["per_prompt_token"] * work)
    assert there.constants["per_context_token"] == pytest.approx(4 * SECONDS["per_context_token"])  # no grouped heads
    two = fit.scaled_to(model=LLAMA, ranks=2, weight_bytes=LLAMA.step_weight_bytes / 2)
    assert two.constants["per_prompt_token"] == pytest.approx(SECONDS["per_prompt_token"] / 2)
    assert two.constants["per_step"] == pytest.approx(SECONDS["per_step"] - WEIGHTS / 2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"gpu": "RTX 409"}, "no GPU is called 'RTX 409'"),
        ({"gpu": "RTX 4090", "compute": 0}, "compute must be a finite number above 0"),
        ({"gpu": "RTX 4090", "compute": float("nan")}, "compute must be a finite number"),
        ({"step_overhead": 1}, "step_overhead must be a finite number from 0 to 0.0124"),
        ({"ranks": 2}, "ranks and weight_bytes belong to a new model"),
        ({"model": LLAMA, "weight_bytes": -1}, "weight_bytes must be"),
        ({"model": "gpt-9"}, "no model is called 'gpt-9'"),
    ],
)
def test_scalings_that_cannot_be(fit, options, why):
    with pytest.raises(ValueError, match=why):
        fit.scaled_to(**options)


def test_what_a_run_tells(fit):
    # Half of each gives errors of 2%, twice of it 0.4%: against 0.3% that is no difference.
    assert not any(fit.settled(name) for name in SECONDS)
    assert "half its value gives metric errors of 2.00% and twice its value 0.40%, against 0.30%" in fit.unsettled[0]
    told = Constant("per_step", 0.0124, 0.01, 0.02, 0.03)
    assert Fit("a run", fit.shape, PRO, {**fit.constants, "per_step": told}, 0.003, {}).settled("per_step")


def test_data_sheet_constants():
    """15.0 GB at 90% of 1792 GB/s, as the H100 reached of its own; 2 FLOPs a parameter of the layers."""
    found = calibration.from_data_sheet(calibration.shape_of(LLAMA), PRO)
    assert found["per_step"] == pytest.approx(15.01e9 / (1792e9 * 3.02 / 3.35), rel=1e-3)
    assert found["per_prompt_token"] == pytest.approx(2 * 6.98e9 / (503.8e12 * 778 / 989), rel=1e-3)
    assert found["per_context_token"] == pytest.approx(131_072 / (1792e9 * 3.02 / 3.35))
    halves = calibration.from_data_sheet(calibration.shape_of(LLAMA, ranks=2), PRO)
    assert all(halves[name] == pytest.approx(found[name] / 2) for name in found)


# Files


def test_a_fit_to_a_file_and_back(fit, tmp_path):
    fit.save(tmp_path / "fit.json")
    back = Fit.read(tmp_path / "fit.json")
    assert back.as_dict() == fit.as_dict()
    assert back.scaled_to("RTX 4090").constants == fit.scaled_to("RTX 4090").constants
    assert back.notes == ("a note",) and back.unsettled == fit.unsettled


def changed(found: dict, *path: str, value: object) -> str:
    found = json.loads(json.dumps(found))
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(found)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        (("kind",), "something", "this is not a fit"),
        (("constants",), [], "an object 'constants' in braces, not \\[\\]"),
        (("constants", "per_step"), None, "an object 'per_step' in braces"),
        (("constants", "per_step", "seconds"), "fast", "per_step.seconds must be a number"),
        (("constants", "per_step", "seconds"), -1, "per_step.seconds must be a finite number"),
        (("constants", "per_step", "seconds"), 0, "a step must take time|at least"),
        (("gpu", "read_bandwidth"), 0, "read_bandwidth must be"),
        (("gpu", "peak_bandwidth"), "x", "peak_bandwidth must be"),
        (("shape", "weight_bytes"), None, "weight_bytes must be"),
        (("misfit",), True, "misfit must be"),
        (("errors",), 3, "an object 'errors' in braces"),
        (("errors", "ttft"), {"mean": "x"}, "errors.ttft.mean must be"),
    ],
    ids=range(12),
)
def test_a_fit_that_is_none(fit, tmp_path, path, value, why):
    file = tmp_path / "fit.json"
    content = fit.as_dict()
    if path[-1] == "seconds" and value == 0:  # a step may cost nothing of its own, but then something must
        for name in ("per_sequence", "per_prompt_token"):
            content["constants"][name]["seconds"] = 0
    file.write_text(changed(content, *path, value=value))
    with pytest.raises(ValueError, match=why) as caught:
        Fit.read(file)
    assert str(caught.value).startswith("fit.json: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "null", '{"kind"', "[" * 10_000, "\0"])
def test_files_that_are_no_fits(tmp_path, content):
    (tmp_path / "fit.json").write_text(content)
    with pytest.raises(ValueError, match=r"fit\.json"):
        Fit.read(tmp_path / "fit.json")


def test_a_shape_has_sizes():
    with pytest.raises(ValueError, match="weight_bytes must be"):
        Shape("none", 0, 1, 1)
