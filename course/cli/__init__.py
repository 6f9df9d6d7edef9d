"""The `course` command. Every subcommand is a module of this package, and fetches what it needs when it runs.

Exit status: 0, or 2 with one sentence on stderr for bad input, or 130 after Ctrl-C, or SIGPIPE (141 in a shell) where
the reader of a pipe has gone; `course doctor` has 1 if it finds a problem. What a command is asked for goes to stdout,
everything else to stderr. To add a command, write a module with a function of its name and add a line to COMMANDS.
"""

import sys

try:  # the first tenths of a second, in which Ctrl-C must not give a traceback either
    from course.base import interrupt

    interrupt.listen()
    import signal
    from contextlib import suppress
    from importlib import import_module
    from keyword import iskeyword
    from typing import Annotated, Any

    import typer
    from typer.core import TyperGroup

    from course.base.streams import forgiving, shortened
    from course.cli.output import echo
except KeyboardInterrupt:
    print("course: stopped by Ctrl-C", file=sys.stderr)
    sys.exit(130)
except ImportError as error:
    sys.exit(f"course: the installation is not complete ({error}): remove .venv/.installed, then `make lab`")


COMMANDS = {
    "lab": "Open the labs in JupyterLab.",
    "simulate": "Serve requests under one policy or several.",
    "sweep": "Serve with many settings, on all cores or several machines; the best designs.",
    "bench": "Time a toy decode step on the GPU or CPU of this machine.",
    "profile": "Record how long steps of a model take on this GPU.",
    "talk": "Talk with a small language model, or watch it answer under a policy.",
    "serve": "Serve the small language model over HTTP, for load generators.",
    "lm": "Write the small language model as a checkpoint for other engines.",
    "kv": "Show a model's KV bytes per token, and what fits on a card.",
    "doctor": "Check that the labs will run on this machine.",
    "flags": "Turn a policy into engine settings, or an engine's command line into a policy.",
    "labs": "List the labs, with your progress and your copies.",
    "reset": "Start a lab again; your copy is kept.",
    "progress": "Print or write what you have done, without your name.",
    "class": "Add up what the learners of a class have done.",
    "compare": "Compare a measured run with the same requests in the simulator.",
    "look": "Read a log, periodic lines or a printed result, and name the limit.",
    "results": "Compare result files of benchmark tools, or read vLLM's metrics.",
}


class OneSentence(TyperGroup):
    """A group that answers every kind of bad input in the same way: one sentence on stderr, exit status 2.

    A command's module is imported when it is asked for: the list of commands needs none of them.
    """

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        nothing = typer.core.TyperCommand(None)  # "Did you mean" chooses from the names
        self.commands = dict.fromkeys(COMMANDS, nothing)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, as they are listed."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name  # `class`
        function = getattr(import_module(f"course.cli.{name}"), name)
        alone.command(name=cmd_name, short_help=COMMANDS[cmd_name])(function)
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list for `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

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
            status = _refuse("there is not enough memory for this many requests: use fewer")
        except KeyboardInterrupt:
            status = interrupt.STATUS
        status = status if isinstance(status, int) else 0
        if status == interrupt.STATUS:  # typer answers Ctrl-C within a command itself, with this status
            echo(interrupt.STOPPED, err=True)
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
    echo(f"course: {shortened(' '.join(sentence.split()))}", err=True)
    return status


app = typer.Typer(
    cls=OneSentence,
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    rich_markup_mode=None,  # panels would cut the long option names off
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version

        echo(f"course {version('llm-batching-course')}")
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
        echo(ctx.get_help())


def main() -> None:
    """Entry point of the `course` command."""
    try:
        interrupt.listen()
        with suppress(AttributeError):  # Windows has no SIGPIPE
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        app(prog_name="course")
    except KeyboardInterrupt:
        print(interrupt.STOPPED, file=sys.stderr)
        sys.exit(interrupt.STATUS)


interrupt.rest()  # whoever only imports this keeps the Ctrl-C of Python
