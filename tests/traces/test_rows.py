"""Cells, columns and remarks one by one: times of day, zones, counts, buckets, and rows in another order."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from course import traces
from course.traces import remarks, rows

BOUND = remarks.LONG_CONTEXT


@pytest.mark.parametrize(
    ("cell", "same"),
    [
        ("2023-11-16 18:15:46.68", datetime(2023, 11, 16, 18, 15, 46, 680_000)),
        ("2023-11-16T00:00:00", datetime(2023, 11, 16)),
        ("2024-02-29 23:59:59.000001", datetime(2024, 2, 29, 23, 59, 59, 1)),
        ("2023-11-16 20:15:46+02:00", datetime(2023, 11, 16, 18, 15, 46)),
        ("2023-11-16 12:45:46-05:30", datetime(2023, 11, 16, 18, 15, 46)),
        ("2023-11-17 00:15:46+06", datetime(2023, 11, 16, 18, 15, 46)),
        ("2023-11-16 18:15:46Z", datetime(2023, 11, 16, 18, 15, 46)),
    ],
)
def test_a_moment_in_picoseconds(cell, same):
    """Against Python's own calendar; a zone is taken off, so that all are of one clock."""
    start = rows.moment("t", "1970-01-01 00:00:00")[0]
    found, zoned = rows.moment("t", cell)
    seconds = same.replace(tzinfo=UTC).timestamp()
    assert found - start == round(seconds * 10**6) * 10**6
    assert zoned == (cell[-1] == "Z" or cell[10:].count("+") + cell[10:].count("-") > 0)


@pytest.mark.parametrize(
    "cell", ["2023-11-16 24:00:00", "2023-11-16 18:60:00", "2023-11-16 18:15:60", "2023-02-30 00:00:00"]
)
def test_a_time_that_no_clock_shows(cell):
    with pytest.raises(rows.BrokenRow, match="is not a time like"):
        rows.moment("t", cell)


def test_counts():
    assert rows.count("n", "1") == 1 and rows.count("n", "12.0") == 12
    with pytest.raises(rows.BrokenRow, match=r"is 0 \(a failed request\?\)"):
        rows.count("n", "0")
    assert rows.picoseconds("t", "2.5") == 25 * 10**11 and rows.picoseconds("t", "7", 10**9) == 7 * 10**9


@pytest.fixture
def trace(tmp_path):
    """Writes a file of that name and reads it."""

    def read(name, *lines, **options):
        path = tmp_path / name
        path.write_text("\n".join(lines))
        return traces.read(path, **options)

    return read


def test_a_file_out_of_order_is_sorted_row_by_row(trace):
    """All that belongs to a request moves with it."""
    lines = [
        {"timestamp": when, "input_length": prompt, "output_length": output, "hash_ids": [block]}
        for when, prompt, output, block in ((7_000, 30, 3, 33), (5_000, 10, 1, 11), (6_000, 20, 2, 22))
    ]
    load = trace("mooncake.jsonl", *map(json.dumps, lines), sort=True)
    assert load.arrival.tolist() == [0, 1, 2]
    assert load.prompt_tokens.tolist() == [10, 20, 30] and load.output_tokens.tolist() == [1, 2, 3]
    assert load.prefix == ((11,), (22,), (33,))


def test_blocks_of_512_tokens_and_the_last_one_partial(trace):
    def line(tokens, ids):
        return json.dumps({"timestamp": 0, "input_length": tokens, "output_length": 1, "hash_ids": list(range(ids))})

    assert len(trace("mooncake.jsonl", line(512, 1), line(513, 2)).prefix[1]) == 2
    for tokens, ids in ((513, 1), (512, 2), (1_025, 2)):
        with pytest.raises(ValueError, match=f"{tokens} tokens at 512 per block make"):
            trace("mooncake.jsonl", line(4_096, 8), line(tokens, ids), format="mooncake")


def test_failed_requests_are_counted_among_all(trace):
    header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    good, bad = "5,ChatGPT,472,18,490,Conversation log", "6,ChatGPT,40,0,40,Conversation log"
    with pytest.warns(UserWarning, match="1 of 3 requests failed"):
        load = trace("burst.csv", header, good, bad, good.replace("5,", "7,", 1))
    assert len(load) == 2


def test_a_context_as_long_as_the_model_takes_is_kept(trace):
    header = "TIMESTAMP,ContextTokens,GeneratedTokens"
    lines = [header, "2023-11-16 18:15:46,60,40", "2023-11-16 18:15:47,61,40"]
    with pytest.warns(UserWarning, match="1 of 2 rows were left out"):
        load = trace("azure.csv", *lines, max_model_len=100, on_error="skip")
    assert load.prompt_tokens.tolist() == [60] and load.output_tokens.tolist() == [40]


@pytest.mark.parametrize("size", [1, 2])
def test_a_row_is_one_request(trace, size):
    header = "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size"
    lines = [header, f"0,2,0,1,{size},4096,32"]
    if size == 1:
        assert trace("splitwise.csv", *lines).output_tokens.tolist() == [32]
    else:
        with pytest.raises(ValueError, match="a row is one request here"):
            trace("splitwise.csv", *lines)


@pytest.mark.parametrize(
    ("moments", "part"),
    [
        (np.repeat(np.arange(9), 5) * 3.5, "9 moments 3.5 s apart, up to 5 at once"),
        (np.repeat(np.arange(30), 2)[:45] * 3.5, ""),  # 23 moments for 45 requests: more than half
        (np.repeat([0, 1, 4, 5, 8, 9, 12, 13, 16], 5) * 3.5, ""),  # unevenly apart
        (np.repeat(np.arange(3), 5) * 3.5, ""),  # too few to tell
        (np.arange(30) * 2.0, "whole seconds"),
        (np.arange(30) * 2.5, ""),
    ],
)
def test_when_times_are_buckets(moments, part):
    found = remarks.on_times("a trace", np.asarray(moments, dtype=float))
    assert part in found and bool(part) == bool(found)


def test_buckets_spread_over_their_time():
    assert remarks.spread(np.array([0.0, 0, 3, 3, 3])).tolist() == [0, 1.5, 3, 4, 5]


def test_long_contexts_are_those_above_the_bound():
    assert remarks.on_contexts("a trace", np.array([BOUND, 100])) == ""
    assert "1 of 2 requests need more than 32,768 tokens" in remarks.on_contexts("a trace", np.array([BOUND + 1, 100]))


def test_a_window_takes_the_lengths_of_the_period_that_begins_with_it(trace, tmp_path):
    lengths = {"0": {"input_tokens": "{10: 1.0}", "output_tokens": "{1: 1.0}"},
               "600": {"input_tokens": "{20: 1.0}", "output_tokens": "{2: 1.0}"}}  # fmt: skip
    (tmp_path / "c-dataset.json").write_text(json.dumps(lengths))
    load = trace("c-trace.csv", "0,0.01,1,Poisson,0,0", "600,0.02,1,Poisson,0,0", "1200,0,0,,0,0")
    assert load.prompt_tokens.tolist() == [10] * 6 + [20] * 12 and load.output_tokens.tolist() == [1] * 6 + [2] * 12
