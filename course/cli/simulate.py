"""`course simulate`: a trace or a drawn load through one or more policies, side by side."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from course.base import files
from course.cli.context import typed_options
from course.cli.knobs import NAMES, with_policy_options
from course.cli.output import echo


@with_policy_options
def simulate(
    ctx: typer.Context,
    trace: Annotated[
        Path | None, typer.Option(help="Trace file: Azure, BurstGPT, Mooncake, Qwen, Vidur, a CSV of your own, ...")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the trace, such as mooncake or csv.  [default: found by its content]")
    ] = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the requests of the trace by time first.")] = False,
    on_error: Annotated[str, typer.Option(help="Broken rows of the trace: raise or skip.")] = "raise",
    rate: Annotated[float | None, typer.Option(help="Without a trace: arrivals per second.")] = None,
    num_requests: Annotated[int, typer.Option(help="How many requests.")] = 1_000,
    prompt_tokens: Annotated[float, typer.Option(help="Mean prompt length (lognormal).")] = 512,
    prompt_cv: Annotated[float, typer.Option(help="Variation of prompt lengths (std / mean); 0: all equal.")] = 1.0,
    output_tokens: Annotated[float, typer.Option(help="Mean output length (lognormal).")] = 128,
    output_cv: Annotated[float, typer.Option(help="Variation of output lengths (std / mean); 0: all equal.")] = 1.0,
    arrival_cv: Annotated[float, typer.Option(help="Variation of gaps: 0 regular, 1 Poisson, above bursty.")] = 1.0,
    request_class: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="NAME:rate=R,...",
            help="One class of the requests, with a rate of its own and what else differs: prompt_tokens, prompt_cv, "
            "output_tokens, output_cv, arrival_cv, deadline_ms. Repeat it for each class, without --rate.",
        ),
    ] = None,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            help="Requests that a client has out at a time, as load generators cap them: with --rate, one that is due "
            "while so many are out waits in the client; without, so many users each ask again when answered."
        ),
    ] = None,
    think_time: Annotated[
        float,
        typer.Option(
            help="With --max-concurrency and no --rate: mean seconds from an answer to the user's next request."
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    head: Annotated[int | None, typer.Option(help="Use only this many requests, the first ones.")] = None,
    scale_rate: Annotated[
        float | None, typer.Option(help="Stretch or squeeze time to this many arrivals per second, after --head.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help=f"{NAMES}; several, separated by commas or repeated, are compared.  [default: continuous]"),
    ] = None,
    policy_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A Python file with a policy of your own, or FILE:CLASS if it has several; alone or beside --policy.",
        ),
    ] = None,
    num_gpu_blocks_override: Annotated[
        int | None,
        typer.Option(
            "--num-gpu-blocks-override",
            "--num-gpu-blocks",
            help="KV blocks.  [default: as many as fit beside the weights]",
        ),
    ] = None,
    unlimited_kv: Annotated[bool, typer.Option("--unlimited-kv", help="KV memory without a limit.")] = False,
    block_size: Annotated[int, typer.Option(help="Tokens in a KV block.")] = 16,
    step_time: Annotated[
        str,
        typer.Option(help="roofline, or power-law with its constants in seconds, as above."),
    ] = "roofline",
    model: Annotated[
        str, typer.Option(help="Model of the roofline and of the memory: a name, or a config.json.")
    ] = "llama-3.1-8b",
    gpu: Annotated[str, typer.Option(help="GPU of the roofline and of the memory.")] = "H100",
    tensor_parallel_size: Annotated[
        int, typer.Option("--tensor-parallel-size", "--tp", help="Cards that share each layer.")
    ] = 1,
    kv_cache_dtype: Annotated[
        str, typer.Option("--kv-cache-dtype", "--kv-dtype", help="Type of K and V; auto: as the checkpoint asks.")
    ] = "auto",
    gpu_memory_utilization: Annotated[float, typer.Option(help="Share of the card that the engine takes.")] = 0.9,
    ttft_slo_ms: Annotated[
        float | None, typer.Option(help="Goodput counts the requests whose TTFT is at most this.")
    ] = None,
    tpot_slo_ms: Annotated[
        float | None, typer.Option(help="Goodput counts the requests whose TPOT is at most this.")
    ] = None,
    e2e_slo_ms: Annotated[float | None, typer.Option(help="The same for E2E.")] = None,
    warmup: Annotated[float, typer.Option(help="Seconds at the start to leave out of the latencies.")] = 0.0,
    group_by: Annotated[
        str | None, typer.Option(help="Times of groups of requests: prompt:2048,16384 by prompt tokens, or class.")
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write all steps and requests as a timeline (JSON) for ui.perfetto.dev."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; times in seconds.")] = False,
    **settings: Any,
) -> None:
    """Serve requests with one policy or several on a modelled GPU, and show what users would have felt.

    Requests come from a --trace, or are drawn at a --rate, by --class, or for --max-concurrency users.

    \b
    course simulate --trace trace.csv --policy static,dynamic,continuous --max-num-seqs 64
    course simulate --rate 10 --step-time power-law:t0=0.0055,c=3e-5,prefill=2.5e-5,context=4.5e-8
    course simulate --rate 4 --num-requests 50 --policy continuous,prefill-first --perfetto timeline.json
    course simulate --class chat:rate=9 --class docs:rate=1,prompt_tokens=6000 --policy-file mine.py

    docs/glossary.md says what TTFT, ITL, slots and the other words mean.
    """
    from course.cli import build, groups, report
    from course.cli.progress_bar import progress_bar, say_reading
    from course.engine.serving import serve
    from course.engine.trace_events import trace_events

    asked = {name: value for name, value in ctx.params.items() if name not in ("as_json", "perfetto")}
    given = typed_options(ctx) & asked.keys()
    with build.spoken_in_flags(asked):
        build.check(asked)
        if perfetto is not None and perfetto.exists():
            raise ValueError(f"{perfetto} is there already: give the name of a new file")
        if group_by is not None:
            groups.edges(group_by)
        policies = build.policies(asked, given)
        timing = build.step_time(asked)
        slos = {name: build.slo(name, asked) for name in ("ttft", "tpot", "e2e")}
        idle = build.without_effect(asked, given, policies)
        say_reading(asked["trace"])
        load = build.workload(asked, given)
        cache, memory = build.cache(asked, given, load)
        results, runs = [], {}
        for name, chosen in policies.items():
            with progress_bar(timing, load, name) as clock:
                run = build.served(serve, load, chosen, clock, cache, asked)
            numbers = run.summary(slos["ttft"], slos["tpot"], slos["e2e"], warmup)
            classes = report.by_class(run) if request_class else {}
            times = {metric: getattr(run, metric) for metric in groups.METRICS}
            parts = groups.of(group_by, load.prompt_tokens, load.class_, times) if group_by else {}
            if perfetto is not None:
                runs[name] = run
            results.append(report.Result(name, repr(chosen), numbers, run.warnings, classes, parts))
        if perfetto is not None:
            files.write_new(perfetto, json.dumps(trace_events(runs), allow_nan=False).encode())

    setup = report.Setup(load, timing, cache, slos, asked, (*idle, *load.notes), memory)
    echo(report.as_json(setup, results) if as_json else report.as_table(setup, results))
    for warning in setup.warnings:
        echo(f"warning: {warning}", err=True)
    for result in results:
        for warning in result.warnings:
            echo(f"warning: {result.name}: {warning}", err=True)
