"""`course compare`: a measured run beside the same requests in the simulator."""

import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.cli.output import digits, echo, json_text, new_table, page_of, tables_text, write_over

if TYPE_CHECKING:
    from course.calibration import Comparison, Fit, Row

GIB = 2**30
ENGINE = (
    "engine",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "kv_tokens",
    "num_gpu_blocks",
    "block_size",
    "gpu_memory_utilization",
    "max_model_len",
    "tensor_parallel_size",
    "data_parallel_size",
)
WORDS = {
    "ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E",
    "requests_per_second": "throughput, requests", "output_tokens_per_second": "throughput, output tokens",
    "duration": "duration", "kv_peak": "KV blocks in use, peak", "preemptions": "preemptions",
}  # fmt: skip


MANY = 100
"""Requests from which on the run is announced: some thousands take seconds."""


def compare(
    ctx: typer.Context,
    result: Annotated[Path, typer.Argument(help="Result file of a benchmark tool, with its requests.")],
    model: Annotated[str, typer.Option(help="A config.json, the folder that holds it, or a model's name.")],
    gpu: Annotated[str, typer.Option(help="The card, such as H100.")],
    format: Annotated[
        str | None, typer.Option(help="The tool that wrote the file.  [default: found by its content]")
    ] = None,
    run: Annotated[
        int | None, typer.Option(help="Which run of a file with several, counted from 0.  [default: last]")
    ] = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="Fit the step time to this run first (takes a few seconds).")
    ] = False,
    constants: Annotated[
        Path | None, typer.Option(help="Constants of an earlier fit; scaled if the model or the card differs.")
    ] = None,
    recorded: Annotated[
        str | None,
        typer.Option(help="Steps recorded on a card, such as h100-llama3-8b; scaled if --gpu is another card."),
    ] = None,
    save_fit: Annotated[Path | None, typer.Option(help="With --fit: write the constants to this file.")] = None,
    compute: Annotated[
        float | None, typer.Option(help="With --constants: factor for the time of a prompt token on the other card.")
    ] = None,
    step_weights_gib: Annotated[
        float | None, typer.Option(help="Weights that one card reads in a step, if experts are spread over several.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="The engine that served: vllm, sglang or tensorrt-llm.  [default: as the file says, else vllm]"
        ),
    ] = None,
    kv_tokens: Annotated[int | None, typer.Option(help="KV pool in tokens, as the engine printed it.")] = None,
    num_gpu_blocks: Annotated[
        int | None, typer.Option("--num-gpu-blocks-override", "--num-gpu-blocks", help="KV pool in blocks.")
    ] = None,
    block_size: Annotated[int | None, typer.Option(help="Tokens of a block.")] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(help="Share of the card that the engine takes.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Most tokens of a sequence.")] = None,
    max_num_seqs: Annotated[int | None, typer.Option(help="Slots.")] = None,
    max_num_batched_tokens: Annotated[int | None, typer.Option(help="Tokens of a step.")] = None,
    enable_chunked_prefill: Annotated[bool | None, typer.Option(help="Whether prompts are split.")] = None,
    long_prefill_token_threshold: Annotated[
        int | None, typer.Option(help="Most tokens of one prompt in a step.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option("--tensor-parallel-size", "--tp", help="Cards that share each layer.")
    ] = None,
    data_parallel_size: Annotated[
        int | None, typer.Option("--data-parallel-size", "--dp", help="Replicas that share the requests.")
    ] = None,
    kv_cache_dtype: Annotated[
        str | None,
        typer.Option("--kv-cache-dtype", "--kv-dtype", help="Type of K and V.  [default: as the file says]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; times in seconds.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Draw both distributions into this HTML page; it needs no network.")
    ] = None,
) -> None:
    """Serve the requests of a measured run again in the simulator, and show every metric measured and modelled.

    The engine of the file decides the order of work. Its settings count in this order: the options here, what the file
    says, the engine's defaults. Requests above --max-model-len are left out, as the engine would have refused them.
    Without --fit, --constants or --recorded a step takes what the roofline says, which knows the card and no engine.

    \b
    course compare requests.jsonl --model llama-3.1-8b --gpu "RTX PRO 6000" --fit --save-fit pro.json
    course compare other.jsonl --model llama-3.1-8b --gpu "RTX 4090" --constants pro.json --html both.html
    """
    from course import calibration, results
    from course.cli.build import spoken_in_flags
    from course.models import gpus

    with spoken_in_flags(ctx.params):
        _check_choices(ctx.params)
        read = results.read(result, format, run)
        spec, card = _spec(model, read, kv_cache_dtype), gpus.gpu(gpu)
        serving_engine = calibration.engine_of(read, spec, card, **{name: ctx.params[name] for name in ENGINE})
        weights = _weights(step_weights_gib)
        timing, step_fit, account = _timing(read, spec, card, serving_engine, weights, ctx.params)
        if read.requests is not None and len(read.requests) >= MANY:
            echo(f"serving {len(read.requests):,} requests in the simulator ...", err=True)
        compared = calibration.compare(read, timing, serving_engine)
    if save_fit is not None and step_fit is not None:
        write_over(
            save_fit,
            (json.dumps(step_fit.as_dict(), indent=2) + "\n").encode(),
            b'"kind": "course step-time fit"',
            result,
        )
    if html is not None:
        write_over(html, _page(compared), b"plotly", result)
    echo(_as_json(compared, step_fit, account) if as_json else _as_table(compared, account))
    for note in (*compared.notes, *(step_fit.unsettled if step_fit and fit else ())):
        echo(f"note: {note}", err=True)


