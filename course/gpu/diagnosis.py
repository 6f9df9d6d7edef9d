"""From what compilers, drivers and the CPU shim report to a sentence that says what to look at."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass

LEAST = 3  # characters of a message worth showing


class Report(ctypes.Structure):
    """What cpu_guard.h says about a launch that it ended."""

    _fields_ = (
        *(
            (name, ctypes.c_int32)
            for name in ("kind", "thread", "line", "other", "other_line", "other_state", "region")
        ),
        ("block", ctypes.c_uint32),
        ("at", ctypes.c_int64),
    )


# The numbers of `Kind` and `State` in the shim.
OK, WROTE_OUTSIDE, TOUCHED_OUTSIDE, BAD_INDEX, BARRIER, SHUFFLE = range(6)
STACK_OVERFLOW, BAD_DIVISION, INTERRUPTED, NO_MEMORY, TRAP = range(6, 11)
READY, AT_BARRIER, AT_SHUFFLE, ENDED = range(4)


def compile_error(file: str, source: str, log: str) -> str:
    """A sentence with the first error of a compiler's log and the line of the source that it names.

    Reads the logs of NVRTC and nvcc, `file(12): error: ...`, and of g++, clang and hiprtc, `file:12:3: error: ...`.
    """
    name = re.escape(file)
    pattern = (
        rf"(?:^|[/\\\s]){name}(?:\((\d+)\)|:(\d+)(?::\d+)?):?\s*(?:fatal |catastrophic )?error\s*(?:#\S+)?:\s*(.*)"
    )
    match = re.search(pattern, log, re.MULTILINE)
    if not match:
        lines = [line.strip() for line in log.splitlines() if len(line.strip()) >= LEAST]
        message = next(
            (line for line in lines if "error" in line.lower()), lines[0] if lines else "the compiler said nothing"
        )
        return f"{file} does not compile: {message}"
    number = int(match[1] or match[2])
    lines = source.splitlines()
    quote = f": {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
    return f"{file} does not compile, line {number}: {match[3].strip()}{quote}"


@dataclass(frozen=True)
class Buffer:
    """A buffer that a launch may touch; sizes in bytes."""

    name: str
    size: int
    itemsize: int


def shim_error(kernel: str, report: Report, buffers: Sequence[Buffer]) -> str:
    """A sentence for what the shim caught; the buffers are in the order of its regions."""
    who = f"{kernel}: block {report.block}, thread {report.thread}" if report.thread >= 0 else None
    who = who or f"{kernel}: some thread of block {report.block}"
    if report.kind in (WROTE_OUTSIDE, TOUCHED_OUTSIDE):
        did = "wrote" if report.kind == WROTE_OUTSIDE else "read or wrote"
        return f"{who} {did} outside its memory: {_place(report, buffers)}"
    if report.kind == BAD_INDEX:
        return f"{who} used the index {report.at} in line {report.line}, which is outside the array"
    if report.kind == BARRIER:
        return (
            f"{who} waits at the barrier in line {report.line}, but thread {report.other} {_elsewhere(report)}: "
            "every thread of a block must reach the same __syncthreads()"
        )
    if report.kind == SHUFFLE:
        return (
            f"{who} waits at the shuffle in line {report.line}, but thread {report.other} {_elsewhere(report)}: "
            "every lane of a group of 32 must reach the same shuffle"
        )
    if report.kind == STACK_OVERFLOW:
        return f"{who} has too many local variables for its stack of 112 kB: make local arrays smaller"
    if report.kind == BAD_DIVISION:
        return f"{who} divided an integer by zero"
    if report.kind == TRAP:
        return f"{who} did something undefined, such as a division by zero"
    if report.kind == NO_MEMORY:
        return f"{kernel} was not launched: no memory for the stacks of its threads"
    return f"{who} failed for an unknown reason ({report.kind})"


def _elsewhere(report: Report) -> str:
    if report.other_state == ENDED:
        return "has ended"
    return f"waits at the {'shuffle' if report.other_state == AT_SHUFFLE else 'barrier'} in line {report.other_line}"


def _place(report: Report, buffers: Sequence[Buffer]) -> str:
    if not 0 <= report.region < len(buffers):
        return "far away from every buffer"
    buffer = buffers[report.region]
    unit = "element" if buffer.itemsize > 1 else "byte"
    at, count = report.at // buffer.itemsize, buffer.size // buffer.itemsize
    return f"{unit} {at:,} of {buffer.name}, which has {count:,}"


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or its type."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
