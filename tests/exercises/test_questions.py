"""Beliefs and the recap that answers them; feedback of a quiz; questions from earlier labs; a ticket; objectives."""

from __future__ import annotations

from dataclasses import replace

import pytest

from course.exercises import Lab, Objective, Prediction, Question, Ticket
from course.exercises.progress import Progress
from tests.helpers.toy_lab import TOY

OPTIONS = (
    ("It falls.", "bursts-average-out", "Calm stretches pay nothing back."),
    ("It stays.", "rate-is-all", "The rate is a mean."),
    ("It rises.", "", "You saw the slots."),
)
TELLING = Prediction("p99", "What happens to p99?", OPTIONS, "c", "Bursts fill the slots.")
EARLIER = Question("law", "Which law?", (("L = W", "No rate."), ("L = rate x W", "For any run.")), "b", lab="03")
CAUSE = Question("cause", "What is it?", (("a long step", "The gaps say so."), ("a full cache", "No preemption.")), "a")
REPAIR = Question("repair", "What now?", (("more slots", "They were free."), ("a budget", "It bounds the step.")), "b")
TICKET = Ticket("Users say that the text stops.", (CAUSE, REPAIR), "chunking was off")
SPEC = replace(
    TOY,
    predictions=(TELLING, TOY.predictions[1]),
    earlier=(EARLIER,),
    ticket=TICKET,
    objectives=(Objective("compute L from a rate and a time", "read-l", "little", "08:batch"),),
    needs="lab 97, or two weeks with a vLLM server.",
)


@pytest.fixture
def lab(tmp_path) -> Lab:
    return Lab(SPEC, Progress(tmp_path), show=False)


def parts(root, kind):
    found = [root] if type(root).__name__ == kind else []
    for child in getattr(root, "children", ()):
        found += parts(child, kind)
    return found


def shown(form):
    """Build the widgets, as a display does, and return their root."""
    form._repr_mimebundle_()
    return form.root


def boxes(root):
    return [box for box in parts(root, "VBox") if "course-question" in box._dom_classes]


def html(root) -> str:
    return "\n".join(part.value for part in parts(root, "HTML"))


def test_the_ticket_is_named_as_what_comes_next_until_its_questions_are_answered(lab):
    lab.predict("p99", "c"), lab.predict(TOY.predictions[1].id, "a")
    for exercise in TOY.exercises:
        lab.check(exercise.id, exercise.solution)
    lab.quiz(**{question.id: question.options[0] for question in SPEC.quiz})
    lab.ticket(cause="a", repair="a")
    assert lab.where().lines[-1] == 'Next: the ticket of "Break it".'
    lab.ticket(repair="b")
    assert lab.where().lines[-1] == "Everything in this lab is done."


# Predictions


def test_the_recap_answers_the_option_that_was_chosen(lab):
    lab.predict("p99", "a")
    text = lab.recap("p99").text()
    assert "Calm stretches pay nothing back." in text and "Bursts fill the slots." in text
    assert "The rate is a mean." not in text and "bursts-average-out" not in text


def test_a_change_of_mind_gets_both_answers_and_the_right_option_its_own(lab):
    lab.predict("p99", "b"), lab.predict("p99", "c"), lab.predict("p99", "b")
    text = lab.recap("p99").text()
    assert text.index("The rate is a mean.") < text.index("You saw the slots.")
    assert text.count("The rate is a mean.") == 1


def test_without_a_prediction_no_option_is_answered(lab):
    assert "Calm" not in lab.recap("p99").text()


def test_the_form_shows_options_alone(lab):
    text = repr(lab.predict("p99")) + html(shown(lab.predict("p99")))
    assert "Calm" not in text and "bursts-average-out" not in text
    assert TELLING.options == ("It falls.", "It stays.", "It rises.")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((("a", "x"), "b"), "as .text, belief, answer."),
        ((("a", "x", 3), "b"), "as .text, belief, answer."),
        ((("a", "x", "No."), ("b", "", "Hm."), "c"), "every option but the right one needs a belief"),
        ((("a", "", "No."), ("b", "y", "Hm."), ("c", "z", "Yes.")), "every option but the right one"),
    ],
)
def test_beliefs_of_a_wrong_shape_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        Prediction("p", "?", options, "b" if len(options) == 2 else "c", "why")


# The quiz