def _check_choices(options: dict[str, Any]) -> None:
    """Refuse options that contradict each other, before anything takes time."""
    if options["fit"] and options["constants"] is not None:
        raise ValueError("--fit and --constants are two sources of the step time: give one of them")
    if options["recorded"] is not None and (options["fit"] or options["constants"] is not None):
        raise ValueError("--recorded, --fit and --constants are sources of the step time: give one of them")
    if options["save_fit"] is not None and not options["fit"]:
        raise ValueError("--save-fit needs --fit: there is nothing to save")
    if options["compute"] is not None and options["constants"] is None:
        raise ValueError("--compute needs --constants: it says how they change from card to card")


def _spec(name: str, read: Any, kv_cache_dtype: str | None) -> Any:
    from course.models import named_or_read

    spec = named_or_read(name)
    dtype = kv_cache_dtype or read.setup.get("kv_cache_dtype")
    return spec.with_kv_dtype(dtype) if isinstance(dtype, str) else spec


def _weights(gib: float | None) -> float | None:
    from course.base.settings import real

    return None if gib is None else GIB * real("step_weights_gib", gib, above=0, high=10**5)


def _timing(
    read: Any, spec: Any, card: Any, engine: Any, weights: float | None, options: dict[str, Any]
) -> tuple[Any, "Fit | None", str]:
    """The step-time model, the fit behind it if there is one, and where its constants come from, in words."""
    from course import calibration, steptime

    if options["fit"]:
        echo("fitting: about two thousand replays", err=True)
        step_fit = calibration.fit_run(read, spec, card, engine=engine, weight_bytes=weights)
        return step_fit.step_time, step_fit, _fit_lines(step_fit)
    shape = calibration.shape_of(spec, ranks=engine.ranks, weight_bytes=weights)
    if options["constants"] is not None:
        step_fit = calibration.Fit.read(options["constants"])
        same = (shape.weight_bytes, shape.flops_per_token, shape.kv_bytes_per_token) == (
            step_fit.shape.weight_bytes, step_fit.shape.flops_per_token, step_fit.shape.kv_bytes_per_token,
        )  # fmt: skip
        if same and card.name == step_fit.gpu.name:
            if options["compute"] is not None:
                raise ValueError(f"--compute has no effect: the constants are those of this model on {card.name}")
            return step_fit.step_time, step_fit, _fit_lines(step_fit)
        scaled = step_fit.scaled_to(card, spec, compute=options["compute"], ranks=engine.ranks, weight_bytes=weights)
        return scaled.step_time, step_fit, scaled.account
    if options["recorded"] is not None:
        return _recorded(options["recorded"], spec, card, engine, weights)
    if engine.ranks > 1 or weights is not None:
        timing = calibration.step_time(
            calibration.from_data_sheet(shape, card), f"modelled: {shape.name} on {card.name}"
        )
        return timing, None, f"data sheet of {card.name}, not fitted; cards talk to each other in no time"
    return steptime.Roofline(spec, card), None, "the roofline, not fitted to any engine"


