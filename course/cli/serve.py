"""`course serve`: the small language model behind an HTTP server on this machine, for real load generators."""

import secrets
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from course.cli.common import Blocks, BlockSize, Computes
from course.cli.knobs import NAMES, with_policy_options
from course.cli.output import echo

NEEDED = ("starlette", "uvicorn", "prometheus_client")


@with_policy_options
def serve(
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0 takes a free one.")] = 8000,
    api_key: Annotated[
        str | None, typer.Option(help="The API key that clients send.  [default: a new one, which is printed]")
    ] = None,
    policy: Annotated[str, typer.Option(help=f"One of {NAMES}.")] = "continuous",
    num_gpu_blocks_override: Blocks = None,
    block_size: BlockSize = 16,
    max_waiting: Annotated[
        int, typer.Option(help="Requests that may wait for a slot; the next one is refused with status 429.")
    ] = 256,
    device: Computes = None,
    **settings: Any,
) -> None:
    """Serve a small language model over HTTP, with OpenAI's API, so that a load generator can be pointed at a policy.

    It serves /v1/completions and /v1/chat/completions, with streams, /v1/models, and /metrics under vLLM's names. It
    listens on 127.0.0.1 only, and below /v1 a client needs the API key. Ctrl-C stops it.

    \b
    course serve --policy continuous --max-num-seqs 16 --max-num-batched-tokens 128
    curl localhost:8000/v1/completions -H "Authorization: Bearer API_KEY" -d '{"prompt": "Spell owl."}'
    """
    from course.cli import build, knobs
    from course.desk.doctor import repair
    from course.memory.kvcache import KVCache

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ValueError(f"the server needs {', '.join(missing)}, which is not installed: run {repair.install()}")
    options = {**settings, "policy": [policy], "block_size": block_size}
    with build.spoken_in_flags(options):
        knobs.check(options)
        by_name = build.policies(options)
    if len(by_name) != 1:
        raise ValueError("a server has one policy: give one name to --policy")
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""):
        raise ValueError(
            "--api-key must be letters, digits and other printable ASCII characters, without spaces around them"
        )
    ((name, one),) = by_name.items()
    cache = None if num_gpu_blocks_override is None else KVCache(num_gpu_blocks_override, block_size)

    from course import lm
    from course.base import interrupt
    from course.lm.http.run import open_port, run
    from course.lm.http.service import Service

    token = secrets.token_urlsafe(16) if api_key is None else api_key
    service = Service(lm.load(device=device), one, cache, max_waiting)
    listening = open_port(port)

    def started() -> None:
        key = f"api-key {token}" if api_key is None else "api-key as given"
        echo(f"http://127.0.0.1:{listening.getsockname()[1]}/v1  model course-lm  {key}  {one!r}")
        echo("Prompts stay on this machine. Ctrl-C stops the server.", err=True)
        if name == "static":
            echo(f"note: {one!r} begins when its batch is full; the last requests wait until others come", err=True)
        interrupt.outlive_connections()

    run(service, listening, token, started)
