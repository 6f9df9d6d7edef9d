"""`course bench`: the decode-step benchmark on the GPU or CPU at hand."""

import math
import time
from typing import Annotated, Any

import typer

from course.cli.context import typed_options
from course.cli.output import echo, json_text

ONLY_LOOP = {"nreq", "rate", "tokens", "bmax", "window_ms", "seed", "loop"}
FLAGS = {"rate": "--lambda"}
MAX_BATCHES = 64
MUCH_WORK = 2**24  # terms a step; a CPU core computes about 10^8 a second, and each batch is launched several times


def bench(
    ctx: typer.Context,
    nreq: Annotated[int, typer.Option(help="How many requests.")] = 200,
    rate: Annotated[float, typer.Option("--lambda", help="Arrivals per second (Poisson).")] = 80.0,
    tokens: Annotated[int, typer.Option(help="Tokens of every answer.")] = 32,
    bmax: Annotated[int, typer.Option(help="Most sequences in a step.")] = 16,
    window_ms: Annotated[float, typer.Option("--window-ms", "--window_ms", help="Admission window.")] = 6.0,
    work: Annotated[int, typer.Option(help="Terms per sequence and step, of 8 multiply-adds each.")] = 16_384,
    threads: Annotated[int, typer.Option(help="Threads per block: a power of two, at most 1024.")] = 256,
    seed: Annotated[int, typer.Option(help="Seed of the arrivals.")] = 0,
    loop: Annotated[
        str,
        typer.Option(
            help="window: the window opens when someone arrives at an idle engine, closes when the batch is full, and "
            "nobody waits between steps. note: an idle engine waits the whole window, and every other step a quarter."
        ),
    ] = "window",
    fixed_batch: Annotated[
        str | None, typer.Option(help="Batch sizes such as 1,2,4,8,16: time steps of these sizes, without arrivals.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cuda, hip, cpu (the kernel compiled for one core) or numpy.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a report; times in seconds.")] = False,
) -> None:
    """Measure a toy decode step on a GPU, or on the CPU, inside of a simulated service.

    Requests arrive on a simulated clock; each step is launched for real, and the clock moves by the time that it took.

    \b
    course bench --lambda 80 --tokens 32 --bmax 16 --window-ms 2
    course bench --fixed-batch 1,2,4,8,16,32,64,128,256
    """
    from course import gpu
    from course.gpu.bench import LiveRun, Settings

    settings = Settings(nreq, rate, tokens, bmax, window_ms, work, threads, seed, loop)
    batches = None if fixed_batch is None else _batches(fixed_batch)
    on_command_line = typed_options(ctx)
    try:
        where = gpu.device(device)
        live = LiveRun(where, settings)
        if batches is None:
            if not where.is_gpu:
                echo(f"measuring the steps of {nreq:,} requests on the CPU: this takes a while ...", err=True)
            text, numbers = _loop(live)
        else:
            if not where.is_gpu and max(batches) * work > MUCH_WORK:
                echo(f"measuring {fixed_batch} on the CPU, each several times: this takes a while ...", err=True)
            text, numbers = _sweep(live, batches)
    except gpu.KernelError as error:
        raise ValueError(str(error)) from None
    echo(json_text(numbers) if as_json else text)
    for note in where.notes:
        echo(f"note: {note}", err=True)
    if batches is None and live.overloaded:
        echo(f"warning: {live.overloaded}", err=True)
    if batches is not None:
        for name in sorted(ONLY_LOOP & on_command_line):
            flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
            echo(f"warning: {flag} has no effect: --fixed-batch has no arrivals", err=True)


def _batches(text: str) -> list[int]:
    """The batch sizes of --fixed-batch. Raises ValueError for anything but whole numbers with commas between."""
    from course.base.settings import quote, whole
    from course.gpu.ops.decode_step import MAX_BATCH

    parts = [part.strip() for part in text.split(",")]
    if len(parts) > MAX_BATCHES:
        raise ValueError(f"--fixed-batch has {len(parts)} sizes: give at most {MAX_BATCHES}")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        raise ValueError(f"--fixed-batch must be whole numbers such as 1,2,4,8, not {quote(text)}") from None
    return [whole("--fixed-batch", number, high=MAX_BATCH) for number in numbers]


