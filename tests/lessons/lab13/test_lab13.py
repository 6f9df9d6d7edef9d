"""Lab 13: its scenarios against formulas, by hand, and in other batches; its explorers at their corners."""

import itertools

import numpy as np
import pytest

from course.engine.serving import serve
from course.engine.speculative import Speculative
from course.exercises import tasks_of
from course.lessons.lab13 import adaptive, decision, figures, pays, spoken, tasks
from course.memory.kvcache import KVCache
from course.policies import Continuous, Drafting
from course.workload import Workload
from tests.helpers.figures import valid


def test_tokens_of_a_step_are_a_sum_of_powers():
    for accept, k in itertools.product((0.0, 0.3, 0.9, 1.0), (1, 4, 7)):
        assert pays.expected(accept, k) == pytest.approx(sum(accept**i for i in range(k + 1)), rel=1e-12)


def test_a_step_by_hand():
    found = pays.pays(pays.HEAD, 4, 0.5, 8)
    assert found.draft == pytest.approx(4 * (0.30e-3 + 8 * 0.6e-6), rel=1e-12)
    assert found.tokens == 1.9375
    assert found.speed_up == pytest.approx(1.9375 * found.plain / (found.draft + found.verification), rel=1e-12)
    assert found.plain < found.verification


@pytest.mark.parametrize("seed", range(5))
def test_what_is_served_gains_what_the_formula_says(seed):
    """Within a fifth: the last drafts of an answer of 100 tokens are beyond its end, and requests end one by one."""
    for requests, k in ((16, 2), (64, 1), (64, 4)):
        found = pays.served(requests, k, "all alike", seed)
        formula = pays.pays(pays.HEAD, k, 0.6, requests).speed_up
        assert found.speed / found.plain_speed == pytest.approx(formula, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_the_answers_of_the_tasks_hold_with_other_draws(seed):
    speeds = [pays.served(tasks.SHARED, k, "all alike", seed).speed for k in range(pays.MOST + 1)]
    assert int(np.argmax(speeds)) == 1 and speeds[4] < speeds[0]
    found = [pays.served(tasks.SHARED, k, "half and half", seed) for k in (2, 3, 4)]
    assert found[0].tpot(1) < found[0].plain_tpot < found[1].tpot(1) < found[2].tpot(1)


def test_explorers_draw_at_every_corner():
    for drafter, k, accept, batch in itertools.product(pays.DRAFTERS, (1, 7), (0.1, 0.9), (1, 256)):
        found = pays.pays(drafter, k, accept, batch)
        valid(figures.pays_off(found))
        assert len(pays.rows(found)) == 5
    for requests, k, mix in itertools.product((1, 128), (0, 7), pays.MIXES):
        figure = figures.shared_steps(pays.served(requests, k, mix))
        valid(figure)
        highest = max(max(trace.y, default=0) for trace in figure.data)
        assert 0.5 < highest / figure.layout.yaxis.range[1] < 1  # the points fill the figure, and none is outside
    for prompt, draft in itertools.product(spoken.PROMPTS, (spoken.DRAFT, spoken.SUFFIX)):
        valid(figures.words(spoken.speak(prompt, draft, 4, 10)))
    valid(figures.ticket())


@pytest.mark.parametrize("draft", [spoken.DRAFT, spoken.SUFFIX])
@pytest.mark.parametrize("k", [1, 4, 8])
def test_the_words_that_are_not_crossed_out_are_the_answer(draft, k):
    for prompt, place in spoken.PROMPTS.items():
        found = spoken.speak(prompt, draft, k, 20)
        said = "".join(text for text, kind in found.pieces if kind != "rejected")
        assert said.strip() == spoken.ALL[place].answer.strip()
        assert sum(kind == "accepted" for _, kind in found.pieces) == found.accepted
        assert found.steps == found.tokens - found.accepted


def test_the_longest_suffix_by_hand():
    seen = spoken.Suffixes()
    seen.read([1, 2, 3, 1, 2, 4, 1, 2, 4], 9)
    assert seen.drafts([9, 1, 2], 2) == [4, 1]
    assert seen.drafts([2, 3], 3) == [1, 2, 4]
    assert seen.drafts([8], 3) == []


# Tuning: what is accepted is best in other batches of the same kind, and what is rejected costs tokens/s


@pytest.mark.parametrize(("requests", "seed"), list(itertools.product((112, 128, 144), (0, 1))))
def test_the_decision_holds_around_its_load(requests, seed):
    speeds = {k: pays.served(requests, k, "all alike", seed).speed for k in (0, 1, 2, 4, 7)}
    assert max(speeds, key=speeds.get) == decision.best() == 1
    assert speeds[4] < speeds[0] < 0.9 * speeds[1]


@pytest.mark.parametrize("batch", [230, 256])
def test_at_the_ticket_four_drafts_lose_and_one_does_not(batch):
    for accept in (0.55, 0.6, 0.65):
        assert pays.pays(pays.HEAD, 4, accept, batch).speed_up < 0.9
        assert pays.pays(pays.HEAD, 1, accept, batch).speed_up > 1.05


@pytest.mark.parametrize("requests", [1, 8, 64, 128])
def test_the_learners_function_as_a_policy_is_within_three_percent_of_the_best_fixed_number(requests):
    load = Workload(np.zeros(requests), np.full(requests, 1_000), np.full(requests, 200))
    limits, pool = (1_024, max(8_192, 1_000 * requests)), KVCache(30_000, 16)

    def speed(policy):
        executor = Speculative(pays.STEP, pays.head, 0.6, verify=pays.VERIFY.seconds)
        return 1 / serve(load, policy, executor, pool).makespan

    best = max(speed(Drafting(Continuous(*limits), k)) for k in range(5))
    assert speed(adaptive.AdaptiveK(Continuous(*limits), 0.6)) > 0.97 * best


def test_the_page_has_the_counters_of_the_run():
    run = decision.busy().run.step_time
    lines = dict(line.rsplit(" ", 1) for line in decision.page().splitlines()[1:])
    assert int(lines["vllm:spec_decode_num_draft_tokens_total"]) == 4 * int(lines["vllm:spec_decode_num_drafts_total"])
    assert int(lines["vllm:spec_decode_num_accepted_tokens_total"]) == run.accepted
    assert tasks.tokens_a_step({}, pays.served(16, 0)) == 1.0


@pytest.mark.parametrize("typed", [1.25, 0.31])
def test_a_reading_that_is_plausible_and_wrong_has_a_hint(typed):
    """As a learner types them, with two digits: the accepted drafts alone, and their share."""
    asked = next(one for one in tasks_of("13", "shared_steps")["tasks"] if one.id == "tokens")
    right = asked.value({}, pays.served(16, 4))
    assert any(typed == pytest.approx(right * factor, rel=asked.rtol) for factor, _ in asked.slips)
    assert typed != pytest.approx(right, rel=asked.rtol)
