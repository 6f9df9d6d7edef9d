"""ServeGen's rate windows, drawn into requests; and the real traces, of all formats."""

import json
import shutil

import pytest

from course import traces
from course.memory.prefixes import lru_hits
from tests.helpers import places
from tests.helpers.places import REAL

DATA = places.DATA / "traces"


def test_servegen_draws_as_many_requests_as_were_counted():
    load = traces.read(DATA / "servegen_chunk-0-trace.csv")
    # 0.1/s and 0.05/s over 600 s; the first arrival is at 0 by the convention of all traces.
    assert len(load) == 60 + 30
    shift = load.arrival[60]
    assert load.arrival[59] < 600 and shift > 1200 - 600
    assert set(load.prompt_tokens[:60]) == {10, 20} and set(load.output_tokens[:60]) == {1}
    assert set(load.prompt_tokens[60:]) == {300} and set(load.output_tokens[60:]) == {7}  # 0 is not drawn
    (note,) = load.notes
    assert "90 requests drawn with seed 0 from 2 windows (2 without requests)" in note
    assert "servegen_chunk-0-dataset.json" in note and "lengths of 0, up to 50.00% of a distribution" in note
    assert traces.read(DATA / "servegen_chunk-0-trace.csv") == load
    assert traces.read(DATA / "servegen_chunk-0-trace.csv", seed=1) != load


@pytest.mark.parametrize(
    ("pattern", "shape", "cv"), [("Gamma", 0.25, 2.0), ("Weibull", 0.5, 5**0.5), ("Poisson", 1, 1)]
)
def test_servegen_gaps_have_the_variation_of_their_shape(tmp_path, pattern, shape, cv):
    """CV of a gamma: 1/sqrt(shape); of a Weibull of shape 1/2: sqrt(5); of an exponential: 1."""
    trace = tmp_path / "c-trace.csv"
    trace.write_text(f"0,100,{cv},{pattern},{shape},1\n600,0,0,,0,0\n")
    shutil.copy(DATA / "servegen_chunk-0-dataset.json", tmp_path / "c-dataset.json")
    found = traces.read(trace).describe()
    assert found["n"] == 60_000
    # The CV of 60,000 gaps of a Weibull of shape 1/2 has a standard error of about 3%; 10% is three of them.
    assert found["gap_cv_population"] == pytest.approx(cv, rel=0.1)


@pytest.mark.parametrize(
    ("windows", "why"),
    [
        ("0,1,1,Gamma,1,1\n0,1,1,Gamma,1,1", "row 2: the window at 0 s does not come after 0 s"),
        ("0,1,1,Gamma,1,1\n600,1,1,Pareto,1,1", "row 2: its pattern is 'Pareto', not one of Gamma"),
        ("0,1,1,Gamma,1,1\n600,-1,1,Gamma,1,1", "row 2: its rate is '-1', not a number from 0"),
        ("0,1,1,Gamma,1,1\n600,1,1,,,", "row 2: its pattern is ''"),
        ("0,1,1,Gamma,1,1\n600,1,1,Gamma,1e-9,1", "row 2: its shape is '1e-9', not from 0.01"),
        ("0,1,1,Gamma,1,1\n600,1", "row 2: it has 2 cells where a window has 6"),
        ("0,0,0,,0,0", "no window has a request"),
        ("0,1e8,1,Gamma,1,1", "describes 60,000,000,000 requests: cut it"),
    ],
    ids=range(8),
)
def test_servegen_windows_that_cannot_be(tmp_path, windows, why):
    trace = tmp_path / "c-trace.csv"
    trace.write_text(windows)
    shutil.copy(DATA / "servegen_chunk-0-dataset.json", tmp_path / "c-dataset.json")
    with pytest.raises(ValueError, match=why):
        traces.read(trace)
    if "its" in why:
        assert "1 broken windows were left out (first: row 2)" in traces.read(trace, on_error="skip").notes[0]


