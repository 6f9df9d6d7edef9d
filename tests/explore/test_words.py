"""The live view without a browser: what it computes when asked, its text, its tasks, and bad input."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from course import lm
from course.explore.tasks import DONE, SHOWN, Find, Memory, Read, Way
from course.explore.words import Spoken, WordsExplorer, policy_of, words_on_the_screen
from course.explore.words_view import AT_ONCE, WordsView, packed
from course.policies.registry import POLICIES

FEW = ["Count from 3 to 9.", "Spell owl.", "What is 17 plus 25?", "Good evening."]


class Browser:
    """What the page does: it asks for frames, and keeps what it hears."""

    def __init__(self, view: WordsView) -> None:
        self.view, self.heard = view, []
        view.stage.send = self.heard.append  # type: ignore[method-assign]
        self.frames: list[dict[str, Any]] = []

    def ask(self, **other: Any) -> None:
        count = len(self.heard)
        self.view._asked(None, {"run": self.view.stage.load["run"], "has": len(self.frames)} | other, [])
        for answer in self.heard[count:]:
            self.frames[answer["has"] :] = answer["frames"]

    def to_the_end(self) -> None:
        while not (self.heard and self.heard[-1]["done"]):
            self.ask()


@pytest.fixture
def explorer() -> WordsExplorer:
    return words_on_the_screen(FEW, max_num_seqs=2)


def opened(explorer: WordsExplorer) -> Browser:
    explorer._repr_mimebundle_()
    return Browser(explorer.view)


def test_the_browser_gets_every_step_and_the_words_of_serve_live(explorer):
    page = opened(explorer)
    load = page.view.stage.load
    assert load["asked"] == FEW and load["slots"] == 2 and load["padded"] and load["policy"] == "static"
    page.to_the_end()
    words = [""] * len(FEW)
    for frame in page.frames:
        for _, row, _, _, text, _ in frame["parts"]:
            words[row] += text or ""
    asked = lm.Questions(FEW, load["arrival"])
    assert tuple(words) == lm.serve_live(asked, policy_of("static", 2), lm.load(), waits=False).words
    assert page.view.result is not None and not page.view.result.counted
    assert page.frames == [packed(frame) for frame in page.view.result.watch.frames]
    assert explorer.rows(page.view.result)[1][1].endswith("tokens/s")


def test_it_computes_when_asked_and_leaves_no_thread(explorer):
    before = threading.enumerate()
    page = opened(explorer)
    frames = page.view._spoken.watch.frames
    assert len(frames) == 0
    page.ask()
    assert 0 < len(page.frames) <= len(frames)
    many = len(frames)
    explorer._repr_mimebundle_()  # shown again: the first display goes on where it is
    assert len(frames) == many and threading.enumerate() == before
    page.to_the_end()
    assert explorer.view.result is None and explorer.view is not page.view


def test_a_page_that_was_loaded_again_gets_all_frames(explorer):
    page = opened(explorer)
    page.to_the_end()
    other = Browser(page.view)
    other.to_the_end()
    assert other.frames == page.frames and len(other.heard) == -(-len(page.frames) // AT_ONCE)


@pytest.mark.parametrize(
    "other", [{"run": 99}, {"run": None}, {"has": -1}, {"has": 10**6}, {"has": "1"}, {"has": True}]
)
def test_a_message_that_is_stale_or_odd_computes_nothing(explorer, other):
    page = opened(explorer)
    page.ask(**other)
    page.view._asked(None, "what", [])
    assert page.heard == [] and len(page.view._spoken.watch.frames) == 0


def test_a_slider_that_moves_while_words_appear_begins_another_run(explorer):
    page = opened(explorer)
    page.ask()
    first = page.view.stage.load["run"]
    page.view.controls["policy"].value = "continuous"
    assert page.view.stage.load["run"] > first and not page.view.stage.load["padded"]
    page.ask(run=first)
    assert page.heard[-1]["run"] == first and len(page.heard) == 1
    page.frames = []
    page.heard.clear()  # a fast machine had answered all before the slider moved
    page.to_the_end()
    assert page.view.result.padding == 0


def test_what_changed_is_said_once_both_runs_are_complete(explorer):
    page = opened(explorer)
    page.to_the_end()
    assert page.view.changed.value == ""
    page.view.controls["policy"].value = "continuous"
    page.frames = []
    page.heard.clear()
    page.to_the_end()
    assert "Policy: static → continuous. Largest change: " in page.view.changed.value


def test_its_text_is_counted_in_steps_and_the_same_each_time():
    one, other = words_on_the_screen(FEW), words_on_the_screen(FEW)
    other.set(policy="continuous")
    assert one.text() == other.text() == one._repr_mimebundle_()["text/plain"]
    lines = one.text().splitlines()
    assert lines[0] == "Words on the screen [modelled: counted in steps of 10 ms]"
    assert any(line.endswith("Spell owl. → o-w-l.") for line in lines)
    assert "ms" not in "".join(lines[1:]) and "tokens/s" not in one.text()


@pytest.mark.parametrize("name", POLICIES)
def test_every_registered_policy_speaks(name):
    explorer = words_on_the_screen(FEW[:2], choices=("static", name) if name != "static" else ("static", "dynamic"))
    result = explorer.compute(policy=name)
    assert result.run.words == lm.serve_live(lm.Questions.at_once(FEW[:2]), policy_of("static", 2), lm.load()).words


def test_its_numbers_are_those_of_the_run():
    result: Spoken = words_on_the_screen(FEW, max_num_seqs=2).compute()
    prompts, answers = result.run.workload.prompt_tokens.sum(), result.run.workload.output_tokens.sum()
    # The first token of an answer comes with its prompt; each of the others computes the one before it.
    assert result.computed - result.padding == prompts + answers - len(FEW)


class TestTasks:
    """The four of the default view."""

    usual = words_on_the_screen()

    def test_nothing_is_done_at_the_start_and_each_where_it_is_shown(self):
        tasks = self.usual.tasks
        start = self.usual.default_result()
        assert not any(task.reached(self.usual.defaults, start) for task in tasks if isinstance(task, Find))
        for task in tasks:
            settings, result = self.usual.shown(task)
            way = Way((task,), Memory(), lambda _task, at=(settings, result): at)
            if isinstance(task, Find):
                way.rested(settings, result)
            elif isinstance(task, Read):
                way.typed(f"{task.value(settings, result):.3g}", settings, result)
            else:
                way.chosen(task.position)
            assert way.states == {task.id: DONE}, way.said
            assert task.claim is None or task.claim(settings, result)

    def test_one_sweep_completes_one_task_at_most(self):
        for control in self.usual.controls:
            done = set()
            for stop in control.stops:
                settings = self.usual.defaults | {control.name: stop}
                result = self.usual.compute(**settings)
                done |= {t.id for t in self.usual.tasks if isinstance(t, Find) and t.reached(settings, result)}
            assert len(done) <= 1, control.name

    def test_by_show_me_the_answer_has_the_measured_numbers(self):
        explorer = words_on_the_screen(record=Memory())
        explorer._repr_mimebundle_()
        view = explorer.view
        for task in explorer.tasks:
            view.tasks.way.misses = 2
            view.tasks.show.click()
            assert view.tasks.way.states[task.id] == SHOWN
            assert task.said(*explorer.shown(task)) == view.tasks.way.said
            assert view.result is not None and not view.result.counted
            view.tasks.next.click()


def test_zero_requests_are_a_sentence():
    explorer = words_on_the_screen([])
    sentence = "There is no prompt, so there is nothing to answer."
    assert explorer.text().endswith(sentence)
    page = opened(explorer)
    assert sentence in page.view.notice.value and page.view.stage.load == {"run": 0} and page.view.tasks is None
    page.ask()
    assert page.heard == []
    with pytest.raises(ValueError, match="no prompt"):
        explorer.set(rate=32)


def test_a_prompt_that_cannot_be_answered_is_a_sentence():
    explorer = words_on_the_screen(["Spell owl.", " "])
    assert "The prompt is empty" in opened(explorer).view.notice.value


def test_a_run_that_breaks_off_is_a_sentence_and_the_next_one_works(explorer, monkeypatch):
    page = opened(explorer)
    with monkeypatch.context() as broken:
        broken.setattr(lm.Watch, "advance", lambda *_: (_ for _ in ()).throw(lm.LMError("No memory is left.")))
        page.ask()
    assert "No memory is left." in page.view.notice.value and page.view.stage.load == {"run": 0}
    page.view.reset.click()
    assert page.view.notice.value == ""
    page.to_the_end()
    assert page.view.error is None and page.view.result is not None


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"choices": ("static", "magic")}, "no policy is registered as 'magic': choose from"),
        ({"policy": "window"}, "not an option"),
        ({"rate": 3000}, "outside"),
        ({"prompts": ["Hi."] * 65}, "65 prompts"),
    ],
)
def test_refusals(how, sentence):
    with pytest.raises(ValueError, match=sentence):
        words_on_the_screen(**{"prompts": FEW} | how)


class TestCompare:
    """A table of the policies under the lanes, from what was measured at these settings."""

    @staticmethod
    def rows(settings, runs):
        return [
            ("", "static", "continuous"),
            ("steps", *(f"{len(r.run.steps)}" for r in runs.values()), *["-"] * (2 - len(runs))),
        ]

    def view(self, compare=None):
        policies = ("static", "continuous")
        return words_on_the_screen(FEW, max_num_seqs=2, choices=policies, compare=compare or self.rows)

    def test_it_fills_as_policies_are_played_and_begins_anew_at_other_settings(self):
        page = opened(self.view())
        assert page.view.compared.value.count("<td") == 2 and page.view.compared.value.count(">-<") == 2
        page.to_the_end()
        assert page.view.compared.value.count(">-<") == 1
        page.view.explorer.set(policy="continuous")
        assert page.view.compared.value.count(">-<") == 0
        page.view.explorer.set(rate=2)
        assert page.view.compared.value.count(">-<") == 1  # of the policy just measured

    def test_its_text_has_all_policies_counted(self):
        text = self.view().text()
        counted = [len(self.view().compute(policy=name).run.steps) for name in ("static", "continuous")]
        assert f"steps      {counted[0]}          {counted[1]}" in text

    def test_a_table_that_fails_is_a_sentence(self):
        def broken(settings, runs):
            raise lm.LMError("The tokenizer is not there.")

        shown = self.view(broken)
        shown._repr_mimebundle_()
        assert "The tokenizer is not there." in shown.view.notice.value
        assert shown.text().endswith("The tokenizer is not there.")

    def test_without_one_there_is_no_table(self, explorer):
        page = opened(explorer)
        page.to_the_end()
        assert page.view.compared.value == "" and explorer.compared(explorer.defaults) == ()
