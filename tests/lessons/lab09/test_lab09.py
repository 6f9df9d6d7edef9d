"""Lab 09: its scenario against formulas and counts of its own, its figures, its exercises, what it launches."""

import numpy as np
import pytest

from course import gpu
from course.exercises.judge import RIGHT, WRONG, judge
from course.explore.table import Table
from course.lessons import lab09, load
from course.lessons.lab09 import attention, decision, facts, figures, pool, tasks, victims
from tests.helpers.figures import valid


def exercise(name):
    return next(e for e in load("09").exercises if e.id == name)


# The scenario


def test_reserved_pieces_by_hand():
    """40,000 tokens hold 19 pieces of 2,048; what they hold is half of an answer behind its prompt, on average."""
    longest = pool.placed(pool.MAX)
    assert longest.run.steps.running.max() == 40_000 // 2_048 == 19 and longest.preemptions == 0
    assert longest.mean(longest.taken) == pytest.approx(19 * 2_048, rel=1e-9)
    load = pool.requests()
    prompt, answer = load.prompt_tokens.astype(float), load.output_tokens.astype(float)
    held = (prompt * answer).sum() / answer.sum() + (answer**2).sum() / (2 * answer.sum())  # met as often as it is long
    # While somebody waits: the last long answers are not in it.
    assert longest.mean(longest.held) / 19 == pytest.approx(held, rel=0.08)


@pytest.mark.parametrize("size", tasks.SIZES)
def test_half_a_block_of_each_is_empty(size):
    one = pool.placed(pool.PAGED, size)
    assert one.empty == pytest.approx((size - 1) / 2 * one.running / one.mean(one.taken), rel=0.1)


def test_pieces_of_the_true_length_leave_holes_and_are_not_full():
    true, packed = pool.placed(pool.TRUE), pool.placed(pool.TRUE, compaction=2 * 131_072 / 4.8e12)
    assert true.mean(true.taken) < packed.mean(packed.taken) < pool.TOKENS
    assert true.empty == pytest.approx(packed.empty, abs=0.02) and 0.35 < true.empty < 0.45


def test_what_is_computed_is_what_is_needed_and_what_was_lost():
    for one in (pool.out_of_blocks(), pool.out_of_blocks(victim=pool.FEWEST), pool.out_of_blocks(bandwidth=15.0)):
        steps, load = one.run.steps, one.run.workload
        needed = (load.prompt_tokens + load.output_tokens - 1).sum()
        assert (steps.decodes + steps.prefill_tokens).sum() == needed + steps.dropped.sum()
        assert steps.dropped.sum() == pytest.approx(one.again * needed)
    free, slow = pool.out_of_blocks(bandwidth=pool.FREE), pool.out_of_blocks(bandwidth=6.0)
    assert not free.again and free.preemptions == slow.preemptions
    blocks = np.ceil(slow.run.log.preemptions[:, 2] / 16)
    assert not blocks.any()  # nothing was lost, so what was copied is counted in the time alone
    assert slow.run.makespan - free.run.makespan > 5


def test_prefix_caching_finds_what_was_there_before():
    on = pool.out_of_blocks(prefix_caching=True)
    computed = (on.run.steps.decodes + on.run.steps.prefill_tokens).sum()
    needed = (on.run.workload.prompt_tokens + on.run.workload.output_tokens - 1).sum()
    assert computed == needed + on.run.steps.dropped.sum() - decision.found_again(on)
    assert decision.found_again(pool.out_of_blocks()) == 0


def test_the_page_is_that_of_the_run_at_its_moment():
    page = dict(line.split() for line in lab09.page_of_the_evening().splitlines())
    run = pool.out_of_blocks().run
    k = int(np.searchsorted(run.steps.end, decision.MOMENT))
    assert run.steps.start[k] <= decision.MOMENT <= run.steps.end[k]
    assert float(page["vllm:num_requests_running"]) == run.steps.running[k]
    assert float(page["vllm:num_preemptions_total"]) == (run.log.preemptions[:, 1] <= k).sum()
    assert float(page["vllm:kv_cache_usage_perc"]) == pytest.approx(run.steps.blocks[k] / 2_500, abs=1e-3)
    total = sum(float(page[f"vllm:{name}"]) for name in ("num_requests_running", "num_requests_waiting"))
    assert total + float(page["vllm:request_success_total"]) == pytest.approx(1_000, abs=3)  # at a step's end, or begin
    assert lab09.start_up_log().endswith("19.53x")


# Figures


def test_the_pool_is_drawn_as_it_is():
    for how in (*pool.RESERVES, pool.PAGED):
        figure = figures.handed_out(pool.placed(how))
        valid(figure)
        assert max(figure.data[1].y) <= 40_000 and all(np.array(figure.data[2].y) <= np.array(figure.data[1].y) + 1e-9)
    figure = figures.running_out(pool.out_of_blocks())
    valid(figure)
    assert sum(figure.data[1].y) == pool.out_of_blocks().preemptions


