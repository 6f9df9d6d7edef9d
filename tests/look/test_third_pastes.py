"""The rules behind what a third 30 of public pastes showed, each where it holds and beside it."""

import pytest

from course.look import look
from tests.look.test_second_pastes import named, vllm


class TestAPoolThatIsHighAndRises:
    @staticmethod
    def lines(*usages):
        return "".join(vllm(38, 0, usage, 800.0) for usage in usages)

    @pytest.mark.parametrize("usages", [(88.5, 89.8, 93.2), (80.0, 87.0, 94.0), (92.0, 93.0, 94.0, 95.0)])
    def test_it_fills_where_as_many_lines_more_would_fill_it(self, usages):
        assert named(self.lines(*usages)) == ["kv_filling"]

    @pytest.mark.parametrize("usages", [(88.5, 93.2), (82.0, 83.0, 84.5), (88.0, 87.0, 93.0), (80.0, 88.0, 85.0, 90.0)])
    def test_too_few_lines_or_too_slow_a_rise_cannot_be_told(self, usages):
        answer = look(self.lines(*usages))
        assert not answer.limits and f"KV usage rises to {usages[-1]:.1f}%" in answer.cannot_tell[0]

    @pytest.mark.parametrize("usages", [(40.0, 55.0, 70.0), (93.0, 93.2, 93.1), (93.2, 89.8, 88.5), (93.0, 93.2, 93.4)])
    def test_low_flat_or_falling_is_the_client(self, usages):
        assert named(self.lines(*usages)) == ["client"]


def report(head, ttft=154.82):
    """100 prompts in 26.67 s, 82.65 in flight on average. ttft [ms]."""
    tpot = 14.60 + (154.82 - ttft) / 1499
    return (
        f"{head}============ Serving Benchmark Result ============\nSuccessful requests:                     100\n"
        "Benchmark duration (s):                  26.67\nTotal input tokens:                      349601\n"
        "Total generated tokens:                  150000\nRequest throughput (req/s):              3.75\n"
        "Output token throughput (tok/s):         5624.71\nTotal Token throughput (tok/s):          18734.08\n"
        f"Mean TTFT (ms):                          {ttft:.2f}\nMean TPOT (ms):                          {tpot:.2f}\n"
    )


def rate(asked):
    return f"Traffic request rate: {asked}\n"


def cap(most):
    return f"Maximum request concurrency: {most}\n"


class TestARateThatIsPrinted:
    @pytest.mark.parametrize("asked", ["15.0 RPS.", "15.0"])
    def test_with_no_wait_for_the_first_token_it_is_no_burst(self, asked):
        assert named(report(rate(asked) + cap(100))) == []

    def test_with_a_long_wait_it_is(self):
        assert named(report(rate("1500.0 RPS.") + cap(100), ttft=12_000.0)) == ["burst"]

    @pytest.mark.parametrize("asked", ["inf RPS.", "inf"])
    def test_a_rate_without_a_limit_is_all_at_once(self, asked):
        answer = look(report(rate(asked) + cap(100)))
        assert [one["limit"] for one in answer.limits] == ["burst"] and not answer.cannot_tell
        assert any("All requests were sent at once" in note for note in answer.notes)

    @pytest.mark.parametrize(("most", "closed"), [(99, True), (100, False), (200, False)])
    def test_a_limit_that_the_prompts_do_not_exceed_closes_no_loop(self, most, closed):
        assert any("A closed loop" in note for note in look(report(cap(most))).notes) == closed

    def test_who_failed_was_sent_as_well(self):
        failed = report(cap(100)).replace("Benchmark duration", "Failed requests: 1\nBenchmark duration")
        assert any("A closed loop" in note for note in look(failed).notes)


