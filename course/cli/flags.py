"""`course flags`: a policy as settings of vLLM, SGLang and TensorRT-LLM, and a command line of theirs as a policy."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from course.base.settings import quote
from course.cli.context import typed_options
from course.cli.knobs import NAMES, build, with_policy_options
from course.cli.output import echo, json_text, one_line

if TYPE_CHECKING:
    from course.flags import Export, ParsedCommand

KV = (
    "gpu_memory_utilization", "kv_cache_dtype", "block_size", "max_model_len", "tensor_parallel_size",
    "num_gpu_blocks_override", "enable_prefix_caching",
)  # fmt: skip


@with_policy_options
def flags(
    ctx: typer.Context,
    line: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="COMMAND",
            help="A command line of vLLM, SGLang or TensorRT-LLM in quotes, or a file with it, or a YAML of docker "
            "compose or Kubernetes: what policy is it?",
        ),
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="With --from: the card; defaults depend on it.")] = None,
    service: Annotated[
        str | None, typer.Option(help="With --from: which service of a YAML, if several run an engine.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="With --from: the value of a shell variable in it; may be repeated."),
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="With --from: leave out options that vLLM 0.19 does not have.")
    ] = False,
    policy: Annotated[str, typer.Option(help=f"{NAMES}.")] = "continuous",
    gpu_memory_utilization: Annotated[float, typer.Option(help="Share of the card that the engine takes.")] = 0.9,
    kv_cache_dtype: Annotated[
        str, typer.Option("--kv-cache-dtype", "--kv-dtype", help="auto, bfloat16, fp8, ...")
    ] = "auto",
    block_size: Annotated[int, typer.Option(help="Tokens of a KV block.")] = 16,
    max_model_len: Annotated[int | None, typer.Option(help="Tokens of the longest sequence.")] = None,
    tensor_parallel_size: Annotated[
        int, typer.Option("--tensor-parallel-size", "--tp", help="Cards that share each layer.")
    ] = 1,
    num_gpu_blocks_override: Annotated[
        int | None,
        typer.Option(
            "--num-gpu-blocks-override", "--num-gpu-blocks", help="KV blocks, instead of what fits in the memory."
        ),
    ] = None,
    enable_prefix_caching: Annotated[
        bool, typer.Option(help="Whether prompts that begin alike share KV blocks.")
    ] = True,
    model: Annotated[str, typer.Option(help="The model's name in the commands.")] = "MODEL",
    engine: Annotated[
        list[str] | None,
        typer.Option(help="vllm, sglang, tensorrt-llm; several, with commas or repeated.  [default: all]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
    **settings: Any,
) -> None:
    """The engine settings that come nearest to a policy, each with its reason; or the policy of a command line.

    What an engine has no setting for is said. Versions: vLLM 0.19, SGLang 0.5.9, TensorRT-LLM 1.2.

    \b
    course flags --max-num-seqs 128 --max-num-batched-tokens 4096 --model meta-llama/Llama-3.1-8B
    course flags --from "vllm serve my/model --max-num-seqs 64 --max-num-batched-tokens 8k" --gpu H100
    course flags --from docker-compose.yaml --gpu H100
    """
    from course import flags as exports
    from course.cli.build import flag, spoken_in_flags

    options = ctx.params
    on_command_line = typed_options(ctx)
    with spoken_in_flags(options):
        engines = [name.strip().lower() for text in engine or exports.ENGINES for name in text.split(",")]
        if line is not None:
            clash = sorted(on_command_line & {*settings, *KV, "policy", "model"})
            if clash:
                raise ValueError(f"--from has its own settings: leave out {', '.join(map(flag, clash))}, or --from")
            parsed = exports.parse(line, gpu, ignore_unknown=ignore_unknown, service=service, env=values_of(env))
            a_policy, kv, name = parsed.policy, parsed.kv, parsed.model or "MODEL"
        else:
            only = sorted(on_command_line & {"gpu", "ignore_unknown", "service", "env"})
            if only:
                raise ValueError(f"{flag(only[0])} needs --from: it is about a command line")
            parsed, a_policy, name = None, build(policy.strip().lower(), settings), model
            kv = exports.KVSettings(**{key: options[key] for key in KV})
        of_engines = exports.for_policy(a_policy, kv, model=name, engines=engines)
    echo(_as_json(a_policy, kv, parsed, of_engines) if as_json else _as_text(a_policy, parsed, of_engines))
    for note in parsed.notes if parsed else ():
        echo(f"note: {note}", err=True)
    for export in of_engines:
        for warning in export.warnings:
            echo(f"warning: {export.engine}: {warning}", err=True)


def values_of(env: list[str] | None) -> dict[str, str]:
    """The variables of --env. ValueError for one without a value."""
    pairs = [one.partition("=") for one in env or []]
    for name, equals, _ in pairs:
        if not equals:
            raise ValueError(f"--env takes NAME=VALUE, not {quote(name)}")
    return {name: value for name, _, value in pairs}


def _as_json(policy: Any, kv: Any, parsed: "ParsedCommand | None", exports: tuple["Export", ...]) -> str:
    document = {
        "policy": {"name": type(policy).__name__, **vars(policy)},
        "kv": asdict(kv),
        "parsed": parsed
        and {
            "engine": parsed.engine,
            "model": parsed.model,
            "defaults": parsed.defaults,
            "left_out": list(parsed.left_out),
            "notes": list(parsed.notes),
        },
        "engines": [asdict(export) for export in exports],
    }
    return json_text(document)


def _as_text(policy: Any, parsed: "ParsedCommand | None", exports: tuple["Export", ...]) -> str:
    lines = [f"Policy: {policy!r}"]
    if parsed is not None:
        lines += [f"Engine: {parsed.engine}", f"KV: {parsed.kv!r}", f"Model: {parsed.model or 'not named'}"]
        lines += [f"  {name}: {why}" for name, why in parsed.defaults.items()]
        if parsed.left_out:
            lines.append(f"  changes neither batching nor KV memory here: {', '.join(parsed.left_out)}")
    for export in exports:
        width = max(len(" ".join(setting.words)) for setting in export.settings)
        lines += ["", export.version, *(f"  {row}" for row in export.command.split("\n"))]
        if export.file:
            lines += ["  config.yaml:", *(f"    {row}" for row in export.file.rstrip("\n").split("\n"))]
        lines += [f"  {' '.join(setting.words):<{width}}  {setting.why}" for setting in export.settings]
    return "\n".join(map(one_line, lines))
