"""`course kv`: what a model keeps of every token, and what of it fits on a card."""

import json
import re
from typing import Annotated, Any

import typer

from course.cli.context import typed_options

GIB = 2**30
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
    gpu: Annotated[str | None, typer.Option(help="The card, such as H100: adds the ledger of its memory.")] = None,
    memory_gib: Annotated[float | None, typer.Option(help="The card's memory instead of its name, in GiB.")] = None,
    tp: Annotated[int, typer.Option(help="Ranks of tensor parallelism; the ledger is that of one.")] = 1,
    kv_dtype: Annotated[
        str | None, typer.Option(help="Type of K and V: bfloat16, fp8, ...; auto for what the checkpoint asks for.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option(help="Tokens of a sequence; the model's own by default.")] = None,
    gpu_memory_utilization: Annotated[float, typer.Option(help="Share of the card that the engine takes.")] = 0.9,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Tokens of a step.")] = 2048,
    max_num_seqs: Annotated[int, typer.Option(help="Sequences of a step.")] = 256,
    block_size: Annotated[int, typer.Option(help="Tokens of a block.")] = 16,
    num_gpu_blocks_override: Annotated[
        int | None, typer.Option(help="Blocks that somebody claims: are they possible?")
    ] = None,
    num_speculative_tokens: Annotated[int, typer.Option(help="Drafted tokens: above 0, draft layers count.")] = 0,
    mamba_cache_mode: Annotated[str, typer.Option(help="none, or align: a second recurrent state.")] = "none",
    disable_hybrid_kv_cache_manager: Annotated[
        bool, typer.Option("--disable-hybrid-kv-cache-manager", help="Layers with a window keep every token.")
    ] = False,
    weights_gib: Annotated[float | None, typer.Option(help="Weights per card, as your engine prints them.")] = None,
    activation_gib: Annotated[float | None, typer.Option(help="Peak of activations, as printed.")] = None,
    other_gib: Annotated[float | None, typer.Option(help="CUDA context, NCCL and graphs, as printed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table; sizes in bytes.")] = False,
) -> None:
    """KV bytes a token of a model, and with a GPU what fits: its memory line by line.

    \b
    course kv config.json
    course kv config.json --gpu H100 --max-model-len 8192
    course kv config.json --memory-gib 23.5 --kv-dtype fp8
    """
    options = {name: value for name, value in ctx.params.items() if name not in ("config", "as_json")}
    card = None
    try:
        spec = _spec(config, options["kv_dtype"])
        if gpu is not None or memory_gib is not None:
            card = _ledger(spec, options)
    except (ValueError, OSError) as error:
        refused = ValueError(_in_flags(error, options))
        if as_json:
            typer.echo(json.dumps({"refused": str(refused)}))
        raise refused from None
    if as_json:
        typer.echo(json.dumps(_model(spec) | ({"ledger": _card(card)} if card else {}), indent=2, allow_nan=False))
    else:
        typer.echo(_table(spec, card))
    for note in spec.notes:
        typer.echo(f"note: {note}", err=True)
    for problem in card.problems if card else ():
        typer.echo(f"warning: {problem}", err=True)
    if card is None:
        given = typed_options(ctx) & options.keys() - {"kv_dtype"}
        for name in sorted(given):
            typer.echo(f"warning: --{name.replace('_', '-')} has no effect without --gpu or --memory-gib", err=True)


def _spec(config: str, kv_dtype: str | None) -> Any:
    """The model of that name, unless a file is called so, or of that file."""
    from pathlib import Path

    from course.models import ModelSpec, model, names

    known = config in names() and not Path(config).exists()
    return (model(config) if known else ModelSpec.from_config(config)).with_kv_dtype(kv_dtype)


def _ledger(spec: Any, options: dict[str, Any]) -> Any:
    from course import memory
    from course.base.settings import real

    rest = {name: value for name, value in options.items() if name != "kv_dtype"}
    for name in ("memory", "weights", "activation", "other"):
        gib = rest.pop(f"{name}_gib")
        if gib is not None:
            rest[f"{name}_bytes"] = GIB * real(f"{name}_gib", gib, low=0, high=10**5)
    return memory.ledger(spec, rest.pop("gpu"), **rest)


def _in_flags(error: Exception, options: dict[str, Any]) -> str:
    """The sentence of an error, with the flags of this command for the names of the library."""
    if isinstance(error, OSError):
        return f"cannot read {error.filename}: {error.strerror}" if error.filename else str(error)
    names = {name: f"--{name.replace('_', '-')}" for name in options if "_" in name}
    names |= {name.replace("_gib", "_bytes"): flag for name, flag in names.items() if name.endswith("_gib")}
    sentence = " ".join(str(error).split())
    if re.match(r"\w+ must be ", sentence):
        first, rest = sentence.split(" ", 1)
        sentence = f"{names.get(first, f'--{first}' if first in options else first)} {rest}"
    return re.sub(r"\b(?:" + "|".join(names) + r")\b", lambda found: names[found[0]], sentence)


def _model(spec: Any) -> dict[str, Any]:
    """What the model keeps, under the names of the JSON, each with its formula."""
    from course.models import formula

    return {
        "model": spec.name,
        "bytes_per_token": spec.kv_bytes_per_token,
        "bytes_per_token_after_window": spec.kv_bytes_after_window,
        "window_bytes_per_sequence": spec.window_bytes,
        "state_bytes_per_sequence": spec.state_bytes,
        "index_bytes_per_token": spec.index_bytes_per_token,
        "draft_bytes_per_token": spec.draft_bytes_per_token,
        "weights_bytes": spec.weights_bytes,
        "parameters": spec.parameters,
        "kv_bytes_per_element": spec.kv_bytes_per_element,
        "kv_cache_dtype_of_the_checkpoint": spec.kv_cache_dtype,
        "max_position_embeddings": spec.max_position_embeddings,
        "formulas": {key: getattr(formula, name)(spec) for key, name in FORMULAS.items()},
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
    }


def _table(spec: Any, card: Any) -> str:
    found = _model(spec)
    always = ("bytes_per_token", "bytes_per_token_after_window", "weights_bytes")
    rows = [
        (label, "-" if found[key] is None else f"{found[key]:,}", found["formulas"][key])
        for key, label in LABELS.items()
        if found[key] or key in always
    ]
    text = _align(f"{_printable(spec.name)}: bytes, with {spec.kv_bytes_per_element} an element of K and V", rows)
    if card is None:
        return text

    def value(line: Any) -> str:
        if line.value is None:
            return "-"
        return f"{line.value / GIB:,.2f} GiB" if line.unit == "bytes" else f"{line.value:,}"

    ranks = f", one of {card.tp} ranks" if card.tp > 1 else ""
    lines = [(line.name, value(line), line.formula) for line in card.lines]
    return text + "\n\n" + _align(f"Memory of the card{ranks}", lines)


def _align(heading: str, rows: list[tuple[str, str, str]]) -> str:
    """A heading, then name, figure and formula in columns."""
    names, figures = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join([heading, *(f"  {name:<{names}}  {figure:>{figures}}  {why}" for name, figure, why in rows)])


def _printable(name: str) -> str:
    """A file's name may hold anything: what no terminal prints is shown as Python writes it."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in name)
