"""`course profile`: record how long steps of a model take on this GPU, for `steptime.recorded` to read."""

from pathlib import Path
from typing import Annotated

import typer

from course.cli.output import echo


def profile(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The .json file to write; saved after each point.")
    ],
    model: Annotated[
        str, typer.Option(help="A model that the course knows, or the path of a config.json; dense Llama models only.")
    ] = "llama-3.1-8b",
    kind: Annotated[str, typer.Option(help="bf16, fp16 or fp32.")] = "bf16",
    cache_tokens: Annotated[
        int, typer.Option(help="Tokens of KV to make room for; points that need more are left out.")
    ] = 262_144,
    limit: Annotated[float, typer.Option(help="Seconds after which no further point starts.")] = 600.0,
) -> None:
    """Record step times on this GPU: decodes by batch and context, chunks by size and what is cached, and both.

    The file has the card, driver, versions, model, date, clocks, this command, the spread of every point and the watts
    of the card, if its driver counts them. Weights are random. Read it with steptime.recorded("FILE").

    \b
    course profile --out my-card.json
    course profile --out 1b.json --model path/to/config.json --limit 120
    """
    from course import gpu, steptime
    from course.base.settings import quote, real, whole
    from course.gpu import step_profile
    from course.gpu.ops.numbers import checked_kind
    from course.models import ModelSpec
    from course.models import model as known

    if out.suffix != ".json":
        raise ValueError(f"--out must end in .json, which marks a recording as a file, not {quote(str(out))}")
    if out.is_dir():
        raise ValueError(f"--out must be a file, and {out} is a folder: choose another name")
    if not out.parent.is_dir():
        raise ValueError(f"--out is in a folder that does not exist: make {out.parent} first")
    checked_kind(kind)
    room = whole("--cache-tokens", cache_tokens, low=4_096, high=10**9)
    seconds = real("--limit", limit, low=1, high=86_400)
    spec = ModelSpec.from_config(model) if Path(model).suffix == ".json" else known(model)
    tied = spec.weights is not None and not spec.weights.head
    command = f"course profile --out {out} --model {model} --kind {kind} --cache-tokens {room} --limit {seconds:g}"
    try:
        profile_data = step_profile.record(
            gpu.device("cuda"),
            spec,
            out,
            command=command,
            tied=tied,
            kind=kind,
            cache_tokens=room,
            limit=seconds,
            told=lambda text: echo(text, err=True),
        )
    except gpu.KernelError as error:
        raise ValueError(
            f"{error}: without a GPU that can record, use the steptime.recorded('h100-llama3-8b') of the course"
        ) from None
    points = len(profile_data["points"]["seconds"]) if profile_data else 0
    if not points:
        raise ValueError("no point could be measured, so there is no file: the lines above say why")
    echo(f"{out}: {points} points of {spec.name} on {profile_data['provenance']['card']}")
    try:
        echo(f"As a step time: {steptime.recorded(out)!r}")
    except ValueError as error:
        echo(f"Too few points for a step time: {error}. Give it more time with --limit.")
