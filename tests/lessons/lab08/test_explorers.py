"""Lab 08: the explorers, every control at its ends."""

import itertools
from math import ceil

import numpy as np
import pytest

from course.lessons.lab08 import card_memory, kv_pool, small_pool
from course.lessons.lab08 import figures as draw
from course.lessons.lab08.small_pool_figure import by_hand
from course.lessons.lab08.ticket_figure import ticket
from tests.helpers.figures import valid

GIB = 2**30


@pytest.mark.parametrize(
    ("layers", "heads", "dim", "size", "length"),
    [(32, 8, 128, 2, 8_192), (8, 1, 64, 1, 512), (128, 32, 256, 4, 131_072)],
)
def test_the_bytes_of_a_token(layers, heads, dim, size, length):
    result = card_memory.shape(layers, heads, dim, size, length)
    assert result.token_bytes() == 2 * layers * heads * dim * size == result.spec.kv_bytes_per_token
    assert result.token_bytes(1) <= result.token_bytes() <= result.token_bytes(32)
    figure = draw.shape(result)
    assert figure.data[-2].y[0] == pytest.approx(result.token_bytes() * length / GIB, rel=1e-5)


@pytest.mark.parametrize("card", card_memory.CARDS)
@pytest.mark.parametrize("name", card_memory.DENSE)
def test_the_ledger_adds_up(name, card):
    corners = itertools.product((0.5, 0.98), (64, 1_024), (2_048,), ("bfloat16", "fp8"), (512, 131_072))
    for share, seqs, batched, dtype, length in (*corners, (0.9, 0, 0, "bfloat16", 4_096)):
        result = card_memory.fit(
            name, card, dtype, length, gpu_memory_utilization=share, max_num_seqs=seqs, max_num_batched_tokens=batched
        )
        found = result.ledger
        spent = found.weights_bytes + found.activation_bytes + found.other_bytes + found.kv_bytes
        assert spent == found.usable_bytes <= found.total_bytes == card_memory.CARDS[card]
        fits = found.max_sequences(length)
        assert fits * ceil(length / 16) <= max(0, found.num_blocks - 1) < (fits + 1) * ceil(length / 16)
        assert bool(result.warnings) == (fits == 0)
        assert all(a >= b for line in result.lines.values() for a, b in itertools.pairwise(line))
        assert all(2 * a <= b + 1 for a, b in zip(result.lines["bfloat16"], result.lines["fp8"], strict=True))


@pytest.mark.parametrize(("card", "share"), [("RTX 4090", 0.5), ("RTX 4090", 0.98), ("H200", 0.5)])
def test_the_ledger_is_drawn_where_nothing_fits(card, share):
    result = card_memory.fit(
        "qwen3-32b", card, "fp8", 131_072, gpu_memory_utilization=share, max_num_seqs=64, max_num_batched_tokens=2_048
    )
    figure = draw.ledger(result)
    valid(figure)
    valid(draw.card(result))
    tops = [trace.base[0] + trace.y[0] for trace in figure.data if trace.type == "bar"]
    assert tops == pytest.approx(sorted(tops)) and figure.layout.yaxis.range[1] >= tops[-1]  # rounded for JSON


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
    figure = draw.operator(result)
    assert sum(figure.data[3].y) == result.preemptions
    assert max(figure.data[0].y) <= 100


@pytest.mark.parametrize("name", card_memory.ARCHITECTURES.values())
@pytest.mark.parametrize("length", [128, 16_384, 1_048_576])
def test_what_a_sequence_of_an_architecture_keeps(name, length):
    result = card_memory.architecture(name, length)
    spec = result.spec
    assert spec.state_bytes < result.bytes <= spec.state_bytes + spec.kv_bytes_per_token * length
    assert result.bytes >= spec.state_bytes + spec.kv_bytes_after_window * length
    curve = result.curves[name]
    assert list(curve) == sorted(curve)


def test_a_window_keeps_its_last_tokens():
    oss = card_memory.spec("gpt-oss-120b")
    assert card_memory.sequence_bytes(oss, 100) == 100 * 73_728
    assert card_memory.sequence_bytes(oss, 10_000) == 10_000 * 36_864 + 128 * 36_864


def test_the_figure_by_hand_shows_what_each_holds():
    case = small_pool.small()
    assert np.array_equal(case.held.sum(axis=1), case.run.steps.blocks) and case.held.max() <= small_pool.BLOCKS
    figure = by_hand(case)
    valid(figure)
    assert [list(bar.y) for bar in figure.data[:4]] == case.held.T.tolist()
    lost = [note.text for note in figure.layout.annotations if "preempted" in note.text]
    assert sorted(lost) == ["C is preempted", "D is preempted"]


def test_the_ticket_shows_gaps_and_not_the_preemptions():
    result = kv_pool.hour(kv_pool.GQA, 2.0, 256)
    figure = ticket(result)
    valid(figure)
    assert max(figure.data[3].y) == pytest.approx(result.longest_gap, rel=1e-4)
    assert "preempt" not in str(figure.to_dict()["layout"]["annotations"])


def test_the_other_figures():
    runs = kv_pool.sweep()
    figure = draw.slots(runs)
    valid(figure)
    assert figure.data[0].x[-1] == 48


@pytest.mark.parametrize(("length", "reached"), [(8_192, False), (4_096, False), (2_048, True)])
def test_the_log_prints_ten_times_only_below_4096_tokens(length, reached):
    """The pool of the explorer is a little smaller than that of the question: 4.9, 9.8 and 19.5 times."""
    from course.lessons import lab08

    shown = lab08.what_fits()
    task = next(task for task in shown.tasks if task.id == "printed")
    settings = shown.defaults | {"max_model_len": length}
    assert task.reached(settings, shown.compute(**settings)) is reached
