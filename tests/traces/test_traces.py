"""Reading traces: what people really have is read exactly, and everything else is refused with a row and a way out."""

import csv
import json
import os
import statistics
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import traces
from course.workload import synthetic
from tests.helpers.places import REAL

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
ROWS = [
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50.9951690,396,109",
    "2023-11-16 18:15:51.2225670,879,55",
]


@pytest.fixture
def trace(tmp_path):
    """Writes a file and reads it."""

    def read(content, **options):
        path = tmp_path / "trace.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return traces.read(path, **options)

    return read


def lines(*rows, header=HEADER, end="\n"):
    return end.join([header, *rows])


def refused(trace, content, why, **options):
    with pytest.raises(ValueError, match=why) as caught:
        trace(content, **options)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_three_rows_by_hand(trace):
    load = trace(lines(*ROWS))
    # 50.9951690 - 46.6805900 and 51.2225670 - 46.6805900, each the float64 nearest to the decimal.
    assert load.arrival.tolist() == [0.0, 4.314579, 4.541977]
    assert load.prompt_tokens.tolist() == [374, 396, 879] and load.output_tokens.tolist() == [44, 109, 55]
    assert load.name == "trace" and load.notes == ()
    assert trace(lines(*ROWS), name="mine").name == "mine"


@pytest.mark.parametrize(
    "content",
    [
        lines(*ROWS, end="\r\n"),
        lines(*ROWS) + "\n",
        lines(*ROWS, end="\r\n") + "\r\n\r\n \r\n",
        lines(*ROWS, end="\r"),
        "\ufeff" + lines(*ROWS),
        lines(*ROWS, header="timestamp, contexttokens ,GENERATEDTOKENS"),
        lines(*(row.replace(" ", "T") for row in ROWS)),
        lines(*(row.replace(",", "+00:00,", 1) for row in ROWS)),
        lines(*(row.replace(",", "Z,", 1) for row in ROWS)),
        lines(*(row.replace(" 18:", " 20:").replace(",", " +0200,", 1) for row in ROWS)),
        lines(*(",".join(f'"{cell}"' for cell in row.split(",")) for row in ROWS)),
        lines(*(row + ",x y,0.5" for row in ROWS), header=HEADER + ",Model,Other"),
        lines(*(",".join(row.split(",")[::-1]) for row in ROWS), header="GeneratedTokens,ContextTokens,TIMESTAMP"),
        lines(*(row.replace("374", "374.0").replace("0,", "000,") for row in ROWS)),
    ],
    ids=range(14),
)
def test_the_same_requests_in_another_spelling(trace, content):
    assert trace(content) == trace(lines(*ROWS))


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(
        st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).flatmap(
            lambda t: st.integers(0, 999).map(lambda n: (t, n))  # nanoseconds below the microseconds of a datetime
        ),
        min_size=1,
        max_size=20,
    ),
    digits=st.integers(0, 9),
)
def test_every_digit_of_a_time_counts(tmp_path_factory, times, digits):
    written = []
    for moment, nano in sorted(times):
        fraction = f"{moment.microsecond:06d}{nano:03d}"[:digits]
        written.append((moment.replace(microsecond=0), Fraction(int(fraction or 0), 10**digits), fraction))
    rows = [f"{second:%Y-%m-%d %H:%M:%S}{'.' if fraction else ''}{fraction},5,6" for second, _, fraction in written]
    path = tmp_path_factory.mktemp("digits") / "t.csv"
    path.write_text(lines(*rows))
    begin, begin_fraction, _ = written[0]
    exact = [int((second - begin).total_seconds()) + fraction - begin_fraction for second, fraction, _ in written]
    assert traces.read(path).arrival.tolist() == [float(x) for x in exact]


def test_ties_are_fine_and_time_running_back_is_not(trace):
    assert trace(lines(ROWS[0], ROWS[0])).arrival.tolist() == [0, 0]
    jumbled = lines(ROWS[1], ROWS[0], ROWS[2])
    refused(trace, jumbled, r"trace.csv, row 3: its time is 4.314579 s before that of row 2\. .* sort=True")
    assert trace(jumbled, sort=True) == trace(lines(*ROWS))


def test_sorting_keeps_rows_of_one_time_in_their_order(trace):
    rows = [row.replace(",374,", f",{n},") for n, row in enumerate([ROWS[0]] * 5, start=1)]
    assert trace(lines(ROWS[1], *rows), sort=True).prompt_tokens.tolist() == [1, 2, 3, 4, 5, 396]


