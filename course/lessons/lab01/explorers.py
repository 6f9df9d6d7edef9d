"""The explorers of lab 01, each one line in a notebook."""

from course.exercises import TaskRecord
from course.explore import Explorer, Slider
from course.explore.words import WordsExplorer, words_on_the_screen
from course.lessons.lab01 import chat, figures, tasks
from course.lessons.lab01.part_by_part import launch_explorer

__all__ = ["one_question", "where_the_time_goes", "words_and_waits"]


def words_and_waits() -> WordsExplorer:
    """The language model answers twelve people, and each of them waits for a first word."""
    return words_on_the_screen(
        policy="continuous",
        rate=32,
        max_num_seqs=4,
        choices=("continuous", "static"),
        tasks=tasks.WORDS,
        record=TaskRecord("01"),
    )


def where_the_time_goes() -> Explorer:
    """TTFT of the chat in parts: the mean, the p50 and the p99."""
    return Explorer(
        chat.chat,
        controls=[
            Slider("rate", "Arrival rate", 2, 16, 1, chat.RATE, unit="requests/s"),
            Slider("window_ms", "Window", 0, 200, 5, chat.WINDOW_MS, unit="ms"),
            Slider("prompt", "Prompt", 128, 2_048, 2, chat.PROMPT, unit="tokens", log=True),
            Slider("outside_ms", "Outside", 0, 200, 5, chat.OUTSIDE_MS, unit="ms"),
        ],
        figure=figures.where_it_goes,
        summary=chat.rows,
        title="Where the time before the first token goes",
        badge=chat.STEP.badge,
        tasks=tasks.GOES,
        record=TaskRecord("01"),
        beside=False,
    )


def one_question() -> Explorer:
    """One question, part by part, on the machine at hand beside the recording."""
    return launch_explorer()
