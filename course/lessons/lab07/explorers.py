"""The explorers of lab 07, each one line in the notebook."""

from course.exercises import TaskRecord
from course.explore import Choice, Explorer, Slider
from course.lessons.lab07 import figures, live_words, long_prompt, tasks
from course.lessons.lab07.chunk_explorer import chunk_explorer
from course.lessons.lab07.long_prompt import PROMPT, STEP, WHOLE

__all__ = ["launched_in_chunks", "one_long_prompt", "what_a_percentile_hides", "words_that_stop"]

BUDGET = Slider("max_num_batched_tokens", "Token budget", 128, WHOLE, 2, WHOLE, "tokens", log=True)
CAPS = [("none", 0), ("1,024 tokens", 1_024), ("512 tokens", 512), ("256 tokens", 256)]
CAP = Choice("long_prefill_token_threshold", "Cap for one prompt", CAPS, 0)


def one_long_prompt() -> Explorer:
    """One long prompt among streaming chats, step by step."""
    return Explorer(
        long_prompt.moment,
        controls=[
            BUDGET,
            CAP,
            Slider("prompt", "Long prompt", 4_096, PROMPT, 2, PROMPT, "tokens", log=True),
            Slider("streaming", "Chats that stream", 4, 32, 4, 12),
        ],
        figure=figures.moment,
        summary=long_prompt.moment_rows,
        title="One long prompt",
        badge=STEP.badge,
        tasks=tasks.MOMENT,
        record=TaskRecord("07"),
    )


def what_a_percentile_hides() -> Explorer:
    """The gaps between tokens, counted by tokens and by chats."""
    return Explorer(
        long_prompt.hidden,
        controls=[
            BUDGET,
            CAP,
            Slider("every", "A long prompt every", 2, 60, 1, 20, "s"),
            Slider("limit_ms", "A stall is a gap above", 10, 1_000, 10, 100, "ms"),
        ],
        figure=figures.hidden,
        summary=long_prompt.hidden_rows,
        title="Gaps by tokens and by chats",
        badge=STEP.badge,
        tasks=tasks.HIDDEN,
        record=TaskRecord("07"),
    )


def launched_in_chunks() -> Explorer:
    """One long prompt in chunks, launched on the device at hand beside the recording."""
    return chunk_explorer()


def words_that_stop() -> Explorer:
    """The small language model tells stories on the machine at hand while a long prompt is computed."""
    return live_words.explorer()
