"""Lab 11: lengths and layouts by hand and by brute force, the same rows from every layout, the explorers' corners."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from course.exercises import Lab
from course.exercises.progress import Progress
from course.gpu import discover
from course.lessons.lab11 import batch, card, decision, figures, launch, pack, reach, shapes, sketch, tasks, tenant
from course.lessons.lab11.batch import ALONE, BUCKETS, EDGES, MIXES, ONE_LONG, PACKED, RECTANGLE, SPREAD
from course.lessons.lab11.on_device import Bench, offsets
from tests.helpers.figures import valid


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("spread", [0.0, 0.25, 1.0, 2.0, 5.0])
def test_the_tokens_of_a_batch_do_not_depend_on_its_spread(mix, spread):
    for mean, seed in itertools.product((16, 256, 1_024), range(3)):
        found = batch.lengths(mix, spread, mean, seed)
        assert len(found) == 32 and sum(found) == 32 * mean and min(found) >= 1


def test_one_long_prompt_has_the_spread_that_it_is_asked_for():
    for spread in (0.5, 1.0, 2.0):
        found = np.array(batch.lengths(ONE_LONG, spread))
        assert found.std() / found.mean() == pytest.approx(spread, rel=0.01)  # lengths are whole tokens
        assert len(set(found.tolist())) <= 3 and (found > found.mean()).sum() == 1


def test_the_spread_of_many_lengths_is_that_of_their_lognormal():
    logs = np.concatenate([np.log(batch.lengths(SPREAD, 1.0, 4_096, seed)) for seed in range(200)])
    within = np.sqrt(np.mean([np.log(batch.lengths(SPREAD, 1.0, 4_096, seed)).var(ddof=1) for seed in range(200)]))
    assert within == pytest.approx(np.sqrt(np.log(2)), rel=0.02)  # 6,400 draws: 1% of sampling error
    assert len(logs) == 6_400


def test_lengths_of_an_unknown_mix_and_a_bad_spread_are_refused():
    with pytest.raises(ValueError, match="mix is one of many lengths, one long, not 'none'"):
        batch.lengths("none")
    with pytest.raises(ValueError, match="spread must be"):
        batch.lengths(SPREAD, -1.0)
    with pytest.raises(ValueError, match="layout is one of"):
        batch.launches([1, 2], "square")


def test_edges_by_hand():
    assert batch.halved(1_000, 4) == [125, 250, 500, 1_000]
    assert batch.halved(9, 3) == [3, 5, 9]
    assert batch.equal_steps(1_000, 4) == [250, 500, 750, 1_000]
    assert batch.halved(700, 1) == batch.equal_steps(700, 1) == [700]


def test_buckets_by_hand():
    assert batch.padded([3, 10, 4, 6], [5, 10]) == [[5, 5], [10, 10]]
    assert batch.padded([6, 7], [5, 10]) == [[10, 10]]
    with pytest.raises(ValueError, match="a prompt of 11 tokens is longer than the largest bucket, of 10"):
        batch.padded([11], [5, 10])


@pytest.mark.parametrize("edges", EDGES)
def test_buckets_never_compute_fewer_tokens_than_ragged_nor_more_than_the_rectangle(edges):
    draw = random.Random(11)
    for _ in range(100):
        prompts = [draw.randint(1, 3_000) for _ in range(draw.randint(1, 40))]
        found = [batch.tokens(batch.padded(prompts, EDGES[edges](max(prompts), k))) for k in (1, 2, 4, 8)]
        assert found[0] == len(prompts) * max(prompts)
        assert all(sum(prompts) <= one <= found[0] for one in found)


def test_pairs_are_counted_one_by_one():
    groups = [[3, 5], [1]]
    assert batch.pairs(groups) == sum(1 for group in groups for n in group for i in range(n) for _ in range(i + 1))


def test_pairs_of_a_rectangle_follow_the_formula_of_the_lab():
    for seed in range(5):
        prompts = np.array(batch.lengths(SPREAD, 1.0, 1_024, seed))
        ratio, cv = prompts.max() / prompts.mean(), prompts.std() / prompts.mean()
        counted = batch.pairs(batch.launches(prompts.tolist(), RECTANGLE)) / batch.pairs([prompts.tolist()])
        assert counted == pytest.approx(ratio**2 / (1 + cv**2), rel=0.01)  # n (n + 1) for n squared


def test_flops_and_bytes_of_a_step():
    """6.98 billion weights of the layers, twice; four numbers a pair, width and head."""
    found = shapes.one_batch()
    assert found.packed.flops == pytest.approx(2 * 6.98e9 * 8_192 + 4 * 4_096 * 32 * found.packed.pairs, rel=1e-3)
    assert found.rectangle.kv_bytes / found.packed.kv_bytes == found.rectangle.tokens / 8_192
    assert found.in_buckets.weight_bytes == len(found.in_buckets.groups) * found.packed.weight_bytes


# What a card took


def test_every_setting_of_the_sliders_was_recorded_and_costs_at_least_the_packed_batch():
    for kind, mix, spread in itertools.product(card.KINDS, MIXES, batch.SPREADS):
        found = card.on_the_card(kind, mix, spread)
        assert found.times[PACKED] > 0
        assert all(found.ratio(layout) > 0.95 for layout in found.times)  # 5% of noise where nothing is padded
    for mix, spread, mean in itertools.product(MIXES, batch.SPREADS, batch.MEANS):
        assert len(card.recording().at(card.PROMPTS, mix, spread, mean).times) == 4
    with pytest.raises(ValueError, match="was not recorded"):
        card.on_the_card(card.STEP, SPREAD, 0.7)


@pytest.mark.parametrize("kind", card.KINDS)
def test_the_surprise_holds_in_every_draw_that_was_recorded(kind):
    found = card.recording().draws(kind)
    assert len(found) == (3 if kind == card.STEP else 5)
    for one in found:
        padded, tokens, pairs = one.ratio(RECTANGLE), one.tokens(RECTANGLE), one.pairs(RECTANGLE)
        if kind == card.STEP:
            assert padded == pytest.approx(tokens, rel=0.02)
            assert 1.3 < one.ratio(BUCKETS) < 1.5 and 1.2 < one.ratio(ALONE) < 1.4
        elif kind == card.PROMPTS:
            assert tokens < padded < pairs
        elif kind == card.DECODES:
            assert 1.5 < padded < tokens
        else:
            assert padded < 1.5 < 3 < one.ratio(BUCKETS)


def test_one_launch_each_loses_least_where_prompts_are_long():
    found = {mean: card.recording().at(card.PROMPTS, ONE_LONG, 2.0, mean).ratio(ALONE) for mean in batch.MEANS}
    assert sorted(found.values(), reverse=True) == list(found.values()) and found[1_024] < 1.15


# Exercises, decision, ticket


def test_the_best_two_edges_by_trying_all():
    draw = random.Random(2)
    for _ in range(60):
        lengths, step = [draw.randint(1, 60) for _ in range(draw.randint(2, 9))], draw.choice([1, 4, 16])
        small, longest = pack.two_edges(lengths, step)
        assert small % step == longest % step == 0 and longest - step < max(lengths) <= longest
        tokens = {edge: batch.tokens(batch.padded(lengths, [edge, longest])) for edge in range(step, 61, step)}
        assert tokens[small] == min(tokens.values()) == pack.fewest(lengths, step)
        assert small == min(edge for edge in tokens if tokens[edge] == tokens[small])


def test_offsets_are_sums_of_all_rows_before():
    draw = random.Random(4)
    for _ in range(60):
        decodes, prompts = draw.randint(0, 3), [draw.choice([0, 2, 7]) for _ in range(draw.randint(0, 5))]
        rows = [1] * decodes + prompts
        assert pack.pack(decodes, prompts) == [sum(rows[:i]) for i in range(len(rows) + 1)] == offsets(rows)
        assert pack.pack_last(decodes, prompts) == [sum(rows[: i + 1]) - 1 if n else -1 for i, n in enumerate(rows)]


@pytest.mark.parametrize(("seed", "around"), list(itertools.product(range(5), (95, 100, 105))))
def test_the_decision_holds_with_other_draws_and_around_its_load(seed, around):
    speeds = {size: decision.speed_with(size, seed, around) for size in (96, 112, 120, 128, 136, 160)}
    top = max(speeds.values())
    assert speeds[120] > 0.98 * top and speeds[120] > 1.25 * decision.speed_now(seed, around)
    assert speeds[96] < 0.95 * top and speeds[160] < 0.96 * top


def test_a_list_of_sizes_is_what_is_new_in_it():
    right = {"flag": decision.FLAG, "value": 112}
    for typed in ([*decision.SIZES, 112], "1 2 4 8 16 32 64 112 256", "[1, 2, 4, 8, 16, 32, 64, 112, 256]"):
        assert decision.one_size({decision.FLAG: typed}) == right, typed
    for wrong, said in (
        ([112, 256], "lacks 1, 2, 4"),
        (decision.SIZES, "not 0"),
        ([*decision.SIZES, 96, 112], "not 2"),
    ):
        with pytest.raises(ValueError, match=said):
            decision.one_size({decision.FLAG: list(wrong)})
    assert decision.one_size({"--enforce-eager": False})["flag"] == "--no-enforce-eager"


@pytest.mark.parametrize("typed", [112, 120.0, "120", [120], "[120]", 256])
def test_one_size_alone_replaces_the_whole_list(tmp_path, typed):
    """That is what vLLM's flag does; the size in the list of all is right."""
    check = Lab("11", Progress(tmp_path), show=False).check
    said = check("decide", {decision.FLAG: typed}).lines[0]
    size = str(typed).strip("[]").removesuffix(".0")
    assert f"With it: the list is {size} alone" in said and "have no graph" in said
    assert "the list is" not in check("decide", {decision.FLAG: [*decision.SIZES, 120]}).lines[0]