def test_by_hand_every_token_has_a_place():
    figure = lab09.three_requests()
    valid(figure)
    held = [bar for bar in figure.data if bar.name == "holds a token"]
    assert [len(bar.x) for bar in held] == [5, 9, 5, 9, 3]
    empty = {row: sum(len(bar.x) for bar in figure.data if bar.name == "empty" and bar.y and bar.y[0] == row)
             for row in (0, 1)}  # fmt: skip
    assert empty == {0: 18, 1: 7} and [note.text for note in figure.layout.annotations].count("C waits") == 1


def test_the_ticket_shows_two_answers_of_one_length_and_no_counter():
    figure = lab09.ticket_graph()
    valid(figure)
    one, other = figure.data
    assert len(one.x) == len(other.x) and one.x[-1] - one.x[0] > 2 * (other.x[-1] - other.x[0])
    assert "preempt" not in str(figure.to_dict()["layout"]["annotations"])


# Exercises


def test_the_answers_by_hand():
    assert exercise("waste").solution == (48 - 37) + (80 - 70) + (16 - 3)
    assert exercise("waste").twin.solution == (64 - 37) + (96 - 70) + (32 - 3)
    assert exercise("crossover").solution == pytest.approx(2 * 2 * 32 * 8 * 128 * 2 * 40_000 / 1e9)
    assert exercise("crossover").twin.solution == pytest.approx(2 * 2 * 28 * 4 * 128 * 2 * 50_000 / 1e9)
    assert exercise("decision").solution == {"--max-num-seqs": 80}
    assert victims.fewest([5, 3, 3], 0) == 2 and victims.most([9, 3, 3, 1], 0) == 2 and victims.fewest([1, 2], 0) == 1


@pytest.mark.parametrize(
    ("rule", "said"),
    [(victims.last_but_spared, "vLLM's rule"), (victims.counted_without_spared, "Count in the whole list")],
)
def test_the_rule_of_vllm_and_a_place_counted_without_the_spared_have_hints_of_their_own(rule, said):
    verdict = judge(exercise("victim"), rule)
    assert verdict.status == WRONG and said in verdict.hint


def test_the_share_that_holds_tokens_is_recognised():
    task = next(task for task in load("09").tasks if task.id == "empty")
    right = 100 * pool.placed(pool.MAX).empty
    ((factor, _),) = [slip for slip in task.slips if "holds tokens" in slip[1]]
    assert right * factor == pytest.approx(100 - right, rel=task.rtol)


def test_other_ways_of_writing_the_rule_are_right():
    def by_sorting(computed, spared):
        return sorted(set(range(len(computed))) - {spared}, key=lambda place: (computed[place], -place))[0]

    assert judge(exercise("victim"), by_sorting).status == RIGHT
    assert judge(exercise("victim"), lambda computed, spared: 1).status == WRONG


def test_a_rule_at_work():
    assert "returns nothing yet" in repr(lab09.at_work(lambda computed, spared: None))
    assert "does not run yet" in repr(lab09.at_work(lambda computed, spared: len(computed)))
    assert "does not run yet" in repr(lab09.at_work(lambda computed, spared: [][0] if len(computed) > 3 else 1))
    found = lab09.at_work(victims.last)
    assert isinstance(found, Table) and found.rows[1][1:] == found.rows[2][1:]  # vLLM's own rule gives vLLM's run
    few = victims.with_rule(victims.fewest)
    assert few.preemptions == pool.out_of_blocks(victim=pool.FEWEST).preemptions  # the first is never the least here


# What is launched


def test_the_recording_is_of_both_orders_at_every_setting():
    recording = attention.recording()
    assert recording.card == "NVIDIA H200" and len(recording.ratios) == 15
    assert max(recording.ratios) < 1.02 and min(recording.ratios) > 0.98
    shown = lab09.blocks_together_or_scattered()
    assert "recorded: NVIDIA H200" in shown.text() and shown.text().count("-") < 60


def test_both_orders_are_launched_here_and_a_batch_that_is_too_large_is_named():
    bench = attention.Bench(gpu.device("numpy"), max_seconds=0)
    pieces = list(bench.measuring(4, 512))
    found = pieces[-1]
    assert all(isinstance(piece, attention.Launched) for piece in pieces)  # nothing ends a view's measuring early
    assert found.whole and not found.warnings and all(value > 0 for value in found.here.values())
    assert float(attention.rows(found)[-1][-1]) > 0
    valid(attention.figure(found))
    *_, refused = bench.measuring(256, 2_048)
    assert not refused.whole and "too large for a CPU" in refused.warnings[0]


def test_the_formula_stands_beside_the_simulation():
    found = facts.facts()
    assert found["even_below"] < found["even_beside"] < found["even_above"] and found["even"] < found["even_below"]
