"""What a notebook shows: predictions, checks, recaps, the quiz, and where the learner left off."""

from __future__ import annotations

import json

import pytest

from course.base import answers
from course.exercises import Lab
from course.exercises.progress import Progress
from tests.helpers.toy_lab import TOY

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(TOY, Progress(tmp_path), show=False)


def again(lab: Lab) -> Lab:
    """The same lab after a restart of the kernel."""
    return Lab(TOY, Progress(lab.progress.path.parent), show=False)


def test_the_first_line_says_what_this_is(lab):
    assert repr(lab).splitlines()[0] == "Lab 98: A toy. About 40 minutes."
    assert "Nothing is stored" in repr(lab)


def test_progress_is_found_again_after_a_restart(lab):
    lab.check("little", 3)
    lab.check("little", 12)
    lab.predict("p99", "b")
    text = repr(again(lab))
    assert "1 of 2 predictions, 1 of 3 exercises, 0 of 2 quiz questions" in text
    assert "Next: prediction mean (And to the mean?)." in text
    again(lab).predict("mean", "a")
    assert "Next: exercise area (A function)." in repr(again(lab))


def test_everything_done_is_said(lab):
    for prediction in TOY.predictions:
        lab.predict(prediction.id, "a")
    for exercise in TOY.exercises:
        lab.check(exercise.id, exercise.solution)
    lab.quiz(q1="a", q2="b")
    assert "Everything in this lab is done." in repr(lab)


def test_check_says_the_status_first(lab):
    assert lab.check("little", None).text() == "Exercise 1 of 3, Little's law: not attempted yet."
    assert lab.check("little").status == "not attempted yet"
    assert lab.check("little", 12).text() == "Exercise 1 of 3, Little's law: right."
    wrong = lab.check("little", 12_000)
    assert wrong.text().splitlines() == [
        "Exercise 1 of 3, Little's law: not right yet.",
        "  Milliseconds and seconds are mixed.",
    ]


def test_right_once_stays_done(lab):
    lab.check("little", 12)
    lab.check("little", 3)
    lab.check("little", None)
    assert "1 of 3 exercises" in repr(again(lab))


def test_tries_are_counted_and_blanks_are_not(lab):
    for answer in (None, 1, 2, ..., 12, 12):
        lab.check("little", answer)
    entry = lab.progress.lab("98")["exercises"]["little"]
    assert (entry["tries"], entry["done"]) == (3, True)


@pytest.mark.parametrize("call", ["check", "predict", "recap"])
def test_an_unknown_id_names_the_valid_ones(lab, call):
    text = getattr(lab, call)("nothing").text()
    assert "'nothing'" in text and ("little, area, policy" in text or "p99, mean" in text)
    assert "no question 'q9'" in lab.quiz(q9="a").text()
    assert getattr(lab, call)(None).text()


def test_a_prediction_is_kept_and_a_change_of_mind_added(lab):
    assert "Stored: b." in lab.predict("p99", "B)").text()
    assert "Your first prediction, b, is kept as well." in lab.predict("p99", choice="It rises.").text()
    text = again(lab).recap("p99").text()
    assert "You predicted: b) It stays." in text
    assert "Later you changed to: c) It rises." in text
    assert "The lab showed: c) It rises." in text and "Bursts fill the slots." in text


def test_the_same_choice_twice_is_stored_once(lab):
    lab.predict("p99", "b"), lab.predict("p99", "b")
    assert len(lab.progress.lab("98")["predictions"]["p99"]) == 1


def test_a_right_prediction_is_acknowledged(lab):
    lab.predict("p99", "c")
    assert "The lab showed as well: c) It rises." in lab.recap("p99").text()


def test_recap_before_a_prediction_says_how_to_make_one_and_nothing_else(lab, monkeypatch):
    card = lab.recap("p99")
    assert card.text().splitlines()[1:] == ["  No prediction yet: make one above."]
    assert "Bursts" not in repr(card._repr_mimebundle_())
    monkeypatch.setenv(answers.VARIABLE, "1")  # in solutions/
    assert "The lab showed: c) It rises." in lab.recap("p99")._repr_mimebundle_()["text/plain"]


def test_a_copy_keeps_what_was_predicted_and_not_what_is_true(lab):
    """A widget shows the rest, and Jupyter saves no widgets' state unless it is told to."""
    lab.predict("p99", "b")
    card = lab.recap("p99")
    bundle = card._repr_mimebundle_()
    assert set(bundle) == {"text/plain", WIDGET_VIEW}
    assert "You predicted: b) It stays." in bundle["text/plain"]
    assert "c)" not in repr(bundle) and "Bursts" not in repr(bundle) and "The lab showed: c)" in card.text()
    for answer in (3, 3, 3):
        lab.check("little", answer)
    solution, score = lab.solution("little"), lab.quiz(**{TOY.quiz[0].id: "a"})
    for told in (solution, score):
        kept = told._repr_mimebundle_()["text/plain"]
        assert told.text() != kept and not any(line.strip() in kept for line in told.lines)


