"""The tasks of the live view, if a lesson brings none of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from course.explore.tasks import Find, Read, Settings, Task, Why

Spoken = Any  # course.explore.words.Spoken, which stands above

ROW = 7
"""The request whose TTFT is read: one that stands in line for a while."""
LINE = 5
"""In line at once: few enough for fast machines, which clear a line before it is long."""


def _padding(_settings: Settings, result: Spoken) -> dict[str, Any]:
    share = result.padding / result.computed
    return {"padding": result.padding, "computed": result.computed, "share": f"{share:.0%}", "policy": result.policy}


def _one(_settings: Settings, result: Spoken) -> dict[str, Any]:
    ttft = float(result.run.ttft[ROW])
    return {"row": ROW, "wait": result.time(result.wait(ROW)), "ttft": result.time(ttft)}


def _queue(_settings: Settings, result: Spoken) -> dict[str, Any]:
    return {"line": result.longest_line, "ttft": result.time(float(np.mean(result.run.ttft)))}


TASKS: tuple[Task, ...] = (
    Find(
        id="no-padding",
        text="Hatched tokens are padding: computed for nothing. Find a setting with 4 slots or more and no padding.",
        show={"policy": "continuous"},
        reached=lambda settings, result: settings["max_num_seqs"] >= 4 and result.padding == 0,
        facts=_padding,
        miss="{padding} of {computed} tokens are padding here, or there are fewer than 4 slots.",
        answer="None of {computed} tokens is padding under {policy} batching here: "
        "a slot is free once its answer is complete.",
        claim=lambda settings, result: all(not part.padding for frame in result.watch.frames for part in frame.parts),
    ),
    Read(
        id="one-ttft",
        text=f"Choose continuous batching and play to the end. What is the TTFT of request #{ROW}, in ms?",
        show={"policy": "continuous"},
        value=lambda settings, result: 1e3 * float(result.run.ttft[ROW]),
        unit="ms",
        where=lambda settings, result: settings["policy"] == "continuous",
        facts=_one,
        slips=((1e-3, "That is in seconds: the task asks for milliseconds."),),
        answer="Request #{row} waits for {wait}, and its first token comes {ttft} after it arrived.",
        claim=lambda settings, result: result.wait(ROW) <= float(result.run.ttft[ROW]),
    ),
    Find(
        id="a-line",
        text=f"Stay with continuous batching, with one slot. Find a rate where {LINE} requests or more wait at once.",
        show={"policy": "continuous", "rate": 128, "max_num_seqs": 1},
        reached=lambda settings, result: (
            settings["policy"] == "continuous" and settings["max_num_seqs"] == 1 and result.longest_line >= LINE
        ),
        facts=_queue,
        miss="The longest line here has {line}, or there are more slots, or the policy is another one.",
        answer="{line} requests wait in line at once, and the mean TTFT is {ttft}: the time in line is part of it.",
    ),
    Why(
        id="why-padding",
        text="Under static batching with 4 slots many tokens are hatched. Why?",
        show={"policy": "static"},
        facts=_padding,
        options=(
            ("All answers are cut to the length of the shortest one in the batch.",
             "No answer is cut: the words are the same under every policy. Look at which slots are hatched, and when."),
            ("A slot stays occupied until the longest answer of its batch ends.", ""),
            ("Requests arrive too slowly, so slots stay empty for a long time.",
             "An empty slot computes nothing and is white. Hatched slots compute padding."),
        ),
        right="b",
        answer="{padding} of {computed} tokens computed are padding ({share}): prompts are filled up to the longest "
        "one, and a slot whose answer is complete computes on until the longest answer of its batch ends.",
    ),
)  # fmt: skip
