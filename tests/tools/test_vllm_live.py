"""What surrounds a recording of vLLM: its command line, what is taken out of its logs, and how a file is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from course.calibration import vllm_live
from tools.vllm_live import loads, pack, record
from tools.vllm_live.__main__ import moved

FOLDER = Path("/home/somebody/course/.vllm")


@pytest.mark.parametrize("server", loads.SERVERS, ids=lambda server: server.name)
def test_the_server_listens_on_this_machine_only_and_asks_nobody(server):
    words = record.command(server, FOLDER / "model", 1234)
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[words.index("--max-num-seqs") + 1] == str(server.policy.max_num_seqs)
    assert ("--no-enable-prefix-caching" in words) is not server.caching
    environment = record.environment(FOLDER, "key")
    for name in ("HF_HUB_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):
        assert environment[name] == "1"
    assert environment["VLLM_API_KEY"] == "key" and environment["HOME"] == str(FOLDER)


def test_every_load_is_sent_to_a_server_that_is_started():
    assert {load.server for load in loads.LOADS} == {server.name for server in loads.SERVERS}
    assert [load.name for load in loads.LOADS] == vllm_live.names()


def test_a_log_loses_the_machine_and_keeps_vllms_words():
    kept = "(EngineCore) INFO 11-29 15:00:36 [kv_cache_utils.py:2327] CPU KV cache size: 5,440 tokens"
    lines = [
        kept.replace("EngineCore", "EngineCore pid=29562"),
        f"(APIServer pid=7) INFO 11-29 15:00:40 [entry.py:140] Starting vLLM {FOLDER}/model on http://127.0.0.1:57781",
        "(EngineCore pid=3) INFO 11-29 15:00:06 [multiproc_executor.py:153] mq_connect_ip=192.0.2.2 (local)",
        f"{FOLDER}/venv/lib/python3.11/site-packages/vllm/x.py:138: FutureWarning",
        '(APIServer pid=7) INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK',
    ]
    starting = "(APIServer) INFO 11-29 15:00:40 [entry.py:140] Starting vLLM course-lm on http://127.0.0.1:PORT"
    assert pack._log("\n".join(lines), FOLDER).splitlines() == [kept, starting]
    second = "(APIServer) INFO 11-29 15:01:03 [loggers.py:335] Engine 000: Avg prompt throughput: 91.8 tokens/s"
    ended = "(APIServer) ERROR 11-29 15:02:00 [async_llm.py:1] EngineDeadError"
    assert pack._log("\n".join([*lines, second, ended]), FOLDER).splitlines() == [kept, starting, second]


def lines_and_client():
    """Two requests of a load and one of another; the second is preempted after its prompt, and computed again."""
    engine = dict.fromkeys(pack.ENGINE, 0) | {"kind": "engine", "max_num_seqs": 2, "max_num_batched_tokens": 8}
    engine |= {"num_gpu_blocks": 4, "free_blocks": 3, "block_size": 2, "enable_prefix_caching": False}
    names = ["cmpl-cut_64.0-0-ab", "cmpl-cut_64.1-0-cd", "cmpl-cut_64x.1-0-ef"]
    arrivals = [{"kind": "arrive", "t": 10.0 + k, "created": 9.5 + k, "id": name} for k, name in enumerate(names)]
    tokens = [{names[0]: 3}, {names[0]: 1, names[1]: 2}, {names[0]: 1}, {names[1]: 2}]
    computed = [{names[0]: 0}, {names[0]: 3, names[1]: 0}, {names[0]: 4}, {names[1]: 0}]
    preempted = [[], [], [names[1]], []]
    steps = [
        {"kind": "step", "t0": 11 + k, "t1": 11.1 + k, "t2": 11.2 + k, "t3": 11.3 + k, "tokens": t, "computed": c}
        | {"preempted": p, "running": len(t), "waiting": len(p), "blocks": 2}
        for k, (t, c, p) in enumerate(zip(tokens, computed, preempted, strict=True))
    ]
    other = {**steps[0], "tokens": {names[2]: 5}, "computed": {names[2]: 0}}
    rows = [{"due": 0.0, "sent": 9.0, "first": 12.0, "last": 14.0, "prompt": [1] * n, "ids": ids, "same": True}
            for n, ids in ((3, [5, 6, 7]), (2, [5]))]  # fmt: skip
    client = {"begin": 9.0, "wall": 0.0, "rows": rows}
    return [engine, *arrivals, *steps, other], client


def test_a_recording_is_read_back_as_it_was_written_down():
    lines, client = lines_and_client()
    (load,) = [load for load in loads.LOADS if load.name == "cut_64"]
    document = json.loads(pack._dumped(pack.recording(load, lines, client, "2026-11-29", "two cores")))
    run = vllm_live.of_document(document)
    assert run.schedule == ({0: (3, 0)}, {0: (1, 3), 1: (2, 0)}, {0: (1, 4)}, {1: (2, 0)})
    assert run.preempted == ((2, 1),) and document["steps"]["batch"][1:] == [[0, [1, 2, 0]], [0], [[1, 2, 0]]]
    assert run.arrival.tolist() == [0, 1] and run.created.tolist() == [-0.5, 0.5]
    assert run.first.tolist() == pytest.approx([1.3, 2.3]) and run.last.tolist() == pytest.approx([3.3, 4.3])
    assert run.seconds.tolist() == pytest.approx([1, 1, 1, 0.3])
    assert run.cache.num_blocks == 3 and run.prefix is None


def test_prompts_that_begin_alike_share_the_numbers_of_their_full_blocks():
    start = list(range(2 * loads.BLOCK))
    prompts = [[*start, 1], [*start, *range(5, 5 + loads.BLOCK)], [9, *start]]
    assert pack._prefixes(prompts) == [[0, 1], [0, 1, 2], [3, 4]]
    assert pack._prefixes([prompts[0], prompts[2]]) is None


def test_what_moved_is_said():
    page = "# TYPE vllm:{} gauge\n"
    text = (vllm_live.FOLDER / "cut_64.json").read_text(encoding="utf-8")
    before = {
        "metrics_a.txt": page.format("old"),
        "cut_64.json": text.replace('"version": "0.32.0"', '"version": "0.31"'),
    }
    found = moved(before, {"metrics_a.txt": page.format("new"), "cut_64.json": text})
    assert found[:2] == ["metrics_a.txt: vllm:new is new", "metrics_a.txt: vllm:old is gone"]
    assert "cut_64.json: vLLM 0.32.0 (was 0.31)" in found and "cut_64.json: equal steps 62 of 62" in found