def test_a_batch_runs_in_the_next_graph():
    assert decision.padded_to(64, decision.SIZES) == 64 and decision.padded_to(65, decision.SIZES) == 256
    with pytest.raises(ValueError, match="no graph holds 300 sequences"):
        decision.padded_to(300, decision.SIZES)
    one = decision.step_seconds(64, 64)
    assert one == pytest.approx(decision.STEP.decode_line(64)[0] + decision.STEP.decode_line(64)[1] * 64_000)
    assert decision.log().count("-") >= 8 and sum(decision.running()) > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_ticket_holds_with_other_draws(seed):
    before, now = tenant.hour(seed=seed), tenant.hour(tenant.SHARE, seed=seed)
    assert 0.45 < now.speed / before.speed < 0.6
    assert tenant.hour(tenant.SHARE, 64, seed=seed).speed < now.speed
    assert tenant.hour(tenant.SHARE / 2, seed=seed).speed < 0.7 * before.speed
    four, packed = (tenant.hour(tenant.SHARE, buckets=k, seed=seed) for k in (4, 0))
    assert packed.computed == packed.tokens and packed.speed > four.speed > 1.5 * before.speed


# Explorers


def test_explorers_draw_at_every_corner():
    for mix, spread, buckets, edges in itertools.product(MIXES, (0.0, 1.0, 2.0), (1, 4, 12), EDGES):
        found = shapes.one_batch(mix, spread, buckets, edges)
        valid(figures.three_shapes(found))
        assert len(shapes.rows(found)) == 6
        drawn = [trace for trace in figures.three_shapes(found).data if trace.name != "padding"]
        assert [sum(trace.x) for trace in drawn] == [8_192] * 3
    for kind, mix, spread in itertools.product(card.KINDS, MIXES, (0.0, 2.0)):
        found = card.on_the_card(kind, mix, spread)
        valid(figures.on_the_card(found))
        assert len(card.rows(found)) == 5
    valid(figures.by_hand())
    valid(figures.ticket())