BROKEN = {
    "2023-11-16 18:15:46.6805900,374": "it has 2 cells where the header has 3",
    "2023-11-16 18:15:46.6805900,1,030,44": "it has 4 cells where the header has 3",
    "2023-11-16 18:15:46.6805900,,44": "ContextTokens is empty",
    "2023-11-16 18:15:46.6805900,374, ": "GeneratedTokens is empty",
    "2023-11-16 18:15:46.6805900,12.5,44": "ContextTokens is '12.5', which is not a whole number",
    "2023-11-16 18:15:46.6805900,-5,44": "ContextTokens is '-5', which is not a whole number",
    "2023-11-16 18:15:46.6805900,nan,44": "ContextTokens is 'nan'",
    "2023-11-16 18:15:46.6805900,inf,44": "ContextTokens is 'inf'",
    "2023-11-16 18:15:46.6805900,1e3,44": "ContextTokens is '1e3'",
    "2023-11-16 18:15:46.6805900,1_000,44": "ContextTokens is '1_000'",
    "2023-11-16 18:15:46.6805900,\u0663,44": "ContextTokens is '\u0663'",  # a digit, but no ASCII one
    "2023-11-16 18:15:46.6805900,374,0": r"GeneratedTokens is 0 \(a failed request\?\)",
    "2023-11-16 18:15:46.6805900,0,44": "ContextTokens is 0",
    "2023-11-16 18:15:46.6805900,374,99999999999": "GeneratedTokens is '99999999999': the most is 1,000,000,000",
    "2023-11-16 18:15:46.6805900,374," + "9" * 100_000: "GeneratedTokens is '9999",
    ",374,44": "TIMESTAMP is ''",
    "yesterday,374,44": "TIMESTAMP is 'yesterday', which is not a time like",
    "2023-13-16 18:15:46.6805900,374,44": "TIMESTAMP is '2023-13-16",
    "2023-02-30 18:15:46.6805900,374,44": "TIMESTAMP is '2023-02-30",
    "0000-01-01 18:15:46.6805900,374,44": "TIMESTAMP is '0000-01-01",
    "2023-11-16 24:15:46.6805900,374,44": "TIMESTAMP is '2023-11-16 24",
    "2023-11-16 18:15:60.6805900,374,44": "TIMESTAMP is '2023-11-16 18:15:60",
    "2023-11-16 18:15:46.,374,44": "TIMESTAMP is '2023-11-16 18:15:46.'",
    "2023-11-16 18:15:46.6805900+99:00,374,44": "TIMESTAMP is",
    "11/16/2023 6:15:46 PM,374,44": "TIMESTAMP is '11/16/2023",
    "1700158546.68,374,44": "TIMESTAMP is '1700158546.68'",
    "2023-11-16 18:15:50Z,374,44": "TIMESTAMP must have a time zone on all rows or on none",
}


@pytest.mark.parametrize("row", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_row_is_named_and_left_out_only_on_request(trace, row):
    content = lines(ROWS[0], row, ROWS[1])
    refused(trace, content, rf'trace.csv, row 3: {BROKEN[row]}.*on_error="skip"')
    with pytest.warns(UserWarning, match="1 of 3 rows were left out"):
        load = trace(content, on_error="skip")
    assert load == trace(lines(*ROWS[:2]))
    assert len(load.notes) == 1 and "row 3" in load.notes[0]


def test_what_was_left_out_is_counted_by_kind(trace):
    content = lines(ROWS[0], "x,1,1", "y,1,1", ROWS[1].replace("109", "0"), ROWS[2])
    with pytest.warns(UserWarning) as caught:
        load = trace(content, on_error="skip")
    kinds = "2 with a broken TIMESTAMP (first: row 3), 1 with 0 GeneratedTokens (first: row 5)"
    sentence = f"trace.csv: 3 of 5 rows were left out: {kinds}"
    assert load.notes == (sentence,) and [str(w.message) for w in caught] == [sentence]
    refused(trace, lines("x,1,1"), "1 of 1 rows were left out", on_error="skip")


def test_blank_lines_count_as_rows_of_the_file(trace):
    refused(trace, lines("", ROWS[0], "", "x,1,1"), "row 5: TIMESTAMP is 'x'")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "trace.csv is empty"),
        ("\ufeff", "is empty"),
        (" \n\n", "is empty"),
        (HEADER, "a header but no rows"),
        (HEADER + "\r\n", "a header but no rows"),
        ("\n".join(ROWS), "row 1: no column TIMESTAMP or ContextTokens or GeneratedTokens.*found '2023-11-16"),
        (
            lines("1,2", header="TIMESTAMP,ContextTokens"),
            "no column GeneratedTokens. Needed are TIMESTAMP, .*; found 'TIMESTAMP, ",
        ),
        (lines(*ROWS).replace(",", ";"), r"separated by ';'\? Commas"),
        (lines(*ROWS).replace(",", "\t"), r"separated by '\\t'\?"),
        (lines("1,2,3,4", header=HEADER + ",timestamp"), "two columns are named TIMESTAMP"),
        (lines(ROWS[0], '"2023-11-16 18:15:50,5,6'), "row 3: this is not CSV"),
        (lines(ROWS[0], '2023-11-16 18:15:50,"5"6,6'), "row 3: this is not CSV"),
        (lines(ROWS[0], "x" * 200_000 + ",5,6"), "row 3: this is not CSV .*field larger"),
        (lines(ROWS[0], "2023-11-16 18:15:50,\0,6"), "row 3: a NUL byte"),
        (lines(*ROWS).encode().replace(b"879", b"87\xff"), "row 4: byte 0xff is not UTF-8"),
        (lines(*ROWS).encode("utf-16"), "UTF-16: save it as UTF-8"),
        (b"\x1f\x8b\x08\x00", "gzip file: unpack"),
        (b"PK\x03\x04abc", "zip or Excel file"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "NUL byte"),
        (bytes(range(128, 256)), "byte 0x80 is not UTF-8"),
        (
            lines(ROWS[0].replace("2023", "0001"), ROWS[1].replace("2023", "9999")),
            "arrival of request 1 must be from 0 to 1e",
        ),
    ],
    ids=range(21),
)
def test_what_is_no_trace_is_refused(trace, content, why):
    refused(trace, content, why)
    if not isinstance(content, bytes) or b"TIMESTAMP" in content:
        refused(trace, content, why, on_error="skip")


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder: give the trace file inside it"):
        traces.read(tmp_path)
    with pytest.raises(FileNotFoundError):
        traces.read(tmp_path / "missing.csv")
    with pytest.raises(ValueError, match="read from a path, not from 5"):
        traces.read(5)
    if os.path.exists("/dev/zero"):  # endless: must not be read at all
        with pytest.raises(ValueError, match="is a device"):
            traces.read("/dev/zero")
    with pytest.raises(ValueError, match='on_error must be "raise" or "skip", not \'ignore\''):
        traces.read(traces.example(), on_error="ignore")


