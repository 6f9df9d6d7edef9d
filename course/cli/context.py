"""What was typed, of all that a command was called with."""

import typer


def typed_options(ctx: typer.Context) -> set[str]:
    """The names of the parameters that stand on the command line; the others are at their defaults."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