class TestARequestThatIsTooLong:
    @pytest.mark.parametrize(
        ("line", "engine"),
        [
            ("ValueError: This model's maximum context length is 4096 tokens. However, you requested 5,000 tokens (9 "
             "in the messages, 4991 in the completion).", "vLLM"),
            ("ValueError: The decoder prompt (length 5000) is longer than the maximum model length of 4096.", "vLLM"),
            (r"{'m': 'The input (5000 tokens) is longer than the model\'s context length (4096 tokens).'}", "SGLang"),
            ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", "SGLang"),
        ],
    )  # fmt: skip
    def test_its_refusal_names_the_length_and_does_not_say_to_lower_it(self, line, engine):
        answer = look(line)
        (limit,) = answer.limits
        assert (limit["limit"], answer.engine) == ("max_model_len", engine)
        assert limit["evidence"] == "a request of 5,000 tokens was refused, 4,096 are served"
        assert "raise the length" in limit["next"] and "lower" not in limit["next"]

    def test_a_start_that_is_refused_still_says_to_lower_it(self):
        line = "max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (4096)"
        assert "lower the length" in look(line).limits[0]["next"]

    def test_the_length_alone_is_no_limit(self):
        with pytest.raises(ValueError, match="no line is known"):
            look("This model's maximum context length is 4096 tokens.")

    @pytest.mark.parametrize("word", ["vllm server outputs:", "sglang server says:", "vllm serves it"])
    def test_words_of_a_sentence_are_no_command(self, word):
        assert not look(f"the {word}\n" + vllm(4, 0, 5.0, 200.0) * 3).notes


class TestOutOfMemoryWhileGraphsAreCaptured:
    START = "ERROR Traceback (most recent call last):\n"
    OTHER = 'ERROR   File "/x/vllm/worker.py", line 1, in load_model\nERROR     self.load()\n'
    ERRORS = (
        "RuntimeError: CUDA error: out of memory",
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.",
    )

    @pytest.mark.parametrize("error", ERRORS)
    @pytest.mark.parametrize(
        "place", ["in capture_model", "    with torch.cuda.graph(graph, pool=self.pool):", "    super().capture_end()"]
    )
    def test_the_traceback_names_the_graphs(self, place, error):
        assert named(f"{self.START}{self.OTHER}ERROR {place}\n{self.OTHER}ERROR {error}\n") == ["cuda_graphs"]

    @pytest.mark.parametrize("error", ERRORS)
    def test_another_traceback_is_the_card_s(self, error):
        failed = f"{self.START}{self.OTHER}ERROR {error}\n"
        assert named(failed) == ["card_memory"]
        assert named(f"{self.START}ERROR in capture_model\nERROR RuntimeError: bad shape\n{failed}") == ["card_memory"]
        assert named(f"{failed}{self.START}ERROR in capture_model\nERROR RuntimeError: bad shape\n") == ["card_memory"]


class TestARequestLargerThanThePool:
    @staticmethod
    def start(pool, length=262144):
        return f"INFO Using max model len {length}\nINFO GPU KV cache size: {pool:,} tokens\n"

    TOLD = 'logs show "Waiting: 1 reqs, Running: 0 reqs"'

    @pytest.mark.parametrize("lines", [TOLD, vllm(0, 1, 0.0, 0.0), vllm(3, 0, 9.0, 90.0) * 3 + vllm(0, 2, 0.0, 0.0)])
    def test_who_waits_while_none_runs_is_stuck(self, lines):
        (limit,) = look(self.start(76_640) + lines).limits
        assert limit["limit"] == "stuck"
        assert "the pool holds 76,640 tokens, and a request may have 262,144" in limit["evidence"]

    @pytest.mark.parametrize("lines", [TOLD, vllm(0, 1, 0.0, 0.0)])
    def test_not_where_every_request_fits(self, lines):
        answer = look(self.start(300_000) + lines)
        assert not answer.limits and "like stuck" in answer.cannot_tell[0]

    @pytest.mark.parametrize("line", [(0, 1, 0.0, 0.0, 900.0), (1, 1, 9.0, 30.0), (0, 0, 0.0, 0.0)])
    def test_not_while_a_prompt_is_read_or_somebody_runs_or_nobody_waits(self, line):
        assert "stuck" not in named(self.start(76_640) + vllm(*line))

    def test_what_people_tell_counts_only_without_the_engine_s_own_lines(self):
        assert named(self.start(76_640) + self.TOLD + "\n" + vllm(4, 0, 5.0, 200.0) * 3) == ["client"]