def test_a_file_above_the_limits_is_refused(trace, monkeypatch):
    monkeypatch.setattr(traces, "MAX_REQUESTS", 2)
    refused(trace, lines(*ROWS), "more than 2 requests: cut it")
    monkeypatch.setattr(traces, "MAX_BYTES", 100)
    refused(trace, lines(*ROWS), "larger than")


def test_the_example_has_the_statistics_of_its_file_and_of_its_model():
    """Expected by another way: the csv and statistics modules, and datetime with the fraction added by hand."""
    rows = list(csv.DictReader(traces.example().open(newline="")))
    seconds = [
        Fraction(int(row["TIMESTAMP"][20:]), 10**7) + int(datetime.fromisoformat(row["TIMESTAMP"][:19]).timestamp())
        for row in rows
    ]
    gaps = [float(b - a) for a, b in pairwise(seconds)]
    found = traces.read(traces.example()).describe()
    expected = {
        "n": 2_000,
        "span_s": float(seconds[-1] - seconds[0]),
        "rps": 1_999 / float(seconds[-1] - seconds[0]),
        "gap_mean_s": statistics.mean(gaps),
        "gap_cv_population": statistics.pstdev(gaps) / statistics.mean(gaps),
        "max_gap_s": max(gaps),
        "ties": gaps.count(0),
        "negative": 0,
    }
    for side, column in (("in", "ContextTokens"), ("out", "GeneratedTokens")):
        counts = [int(row[column]) for row in rows]
        percentiles = statistics.quantiles(counts, n=100, method="inclusive")
        expected |= {
            f"{side}_sum": sum(counts),
            f"{side}_mean": statistics.mean(counts),
            f"{side}_p50": statistics.median(counts),
            f"{side}_p99": percentiles[98],
            f"{side}_max": max(counts),
            f"{side}_min": min(counts),
        }
    # Differences of float64 times lose digits that exact fractions keep.
    assert found == pytest.approx(expected, rel=1e-9)
    # What it is made to resemble; 2% is what slicing leaves of the sampling error.
    for key, value in {"rps": 4.9, "gap_cv_population": 1.06, "in_mean": 1161, "in_p50": 1045, "in_p99": 4107,
                       "out_mean": 257, "out_p50": 217, "out_p99": 638}.items():  # fmt: skip
        assert found[key] == pytest.approx(value, rel=0.02), key
    assert found["in_max"] < 8_000 and found["out_min"] == 10


def test_the_example_is_in_the_byte_form_of_the_published_traces():
    data = traces.example().read_bytes()
    assert data.startswith(HEADER.encode() + b"\r\n") and not data.endswith(b"\n")
    assert data.count(b"\r\n") == data.count(b"\n") == 2_000
    assert data == synthetic.azure_style().encode()


@pytest.mark.parametrize("name", ["azure2023_conv_head5000.csv", "azure2023_conv_tail500_nonl.csv"])
def test_statistics_of_real_traces(name):
    if not REAL.is_dir():
        pytest.skip("the folder of real traces is not here")
    expected = json.loads((REAL / "oracles" / "trace_stats.json").read_text())[name]
    found = traces.read(REAL / "traces" / name).describe()
    # The expected values are rounded to six digits after the point.
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=5.1e-7)