def test_each_move_launches_at_least_five_times_and_shows_both():
    found = launch.explorer(discover.device("numpy"), max_seconds=0.0)
    shown = found.simulate(mix=ONE_LONG, spread=1.0, mean=128)
    assert set(shown.here.times) == {RECTANGLE, BUCKETS, PACKED} and shown.here.shorter == 8
    assert all(value > 0 for value in shown.here.times.values()) and not shown.warnings
    valid(found.figure(shown))
    assert [len(row) for row in found.summary(shown)] == [5] * 5
    assert "measured" not in found.text()


def test_a_device_that_fails_leaves_the_recording(monkeypatch):
    def none():
        raise MemoryError

    monkeypatch.setattr("course.lessons.lab11.on_device.gpu.device", none)
    *_, here = Bench(None, 0.0).measuring(SPREAD, 1.0, 128)
    assert here.times == {} and "Nothing is measured here" in here.warnings[0]


def test_the_sketch_is_the_rectangle_of_the_explorer():
    for spread, value in sketch.ratios():
        found = shapes.one_batch(SPREAD, spread)
        assert value == found.rectangle.tokens / 8_192
    assert tasks.least_that_saves_half() == 0.75


# Deeper


def test_what_a_launch_costs_drops_out_of_the_speed_of_a_further_mib():
    found = reach.recording()
    sizes, speeds = zip(*found.marginal(), strict=True)
    assert len(sizes) == len(found.again) - 1
    seconds = found.seconds(1) + sum(
        (b - a) * reach.MIB / speed for (a, b), speed in zip(itertools.pairwise(found.again), speeds, strict=True)
    )
    assert seconds == pytest.approx(found.seconds(max(found.again)), rel=1e-9)
    assert min(speeds) < 0.5 * max(speeds) and speeds[-1] == pytest.approx(4.68e12, rel=0.02)
    valid(reach.second_cache())


def test_scattered_pieces_are_read_as_fast_as_those_in_order():
    found = reach.recording()
    assert len(found.apart()) == 25 and all(0.98 < one < 1.02 for one in found.apart())  # 2%: launches vary by 1%
    assert "GiB" in repr(reach.scattered())
