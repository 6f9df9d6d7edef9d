"""The rules behind what 30 more public pastes showed, each on both of its sides: where it holds, and beside it."""

import json

import pytest

from course.look import look
from tests.cli.test_cli import call


def vllm(running, waiting, usage, answers, prompts=0.0, hits=None, second=0):
    """A periodic line of vLLM. usage, hits [%], answers and prompts [tokens/s]."""
    end = "" if hits is None else f", Prefix cache hit rate: {hits:.1f}%"
    return (
        f"INFO 01-01 00:00:{second:02} [loggers.py:1] Engine 000: Avg prompt throughput: {prompts:.1f} tokens/s, Avg "
        f"generation throughput: {answers:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
        f"GPU KV cache usage: {usage:.1f}%{end}\n"
    )


def prefill(tokens, running, queue, pending=None, usage=0.02):
    rest = "" if pending is None else f", #pending-token: {pending}"
    return (
        f"[2026-01-01 00:00:00] Prefill batch, #new-seq: 1, #new-token: {tokens}, #cached-token: 0, "
        f"token usage: {usage}, #running-req: {running}, #queue-req: {queue}{rest}\n"
    )


def named(text):
    return [one["limit"] for one in look(text).limits]


class TestOneSequenceInACache:
    @pytest.mark.parametrize("hits", [15.0, 60.0, 92.0])
    def test_what_it_holds_is_no_cost_of_the_next(self, hits):
        answer = look(vllm(1, 14, 76.8, 5.4, hits=hits) * 3)
        assert not answer.limits and "--max-num-seqs" in answer.cannot_tell[0]

    @pytest.mark.parametrize("hits", [None, 0.0, 3.0])
    def test_without_hits_it_is(self, hits):
        assert named(vllm(1, 14, 76.8, 5.4, hits=hits) * 3) == ["kv_blocks"]

    def test_a_full_pool_is_full(self):
        assert named(vllm(1, 14, 97.0, 5.4, hits=92.0) * 3) == ["kv_blocks"]

    def test_of_several_the_part_that_is_not_shared_counts(self):
        """Of 94% among ten: 9.4% each, or 0.9% if nine tenths of it were there before."""
        assert named(vllm(10, 14, 94.0, 200.0, hits=0.0) * 3) == ["kv_blocks"]
        assert named(vllm(10, 14, 94.0, 200.0, hits=90.0) * 3) == []

    def test_slots_that_the_command_gives_decide(self):
        assert named("vllm serve m --max-num-seqs 1\n" + vllm(1, 14, 76.8, 5.4, hits=92.0) * 3) == ["slots"]


class TestPromptsInChunks:
    def test_one_prompt_behind_another_is_no_slot(self):
        """New requests of the batch run after it: nobody ran, so none was full."""
        lines = "".join(prefill(8192, 0, 1, pending) for pending in (46401, 38209, 30017, 21825))
        assert named(lines) == ["prefill_budget"]

    def test_without_pending_tokens_where_more_wait_than_join(self):
        assert named(prefill(8192, 0, 5) * 4) == ["prefill_budget"]
        assert named(prefill(8192, 0, 1) * 4) == []

    def test_a_decode_line_brings_slots_back(self):
        decode = "[2026-01-01 00:00:09] Decode batch, #running-req: 1, #token: 9, token usage: 0.02, #queue-req: 1\n"
        assert named((prefill(512, 0, 1) + decode) * 3) == ["slots"]

    def test_batches_of_several_sizes_are_no_budget(self):
        assert named("".join(prefill(tokens, 0, 5) for tokens in (8192, 900, 3000, 5000))) == []


class TestSlowSteps:
    @pytest.mark.parametrize(("speed", "expected"), [(1.04, "step"), (1.9, "step"), (2.1, "client"), (40.0, "client")])
    def test_where_no_prompt_is_read(self, speed, expected):
        assert named(vllm(16, 0, 50.0, 16 * speed) * 3) == [expected]

    @pytest.mark.parametrize(("speed", "expected"), [(0.9, "step"), (1.5, "client")])
    def test_where_prompts_are_read_answers_run_for_a_part_of_the_interval(self, speed, expected):
        assert named(vllm(16, 0, 50.0, 16 * speed, prompts=100.0) * 3) == [expected]

    def test_a_pool_that_fills_meanwhile_is_said_beside_it(self):
        usages = (92.1, 92.7, 93.5, 94.2)
        assert named("".join(vllm(16, 0, usage, 16.7) for usage in usages)) == ["step", "kv_filling"]
        assert named("".join(vllm(16, 0, usage, 800.0) for usage in usages)) == ["kv_filling"]


