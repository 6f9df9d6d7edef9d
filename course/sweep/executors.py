"""Who runs the runs: this process, one process a core, a Dask cluster, Ray. Each has `submit` as in concurrent.futures.

Dask and Ray are extras, `pip install -e ".[dask]"`, and imported when asked for.
"""

import multiprocessing
import os
import pickle
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from course.base.settings import quote, reason, whole

CONNECT_SECONDS = 4.0
"""To wait for a port, and again for the scheduler: whoever mistyped an address reads a sentence within ten seconds."""
DASK, RAY = "Dask scheduler", "Ray cluster"
SCHEDULERS = {
    DASK: ("tcp|tls", "tcp://10.0.0.5:8786", "dask scheduler"),
    RAY: ("ray", "ray://10.0.0.5:10001", "ray start --head"),
}
"""Schemes of an address, an example, and what starts one."""
STRANGER = "something else listens there"
SETTINGS_FRAME = b"\x04"  # what HTTP/2, and so Ray's gRPC, begins with: the fourth byte is the kind of the frame
MOST_GREETING = 2**20
"""Bytes that a scheduler may say of itself; the first eight say how many."""


class OneProcess:
    """Runs each task when it is submitted, in this process."""

    def submit(self, task: Callable[..., Any], *args: Any) -> "Future[Any]":
        """A future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(task(*args))
        except Exception as error:
            future.set_exception(error)
        return future


class OwnPool(ProcessPoolExecutor):
    """That of `process_pool`, which ends it and what it has to do: cancelled first, that is an error in its thread."""


class _FromPool:
    def __init__(self, pool: Any):
        self._pool = pool

    def submit(self, task: Callable[..., Any], *args: Any) -> "Future[Any]":
        """A future of what the pool makes of it."""
        future: Future[Any] = Future()
        self._pool.apply_async(task, args, callback=future.set_result, error_callback=future.set_exception)
        return future


def from_pool(pool: Any) -> Any:
    """An executor over a pool with `apply_async`, such as multiprocessing.Pool or ray.util.multiprocessing.Pool."""
    if not callable(getattr(pool, "apply_async", None)):
        raise ValueError(f"a pool must have apply_async, as multiprocessing.Pool has; {quote(pool)} has not")
    return _FromPool(pool)


@contextmanager
def process_pool(processes: int | None = None) -> Iterator[Executor]:
    """Processes of this machine, one a core by default. They end with the block, and with this process.

    Each is begun anew: a script that uses it must stand under `if __name__ == "__main__":`. Raises ValueError for less
    than one process.
    """
    number = cores() if processes is None else whole("processes", processes, high=1024)
    # Never a fork of this process: a notebook's kernel has threads, whose locks a copy would hold for ever.
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(["course.sweep.row", "course.engine.serving"])  # once, not once a process
        _start_server()
    before = set(multiprocessing.active_children())
    pool = OwnPool(number, context, initializer=_begin)
    try:
        yield pool
        pool.shutdown()
    except BaseException:  # Ctrl-C: nobody waits for runs that nobody wants
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise


def _start_server() -> None:
    """Start what processes are forked from, without Ctrl-C: a new one would answer it before `_begin` has run."""
    from multiprocessing import forkserver

    mine = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if mine else None
    try:
        forkserver.ensure_running()
    finally:
        if mine:
            signal.signal(signal.SIGINT, before)


def _begin() -> None:
    """In a new process: leave Ctrl-C to the one that asks, and end when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def crosses(design: Any) -> bool:
    """Whether another process of this machine can import a design: not what a notebook's cell or a lambda defines."""
    try:
        pickle.dumps(design)
    except Exception:
        return False
    inner = getattr(design, "func", design)  # of a partial
    return getattr(inner, "__module__", None) != "__main__" or hasattr(sys.modules["__main__"], "__file__")


@contextmanager
def on_dask(address: str) -> Iterator[Any]:
    """The workers of a Dask scheduler, such as "tcp://10.0.0.5:8786". Each needs the course, and the files of the runs.

    Raises ValueError for what is no such address, ConnectionError with a sentence if no scheduler answers there, or if
    it has no workers, ImportError without Dask.
    """
    if find_spec("distributed") is not None:  # a wrong address is told before the second that the import takes
        begun = _greeting(DASK, address)
        if address.startswith("tcp:") and (len(begun) < 8 or int.from_bytes(begun[:8], "little") > MOST_GREETING):
            raise _nobody(DASK, address, STRANGER)
    distributed = extra("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise _nobody(DASK, address, reason(error)) from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise ConnectionError(
                f"the Dask scheduler at {address} has no workers: start some with `dask worker {address} --nthreads 1`"
            )
        yield client.get_executor(pure=False)


def _greeting(kind: str, address: str) -> bytes:
    """The first bytes that a scheduler says. ValueError for no address of this kind, ConnectionError if nobody listens.

    Dask itself takes what any other server says for the size of a message, asks for exbibytes of memory, and does not
    end for half a minute; Ray tries for three quarters of one.
    """
    schemes, example, _ = SCHEDULERS[kind]
    match = re.fullmatch(rf"({schemes})://(\[[^]]+\]|[^:/]+):(\d{{1,5}})", address)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise ValueError(f"the address of a {kind} is such as {example}, not {quote(address)}")
    try:
        with socket.create_connection((match[2].strip("[]"), int(match[3])), timeout=CONNECT_SECONDS) as connection:
            return b"" if match[1] == "tls" else connection.recv(16)
    except OSError as error:
        raise _nobody(kind, address, reason(error)) from None


def _nobody(kind: str, address: str | None, why: str) -> ConnectionError:
    begin = SCHEDULERS[kind][2]
    return ConnectionError(
        f"no {kind} answers at {address} ({why}). Start one with `{begin}`, and give the address that it prints"
    )


@contextmanager
def on_ray(address: str | None = None) -> Iterator[Any]:
    """The workers of a Ray cluster; of one that is started on this machine, without an address. See `on_dask`."""
    if address is not None and address.startswith("ray:") and find_spec("ray") is not None:
        begun = _greeting(RAY, address)
        if os.environ.get("RAY_USE_TLS", "0") == "0" and begun[3:4] != SETTINGS_FRAME:
            raise _nobody(RAY, address, STRANGER)
    pools = extra("ray.util.multiprocessing", "ray")
    try:
        pool = pools.Pool(ray_address=address)
    except Exception as error:  # Ray raises these themselves, for a node that does not start
        raise _nobody(RAY, address or "this machine", reason(error)) from None
    try:
        yield from_pool(pool)
    finally:
        pool.terminate()


def extra(module: str, extra: str) -> Any:
    """This module of an optional extra. ImportError, with how to get it, where it is not installed."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{extra} is not installed ({error}): pip install -e ".[{extra}]" in the folder of the course'
        ) from None
