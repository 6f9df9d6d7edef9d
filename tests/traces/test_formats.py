"""Traces of every format: told by content, read to the same workload, with what they hide said aloud."""

import json

import numpy as np
import pytest

from course import traces
from tests.helpers import places

DATA = places.DATA / "traces"
BIG = 2**63 + 12345  # the first block id of data/traces/mooncake.jsonl


@pytest.fixture
def trace(tmp_path):
    """Writes a file of any name and reads it."""

    def read(content, name="trace.txt", **options):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else "\n".join(map(json.dumps, content)))
        return traces.read(path, **options)

    return read


def test_burstgpt_in_both_sets_of_columns():
    with pytest.warns(UserWarning, match="1 of 3 requests failed"):
        load = traces.read(DATA / "burstgpt_1.csv")
    assert load.arrival.tolist() == [0, 60] and load.class_.tolist() == ["ChatGPT", "GPT-4"]
    assert load.prompt_tokens.tolist() == [400, 300] and load.output_tokens.tolist() == [20, 100]
    assert load.notes == ("burstgpt_1.csv: 1 of 3 requests failed (0 Response tokens, first: row 3) and were left out",)
    with pytest.warns(UserWarning, match="row 4"):
        load = traces.read(DATA / "burstgpt_3.csv")
    assert load.arrival.tolist() == [0, 51] and load.output_tokens.tolist() == [450, 30]


def test_vidur_splitwise_and_plain():
    load = traces.read(DATA / "vidur.csv")
    assert load.arrival.tolist() == [0, 4.1, 4.100000001] and load.prompt_tokens.tolist() == [300, 400, 500]
    load = traces.read(DATA / "splitwise.csv")
    assert load.arrival.tolist() == [0, 1.5] and load.output_tokens.tolist() == [32, 8]
    load = traces.read(DATA / "plain.csv")
    assert load.arrival.tolist() == [0, 0.5] and load.class_.tolist() == ["chat", "batch"]
    assert load.prompt_tokens.tolist() == [128, 256] and load.output_tokens.tolist() == [64, 32]


@pytest.mark.parametrize(
    ("header", "times", "seconds"),
    [
        ("arrival,input_tokens,output_tokens", "0.25,1.5", 1.25),
        ("timestamp_ms,input_length,output_length", "250,1500", 1.25),
        ("Arrival Time,ISL,OSL", "0.00025,1e-3", 0.00075),
        ("time,context_tokens,generated_tokens", "2026-01-01 00:00:01.5,2026-01-01T00:00:02.75", 1.25),
    ],
)
def test_plain_columns_under_the_names_people_give_them(trace, header, times, seconds):
    first, second = times.split(",")
    load = trace(f"{header}\n{first},5,6\n{second},7,8\n")
    assert load.arrival.tolist() == [0, seconds] and load.prompt_tokens.tolist() == [5, 7]


def test_lengths_without_times():
    with pytest.warns(UserWarning, match=r"lengths and no times: all 2 requests arrive at 0"):
        load = traces.read(DATA / "vidur_lengths.csv")
    assert load.arrival.tolist() == [0, 0] and load.prompt_tokens.tolist() == [3000, 2000]
    with pytest.warns(UserWarning, match="Poisson arrivals at 2/s were drawn with seed 3"):
        drawn = traces.read(DATA / "vidur_lengths.csv", rate=2, seed=3)
    assert 0 < drawn.arrival[0] < drawn.arrival[1] and drawn.output_tokens.tolist() == load.output_tokens.tolist()
    with pytest.raises(ValueError, match="has arrival times, so leave rate out"):
        traces.read(DATA / "vidur.csv", rate=2)


def test_mooncake_keeps_every_bit_and_warns_of_its_buckets():
    rows = [json.loads(line) for line in (DATA / "mooncake.jsonl").read_text().splitlines()]
    with pytest.warns(UserWarning, match=r"40 requests arrive at 5 moments 3 s apart, up to 8 at once.*spread=True"):
        load = traces.read(DATA / "mooncake.jsonl")
    assert load.arrival.tolist() == [row["timestamp"] / 1000 for row in rows]
    assert load.prefix == tuple(tuple(row["hash_ids"]) for row in rows)
    assert {ids[0] for ids in load.prefix} == {BIG, BIG + 1}  # a float64 holds neither, and makes them one
    assert any("times in milliseconds, one prefix id per block of 512 tokens" in note for note in load.notes)