@pytest.mark.parametrize("choice", ["z", "", "bb", 7, -1, True, 1.5, object()])
def test_no_option_is_refused_and_nothing_stored(lab, choice):
    assert "not an option: choose one of a, b, c" in lab.predict("p99", choice).text()
    assert lab.progress.lab("98")["predictions"] == {}


def test_predict_shows_the_question_and_never_the_answer(lab):
    bundle = lab.predict("p99")._repr_mimebundle_()
    assert bundle["text/plain"].splitlines() == [
        "Prediction: What happens to p99?",
        "  a) It falls.",
        "  b) It stays.",
        "  c) It rises.",
    ]
    assert "model_id" in bundle[WIDGET_VIEW] and "Bursts" not in repr(bundle)


def widgets_of(root, kind):
    found = [root] if type(root).__name__ == kind else []
    for child in getattr(root, "children", ()):
        found += widgets_of(child, kind)
    return found


def test_the_commit_button_stores(lab):
    form = lab.predict("p99")
    form._repr_mimebundle_()
    (radio,), (button,) = widgets_of(form.root, "RadioButtons"), widgets_of(form.root, "Button")
    assert radio.index is None and button.disabled
    radio.index = 1
    assert not button.disabled
    button.click()
    assert "Stored: b." in widgets_of(form.root, "HTML")[-1].value
    assert "You predicted: b) It stays." in again(lab).recap("p99").text()
    second = again(lab).predict("p99")
    second._repr_mimebundle_()
    assert widgets_of(second.root, "RadioButtons")[0].index == 1


def test_each_display_of_a_form_is_fresh(lab):
    form = lab.predict("p99")
    first, second = (form._repr_mimebundle_()[WIDGET_VIEW]["model_id"] for _ in range(2))
    assert first != second


def test_quiz_explains_the_chosen_option_and_keeps_the_score(lab):
    form = lab.quiz()
    text = form._repr_mimebundle_()["text/plain"]
    assert "1. Which law?\n  a) Little's\n  b) Moore's" in text and "chips" not in text
    radios, said = widgets_of(form.root, "RadioButtons"), widgets_of(form.root, "HTML")
    radios[0].index = 1
    assert any("Not quite. That is about chips." in html.value for html in said)
    assert "0 of 1 right so far." in said[-1].value
    radios[0].index = 0
    assert any("Right. It holds for any run." in html.value for html in said)
    assert "1 of 1 right so far." in said[-1].value
    assert "1 of 2 quiz questions" in repr(again(lab))


def test_quiz_without_widgets(lab):
    card = lab.quiz(q1="a", q2="a")
    assert card.text().splitlines() == [
        "Quiz: 1 of 2 right.",
        "  q1: Right. It holds for any run.",
        "  q2: Not quite. Convert first.",
    ]
    assert "not an option" in lab.quiz(q1="x").text()


def test_answers_survive_options_that_move(lab):
    lab.predict("p99", "a")
    stored = json.loads(lab.progress.path.read_text())
    assert stored["labs"]["98"]["predictions"]["p99"][0]["answer"] == "It falls."


@pytest.mark.parametrize(
    "odd", [None, 3, "text", [], {}, [3], [{"answer": 3}], [{"answer": "not an option any more"}], {"done": 1}]
)
def test_entries_of_another_shape_count_as_nothing(lab, odd):
    for part, name in (("predictions", "p99"), ("exercises", "little"), ("quiz", "q1")):
        lab.progress.change("98", part, name, lambda _old: odd)
    assert "Lab 98" in repr(lab)
    assert "No prediction yet: make one above." in lab.recap("p99").text()
    assert lab.check("little", 12).status == "right"
    assert "Stored: c." in lab.predict("p99", "c").text()
    assert "1 of 1 right so far." in lab.quiz(q1="a").text()


def test_a_read_only_folder_is_said_once_and_the_lab_goes_on(tmp_path):
    (tmp_path / "file").touch()
    lab = Lab(TOY, Progress(tmp_path / "file"), show=False)
    assert "until the kernel stops" in lab.check("little", 3).text()
    assert "until the kernel stops" not in lab.check("little", 12).text()
    assert "1 of 3 exercises" in repr(lab)


def test_a_corrupt_file_is_said_at_the_start(tmp_path):
    (tmp_path / "progress.json").write_text("{")
    assert "progress.corrupt-1.json" in repr(Lab(TOY, Progress(tmp_path), show=False))


def test_cards_have_html_with_the_same_words_and_nothing_unescaped(lab):
    bundle = lab.check("little", "<b>12</b>")._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<b>12</b>" in bundle["text/plain"] and "&lt;b&gt;12&lt;/b&gt;" in bundle["text/html"]
    assert "not right yet" in bundle["text/html"]


def test_nothing_shouts(lab):
    lab.predict("p99", "a")
    shown = [lab.check("little", a).text() for a in (None, 12, 3, "x")] + [lab.recap("p99").text(), repr(lab.quiz())]
    assert not any("!" in text for text in shown)
