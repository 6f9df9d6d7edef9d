"""Options that several commands have."""

from typing import Annotated

import typer


class AsTyped(ValueError):
    """A sentence in the words of what was typed, or of a file: no name in it stands for an option."""


Mine = Annotated[str | None, typer.Option(metavar="FOLDER", help="Your copies.  [default: MY_LABS, or my-labs]")]
HandedOut = Annotated[
    str | None, typer.Option("--labs", metavar="FOLDER", help="The handed-out labs.  [default: labs]")
]
Computes = Annotated[
    str | None,
    typer.Option(
        help="cuda (an NVIDIA GPU), cpu (the GPU's kernels compiled for one core) or numpy (the same in NumPy).  "
        "[default: the model's own NumPy code]"
    ),
]
"""What the language model runs on."""
Blocks = Annotated[
    int | None,
    typer.Option("--num-gpu-blocks-override", "--num-gpu-blocks", help="KV blocks.  [default: enough for all slots]"),
]
BlockSize = Annotated[int, typer.Option(help="Tokens in a KV block.")]