@pytest.mark.parametrize(
    ("dataset", "why"),
    [
        ("[]", "not a dataset of ServeGen"),
        ("{}", "has no lengths in any period"),
        ('{"x": {}}', "period 'x': a start in seconds"),
        ('{"0": {"text_tokens": "{1: 1.0}"}}', "no input_tokens. Only language clients"),
        ('{"0": {"input_tokens": "{1: 0.5}", "output_tokens": "{1: 1.0}"}}', "add up to 0.5, not to 1"),
        ('{"0": {"input_tokens": "{-1: 1.0}", "output_tokens": "{1: 1.0}"}}', "cannot be negative"),
        ('{"0": {"input_tokens": "__import__(1)", "output_tokens": "{1: 1.0}"}}', "is not a distribution like"),
        ('{"0": {"input_tokens": "{1: nan}", "output_tokens": "{1: 1.0}"}}', "cannot be negative"),
        ('{"0": {"input_tokens": 5, "output_tokens": "{1: 1.0}"}}', "no input_tokens"),
    ],
    ids=range(9),
)
def test_servegen_datasets_that_cannot_be(tmp_path, dataset, why):
    path = tmp_path / "any.json"
    path.write_text(dataset)
    with pytest.raises(ValueError, match=why):
        traces.read(DATA / "servegen_chunk-0-trace.csv", dataset=path)


def test_servegen_without_its_lengths(tmp_path):
    shutil.copy(DATA / "servegen_chunk-0-trace.csv", tmp_path / "c-trace.csv")
    with pytest.raises(ValueError, match=r"has rates and no lengths.*or name it with dataset="):
        traces.read(tmp_path / "c-trace.csv")


@pytest.fixture
def real():
    if not REAL.is_dir():
        pytest.skip("the folder of real traces is not here")
    return REAL


def test_statistics_of_real_traces(real):
    oracles = json.loads((real / "oracles" / "trace_stats.json").read_text())
    name = "mooncake_conversation_head3000.jsonl"
    with pytest.warns(UserWarning, match="arrive at 330 moments 3 s apart"):
        mooncake = traces.read(real / "traces" / name)
    vidur = traces.read(real / "traces" / "vidur_splitwise_conv_head3000.csv")
    for load in (mooncake, vidur):
        found = load.describe()
        oracle = oracles[name if load is mooncake else "vidur_splitwise_conv_head3000.csv"]
        expected = {key: value for key, value in oracle.items() if key in found}
        assert len(expected) == 19
        # The expected values are rounded: means to four digits after the point, the others to six.
        assert {key: found[key] for key in expected} == pytest.approx(expected, abs=5.1e-5)
    oracle = oracles[name]
    for capacity, key in ((None, "infinite"), (1000, "lru_1000"), (5000, "lru_5000"), (20000, "lru_20000")):
        hits = lru_hits(mooncake, capacity)
        assert hits.blocks.sum() == oracle["blocks"] and hits.hit_blocks.sum() == oracle[f"hit_blocks_{key}"]


def test_every_real_trace_is_read_or_says_what_it_needs(real):
    sizes = {"burstgpt_1_quoted_rows.csv": 3, "splitwise_sim_test_trace.csv": 3}
    for name, size in sizes.items():
        assert len(traces.read(real / "traces" / name)) == size
    with pytest.warns(UserWarning, match="lengths and no times"):
        lengths = "vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2_head5000.csv"
        assert len(traces.read(real / "traces" / lengths)) == 5000
    for path in sorted((real / "traces").glob("servegen*-trace.csv")):
        with pytest.raises(ValueError, match="has rates and no lengths"):
            traces.read(path)
        dataset = next(path.parent.glob(path.name.split("_chunk")[0] + "*dataset.json"))
        load = traces.read(path, dataset=dataset)
        counted = sum(round(600 * float(line.split(",")[1])) for line in path.read_text().splitlines())
        assert len(load) == counted
    for path in (real / "traces").glob("servegen*-dataset.json"):
        with pytest.raises(ValueError, match="lengths of a client of ServeGen"):
            traces.read(path)
