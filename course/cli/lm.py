"""`course lm export DIR`: the small language model as a checkpoint that other engines serve."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from course.cli.output import echo


def lm(
    what: Annotated[
        Literal["export"], typer.Argument(help="export: write the model and its draft.", show_default=False)
    ],
    folder: Annotated[Path, typer.Argument(help="A folder that is empty or does not exist yet.", show_default=False)],
) -> None:
    """Write the small language model as a Hugging Face checkpoint, and its draft into the folder draft in it.

    Any engine that serves a Llama serves it: vLLM, SGLang, transformers.

    \b
    course lm export my-model
    vllm serve my-model --served-model-name course-lm --dtype float32 --host 127.0.0.1
    """
    from course.lm.export import export

    for path in export(folder):
        echo(str(path))
