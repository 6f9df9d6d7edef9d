"""What the notebook of lab 09 calls by name: explorers, a board, tables and figures, each one line there."""

from __future__ import annotations

import plotly.graph_objects as go

from course.exercises import GameRecord, tasks_of
from course.explore import Choice, Explorer
from course.explore.board_view import Match
from course.explore.table import Table, table
from course.figures.words import seconds
from course.lessons.lab09 import attention, decision, figures, game, pool, tasks
from course.lessons.lab09.copies import crossovers, watermarks
from course.lessons.lab09.decision import page as page_of_the_evening
from course.lessons.lab09.decision import start_up_log
from course.lessons.lab09.pieces import rivals, telemetry
from course.lessons.lab09.sessions import idle_sessions
from course.lessons.lab09.victims import at_work, frees_most

__all__ = [
    "at_work", "blocks_together_or_scattered", "crossovers", "draws", "idle_sessions", "out_of_blocks",
    "page_of_the_evening", "reserved_or_paged", "rivals", "start_up_log", "telemetry", "three_requests", "ticket_graph",
    "watermarks", "whom_to_send_away",
]  # fmt: skip


def reserved_or_paged() -> Explorer:
    """Four ways to hand out a pool."""
    return Explorer(
        pool.placed,
        controls=[
            Choice("how", "Memory for a request", [*pool.RESERVES, pool.PAGED], tasks.PLACED["how"]),
            Choice("block_size", "Tokens of a block", tasks.SIZES, tasks.PLACED["block_size"]),
        ],
        figure=figures.handed_out,
        summary=pool.placed_rows,
        title="A thousand questions, 40,000 tokens",
        unused={"block_size": ("how", list(pool.RESERVES))},
        badge=pool.STEP.simulated,
        beside=True,
        **tasks_of("09", "reserved_or_paged"),
    )


def whom_to_send_away() -> Match:
    """Four requests and seven blocks, played by hand."""
    return Match(game.VICTIM, GameRecord("09", game.VICTIM.id))


def out_of_blocks() -> Explorer:
    """What can be done when blocks run out."""
    copies = [("computed again", pool.AGAIN), *((f"copied, {b:g} GB/s", b) for b in tasks.BANDWIDTHS[1:])]
    return Explorer(
        pool.out_of_blocks,
        controls=[
            Choice("slots", "Slots (max_num_seqs)", tasks.SLOTS, tasks.OUT["slots"]),
            Choice("watermark", "Watermark", tasks.WATERMARKS, tasks.OUT["watermark"]),
            Choice("victim", "Who gives way", list(pool.VICTIMS), tasks.OUT["victim"]),
            Choice("bandwidth", "What it loses is", copies, tasks.OUT["bandwidth"]),
        ],
        figure=figures.running_out,
        summary=pool.out_rows,
        title="Out of blocks",
        badge=pool.STEP.simulated,
        beside=True,
        **tasks_of("09", "out_of_blocks"),
    )


def blocks_together_or_scattered() -> Explorer:
    """Attention is launched on the machine at hand, beside the same on an H200."""
    return attention.explorer()


def three_requests() -> go.Figure:
    """The case that is done by hand."""
    return figures.by_hand()


def ticket_graph() -> go.Figure:
    """What comes with the ticket."""
    return figures.ticket(frees_most())


def draws() -> Table:
    """The settings of the decision over five draws of a thousand questions: the worst of each."""
    rows: list[tuple[str, ...]] = [("", "longest gap, worst", "output, least")]
    for flag, value in decision.OFFERED:
        gap, speed = decision.worst(flag, value)
        rows.append((f"{flag} {value:g}", seconds(gap), f"{speed:,.0f} tokens/s"))
    return table(rows, f"Five draws of a thousand questions [{pool.STEP.simulated}]")
