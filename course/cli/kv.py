"""`course kv`: what a model keeps of every token, and what of it fits on a card."""

import json
import re
from typing import Annotated, Any

import typer

from course.cli.context import typed_options
from course.cli.output import echo, json_text, one_line

GIB = 2**30
OF_THE_LEDGER = {
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "data_parallel_size": "dp",
    "decode_context_parallel_size": "dcp",
    "prefill_context_parallel_size": "pcp",
    "engine_version": "version",
}
"""What `memory.ledger` calls these options."""
LABELS = {
    "bytes_per_token": "KV of a token",
    "bytes_per_token_after_window": "once windows are full",
    "window_bytes_per_sequence": "full windows of a sequence",
    "state_bytes_per_sequence": "recurrent state of a sequence",
    "index_bytes_per_token": "indexer's key of a token",
    "draft_bytes_per_token": "draft layers, of a token",
    "weights_bytes": "weights",
}
FORMULAS = {
    "bytes_per_token": "kv_bytes_per_token",
    "bytes_per_token_after_window": "kv_bytes_after_window",
    "window_bytes_per_sequence": "window_bytes",
    "state_bytes_per_sequence": "state_bytes",
    "index_bytes_per_token": "index_bytes_per_token",
    "draft_bytes_per_token": "draft_bytes_per_token",
    "weights_bytes": "weights_bytes",
}


def kv(
    ctx: typer.Context,
    config: Annotated[str, typer.Argument(help="A config.json, the folder that holds it, or a model's name.")],
    gpu: Annotated[
        str | None,
        typer.Option(help="The card, such as H100: adds the ledger of its memory. Several, separated by commas."),
    ] = None,
    memory_gib: Annotated[
        str | None, typer.Option(help="The card's memory instead of its name, in GiB; 79.2,39.5 if ranks differ.")
    ] = None,
    kv_gib: Annotated[
        str | None,
        typer.Option(
            help="KV memory as your engine prints it, instead of a card; one value per rank, separated by commas."
        ),
    ] = None,
    engine_version: Annotated[
        str | None,
        typer.Option(help="vLLM's version, which decides defaults and the printed number of tokens.  [0.19]"),
    ] = None,
    tensor_parallel_size: Annotated[
        int,
        typer.Option(
            "--tensor-parallel-size", "--tp", help="Ranks that share each layer; the ledger is that of one rank."
        ),
    ] = 1,
    pipeline_parallel_size: Annotated[
        int, typer.Option("--pipeline-parallel-size", "--pp", help="Stages that share the layers.")
    ] = 1,
    data_parallel_size: Annotated[
        int, typer.Option("--data-parallel-size", "--dp", help="Replicas; experts are spread over them.")
    ] = 1,
    decode_context_parallel_size: Annotated[
        int, typer.Option("--decode-context-parallel-size", "--dcp", help="Ranks of those that share tokens.")
    ] = 1,
    prefill_context_parallel_size: Annotated[
        int, typer.Option("--prefill-context-parallel-size", "--pcp", help="The same with ranks of their own.")
    ] = 1,
    kv_cache_dtype: Annotated[
        str | None,
        typer.Option(
            "--kv-cache-dtype",
            "--kv-dtype",
            help="Type of K and V: bfloat16, fp8, ...; auto: as the checkpoint asks.  [with a card: auto]",
        ),
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Tokens of a sequence; the model's own by default.")] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(help="Share of the card that the engine takes.  [the engine's]")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(help="Most tokens in a step.  [the engine's for that card]")
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(help="Most sequences in a step.  [the engine's for that card]")
    ] = None,
    enable_chunked_prefill: Annotated[
        bool, typer.Option(help="If off, a step holds the longest prompt, and activations grow with it.")
    ] = True,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 16,
    num_gpu_blocks_override: Annotated[
        int | None, typer.Option(help="A claimed number of blocks: is it possible?")
    ] = None,
    num_speculative_tokens: Annotated[int, typer.Option(help="Drafted tokens per step.")] = 0,
    speculative_method: Annotated[
        str | None, typer.Option(help="mtp, eagle, eagle3, draft_model, ngram.  [the model's own layers, else eagle]")
    ] = None,
    draft_model: Annotated[str | None, typer.Option(help="Config of the model, or of the head, that drafts.")] = None,
    draft_layers: Annotated[int | None, typer.Option(help="Layers of KV of an EAGLE head.  [1]")] = None,
    enable_prefix_caching: Annotated[
        bool | None,
        typer.Option(
            "--enable-prefix-caching/--no-enable-prefix-caching",
            help="With it recurrent states are kept for prefixes too.  [vLLM 0.19: off with recurrent states]",
        ),
    ] = None,
    mamba_cache_mode: Annotated[
        str | None,
        typer.Option(help="none, or align, which keeps a second recurrent state.  [follows prefix caching]"),
    ] = None,
    mamba_ssm_cache_dtype: Annotated[
        str | None, typer.Option(help="Type of the recurrent state: float32, bfloat16, ...  [as the checkpoint asks]")
    ] = None,
    disable_hybrid_kv_cache_manager: Annotated[
        bool, typer.Option("--disable-hybrid-kv-cache-manager", help="Let layers with a window keep every token.")
    ] = False,
    weights_gib: Annotated[float | None, typer.Option(help="Weights per card, as your engine prints them.")] = None,
    activation_gib: Annotated[float | None, typer.Option(help="Peak of activations, as printed.")] = None,
    other_gib: Annotated[float | None, typer.Option(help="CUDA context, NCCL and graphs, as printed.")] = None,
    line: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="COMMAND",
            help="A server's command line in quotes, or a script or YAML with it; its settings count beside these.",
        ),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="With --from: the value of a shell variable in it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; sizes in bytes.")] = False,
) -> None:
    """KV bytes a token of a model, and with a GPU what fits: its memory line by line.

    \b
    course kv config.json
    course kv config.json --gpu H100 --max-model-len 8192
    course kv config.json --gpu H100 --from serve.sh --env TP=2
    course kv config.json --memory-gib 23.5 --kv-cache-dtype fp8
    course kv deepseek-v3 --gpu H200 --tp 8 --num-speculative-tokens 1
    """
    from course.base.settings import whole
    from course.models import named_or_read

    options = {name: value for name, value in ctx.params.items() if name not in ("config", "line", "env", "as_json")}
    card, read = None, list[str]()
    try:
        if env and line is None:
            raise ValueError("--env needs --from: it is about a command line")
        if line is not None:
            from course.cli.kv_script import settings_of

            said, read = settings_of(line, gpu, env, typed_options(ctx))
            options |= said
        with_card = any(options[name] is not None for name in ("gpu", "memory_gib", "kv_gib"))
        dtype = options.pop("kv_cache_dtype") or ("auto" if with_card else None)
        spec = named_or_read(config).with_kv_dtype(dtype)
        state_dtype = options.pop("mamba_ssm_cache_dtype")
        spec = spec.with_state_dtype(state_dtype) if state_dtype else spec
        drafted = whole("num_speculative_tokens", num_speculative_tokens, low=0, high=1000)
        if with_card:
            card = _ledger(spec, options)
    except (ValueError, OSError) as error:
        refused = ValueError(_in_flags(error, options))
        if as_json:
            echo(json.dumps({"refused": str(refused)}))
        raise refused from None
    if as_json:
        content = _model(spec, drafted) | ({"ledger": _card(card)} if card else {})
        echo(json_text(content))
    else:
        echo(_table(spec, card, drafted))
    for note in (*read, *spec.notes, *(_in_flags(remark, options) for remark in (card.remarks if card else ()))):
        echo(f"note: {note}", err=True)
    for problem in card.problems if card else ():
        echo(f"warning: {problem}", err=True)
    if card is None:
        on_command_line = (typed_options(ctx) & options.keys()) | ({"from"} if line is not None else set())
        for name in sorted(on_command_line - {"num_speculative_tokens"}):
            echo(f"warning: --{name.replace('_', '-')} has no effect without --gpu, --memory-gib or --kv-gib", err=True)


