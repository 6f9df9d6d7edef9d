"""Exercises, predictions and quizzes: what a lab asks, how an answer is judged, and where progress is kept.

A lab's own questions live in `labNN.py` as `LAB = LabSpec(...)`; a notebook only names them by their ids:

    lab = Lab("03")
    lab.predict("p99")
    lab.check("little", answer)
    lab.recap("p99")
    lab.quiz()
"""

from course.exercises.lab import Lab, available, load
from course.exercises.spec import Exercise, LabSpec, Mistake, Prediction, Question

__all__ = ["Exercise", "Lab", "LabSpec", "Mistake", "Prediction", "Question", "available", "load"]