class TestPromptsReadAlone:
    ROWS = ((20, 9, 122.2, 0.0), (22, 7, 0.0, 1032.4), (24, 5, 0.0, 1096.2))

    def lines(self, rows):
        return "".join(vllm(running, waiting, 25.0, answers, prompts) for running, waiting, answers, prompts in rows)

    def test_running_rises_as_pending_falls(self):
        (limit,) = look(self.lines(self.ROWS)).limits
        assert limit["limit"] == "prefill_budget" and "no token leaves in 2 of 3 lines" in limit["evidence"]

    def test_not_while_answers_leave(self):
        assert named(self.lines([(a, b, 122.2, prompts) for a, b, _, prompts in self.ROWS])) == []

    def test_not_where_the_queue_stands(self):
        assert named(self.lines([(a, 9, answers, prompts) for a, _, answers, prompts in self.ROWS])) == []


class TestStarts:
    @pytest.mark.parametrize(
        ("line", "engine"),
        [
            ("INFO 01-01 00:00:00 llm_engine.py:1] # GPU blocks: 0, # CPU blocks: 256", "vLLM"),
            ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "vLLM"),
            ("INFO 01-01 00:00:00 [gpu_worker.py:1] Available KV cache memory: -1.25 GiB", "vLLM"),
            ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "SGLang"),
        ],
    )
    def test_no_block_is_no_harmless_start(self, line, engine):
        answer = look(line)
        assert [one["limit"] for one in answer.limits] == ["card_memory"] and answer.engine == engine
        assert "--mem-fraction-static" in answer.limits[0]["flag"] or engine == "vLLM"

    @pytest.mark.parametrize("line", ["# GPU blocks: 1, # CPU blocks: 0", "Available KV cache memory: 1.25 GiB"])
    def test_some_blocks_are(self, line):
        assert named(line) == []

    @pytest.mark.parametrize(("gib", "expected"), [("118.65", "cuda_graphs"), ("1.20", "card_memory")])
    def test_graphs_that_leave_no_block(self, gib, expected):
        text = f"Estimated CUDA graph memory: {gib} GiB total\nValueError: No available memory for the cache blocks."
        assert named(text) == [expected]

    CAPTURE = (
        '  File "/x/sglang/python/sglang/srt/model_executor/cuda_graph_runner.py", line 1, in __init__\n'
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB."
    )

    def test_a_capture_that_failed_names_the_graphs_and_its_path_the_engine(self):
        answer = look(self.CAPTURE)
        (limit,) = answer.limits
        assert (limit["limit"], answer.engine) == ("cuda_graphs", "SGLang") and "--cuda-graph-max-bs" in limit["flag"]
        assert look(self.CAPTURE.replace("sglang", "vllm")).engine == "vLLM"

    def test_another_failure_of_a_capture_is_no_memory(self):
        assert named(self.CAPTURE.replace("Capture cuda graph failed: ", "")) == ["card_memory"]

    def test_the_folder_of_a_model_names_no_engine(self):
        assert look("vllm serve /data/sglang/model\n" + vllm(1, 0, 1.0, 50.0) * 3).engine == "vLLM"


ROW = {"backend": "sglang", "request_rate": float("inf"), "max_concurrency": 16, "duration": 91.82, "completed": 300,
       "total_input_tokens": 75000, "total_output_tokens": 30000, "total_output_tokens_retokenized": 30000,
       "request_throughput": 3.2673, "output_throughput": 326.73, "mean_e2e_latency_ms": 4760.2,
       "median_e2e_latency_ms": 4825.5, "concurrency": 15.55}  # fmt: skip


class TestRowsOfABenchmark:
    def test_sglangs_row_of_json(self):
        answer = look(json.dumps(ROW))
        assert [one["limit"] for one in answer.limits] == ["client_cap"]
        assert {one.name: one.verdict for one in answer.checks} == {"requests/s": "equal", "output tokens/s": "equal"}

    def test_among_other_lines_and_below_the_cap(self):
        assert named("some words\n" + json.dumps(ROW) + "\nand more") == ["client_cap"]
        assert named(json.dumps(ROW | {"concurrency": 6.0})) == []

    def test_a_row_that_is_cut_or_no_run_is_refused(self):
        for text in (json.dumps(ROW)[:-20], json.dumps({"completed": 3})):
            with pytest.raises(ValueError, match="no line is known here"):
                look(text)


