"""Lab 08: the explorers, every control at its ends."""

import itertools
from math import ceil

import numpy as np
import pytest

from course.lessons import lab08
from course.lessons.lab08 import card_memory, figures, kv_pool, small_pool
from tests.helpers.figures import valid


@pytest.mark.parametrize("card", card_memory.CARDS)
@pytest.mark.parametrize("name", card_memory.DENSE)
def test_the_ledger_adds_up(name, card):
    corners = itertools.product((0.5, 0.98), (64, 1_024), ("bfloat16", "fp8"), (512, 131_072))
    for share, seqs, dtype, length in (*corners, (0.9, 0, "bfloat16", 4_096)):
        result = card_memory.fit(
            name, card, gpu_memory_utilization=share, max_num_seqs=seqs, kv_dtype=dtype, max_model_len=length
        )
        found = result.ledger
        spent = found.weights_bytes + found.activation_bytes + found.other_bytes + found.kv_bytes
        assert spent == found.usable_bytes <= found.total_bytes == card_memory.CARDS[card]
        fits = found.max_sequences(length)
        assert fits * ceil(length / 16) <= max(0, found.num_blocks - 1) < (fits + 1) * ceil(length / 16)
        assert bool(result.warnings) == (fits == 0)
        rows = dict(card_memory.short_rows(result))
        assert rows["KV cache size"] == f"{16 * found.num_blocks:,} tokens"
        assert rows["concurrency"] == f"{found.num_blocks / ceil(length / 16):.2f}x"
    assert len(card_memory.ledger_rows(found)) == 11


@pytest.mark.parametrize(
    ("name", "card", "share"),
    [("qwen3-32b", "RTX 4090", 0.5), ("qwen3-32b", "H200", 0.5), ("llama-3.1-8b", "RTX 4090", 0.9)],
)
def test_the_card_is_drawn_also_where_nothing_fits(name, card, share):
    figure = figures.card(card_memory.fit(name, card, gpu_memory_utilization=share, max_model_len=131_072))
    valid(figure)
    bars = [trace for trace in figure.data if trace.type == "bar"]
    tops = [bar.base[0] + bar.y[0] for bar in bars]
    assert tops == pytest.approx(sorted(tops)) and figure.layout.yaxis.range[1] >= tops[-1]  # rounded for JSON
    assert [bar.base[0] for bar in bars[1:]] == pytest.approx(tops[:-1], abs=1e-3)


@pytest.mark.parametrize("kind", kv_pool.BYTES)
@pytest.mark.parametrize(("rate", "slots"), [(0.25, 4), (2.0, 32), (3.0, 256)])
def test_what_is_computed_is_what_is_needed_and_what_was_lost(kind, rate, slots):
    result = kv_pool.hour(kind, rate, slots)
    run = result.run
    assert len(run) == kv_pool.SHORT and run.steps.running.max() <= slots
    assert 0 < result.pool_used.max() <= 1 and run.steps.preemptions.sum() == result.preemptions
    computed = run.steps.decodes.sum() + run.steps.prefill_tokens.sum()
    needed = run.workload.prompt_tokens.sum() + (run.workload.output_tokens - 1).sum()
    assert computed == needed + run.steps.dropped.sum()
    figure = figures.operator(result)
    valid(figure)
    assert sum(figure.data[3].y) == result.preemptions
    assert max(figure.data[0].y) <= 100


def test_the_figure_by_hand_shows_what_each_holds():
    case = small_pool.small()
    assert np.array_equal(case.held.sum(axis=1), case.run.steps.blocks) and case.held.max() <= small_pool.BLOCKS
    figure = lab08.four_requests()
    valid(figure)
    assert [list(bar.y) for bar in figure.data[:4]] == case.held.T.tolist()
    lost = [note.text for note in figure.layout.annotations if "preempted" in note.text]
    assert sorted(lost) == ["C is preempted", "D is preempted"]


def test_the_ticket_shows_gaps_and_not_the_preemptions():
    figure = lab08.ticket_graphs()
    valid(figure)
    assert max(figure.data[3].y) == pytest.approx(kv_pool.hour(kv_pool.GQA, 2.0, 256).longest_gap, rel=1e-4)
    assert "preempt" not in str(figure.to_dict()["layout"]["annotations"])