def _recorded(name: str, spec: Any, card: Any, engine: Any, weights: float | None) -> tuple[Any, None, str]:
    """Recorded steps of this model, and where they come from: of this card, or scaled to it."""
    from course import steptime

    recording = steptime.recorded(name)
    if spec.name != recording.model or engine.ranks > 1 or weights is not None:
        raise ValueError(
            f"{name} was recorded with {recording.model} on one card: it says nothing about {spec.name} on "
            f"{engine.ranks} of them. Leave --recorded out for the roofline"
        )
    scaled = steptime.Scaled(recording, card)
    if scaled.before.name == card.name:
        return recording, None, recording.badge
    return (
        scaled,
        None,
        (
            f"{recording.badge}; scaled to {card.name}: reading x {scaled.bandwidth:.2f} (bandwidth), computing x "
            f"{scaled.compute:.2f} (FLOP/s)"
        ),
    )


def _fit_lines(step_fit: "Fit") -> str:
    lines = [
        f"{name} = {c.seconds:.3g} {c.unit} (data sheet: {c.sheet:.3g})"
        f"{'' if step_fit.settled(name) else ', not settled'}"
        for name, c in step_fit.constants.items()
    ]
    return "\n".join(lines)


def _page(compared: "Comparison") -> bytes:
    from course.figures import compare as figures

    return page_of(figures.distributions(compared), "compare")


def _as_json(compared: "Comparison", step_fit: "Fit | None", account: str) -> str:
    engine = compared.engine
    cache = engine.cache
    document = {
        "run": compared.name,
        "tool": compared.tool,
        "step_time": {"source": compared.source, "model": compared.step_time, "account": account.split("\n")},
        "engine": {
            "policy": repr(engine.policy),
            "num_gpu_blocks": cache.num_blocks if cache else None,
            "block_size": cache.block_size if cache else None,
            "data_parallel_size": engine.replicas,
            "tensor_parallel_size": engine.ranks,
        },
        "metrics": [
            {"metric": row.metric, "statistic": row.statistic, "unit": row.unit, "measured": row.measured,
             "modelled": row.modelled, "error": row.error}
            for row in compared.rows
        ],
        "fit": step_fit.as_dict() if step_fit else None,
        "notes": list(compared.notes),
    }  # fmt: skip
    return json_text(document)


def _as_table(compared: "Comparison", account: str) -> str:
    table = new_table("", "unit")
    for heading in ("measured", "modelled", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    before = ""
    for row in compared.rows:
        if row.metric != before and row.metric in ("ttft", "tpot", "itl", "e2e", "requests_per_second"):
            table.add_section()
        before = row.metric
        table.add_row(*_cells(row))
    cache = compared.engine.cache
    pool = "unlimited KV memory" if cache is None else f"{cache.num_blocks:,} KV blocks of {cache.block_size} tokens"
    return tables_text(
        120,
        f"{compared.name} ({compared.tool}), {len(compared.replay):,} requests",
        f"Engine: {compared.engine.policy!r}, {pool}, {compared.engine.replicas} replica(s)",
        f"Step time: {compared.source}",
        *(f"  {line}" for line in account.split("\n")),
        "",
        table,
    )


def _cells(row: "Row") -> tuple[str, ...]:
    label = f"{WORDS[row.metric]} {row.statistic}".strip()
    error = f"{row.error:+.1%}" if isfinite(row.error) else "-"
    if row.metric in ("tpot", "itl"):
        unit, scale = "ms", 1e3
    elif row.unit == "share":
        unit, scale = "%", 1e2
    else:
        unit, scale = row.unit, 1.0
    return label, unit, *(digits(scale * value) for value in (row.measured, row.modelled)), error
