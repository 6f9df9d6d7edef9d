"""Live words beside a recorded card: the same requests and words here and there, and measured is never mixed up."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

import numpy as np
import pytest

from course import lm
from course.explore import Explorer, words
from course.explore.words_beside import longest_gap, on_card
from course.lessons import lab03, lab04, lab07, lab08
from course.lessons.lab03 import live_words as words03
from course.lessons.lab04 import live_words as words04
from course.lessons.lab04.side_by_side import NAMES
from course.lessons.lab07 import live_words as words07
from course.lessons.lab08 import live_words as words08
from tests.helpers.figures import valid

MADE = {
    "03": (lab03.law_on_live_words, words03.play, words03.PROMPTS),
    "04": (lab04.three_policies_speak, words04.play, words04.PROMPTS),
    "07": (lab07.words_that_stop, words07.play, words07.PROMPTS),
    "08": (lab08.words_again, words08.play, words08.STORIES),
}
STEP = words08.STEP
MOVES: dict[str, list[dict[str, Any]]] = {
    "03": [{}, {"rate": 128, "max_num_seqs": 1}],
    "04": [{"policy": name, "max_num_seqs": slots} for name in NAMES for slots in (1, 4, 8)],
    "07": [{"max_num_batched_tokens": budget} for budget in words07.BUDGET.stops],
    "08": [{"num_blocks": blocks} for blocks in words08.POOL.stops],
}
EACH = [(lab, move) for lab, moves in MOVES.items() for move in moves]


@cache
def shown(lab: str) -> Explorer:
    return MADE[lab][0]()


def run_at(lab: str, **move: Any) -> lm.SpokenRun:
    found = shown(lab).compute(**move)
    return found.here if lab == "03" else found.run


def card_at(lab: str, **move: Any) -> Any:
    _, play, prompts = MADE[lab]
    return on_card(prompts, play(**shown(lab).defaults | move), STEP)


def by_label(rows: Any) -> dict[str, list[str]]:
    return {label: cells for label, *cells in rows}


def table_of(view: Any) -> str:
    return (view.compared if hasattr(view, "compared") else view.table).value


@pytest.mark.parametrize(("lab", "move"), EACH)
def test_the_words_are_right_and_the_card_serves_the_same_requests(lab: str, move: dict[str, Any]) -> None:
    run, card = run_at(lab, **move), card_at(lab, **move)
    assert run.words == tuple(prompt.answer for prompt in MADE[lab][2]) and set(run.ended) == {"stop"}
    assert run.workload.prompt_tokens.tolist() == card.workload.prompt_tokens.tolist()
    assert run.workload.output_tokens.tolist() == card.workload.output_tokens.tolist()
    assert run.arrival.tolist() == card.arrival.tolist()
    if lab in ("07", "08"):
        rows = by_label(shown(lab).rows(shown(lab).compute(**move)))
        assert rows[""] == ["counted in steps", f"simulated: {'H200' if lab == '07' else 'H100'}"]
        assert rows["answers that changed"] == [f"0 of {len(run)}", "-"]


@pytest.mark.parametrize("lab", MADE)
def test_its_text_is_the_same_each_time_and_measures_nothing(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words._model()
    monkeypatch.setattr(lm, "serve_live", lambda *_: pytest.fail("the model was asked"))
    text = MADE[lab][0]().text()
    assert text == shown(lab).text() and "measured" not in text and "simulated" in text
    assert ("counted in steps" in text) == (lab != "03")


@pytest.mark.parametrize("lab", MADE)
def test_played_it_measures_and_leaves_no_thread(lab: str) -> None:
    before, move, fresh = threading.enumerate(), MOVES[lab][1], MADE[lab][0]()
    for _ in range(2):  # the cell may run again
        fresh._repr_mimebundle_()
        fresh.set(**move)
        assert "measured here" in table_of(fresh.view) and "counted in steps" not in table_of(fresh.view)
    assert threading.enumerate() == before


@pytest.mark.parametrize("lab", MADE)
def test_damaged_weights_leave_the_recording_and_a_sentence(lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise lm.LMError("The weights model.safetensors are damaged.")

    monkeypatch.setattr(words, "_model", broken)
    fresh = MADE[lab][0]()
    assert ("are damaged" in fresh.text()) == (lab != "03")  # its text needs no model
    fresh._repr_mimebundle_()
    for _ in range(2):
        assert "are damaged" in fresh.view.notice.value and "simulated: " in table_of(fresh.view)
        control = fresh.controls[-1 if lab != "04" else 1]
        fresh.view.controls[control.name].value = control.stops[-2]
    if lab == "03":
        found = fresh.default_result()
        assert found.warnings == ("Nothing is measured here: The weights model.safetensors are damaged.",)
        assert list(found.runs) == ["simulated"] and {len(row) for row in fresh.rows(found)} == {2}
        valid(fresh.drawn(found))


@pytest.mark.parametrize("lab", ["07", "08"])
def test_before_it_is_played_the_recording_is_there_alone(lab: str) -> None:
    rows = by_label(MADE[lab][0]().compared(shown(lab).defaults))
    assert rows.pop("")[0] == "measured here"
    (slider, *_), *others = rows.values()
    assert slider != "-" and [here for here, _ in others] == ["-"] * len(others)


class TestLittlesLaw:
    """Lab 03, which serves at each move."""

    @pytest.mark.parametrize("rate", words03.CONTROLS[0].stops)
    @pytest.mark.parametrize("slots", words03.CONTROLS[1].stops)
    def test_it_holds_on_recorded_steps_at_every_setting(self, rate: float, slots: int) -> None:
        run = card_at("03", rate=rate, max_num_seqs=slots)
        law, stays = run.little(), run.response - run.arrival
        assert law.arrival_rate * law.W == pytest.approx(law.L, rel=1e-9)
        assert stays.sum() / (run.response.max() - run.arrival.min()) == pytest.approx(law.L)  # by hand
        valid(words03.shown_figures.numbers_in_system({"simulated": run}))

    def test_more_are_in_the_system_where_the_rate_is_higher_or_the_slots_are_fewer(self) -> None:
        rates = [card_at("03", rate=rate).little().L for rate in (16, 64, 128)]
        assert rates == sorted(rates) and rates[1] < card_at("03", max_num_seqs=1).little().L

    @pytest.mark.parametrize("move", MOVES["03"])
    def test_it_holds_by_the_clock_of_this_machine(self, move: dict[str, Any]) -> None:
        found = shown("03").compute(**move)
        run, rows = found.here, by_label(shown("03").rows(found))
        assert rows[""] == [f"simulated: {STEP.card}", "measured here"]
        assert rows["λ W"] == rows["L, counted over time"]
        assert rows["W, mean E2E"][1] == f"{1e3 * run.e2e.mean():.6g} ms"
        assert rows["the last answer"] == ["-", run.words[int(run.response.argmax())]]
        assert float(np.diff(run.arrival).mean()) == pytest.approx(1 / move.get("rate", 64), rel=0.3)  # 59 gaps, CV 1
        valid(shown("03").drawn(found))

    def test_a_setting_is_served_once(self) -> None:
        first = run_at("03", max_num_seqs=8)
        assert run_at("03", max_num_seqs=8) is first is not run_at("03")

    def test_two_threads_do_not_serve_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """JupyterLab handles widgets in a thread beside that of the cells."""
        inside, most, serve_live = [0], [0], lm.serve_live

        def counted(*given: Any) -> lm.SpokenRun:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            try:
                return serve_live(*given)
            finally:
                inside[0] -= 1

        words._model()
        monkeypatch.setattr(lm, "serve_live", counted)
        fresh = lab03.law_on_live_words()
        moves = [{"rate": 128, "max_num_seqs": slots} for slots in (2, 4)]
        threads = [threading.Thread(target=fresh.compute, kwargs=move) for move in moves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert most == [1] and not any(thread.is_alive() for thread in threads)


class TestThreePolicies:
    """Lab 04, whose table has a column for each policy."""

    def test_other_words_are_noticed(self) -> None:
        fresh = lab04.three_policies_speak()
        runs = {name: fresh.compute(policy=name) for name in NAMES}
        assert fresh._compare(fresh.defaults, runs)[-1][1:4] == ("12 answers", "the same words", "the same words")
        runs["continuous"].run.words = ("Nothing.", *runs["continuous"].run.words[1:])
        assert fresh._compare(fresh.defaults, runs)[-1][1:4] == ("12 answers", "the same words", "other words")

    def test_the_counted_steps_are_those_of_the_recording(self) -> None:
        """A static batch holds the same requests whatever a step takes, and nobody knows a length beforehand."""
        for name in ("static", "dynamic"):
            counted, card = run_at("04", policy=name), card_at("04", policy=name)
            assert len(counted.steps) == len(card.steps)
            assert counted.steps.wasted.sum() == card.steps.wasted.sum() > 0
        assert card_at("04", policy="continuous").steps.wasted.sum() == 0

    def test_what_is_compared_is_what_is_played(self) -> None:
        for move in ({}, {"rate": 16, "max_num_seqs": 8}):
            settings = shown("04").defaults | move
            played, compared = shown("04").begin(settings).watch, words04.play(**settings)
            assert played.load.arrival.tolist() == compared.questions.arrival.tolist()
            assert played.policy.max_num_seqs == compared.policy.max_num_seqs == settings["max_num_seqs"]

    def test_somebody_waits_at_the_start_until_the_last_question_has_a_slot(self) -> None:
        """So that the gain is one of saturation: all have come long before the last is admitted, on any machine."""
        card = card_at("04", policy="continuous")
        assert card.arrival.max() < 0.5 * card.admitted.max()
        gains = [
            card_at("04", policy="static", max_num_seqs=slots).makespan
            / card_at("04", policy="continuous", max_num_seqs=slots).makespan
            for slots in (1, 4)
        ]
        assert gains[0] == pytest.approx(1, rel=0.01) and gains[1] > 1.5

    def test_its_text_has_all_three_counted_in_steps(self) -> None:
        lines = shown("04").text().splitlines()
        (here,) = (line for line in lines if line.startswith("  counted in steps"))
        (card,) = (line for line in lines if line.startswith("  simulated: H100, Llama-3.1-8B"))
        assert here.count(" steps, ") == 3 and card.count("tokens/s") == 3

    def test_a_column_fills_when_its_policy_was_played(self) -> None:
        fresh = lab04.three_policies_speak()
        fresh._repr_mimebundle_()
        head, card, here, engine, padding, said = fresh.compared(fresh.defaults)
        assert head == ("", *NAMES, "gain") and "-" not in card
        assert here == ("measured here", *["-"] * 4) and padding[1:4] == said[1:4] == ("-",) * 3
        makespans = {}
        for done, name in enumerate(NAMES, start=1):
            result = fresh.set(policy=name)
            makespans[name] = result.run.makespan
            _, again, here, vllm, padding, said = fresh.compared(fresh.view.settings)
            assert again == card and vllm == engine  # what is recorded does not hang on this machine
            assert [cell == "-" for cell in here[1:4]] == [place >= done for place in range(3)]
            assert here[done] == f"{result.time(result.run.makespan)}, {result.speed}"
            assert padding[done] == f"{result.padding:,} of {result.computed:,} tokens"
            assert here[done] in fresh.view.compared.value
            assert said[1 : done + 1] == ("12 answers", "the same words", "the same words")[:done]
        assert here[4] == f"{makespans['static'] / makespans['continuous']:.2f}x" and padding[3].startswith("0 of ")
        fresh.set(max_num_seqs=8)
        assert [cell == "-" for cell in fresh.compared(fresh.view.settings)[2][1:]] == [True, True, False, True]


class TestALongPrompt:
    """Lab 07, whose card serves a longer prompt at a larger budget."""

    @pytest.mark.parametrize("budget", words07.BUDGET.stops)
    def test_its_chunks(self, budget: int) -> None:
        found = shown("07").compute(max_num_batched_tokens=budget)
        frames = found.watch.frames
        chunks = sum(any(part.row == words07.ROW and part.prefill for part in frame.parts) for frame in frames)
        prompt = int(found.run.workload.prompt_tokens[-1])
        assert chunks == (1 if budget == words07.WHOLE else pytest.approx(-(-prompt // (budget - 4)), abs=1))
        assert longest_gap(found.run, 4) == pytest.approx(0.01)  # a step counts 10 ms: each talker has a word in each
        moment = words07.long_prompt.moment(128 * budget, 0, streaming=4)
        rows = by_label(shown("07").rows(found))
        assert rows["its chunks"] == [f"{chunks:,}", f"{len(moment.chunk_steps[0]):,}"]
        assert rows["token budget"] == [f"{budget:,}", f"{128 * budget:,}"]
        assert rows["long prompt"] == [f"{prompt:,} tokens", f"{words07.long_prompt.PROMPT:,} tokens"]
        begin, end = moment.longest_gap
        assert rows["longest gap of a story"][1] == words.seconds(end - begin)
        assert rows["TTFT of the long prompt"][1] == words.seconds(moment.run.ttft[moment.long])

    def test_the_stories_go_on_when_the_long_prompt_comes(self) -> None:
        run = run_at("07")
        assert all(run.token_times(row)[0] < words07.ARRIVES < run.token_times(row)[-1] for row in range(4))

    def test_the_recorded_card_stops_as_well(self) -> None:
        whole, parts = (longest_gap(words07.on_the_card(budget), 4) for budget in (words07.WHOLE, 64))
        assert whole > 1 and parts < whole / 2 and words07.chunks(words07.on_the_card(words07.WHOLE)) == 1


@pytest.mark.parametrize("blocks", words08.POOL.stops)
def test_in_a_small_pool_what_is_preempted_is_computed_again(blocks: int) -> None:
    found, card = shown("08").compute(num_blocks=blocks), card_at("08", num_blocks=blocks)
    run, rows = found.run, by_label(shown("08").rows(found))
    assert {(part.row, part.lane) for frame in found.watch.frames for part in frame.parts} == {(n, n) for n in range(4)}
    assert run.steps.blocks.max() <= blocks and card.cache.block_size == words08.BLOCK_SIZE
    assert card.preempted.tolist() == run.preempted.tolist() and len(card.steps) == len(run.steps)
    again = int(run.steps.dropped.sum())
    needed = int(run.workload.prompt_tokens.sum() + (run.workload.output_tokens - 1).sum())
    assert run.steps.decodes.sum() + run.steps.prefill_tokens.sum() == needed + again
    assert (run.preempted.sum() > 0) == (again > 0) == (blocks < words08.POOL.high)
    assert run.preempted[0] == 0  # admitted first: never the one that gives way
    assert rows["blocks in the pool"] == [f"{blocks}"] * 2 and rows["computed again"] == [f"{again:,} tokens"] * 2
    assert rows["preemptions"][0] == rows["preemptions"][1] and rows["preemptions"][0].split()[0] == (
        f"{run.preempted.sum()}"
    )
    assert all((f"#{row}" in rows["preemptions"][0]) == (count > 0) for row, count in enumerate(run.preempted))
