"""`course kv`: what a model keeps of every token, and what of it fits on a card."""

import json
from typing import Annotated, Any

import typer

GIB = 2**30
GIVEN = ("weights", "activation", "other")


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
    num_speculative_tokens: Annotated[int, typer.Option(help="Drafted tokens: above 0, draft layers count.")] = 0,
    mamba_cache_mode: Annotated[str, typer.Option(help="none, or align: a second recurrent state.")] = "none",
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
    with_ledger = gpu is not None or memory_gib is not None
    try:
        spec, found = _spec(config, options)
        card = _ledger(spec, options) if with_ledger else None
    except (ValueError, OSError) as error:
        if as_json:
            typer.echo(json.dumps({"refused": _sentence(error)}))
        raise
    if as_json:
        typer.echo(json.dumps(found | (_as_dict(card) if card else {}), indent=2, allow_nan=False))
    else:
        typer.echo(_table(spec, found, card))
    for note in found["notes"]:
        typer.echo(f"note: {note}", err=True)
    for problem in card.problems if card else ():
        typer.echo(f"warning: {problem}", err=True)


def _spec(config: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model, and what it keeps, under the names of the JSON."""
    from pathlib import Path

    from course.cli.build import spoken_in_flags
    from course.models import ModelSpec, model, names

    with spoken_in_flags(options):
        known = config in names() and not Path(config).exists()
        spec = (model(config) if known else ModelSpec.from_config(config)).with_kv_dtype(options["kv_dtype"])
    return spec, {
        "model": spec.name,
        "bytes_per_token": spec.kv_bytes_per_token,
        "bytes_per_token_after_window": spec.kv_bytes_after_window,
        "window_bytes_per_sequence": spec.window_bytes,
        "state_bytes_per_sequence": spec.state_bytes,
        "index_bytes_per_token": spec.index_bytes_per_token,
        "draft_bytes_per_token": spec.draft_bytes_per_token,
        "weights_bytes": spec.weights_bytes,
        "kv_bytes_per_element": spec.kv_bytes_per_element,
        "max_position_embeddings": spec.max_position_embeddings,
        "notes": list(spec.notes),
    }


def _ledger(spec: Any, options: dict[str, Any]) -> Any:
    from course import budget
    from course.cli.build import spoken_in_flags
    from course.settings import real

    with spoken_in_flags(options):
        sizes = {}
        for name in ("memory", *GIVEN):
            gib = options[f"{name}_gib"]
            if gib is not None:
                sizes[f"{name}_bytes"] = GIB * real(f"{name}_gib", gib, low=0, high=10**5)
        rest = {name: value for name, value in options.items() if not name.endswith("_gib") and name != "kv_dtype"}
        return budget.ledger(spec, rest.pop("gpu"), **rest, **sizes)


def _sentence(error: Exception) -> str:
    named = isinstance(error, OSError) and error.filename
    return f"cannot read {error.filename}: {error.strerror}" if named else " ".join(str(error).split())


def _as_dict(card: Any) -> dict[str, Any]:
    return {
        "ledger": {
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
                {"name": line.name, "value": line.value, "unit": line.unit, "formula": line.formula}
                for line in card.lines
            ],
            "problems": list(card.problems),
        }
    }


def _table(spec: Any, found: dict[str, Any], card: Any) -> str:
    def size(number: float | None) -> str:
        return "-" if number is None else f"{number:,}"

    rows = [
        ("KV bytes a token", size(found["bytes_per_token"]), "every layer holds it"),
        ("once windows are full", size(found["bytes_per_token_after_window"]), "layers without a window"),
    ]
    rows += [
        (label, size(found[key]), why)
        for label, key, why in (
            ("bytes of full windows", "window_bytes_per_sequence", "window x bytes a token, a sequence"),
            ("recurrent state bytes", "state_bytes_per_sequence", "a sequence, whatever its length"),
            ("indexer bytes a token", "index_bytes_per_token", "beside K and V"),
            ("draft bytes a token", "draft_bytes_per_token", "with speculative decoding"),
        )
        if found[key]
    ]
    rows.append(("weights, bytes", size(found["weights_bytes"]), "all layers, embedding and head"))
    heading = f"{found['model']}: KV of {spec.kv_bytes_per_element} B an element"
    text = _aligned(heading, rows)
    if card is None:
        return text

    def value(line: Any) -> str:
        if line.value is None:
            return "no limit"
        return f"{line.value / GIB:,.2f} GiB" if line.unit == "bytes" else f"{line.value:,}"

    ranks = f", one of {card.tp} ranks" if card.tp > 1 else ""
    lines = [(line.name, value(line), line.formula) for line in card.lines]
    return text + "\n\n" + _aligned(f"Memory of the card{ranks}", lines)


def _aligned(heading: str, rows: list[tuple[str, str, str]]) -> str:
    """A heading, then name, figure and formula in columns."""
    names, figures = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join([heading, *(f"  {name:<{names}}  {figure:>{figures}}  {why}" for name, figure, why in rows)])
