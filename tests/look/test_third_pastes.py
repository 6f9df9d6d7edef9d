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
