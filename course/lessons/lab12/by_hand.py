"""Four kernels by hand: what a launch takes, what a kernel takes, and when the last one ends."""

from course.lessons.lab12.on_device import GRAPH, LAUNCHES
from course.lessons.lab12.one_step import OneStep

KERNELS, LAUNCH, KERNEL, BETWEEN = 4, 6.0, 2.0, 0.5
"""Kernels; microseconds of a call, of a kernel, and between two of a graph."""


def launched() -> OneStep:
    """Each kernel begins when its call returns, or when the one before has ended."""
    calls, kernels, ended = [], [], 0.0
    for number in range(KERNELS):
        calls.append((number * LAUNCH, LAUNCH))
        begin = max((number + 1) * LAUNCH, ended)
        kernels.append((begin, KERNEL))
        ended = begin + KERNEL
    return OneStep(LAUNCHES, 0, tuple(calls), tuple(kernels), ended)


def graph() -> OneStep:
    """One call; the card goes from kernel to kernel."""
    kernels = tuple((LAUNCH + number * (KERNEL + BETWEEN), KERNEL) for number in range(KERNELS))
    return OneStep(GRAPH, 0, ((0.0, LAUNCH),), kernels, sum(kernels[-1]))