def _loop(live: Any) -> tuple[str, dict[str, Any]]:
    """Run the service; the report and the same as a dict."""
    from course.gpu.bench import summary

    options, device = live.settings, live.device
    began = time.perf_counter()
    outcome = live.run()
    wall = time.perf_counter() - began
    numbers, gaps = summary(outcome), live.gaps()
    empty = live.step.time_empty(max(1, round(numbers["mean_batch"])), launches=50, max_seconds=0.2)
    processor = "GPU" if device.is_gpu else "CPU"
    lines = [
        f"CONFIG nreq={options.nreq} lambda={options.rate:g}/s tokens={options.tokens} Bmax={options.bmax} "
        f"window_ms={options.window_ms:g} work={options.work} threads={options.threads} loop={options.loop} "
        f"seed={options.seed}",
        f"{processor} time: {1e3 * numbers['busy_seconds']:.3f} ms  | tokens: {numbers['tokens']}  "
        f"| tokens/sec ({processor}): {numbers['tokens_per_second']:.2f}",
        f"TTFT mean={1e3 * numbers['ttft_mean']:.3f} ms  p95={1e3 * numbers['ttft_p95']:.3f} ms",
        f"E2E  mean={1e3 * numbers['e2e_mean']:.3f} ms  p95={1e3 * numbers['e2e_p95']:.3f} ms",
        f"STEP median={_us(numbers['step_median'])}, an empty launch={_us(empty.seconds)}, mean batch="
        f"{numbers['mean_batch']:.2f}, steps={numbers['steps']}",
        f"GAPS between steps: median={_us(gaps['median'])}, longest={_us(gaps['longest'])}",
        f"DEVICE {device.kind}: {device.name}. Step times measured now; arrivals and waiting are simulated. "
        f"Took {wall:.2f} s.",
    ]
    result = _common(live) | {
        "loop": options.loop,
        "summary": numbers,
        "empty_launch_seconds": empty.seconds,
        "gap_seconds": gaps,
        "wall_seconds": wall,
    }
    return "\n".join(lines), result


def _sweep(live: Any, batches: list[int]) -> tuple[str, dict[str, Any]]:
    """Time steps of fixed batches; the report and the same as a dict."""
    device, options = live.device, live.settings
    points = live.fixed(batches)
    processor = "GPU" if device.is_gpu else "CPU"
    lines = [f"CONFIG work={options.work} threads={options.threads} fixed batches, no arrivals"]
    lines += [
        f"b={one.batch:<6} step={_us(one.step.seconds):>11}  empty launch={_us(one.empty.seconds):>11}  "
        f"tokens/sec ({processor})={one.tokens_per_second:>12,.0f}  longest gap={_us(one.step.longest_gap):>11}"
        for one in points
    ]
    low, high = min(points, key=lambda one: one.batch), max(points, key=lambda one: one.batch)
    if low.batch < high.batch:
        gain = high.tokens_per_second / low.tokens_per_second
        lines.append(f"GAIN b={low.batch} to b={high.batch}: {gain:.2f}x tokens/sec")
    lines.append(f"DEVICE {device.kind}: {device.name}. Measured now: the median of many warm launches each.")
    rows = [
        {
            "batch": one.batch,
            "step_seconds": one.step.seconds,
            "step_p10": one.step.low,
            "step_p90": one.step.high,
            "launches": one.step.launches,
            "empty_launch_seconds": one.empty.seconds,
            "tokens_per_second": one.tokens_per_second,
            "gap_median_seconds": one.step.gap,
            "gap_longest_seconds": one.step.longest_gap,
        }
        for one in points
    ]
    return "\n".join(lines), _common(live) | {"fixed_batch": rows}


def _common(live: Any) -> dict[str, Any]:
    from dataclasses import asdict
    from datetime import UTC, datetime

    device = live.device
    return {
        "source": "measured",
        "device": {"kind": device.kind, "name": device.name, "versions": dict(device.versions)},
        "notes": list(device.notes),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": asdict(live.settings),
    }


def _us(seconds: float) -> str:
    """Seconds in the unit that reads well, or a dash if there is no number."""
    if math.isnan(seconds):
        return "-"
    return f"{1e6 * seconds:.1f} us" if seconds < 1e-3 else f"{1e3 * seconds:.2f} ms"
