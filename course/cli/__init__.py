"""The `course` command. Every subcommand is a module of this package, and fetches what it needs when it runs.

Exit status: 0, or 2 with one sentence on stderr for bad input, or 130 after Ctrl-C, or SIGPIPE (141 in a shell) where
nobody reads on; `course doctor` has 1 where it finds a problem. What a command is asked for goes to stdout, everything
else to stderr. To add a command, write a module with a function and register it at the end of this one.
"""

import sys

try:  # the first tenths of a second, in which Ctrl-C must not give a traceback either
    import signal
    from contextlib import suppress
    from typing import Annotated, Any

    import typer
    from typer.core import TyperGroup

    from course.base.streams import forgiving
    from course.cli import bench, compare, doctor, flags, kv, labs, reset, results, serve, simulate, talk
except KeyboardInterrupt:
    sys.exit(130)
except ImportError as error:
    sys.exit(f"course: the installation is not complete ({error}): remove .venv/.installed, then `make lab`")


class OneSentence(TyperGroup):
    """A group that answers every kind of bad input in the same way: one sentence on stderr, exit status 2."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; what it refuses becomes a sentence."""
        try:
            if sys.stdout is None:
                raise ValueError("the standard output is closed: there is nowhere to write to")
            forgiving()
            extra["standalone_mode"] = False
            status = super().main(*args, **extra)
        except typer.TyperException as error:  # an option that does not exist, or a value that is no number
            status = _refuse(error.format_message(), error.exit_code)
        except OSError as error:
            status = _refuse(_of_the_system(error))
        except ValueError as error:
            status = _refuse(str(error))
        except ImportError as error:
            status = _refuse(f"the installation is not complete ({error}): `course doctor` says what is missing", 1)
        except MemoryError:
            status = _refuse("not enough memory for this many requests: take fewer")
        except KeyboardInterrupt:
            status = 130
        status = status if isinstance(status, int) else 0
        if standalone_mode:
            sys.exit(status)
        return status


def _of_the_system(error: OSError) -> str:
    """A sentence for what the operating system refused; an error of the course's own brings one."""
    if error.strerror is None:
        return str(error) or type(error).__name__
    if error.filename is None:
        return f"reading or writing failed: {error.strerror}"
    return f"cannot read {error.filename}: {error.strerror}"


def _refuse(sentence: str, status: int = 2) -> int:
    typer.echo(f"course: {' '.join(sentence.split())}", err=True)
    return status


app = typer.Typer(
    cls=OneSentence,
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    rich_markup_mode=None,  # panels would cut the long option names off
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"course {version('llm-batching-course')}")
        raise typer.Exit


@app.callback()
def _course(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Batching for LLM inference, from the command line."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


app.command(name="simulate", short_help="Send requests through one policy or several.")(simulate.simulate)
app.command(name="bench", short_help="Measure a toy decode step on the GPU or CPU at hand.")(bench.bench)
app.command(name="talk", short_help="Talk with a small language model, or watch a policy make it speak.")(talk.talk)
app.command(name="serve", short_help="Serve the small language model over HTTP, for load generators.")(serve.serve)
app.command(name="kv", short_help="KV bytes a token of a model, and what fits on a card.")(kv.kv)
app.command(name="doctor", short_help="Check that the labs will run on this machine.")(doctor.doctor)
app.command(name="flags", short_help="A policy as engine settings, and a vLLM command line as a policy.")(flags.flags)
app.command(name="labs", short_help="List the labs, with your progress and your copies.")(labs.labs)
app.command(name="reset", short_help="Start a lab again; your copy is kept.")(reset.reset)
app.command(name="compare", short_help="A measured run beside the same requests in the simulator.")(compare.compare)
app.command(name="results", short_help="Compare result files of benchmark tools.")(results.results)


def main() -> None:
    """Entry point of the `course` command."""
    try:
        with suppress(AttributeError):  # Windows has no SIGPIPE
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        app(prog_name="course")
    except KeyboardInterrupt:
        sys.exit(130)