def test_feedback_stands_in_the_box_of_its_question_with_a_mark_and_a_colour(lab):
    root = shown(lab.quiz())
    first, second = boxes(root)
    parts(first, "RadioButtons")[0].index = 1
    assert 'class="course-said course-wrong"' in html(first) and "✗" in html(first) and "Not quite." in html(first)
    assert "course-said" not in html(second)
    parts(first, "RadioButtons")[0].index = 0
    assert 'class="course-said course-right"' in html(first) and "✓" in html(first) and "✗" not in html(first)
    assert "1 of 1 right so far." in html(root)


def test_a_quiz_shown_again_has_the_feedback_to_what_was_stored(lab):
    lab.quiz(q1="b")
    root = shown(Lab(SPEC, Progress(lab.progress.path.parent), show=False).quiz())
    first, second = boxes(root)
    assert parts(first, "RadioButtons")[0].index == 1 and "Not quite. That is about chips." in html(first)
    assert "course-said" not in html(second) and "0 of 1 right so far." in html(root)


# Earlier labs, and the ticket


def test_questions_from_earlier_labs_are_asked_and_counted_apart(lab):
    assert lab.earlier(law="b").text().splitlines()[0] == "Quiz: 1 of 1 right."
    assert repr(lab.earlier()).splitlines()[0] == "1. Which law?"
    lab.predict("p99", "a")
    assert "0 of 2 quiz questions" in repr(lab), "they are not part of the lab's own quiz"
    assert "has no questions from earlier labs" in Lab(TOY, lab.progress, show=False).earlier().text()


def test_a_ticket_opens_one_question_after_the_other(lab):
    root = shown(lab.ticket())
    first, second = boxes(root)
    assert "text stops" in html(root) and second.layout.display == "none"
    parts(first, "RadioButtons")[0].index = 1
    assert second.layout.display == "none", "a wrong answer opens nothing"
    parts(first, "RadioButtons")[0].index = 0
    assert second.layout.display == "flex" and "chunking was off" not in html(root)
    parts(second, "RadioButtons")[0].index = 1
    assert "What it was: chunking was off" in html(root)


def test_two_misses_open_the_next_question_too(lab):
    root = shown(lab.ticket())
    first, second = boxes(root)
    radio = parts(first, "RadioButtons")[0]
    radio.index = 1
    radio.index = None
    radio.index = 1
    assert second.layout.display == "flex"


def test_a_ticket_goes_on_after_a_restart_and_as_text_it_hides_the_setting(lab):
    lab.ticket(cause="a")
    again = Lab(SPEC, Progress(lab.progress.path.parent), show=False)
    first, second = boxes(shown(again.ticket()))
    assert "course-right" in html(first) and second.layout.display == "flex"
    assert "chunking was off" not in repr(again.ticket()) and "2. What now?" in repr(again.ticket())
    assert "has no ticket" in Lab(TOY, lab.progress, show=False).ticket().text()
    assert "Its questions are: cause, repair." in lab.ticket(nothing="a").text()


# What a lab says first, and what an author may not write


def test_the_first_card_says_needs_and_objectives(lab):
    assert lab.where().text().splitlines()[:4] == [
        "Lab 98: A toy. About 40 minutes.",
        "  Before you start: lab 97, or two weeks with a vLLM server.",
        "  After this lab you can",
        "  - compute L from a rate and a time",
    ]


def test_minutes_are_said_only_where_there_are_any(tmp_path):
    bare = replace(TOY, minutes=None)
    assert repr(Lab(bare, Progress(tmp_path), show=False)).splitlines()[0] == "Lab 98: A toy."


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"earlier": (replace(EARLIER, lab=""),)}, "which earlier lab"),
        ({"earlier": (replace(EARLIER, lab="98"),)}, "which earlier lab"),
        ({"earlier": (replace(EARLIER, id="q1"),)}, "two quiz are called 'q1'"),
        ({"ticket": replace(TICKET, questions=(replace(CAUSE, id="law"),))}, "two quiz are called 'law'"),
    ],
)
def test_labs_of_a_wrong_shape_are_refused(parts, says):
    with pytest.raises(ValueError, match=says):
        replace(SPEC, **parts)


def test_objectives_and_tickets_of_a_wrong_shape_are_refused():
    with pytest.raises(ValueError, match="write a lab and a question"):
        Objective("compute L", "t", "e", "batch")
    with pytest.raises(ValueError, match="needs a story"):
        replace(TICKET, setting="")
