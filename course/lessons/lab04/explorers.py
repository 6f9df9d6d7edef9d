"""The explorers of lab 04, each one line in a notebook."""

from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.figures.timelines import timelines
from course.lessons.lab04 import figures, live_words, other_loads, tasks, three_batchers
from course.lessons.lab04.three_batchers import FOLLOWED, STEP

__all__ = ["at_saturation", "chat_under_load", "image_service", "one_trace", "three_policies_speak", "trace_under_load"]


def one_trace() -> Explorer:
    """The same dozen requests under each policy, slot by slot."""
    return Explorer(
        three_batchers.one_trace,
        controls=[
            Slider("output_cv", "Spread of answers (CV)", 0.0, 2.0, 0.1, 1.0),
            Slider("max_queue_delay", "Delay of dynamic", 0.0, 1.0, 0.05, 0.1, unit="s"),
        ],
        figure=lambda runs: timelines(runs, follow=FOLLOWED, height=300),
        summary=three_batchers.trace_rows,
        title="One trace, three policies",
        badge=STEP.badge,
        tasks=tasks.TRACE,
        record=TaskRecord("04"),
        beside=False,
    )


def at_saturation() -> Explorer:
    """What continuous batching gains where somebody always waits."""
    sweep = three_batchers.gain_sweep()  # the lines, once
    return Explorer(
        three_batchers.saturated,
        controls=[
            Slider("output_cv", "Spread of answers (CV)", 0.0, 2.0, 0.1, 1.0),
            Slider("max_num_seqs", "Slots", 4, 128, 2, 32, log=True),
        ],
        figure=lambda result: figures.gain(sweep, result.recorded, height=300),
        summary=three_batchers.saturated_rows,
        title="Gain at saturation",
        badge=STEP.badge,
        tasks=tasks.SATURATION,
        record=TaskRecord("04"),
    )


def three_policies_speak() -> Explorer:
    """The small language model answers the same questions under each policy, measured beside the recording."""
    return live_words.view()


def chat_under_load() -> Explorer:
    """The chat below saturation and at it."""
    return _under_load("chat", STEP.badge)


def trace_under_load() -> Explorer:
    """The same for an Azure-style trace."""
    return _under_load("trace", "theory: roofline of an H100")


def _under_load(load: str, badge: str) -> Explorer:
    other_loads.compute_lines(load)  # the lines behind the dots, once

    def simulate(rate: float, max_queue_delay: float, metric: tuple[str, int]) -> dict:
        return other_loads.under_load(load, rate, max_queue_delay, metric)

    metrics = {
        "p50 of the whole answer": ("e2e", 50),
        "p95 of the whole answer": ("e2e", 95),
        "p99 of the whole answer": ("e2e", 99),
        "p95 of the first token": ("ttft", 95),
    }
    return Explorer(
        simulate,
        controls=[
            Slider("rate", "Arrival rate", 0.5, 20.0, 0.5, 6.0, unit="requests/s"),
            Slider("max_queue_delay", "Delay of dynamic", 0.1, 10.0, 10, 0.1, unit="s", log=True),
            Choice("metric", "Latency", metrics, ("e2e", 95)),
        ],
        figure=lambda result: figures.against_load(result["curves"], result["points"], *result["metric"]),
        summary=other_loads.load_rows,
        title=f"The {load} under load, 32 slots",
        badge=badge,
    )


def image_service() -> Explorer:
    """An image classifier behind a dynamic batcher, where every request is one step."""
    return Explorer(
        other_loads.image_service,
        controls=[
            Slider("rate", "Arrival rate", 100, 2_600, 100, 1_000, unit="images/s"),
            Slider("delay_ms", "max_queue_delay", 1, 50, 1, 10, unit="ms"),
        ],
        figure=lambda runs: figures.shares(runs, dict(zip(runs, ("continuous", "dynamic"), strict=True))),
        summary=other_loads.image_rows,
        title="Images: 2 ms a step + 0.25 ms an image, at most 16",
        beside=False,
    )