class TestOneLine:
    @pytest.mark.parametrize(
        ("line", "suggested"),
        [
            (prefill(16384, 370, 646), "(370 running, 646 waiting, 16,384 prompt tokens: like prefill_budget)"),
            (vllm(40, 8, 30.0, 800.0), "like slots or prefill_budget"),
            (vllm(40, 8, 99.0, 800.0), "like kv_blocks"),
            (vllm(0, 8, 0.0, 0.0), "like stuck"),
            (vllm(2, 0, 1.0, 0.4), "like step"),
            (vllm(2, 0, 1.0, 80.0), "(2 running, 0 waiting: like client)"),
            ("vllm:num_requests_running 2.0\nvllm:num_requests_waiting 0.0\n", "like client"),
        ],
    )  # fmt: skip
    def test_what_it_suggests_is_said_and_not_named(self, line, suggested):
        answer = look(line)
        assert not answer.limits and suggested in answer.cannot_tell[0]

    def test_several_lines_in_which_nobody_waits_are_the_client_s(self):
        assert named(vllm(2, 0, 1.0, 80.0) * 2) == ["client"]


def test_a_printed_rate_of_few_digits_is_only_possible():
    """0.08 requests/s may be 0.075 to 0.085: 3% and more are not seen, and 0.0826 is no contradiction."""
    block = (
        "==== Serving Benchmark Result ====\nSuccessful requests: 1000\nBenchmark duration (s): 12100.0\n"
        "Total generated tokens: 1376000\nRequest throughput (req/s): {}\nOutput token throughput (tok/s): 113.72\n"
    )
    answer, wrong = look(block.format("0.08")), look(block.format("0.09"))
    assert [one.verdict for one in answer.checks] == ["possible", "equal"]
    assert not any("cannot be" in note for note in answer.notes)
    assert wrong.checks[0].verdict == "differs" and any("cannot be" in note for note in wrong.notes)


def test_digits_that_leave_much_open_are_not_called_equal():
    """A share of 0.90 may be 0.895 to 0.905 of 23.58 GiB: 0.24 GiB of a small pool, and little of a large one."""
    line = (
        "total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory={}GiB memory_usage_post_profile="
        "15.35GiB non_torch_memory=0.35GiB kv_cache_size={}GiB gpu_memory_utilization=0.90"
    )
    verdicts = {peak: look(line.format(peak, left)).checks[0] for peak, left in (("17.98", "2.89"), ("7.98", "12.89"))}
    assert [one.verdict for one in verdicts.values()] == ["possible", "equal"]
    assert "the printed digits leave 2.7" in verdicts["17.98"].why


class TestSentences:
    def test_tensorrt_llm_gets_its_own_flags(self):
        (limit,) = look("[TensorRT-LLM] maxTokensInPagedKvCache must be large enough").limits
        assert "--max_seq_len" in limit["flag"] and "--max-model-len" not in limit["flag"]

    def test_evidence_of_blocks_is_of_one_line(self):
        """34 ran beside 18, 33 beside 40."""
        (limit,) = look(vllm(34, 18, 99.2, 756.7) + vllm(33, 40, 97.5, 736.1)).limits
        assert limit["evidence"].startswith("34 running, 18 waiting in the fullest of 2 lines")

    def test_incidents_are_spoken_of_where_there_is_a_page(self, tmp_path):
        lines, page = tmp_path / "lines.txt", tmp_path / "page.txt"
        lines.write_text(vllm(4, 0, 5.0, 200.0) * 3)
        page.write_text("vllm:num_requests_running 4.0\nvllm:num_requests_waiting 0.0\n")
        assert "Incident" not in call("look", str(lines)).stdout
        assert "Incidents: none of the known ones fits this page." in call("look", str(page)).stdout

    def test_whose_limit_held_requests_back(self):
        text = json.dumps(ROW | {"request_rate": 330.0})
        assert any("answered: the client's limit of 16 in flight was reached" in note for note in look(text).notes)