def _ledger(spec: Any, options: dict[str, Any]) -> Any:
    from course import memory
    from course.base.settings import real
    from course.models import named_or_read

    rest = {OF_THE_LEDGER.get(name, name): value for name, value in options.items()}
    for name in ("memory", "weights", "activation", "other", "kv"):
        gib = rest.pop(f"{name}_gib")
        if gib is not None:
            each = [GIB * real(f"{name}_gib", one, low=0, high=10**5) for one in _numbers(name, gib)]
            rest[f"{name}_bytes"] = each[0] if len(each) == 1 else each
    if rest["draft_model"] is not None:
        rest["draft_model"] = named_or_read(rest["draft_model"]).with_kv_dtype(None)
    gpu = rest.pop("gpu")
    if gpu is not None and "," in gpu:
        gpu = [one.strip() for one in gpu.split(",")]
    return memory.ledger(spec, gpu, **rest)


def _numbers(name: str, gib: float | str) -> list[float]:
    """The numbers of an option that takes one for each rank."""
    from course.base.settings import quote

    try:
        return [float(one) for one in gib.split(",")] if isinstance(gib, str) else [gib]
    except ValueError:
        raise ValueError(
            f"{name}_gib must be a number of GiB, or one per rank separated by commas, not {quote(gib)}"
        ) from None


