"""`course sweep`: `course simulate` with many settings, on all cores or several machines; table, front, figure."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.cli.output import digits, echo, json_text, new_table, one_line, page_of, tables_text, write_over

if TYPE_CHECKING:
    from course.cli.sweep_design import Simulated
    from course.sweep import Design, Table

MOST_ROWS = 20  # of the table; the others are in the file


def sweep(
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUES",
            help="A setting of `course simulate` and its values, max_num_seqs=32,64 or cards=1..4; repeat it for each. "
            "cards is how many share the requests in turn.",
        ),
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Trace file, as for `course simulate`.")] = None,
    request_class: Annotated[
        list[str] | None, typer.Option("--class", metavar="NAME:rate=R,...", help="One class of drawn requests.")
    ] = None,
    policy_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A Python file with a policy of your own.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model's name, or a config.json.  [default: llama-3.1-8b]")
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="The card.  [default: H100]")] = None,
    slo: Annotated[
        list[str] | None,
        typer.Option(
            help="Seconds that a request may take, ttft=0.8,tpot=0.03, or of a class, chat:ttft=0.8; repeat it."
        ),
    ] = None,
    price: Annotated[
        str | None, typer.Option(metavar="CARD=DOLLARS,...", help="Dollars an hour of each card, such as H100=2.5.")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            help="Seeds of each design, from 0. Seed 0 of a trace is the trace; the others have its requests in "
            "another order at the same times."
        ),
    ] = 1,
    random: Annotated[int | None, typer.Option(help="Run only so many designs, drawn at random.")] = None,
    random_seed: Annotated[int, typer.Option(help="Seed of that drawing.")] = 0,
    out: Annotated[
        Path, typer.Option(help="File to which each run is added when it is done; what is there is not run again.")
    ] = Path("sweep.jsonl"),
    jobs: Annotated[int | None, typer.Option(help="Processes of this machine.  [default: one a core]")] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run on other machines: a Dask scheduler, tcp://..., or ray, or ray://...:10001."
        ),
    ] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="Serve in the compiled loop what it can: the same rows; needs numba, [fast].")
    ] = False,
    most: Annotated[
        str | None,
        typer.Option(
            help="The number of the front to have much of.  [default: goodput, per dollar if there is --price]"
        ),
    ] = None,
    least: Annotated[str, typer.Option(help="The number of the front to have little of.")] = "ttft_p95",
    html: Annotated[Path | None, typer.Option(help="Draw the designs and the front into this HTML page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; times in seconds.")] = False,
) -> None:
    """Serve the same requests with many settings, and show which designs no other beats.

    Each combination of the values is a design. One that is refused is a row with the reason. Ctrl-C keeps what is done:
    the same command goes on from there. docs/sweeps.md says when one machine is not enough.

    \b
    course sweep --set rate=10 --set num_requests=1400 --set max_num_seqs=32,64,128 --set cards=1..4 --slo ttft=0.8
    course sweep --trace trace.csv --set max_num_seqs=16,64,256 --set max_num_batched_tokens=512,2048 --seeds 5
    course results sweep.jsonl
    """
    from course.base.settings import whole
    from course.cli.build import spoken_in_flags
    from course.sweep import front, random_settings
    from course.sweep import sweep as run_all

    words = {"seeds": seeds, "random": random, "random_seed": random_seed, "jobs": jobs}
    with spoken_in_flags(words):
        design, grid = _asked(set_, trace, request_class, policy_file, model, gpu, slo, price)
        for name, number in {"seeds": seeds, "random": random, "jobs": jobs}.items():
            if number is not None:
                whole(name, number, high=1_000_000)
        chosen: Any = grid if random is None else random_settings(grid, random, random_seed)
        with _executor(scheduler, jobs) as executor, _counted(out) as tell:
            table = run_all(design, chosen, seeds=seeds, executor=executor, resume=out, tell=tell, fast=fast)
        if all(row.refused for row in table):
            raise ValueError(f"every run was refused: {table.rows[0].refused}")
        gain = most or ("goodput_per_dollar" if design.prices else "goodput_per_card" if "cards" in grid else "goodput")
        best = front(table, gain, least)
    if html is not None:
        _draw(html, table, gain, least)
    echo(_as_json(design, table, best, gain, least) if as_json else _as_table(table, best, gain, least, out))
    for note in table.notes:
        echo(f"note: {note}", err=True)


def _asked(
    set_: list[str] | None, trace: Path | None, request_class: list[str] | None, policy_file: str | None,
    model: str | None, gpu: str | None, slo: list[str] | None, price: str | None,
) -> tuple["Simulated", dict[str, list[Any]]]:  # fmt: skip
    """The design, and the values of what varies."""
    from course.cli import sweep_design
    from course.cli.sweep_words import grid_of, prices_of, slos_of

    options = {
        "trace": None if trace is None else str(trace), "request_class": request_class, "policy_file": policy_file,
        "model": model, "gpu": gpu,
    }  # fmt: skip
    typed = {name: value for name, value in options.items() if value is not None}
    grid = grid_of(set_ or [])
    both = next((name for name in typed if name in grid), None)
    if both is not None:
        raise ValueError(f"--{both} and --set {both} are two values of one setting: keep one")
    if trace is not None:
        from course.cli import build

        build.workload({**sweep_design.defaults(), **typed, "seed": 0}, set(typed))
    design = sweep_design.Simulated(typed, sweep_design.fingerprint(trace), slos_of(slo or []), prices_of(price))
    return design, grid


@contextmanager
def _executor(scheduler: str | None, jobs: int | None) -> Iterator[Any]:
    """Who runs them. A worker that is lost must be a sentence, and no end of this process by SIGPIPE."""
    from course.sweep import OneProcess, on_dask, on_ray, process_pool

    if scheduler is not None and jobs is not None:
        raise ValueError("--jobs is of this machine, and --scheduler of others: keep one")
    before: Any = signal.SIG_DFL
    with suppress(AttributeError):  # Windows has no SIGPIPE
        before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        if scheduler is None:
            yield OneProcess() if jobs == 1 else process_pool(jobs)
        elif scheduler == "ray" or scheduler.startswith("ray://"):
            with on_ray(None if scheduler == "ray" else scheduler) as executor:
                yield executor
        else:
            with on_dask(scheduler) as executor:
                yield executor
    except ImportError as error:  # an extra is no part of an installation that would not be complete
        raise ValueError(str(error)) from None
    else:  # after Ctrl-C a pool's thread may still write to workers that are gone
        with suppress(AttributeError):
            signal.signal(signal.SIGPIPE, before)


@contextmanager
def _counted(out: Path) -> Iterator[Any]:
    """Progress, and a sentence where Ctrl-C ends it."""
    from course.cli.progress_bar import count_bar

    state = {"done": 0, "runs": 0}
    try:
        with count_bar("runs") as show:

            def tell(done: int, runs: int) -> None:
                state.update(done=done, runs=runs)
                show(done, runs)

            yield tell
    except KeyboardInterrupt:
        echo(f"{state['done']:,} of {state['runs']:,} runs are in {out}: the same command goes on from there", err=True)
        raise


def _draw(html: Path, table: "Table", gain: str, least: str) -> None:
    from course.figures import sweep as figures

    write_over(html, page_of(figures.front(table, gain, least), "sweep"), b"plotly")


def _as_json(design: "Simulated", table: "Table", best: tuple["Design", ...], gain: str, least: str) -> str:
    from dataclasses import asdict

    content = {
        "sweep": design.label,
        "front": {"most": gain, "least": least, "settings": [one.settings for one in best]},
        "designs": [
            {"settings": one.settings, "seeds": one.seeds, "refused": one.refused, "means": dict(one.numbers)}
            for one in table.designs
        ],
        "rows": [asdict(row) for row in table],
        "notes": list(table.notes),
    }
    return json_text(content)


def _as_table(table: "Table", best: tuple["Design", ...], gain: str, least: str, out: Path) -> str:
    """The best designs by `gain`, those of the front marked; then what was refused, and why."""
    served = [one for one in table.designs if one.refused is None]
    ranked = sorted(served, key=lambda one: (-one.numbers.get(gain, 0.0), one.numbers.get(least, 0.0)))
    shown = [one for place, one in enumerate(ranked) if place < MOST_ROWS or one in best]
    varied = _varied(table)
    columns = _columns(served, gain, least)
    made = new_table()
    for name in varied:
        made.add_column(one_line(name), no_wrap=True)
    for heading, _, _ in columns:
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column("front")
    for one in shown:
        cells = [digits(scale * one[name]) for _, name, scale in columns]
        made.add_row(*(one_line(str(one.settings[name])) for name in varied), *cells, "*" if one in best else "")
    seeds = max(one.seeds for one in table.designs)
    of = f", means over {seeds} seeds" if seeds > 1 else ""
    lines = [f"{len(served):,} designs{of}, by {gain}; * where no other has more of it and less {least}", "", made, ""]
    if len(shown) < len(served):
        lines.append(f"{len(served) - len(shown):,} more designs are in {out}.")
    lines += [f"All {len(table):,} runs are in {out}: {table.cpu_seconds:,.1f} CPU s.", *_refused(table)]
    return tables_text(200, *lines)


def _varied(table: "Table") -> list[str]:
    names = dict.fromkeys(name for one in table.designs for name in one.settings)
    return [name for name in names if len({str(one.settings.get(name)) for one in table.designs}) > 1]


def _columns(served: list["Design"], gain: str, least: str) -> list[tuple[str, str, float]]:
    """(heading, number, factor) of each column."""
    from course.sweep.words import SHARE, words_of

    shares = [name for name in served[0].numbers if name.startswith(SHARE)]
    names = [gain, "goodput", *shares, "requests_per_second", "output_tokens_per_second", least, "ttft_p95", "tpot_p95"]
    columns = []
    for name in dict.fromkeys(names):
        if name in served[0].numbers:
            words, unit, factor = words_of(name)
            columns.append((f"{one_line(words)}\n{unit}", name, factor))
    return columns


def _refused(table: "Table") -> list[str]:
    """Each kind of refusal once: kinds differ in more than numbers."""
    alike: dict[str, list[str]] = {}
    for row in table:
        if row.refused is not None:
            alike.setdefault(re.sub(r"\d[\d.,e+-]*", "#", row.refused), []).append(row.refused)
    return [f"{len(rows):,} runs refused: {one_line(rows[0])}" for rows in alike.values()]
