"""The explorers of lab 02, each one line in a notebook."""

from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.lessons.lab02 import figures, one_curve, one_step, tasks
from course.lessons.lab02.launch import launch_explorer

__all__ = ["a_curve_and_its_knee", "a_step_on_the_roofline", "launched_here"]

PROMPTS = [("none", 0), ("128 tokens", 128), ("512 tokens", 512), ("2,048 tokens", 2_048)]


def a_step_on_the_roofline() -> Explorer:
    """What one step reads and multiplies, and how long it took."""
    return Explorer(
        one_step.one_step,
        controls=[
            Slider("decodes", "Decodes", 1, 256, 2, 1, unit="sequences", log=True),
            Slider("context", "Context of each", 256, 2_048, 2, one_step.CONTEXT, unit="tokens", log=True),
            Choice("prompt", "Prompt in the step", PROMPTS, 0),
        ],
        figure=figures.on_the_roofline,
        summary=one_step.rows,
        title="A step on the roofline",
        badge=f"{one_step.STEP.badge}, beside theory",
        tasks=tasks.STEP_TASKS,
        record=TaskRecord("02"),
        beside=False,
    )


def a_curve_and_its_knee() -> Explorer:
    """A curve through recorded steps, its knee, and the cost of a token."""
    contexts = [(f"{context:,} tokens", context) for context in one_curve.CONTEXTS]
    return Explorer(
        one_curve.one_curve,
        controls=[
            Choice("context", "Context of each", contexts, one_curve.CONTEXT),
            Slider("most", "Largest batch measured", 8, one_curve.MOST, 2, one_curve.MOST, "sequences", log=True),
            Slider("batch", "Batch", 1, one_curve.LARGEST, 2, 1, "sequences", log=True),
            Slider("price", "Price", 1.0, 6.0, 0.5, one_curve.PRICE, "dollars an hour"),
        ],
        figure=figures.fitted,
        summary=one_curve.rows,
        title="A curve and its knee",
        badge=f"{one_step.STEP.badge}, with a fitted curve",
        tasks=tasks.CURVE_TASKS,
        record=TaskRecord("02"),
        beside=False,
    )


def launched_here() -> Explorer:
    """Read probe, matrix product and attention on the machine at hand, beside the recording."""
    return launch_explorer()