def _in_flags(error: Exception | str, options: dict[str, Any]) -> str:
    """The sentence of an error, with the flags of this command for the names of the library."""
    if isinstance(error, OSError):
        return f"cannot read {error.filename}: {error.strerror}" if error.filename else str(error)
    names = {
        name: f"--{name.replace('_', '-')}"
        for name in (*options, "kv_cache_dtype", "mamba_ssm_cache_dtype")
        if "_" in name
    }
    names |= {name.replace("_gib", "_bytes"): flag for name, flag in names.items() if name.endswith("_gib")}
    names |= {short: f"--{name.replace('_', '-')}" for name, short in OF_THE_LEDGER.items()}
    sentence = " ".join(str(error).split())
    if re.match(r"\w+ must be ", sentence):
        first, rest = sentence.split(" ", 1)
        sentence = f"{names.get(first, f'--{first}' if first in options else first)} {rest}"
    words = "|".join(sorted((name for name in names if name not in ("version",)), key=len, reverse=True))
    return re.sub(rf"(?<!-)\b(?:{words})\b(?!-)", lambda match: names[match[0]], sentence)


def _model(spec: Any, drafted: int = 0) -> dict[str, Any]:
    """What the model keeps, under the names of the JSON, each with its formula. drafted: tokens a step."""
    from course.models import formula

    return {
        "model": spec.name,
        "bytes_per_token": spec.kv_bytes_per_token,
        "bytes_per_token_after_window": spec.kv_bytes_after_window,
        "window_bytes_per_sequence": spec.window_bytes,
        "state_bytes_per_sequence": spec.state_bytes_with(drafted),
        "index_bytes_per_token": spec.index_bytes_per_token,
        "draft_bytes_per_token": spec.draft_bytes_per_token,
        "weights_bytes": spec.weights_bytes,
        "parameters": spec.parameters,
        "kv_bytes_per_element": spec.kv_bytes_per_element,
        "kv_cache_dtype_of_the_checkpoint": spec.kv_cache_dtype,
        "max_position_embeddings": spec.max_position_embeddings,
        "formulas": {
            key: formula.state_bytes(spec, drafted) if name == "state_bytes" else getattr(formula, name)(spec)
            for key, name in FORMULAS.items()
        },
        "notes": list(spec.notes),
    }


def _card(card: Any) -> dict[str, Any]:
    return {
        "tp": card.tp,
        "max_model_len": card.max_model_len,
        "total_bytes": card.total_bytes,
        "usable_bytes": card.usable_bytes,
        "weights_bytes": card.weights_bytes,
        "activation_bytes": card.activation_bytes,
        "other_bytes": card.other_bytes,
        "kv_bytes": card.kv_bytes,
        "kv_tokens": card.kv_tokens,
        "num_blocks": card.num_blocks,
        "sequences": card.max_sequences(card.max_model_len),
        "concurrency": card.concurrency(card.max_model_len),
        "longest_sequence": card.longest_sequence,
        "lines": [
            {"name": line.name, "value": line.value, "unit": line.unit, "formula": line.formula} for line in card.lines
        ],
        "problems": list(card.problems),
        "kv_tokens_by_version": card.kv_tokens_by_version,
        "pipeline_parallel_size": card.pp,
        "data_parallel_size": card.dp,
        "sequences_over_replicas": card.dp * card.max_sequences(card.max_model_len),
        "max_num_seqs": card.max_num_seqs,
        "max_num_batched_tokens": card.max_num_batched_tokens,
        "defaults": list(card.defaults),
        "remarks": list(card.remarks),
    }


def _table(spec: Any, card: Any, drafted: int) -> str:
    numbers = _model(spec, drafted)
    always = ("bytes_per_token", "bytes_per_token_after_window", "weights_bytes")
    rows = [
        (label, "-" if numbers[key] is None else f"{numbers[key]:,}", numbers["formulas"][key])
        for key, label in LABELS.items()
        if numbers[key] or key in always
    ]
    text = _align(f"{one_line(spec.name)}: bytes, with {spec.kv_bytes_per_element} per element of K and V", rows)
    if card is None:
        return text

    def value(line: Any) -> str:
        if line.value is None:
            return "-"
        return f"{line.value / GIB:,.2f} GiB" if line.unit == "bytes" else f"{line.value:,}"

    ranks = f", one of {card.tp * card.pp * card.dp} ranks" if card.tp * card.pp * card.dp > 1 else ""
    lines = [(line.name, value(line), line.formula) for line in card.lines]
    table = _align(f"Memory of the card{ranks}", lines)
    return "\n".join([text, "", table, *card.defaults])


def _align(heading: str, rows: list[tuple[str, str, str]]) -> str:
    """A heading, then name, figure and formula in columns."""
    names, figures = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join([heading, *(f"  {name:<{names}}  {figure:>{figures}}  {why}" for name, figure, why in rows)])
