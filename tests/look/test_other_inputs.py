"""Times of llama.cpp's requests, nvidia-smi's tables, and benchmark results in the words of 2024: public wording."""

import pytest

from course import results
from course.look import look
from tests.look.test_second_pastes import named, vllm

# llama.cpp 9013 and llama-cpp-python 1354
SERVER = (
    "slot print_timing: id  0 | task 0 |\n"
    "prompt eval time =     915.13 ms /    51 tokens (   17.94 ms per token,    55.73 tokens per second)\n"
    "       eval time =   23038.87 ms /   275 tokens (   83.78 ms per token,    11.94 tokens per second)\n"
    "      total time =   23954.00 ms /   326 tokens\n"
)
SLOW = (
    "llama_print_timings: prompt eval time =    1491.90 ms /    37 tokens (   40.32 ms per token,    24.80 tokens per "
    "second)\n"
    "llama_print_timings:        eval time =   66226.55 ms /    25 runs   ( 2649.06 ms per token,     0.38 tokens per "
    "second)\n"
)


class TestTimesOfARequest:
    def test_each_rate_is_that_of_its_time_and_no_limit_is_named(self):
        answer = look(SERVER)
        assert {one.name: one.verdict for one in answer.checks} == dict.fromkeys(
            ("prompt tokens/s", "answer tokens/s"), "equal"
        )
        assert not answer.limits and answer.cannot_tell
        assert answer.engine == "llama.cpp" and answer.lines == (2, 4)

    @pytest.mark.parametrize("printed", ["915.13", "23038.87", "55.73", "11.94"])
    @pytest.mark.parametrize("times", [1.03, 0.97])
    def test_a_number_that_is_3_percent_off_differs(self, printed, times):
        text = SERVER.replace(printed, f"{float(printed) * times:.2f}")
        assert sorted(one.verdict for one in look(text).checks) == ["differs", "equal"]

    def test_of_many_requests_a_wrong_one_is_shown_beside_the_right_ones(self):
        text = SERVER * 3 + SERVER.replace("11.94", "14.94") + SERVER
        assert sorted(one.verdict for one in look(text).checks) == ["differs", "equal", "equal"]

    def test_below_a_token_a_second_in_each_it_is_the_step(self):
        answer = look(SLOW)
        assert [one["limit"] for one in answer.limits] == ["step"] and "0.38 tokens/s" in answer.limits[0]["evidence"]
        assert named(SLOW + SERVER) == []

    def test_no_time_is_no_rate(self):
        assert look(SERVER.replace("23038.87", "0.00")).checks[0].name == "prompt tokens/s"


def card(used, total=24564):
    return f"| 30%   49C    P8             13W /  350W | {used:>7}MiB / {total:>6}MiB |      0%      Default |\n"


def process(mib, name="python3", on=0, kind="C", ids="N/A  N/A  "):
    return f"|    {on}   {ids}        4875{mib % 10}      {kind}   {name:<40} {mib:>9}MiB |\n"


class TestMemoryOfACard:
    def test_two_engines_on_a_card_that_does_not_say_its_size(self):
        """A GB10: two engines, and a desktop beside them."""
        text = "| N/A   63C    P0             44W /  N/A  | Not Supported          |     96%      Default |\n"
        text += process(18, "/usr/lib/xorg/Xorg", kind="G") + process(6, "/usr/bin/gnome-shell", kind="G")
        answer = look(text + process(56501, "VLLM::EngineCore") + process(48829, "VLLM::EngineCore"))
        (limit,) = answer.limits
        assert limit["limit"] == "other_process" and "48,853 MiB" in limit["evidence"] and answer.engine == ""

    @pytest.mark.parametrize("ids", ["N/A  N/A  ", ""])  # before 2020 there were no such columns
    def test_a_fifth_of_the_card_in_other_hands(self, ids):
        rows = process(18000, ids=ids), process(5200, "/usr/bin/ollama", ids=ids)
        assert named(card(23300) + "".join(rows)) == ["other_process"]
        assert named(card(23300) + rows[0] + process(500, ids=ids)) == []

    def test_little_memory_of_a_card_that_does_not_say_its_size(self):
        """ollama 11676, in part: 1.8 GB are no limit of any card."""
        names = ["/opt/venv/bin/python3", "python3", "frigate.detector.onnx", "frigate.embeddings_manager"]
        assert named("".join(map(process, (238, 238, 364, 958), names))) == []

    def test_processes_of_different_cards_do_not_share_one(self):
        answer = look(card(18100) + card(18100) + process(18000) + process(18000, on=1))
        assert not answer.limits and any("end the server and see what stays" in one for one in answer.cannot_tell)

    def test_who_is_served_tells_more(self):
        text = card(23300) + process(18000) + process(5200) + vllm(4, 0, 5.0, 200.0) * 3
        assert named(text) == ["client"]


# JetStream 83, whose benchmark is vLLM's of that time
OLD = (
    "Successful requests: 100\nBenchmark duration: 29.060651 s\nTotal input tokens: 12503\n"
    "Total generated tokens: 30175\nRequest throughput: 3.44 requests/s\nInput token throughput: 430.24 tokens/s\n"
    "Output token throughput: 1038.35 tokens/s\nMean TTFT: 1274.09 ms\nMedian TTFT: 1273.70 ms\nP99 TTFT: 1276.27 ms\n"
    "Mean TPOT: 58.04 ms\nMedian TPOT: 34.34 ms\nP99 TPOT: 358.49 ms\n"
)
NEW = (
    OLD.replace("Successful", "==== Serving Benchmark Result ====\nSuccessful")
    .replace("duration: 29.060651 s", "duration (s): 29.060651")
    .replace("throughput: 3.44 requests/s", "throughput (req/s): 3.44")
)
for _kind in ("Input token throughput", "Output token throughput"):
    NEW = NEW.replace(f"{_kind}:", f"{_kind} (tok/s):").replace(" tokens/s\n", "\n")
for _kind in ("TTFT", "TPOT"):
    NEW = NEW.replace(f"{_kind}:", f"{_kind} (ms):").replace(" ms\n", "\n")


class TestResultsOf2024:
    def test_old_words_say_what_new_ones_say(self, tmp_path):
        found = []
        for text in (OLD, NEW):
            path = tmp_path / "run.txt"
            path.write_text(text)
            (run,) = results.read_all(path)
            found.append((run.totals, run.ours, run.notes))
        assert found[0] == found[1] and found[0][1]["ttft"]["p99"] == 1.27627

    def test_their_rates_are_computed_again(self):
        answer = look(f"LLAMA 2:\n{OLD}")
        assert [one["limit"] for one in answer.limits] == ["burst"]
        assert {one.name: one.verdict for one in answer.checks} == {"requests/s": "equal", "output tokens/s": "equal"}
        assert look(OLD.replace("3.44", "3.54")).checks[0].verdict == "differs"

    def test_two_of_them_in_one_text_are_two_runs(self, tmp_path):
        path = tmp_path / "runs.txt"
        path.write_text(f"LLAMA 3:\n{OLD.replace('100', '98')}\nLLAMA 2:\r\n{OLD}")
        assert [run.totals["requests"] for run in results.read_all(path)] == [98, 100]

    @pytest.mark.parametrize("text", [OLD.replace(" s\n", " h\n"), OLD.replace("Benchmark", "Whole")])
    def test_another_unit_or_name_is_no_such_result(self, text):
        with pytest.raises(ValueError, match="no line is known"):
            look(text)