def test_buckets_spread_evenly():
    load = traces.read(DATA / "mooncake.jsonl", spread=True)
    assert not any("buckets" in note for note in load.notes)
    # Five buckets of eight at 0, 3, 6.001, 9.001 and 12.002 s; the last lasts as long as the median of the others.
    buckets = [(0, 3), (3, 3.001), (6.001, 3), (9.001, 3.001), (12.002, 3.0005)]
    expected = [start + step * k / 8 for start, step in buckets for k in range(8)]
    np.testing.assert_allclose(load.arrival, expected, rtol=1e-12)
    assert load.arrival[0] == 0 and load.describe()["ties"] == 0


def test_qwen_bailian_has_seconds_and_small_blocks(trace):
    load = traces.read(DATA / "qwen_bailian.jsonl")
    np.testing.assert_allclose(load.arrival, 1.25 * np.arange(6), atol=1e-12)
    assert load.prompt_tokens.tolist() == [17, 40, 33, 64, 16, 5]
    assert [len(ids) for ids in load.prefix] == [2, 3, 3, 4, 1, 1]
    assert load.class_.tolist() == ["search", "text"] * 3
    # Told by the blocks alone: no key of its own, and a name that lies.
    rows = [json.loads(line) for line in (DATA / "qwen_bailian.jsonl").read_text().splitlines()]
    bare = [{key: row[key] for key in ("timestamp", "input_length", "output_length", "hash_ids")} for row in rows]
    again = trace(bare, "mooncake_conversation.jsonl")
    assert again.arrival.tolist() == load.arrival.tolist() and again.prefix == load.prefix


def test_mooncake_told_by_its_blocks_under_a_name_that_lies(trace):
    rows = [{"timestamp": 2000 * i, "input_length": 700, "output_length": 3, "hash_ids": [1, 2]} for i in range(3)]
    assert trace(rows, "qwen_traceA_blksz_16.jsonl").arrival.tolist() == [0, 2, 4]
    assert trace(rows, format="mooncake").arrival.tolist() == [0, 2, 4]
    without = [{key: value for key, value in row.items() if key != "hash_ids"} for row in rows]
    assert trace(without).prefix is None
    with pytest.raises(ValueError, match="row 1: it has 2 hash_ids, but 700 tokens at 16 per block make 44"):
        trace(rows, format="qwen-bailian")


ROW = {"timestamp": 0, "input_length": 20, "output_length": 3, "hash_ids": [1]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hash_ids": [1, 2]}, "it has 2 hash_ids, but 20 tokens at 512 per block make 1"),
        ({"hash_ids": [1.8446744073709552e19]}, "a block id is 1.8446744073709552e[+]19: a float has lost"),
        ({"hash_ids": [True]}, "a block id is True"),
        ({"hash_ids": 5}, "hash_ids is 5, not a list"),
        ({"output_length": 0}, "output_length is 0"),
        ({"input_length": None}, "input_length is empty"),
        ({"input_length": 20.5}, "input_length is '20.5', which is not a whole number"),
        ({"input_length": "20"}, "input_length is '20', which is not a number"),
        ({"timestamp": "noon"}, "timestamp is 'noon', which is not a number"),
        ({"timestamp": float("nan")}, "timestamp is 'nan', which is not a number"),
        ({"timestamp": 1e40}, "timestamp is '1e[+]40', which is too far away for a time"),
        ({"timestamp": True}, "timestamp is True, which is not a number"),
    ],
    ids=range(12),
)
def test_a_broken_row_of_blocks_is_named(trace, change, why):
    rows = [ROW, ROW | change, ROW]
    with pytest.raises(ValueError, match=rf'trace.txt, row 2: {why}.*on_error="skip"'):
        trace(rows, format="mooncake")
    with pytest.warns(UserWarning, match="1 of 3 rows were left out"):
        assert len(trace(rows, format="mooncake", on_error="skip")) == 2


def test_totals_that_do_not_add_up(trace):
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    with pytest.raises(ValueError, match=r"row 2: Total tokens is 500 where 400 [+] 20 make 420"):
        trace(head + "5,ChatGPT,400,20,500,API log\n")
    with pytest.raises(ValueError, match=r"row 2: num_total_tokens is 9 where 3 [+] 4 make 7"):
        trace("num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3,4,9,0.75\n")
    with pytest.raises(ValueError, match="row 2: batch_size is 2: a row is one request"):
        trace("arrival_timestamp,batch_size,prompt_size,token_size\n0,2,5,5\n")


