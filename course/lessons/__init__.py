"""One folder a lab: its scenarios, figures, exercises and quiz. A lesson never imports another lesson.

`labNN/exercises.py` defines `LAB`, what `course.exercises.load` finds. What two lessons need stands in `course.figures`
or `course.workload`.
"""
