"""What can go wrong between a kernel's source and its result, told in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

FAILURES = ("CUDARuntimeError", "CUDADriverError", "HIPRuntimeError", "HIPDriverError")
"""By their names, since where CuPy keeps these classes has changed more than once."""


class KernelError(RuntimeError):
    """A kernel that does not compile or breaks off, or a device that cannot be used; the message is a sentence."""


FAILS = (KernelError, MemoryError)
"""What a launch may raise. CuPy's OutOfMemoryError is a MemoryError."""


def not_measured(error: BaseException) -> str:
    """The sentence of an explorer that could not launch, after one of FAILS."""
    message = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, MemoryError):
        message = "there is not enough memory free" + (f" ({message})" if message else "")
    return f"Nothing is measured here: {message}."


@contextmanager
def while_it_answers(name: str) -> Iterator[None]:
    """A context that raises what a GPU reports as KernelError: the GPU was lost, or an earlier kernel broke it.

    name: of the GPU. After such a failure the device cannot be used again in this process.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in FAILURES:
            raise
        why = " ".join(str(error).split())
        raise KernelError(
            f"{name} stopped in the middle ({why}): restart the kernel or the program to use it again; the recorded "
            "step times need no GPU"
        ) from None