def test_contexts_that_are_too_long(trace):
    head = "arrival,prompt_tokens,output_tokens\n"
    rows = head + "0,100,10\n1,40000,10\n"
    load = trace(rows)
    assert load.notes == (
        "trace.txt: 1 of 2 requests need more than 32,768 tokens of context, the longest 40,010; an engine with a "
        "smaller max_model_len refuses them",
    )
    with pytest.raises(
        ValueError, match=r"row 3: it needs 40,010 tokens of context, more than max_model_len \(8,192\)"
    ):
        trace(rows, max_model_len=8192)
    with pytest.warns(UserWarning, match="1 with a context above 8,192 tokens"):
        assert len(trace(rows, max_model_len=8192, on_error="skip")) == 1


def test_whole_seconds_are_pointed_out(trace):
    rows = "arrival,prompt_tokens,output_tokens\n" + "".join(f"{7 * i},5,5\n" for i in range(20))
    with pytest.warns(UserWarning, match="its times are whole seconds"):
        trace(rows)
    trace(rows + "150.5,5,5\n")  # one finer time, and nothing is said


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"queued_ts": 1.0, "arrival_time": 2.0, "input_toks": 5}', "is a log of a run: course.results.read"),
        ('{"a": 1, "b": 2}', "no trace format has the keys a, b"),
        ('{\n "0": {"input_tokens": "{}", "output_tokens": "{}"}\n}', "lengths of a client of ServeGen"),
        ('[\n1,\n2\n]', "is one JSON document"),
        ('{"timestamp": 1', "row 1: this is not JSON"),
        ("{", "row 1: this is not JSON"),
        ("a,b,c\n1,2,3", "no column TIMESTAMP or .*Other formats are known by their columns or keys: burstgpt"),
        ("time,arrival,prompt_tokens,output_tokens\n1,1,1,1", "time and arrival could both be the arrival"),
        ("arrival,prompt_tokens,output_tokens\n2026-01-01 00:00:00,1,1\n5,1,1", "arrival must be dates on all rows"),
        ("arrival,prompt_tokens,output_tokens\n1700158546680,1,1", "arrival is '1700158546680', which is too far away"),
        ("arrival,prompt_tokens,output_tokens\n5,1,1\n4,1,1", "row 3: its time is 1 s before that of row 2"),
        ("arrival,prompt_tokens,output_tokens\n", "has a header but no rows"),
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_trace(trace, content, why):
    with pytest.raises(ValueError, match=why) as caught:
        trace(content)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match=r"format must be one of azure, burstgpt, .*csv, not 'excel'"):
        traces.read(DATA / "vidur.csv", format="excel")
    with pytest.raises(ValueError, match="dataset is for a trace of ServeGen"):
        traces.read(DATA / "vidur.csv", dataset=DATA / "vidur.csv")
    with pytest.raises(ValueError, match="no column is named arrival"):
        traces.read(DATA / "vidur_lengths.csv", format="csv")


def test_a_line_without_end(trace):
    with pytest.raises(ValueError, match="row 2: a line of more than 1,048,576 characters"):
        trace("arrival,prompt_tokens,output_tokens\n" + "," * 2**21)
    with pytest.raises(ValueError, match="row 1: a line of more than 16 MiB"):
        trace('{"timestamp": ' + " " * (2**24), format="mooncake")


def test_the_command_line_takes_them_too():
    from typer.testing import CliRunner

    from course.cli import app

    asked = ["simulate", "--trace", str(DATA / "mooncake.jsonl"), "--head", "10", "--json"]
    told, given, wrong = (
        CliRunner().invoke(app, [*asked, *more]) for more in ([], ["--format", "mooncake"], ["--format", "csv"])
    )
    assert told.exit_code == given.exit_code == 0 and wrong.exit_code == 2
    assert "no column is named arrival" in wrong.stderr and "warning: mooncake.jsonl: its 40 requests" in told.stderr
    for result in (told, given):
        assert json.loads(result.stdout)["workload"]["n"] == 10


def test_columns_that_change_the_work_are_named(tmp_path):
    azure, own = tmp_path / "lmm.csv", tmp_path / "own.csv"
    azure.write_text("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2025-01-01T00:00:00.000Z,4,2400,30\n")
    with pytest.warns(UserWarning, match="lmm.csv: NumImages is not read, though it changes what a request costs"):
        load = traces.read(azure)
    assert "NumImages" in load.notes[0]
    own.write_text("time,prompt_tokens,output_tokens,lora_id,priority,user\n0,10,5,a,1,u\n")
    with pytest.warns(UserWarning, match="lora_id, priority are not read, though they change"):
        traces.read(own)
    own.write_text("time,prompt_tokens,output_tokens,user\n0,10,5,u\n")
    assert traces.read(own).notes == ()
