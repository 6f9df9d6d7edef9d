"""`course talk`: a chat with the small language model, or a list of prompts under one policy or several."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from course.base import textfiles
from course.cli.common import Blocks, BlockSize, Computes
from course.cli.knobs import NAMES, with_policy_options
from course.cli.output import echo, json_text

MOST = 1_000  # prompts of a replay
MOST_BYTES = 2**22  # of their file: a thousand prompts that fill the context have 2 MB
REFRESH = 0.05  # seconds between two pictures on a terminal
TAIL = 60  # letters of an answer that a line shows


@with_policy_options
def talk(
    prompts: Annotated[
        Path | None,
        typer.Option(help="A file with one prompt per line, answered side by side; - reads standard input."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="With --prompts: how many arrive per second (Poisson).  [default: all at once]")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{NAMES}; several, separated by commas or repeated, run one after the other.  [default: continuous]"
        ),
    ] = None,
    num_gpu_blocks_override: Blocks = None,
    block_size: BlockSize = 16,
    max_tokens: Annotated[
        int | None, typer.Option(help="Most tokens of an answer.  [default: what the context has room for]")
    ] = None,
    temperature: Annotated[float, typer.Option(help="Sampling temperature; 0 always takes the likeliest token.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of the arrivals and of the tokens.")] = 0,
    device: Computes = None,
    as_json: Annotated[bool, typer.Option("--json", help="With --prompts: JSON; times in seconds.")] = False,
    **settings: Any,
) -> None:
    """Talk with a small language model that runs on this machine, or watch it answer many prompts under a policy.

    It counts, adds, spells, makes lists and tells stories. course/lm/CARD.md says how it was
    made, and what it cannot do.

    \b
    course talk
    course talk --prompts prompts.txt --policy static,continuous --max-num-seqs 4
    """
    from course import lm
    from course.cli import build, knobs

    options = {**settings, "policy": policy, "block_size": block_size}
    with build.spoken_in_flags(options):
        knobs.check(options)
        by_name = build.policies(options)
    cache = _cache(num_gpu_blocks_override, block_size)
    sampling = lm.Sampling(temperature, seed=seed)
    if prompts is None:
        for name, value in (("--rate", rate), ("--policy", policy), ("--json", as_json or None)):
            if value is not None:
                raise ValueError(f"{name} is for --prompts FILE: a chat has a single user")
        _chat(lm.load(device=device), sampling, max_tokens)
        return
    texts = _lines(prompts)
    questions = (
        lm.Questions.at_once(texts, max_tokens) if rate is None else lm.Questions.poisson(texts, rate, seed, max_tokens)
    )
    model = lm.load(device=device)
    runs: dict[str, Any] = {}
    for name, one in by_name.items():
        if not as_json:
            echo(f"== {one!r}, {len(texts)} prompts")
        picture = _Picture(texts) if sys.stdout.isatty() and not as_json else None
        try:
            runs[name] = lm.serve_live(
                questions, one, model, cache, sampling=sampling, seen=picture.show if picture else None
            )
        finally:
            if picture is not None:
                picture.close()
        if not as_json:
            _report(texts, runs[name])
    if as_json:
        echo(json_text([_as_dict(name, repr(by_name[name]), run) for name, run in runs.items()]))
    elif len(runs) > 1:
        same = len({run.words for run in runs.values()}) == 1
        echo("The words are the same under all of them." if same else "The words are NOT the same under all of them.")


def _cache(num_blocks: int | None, block_size: int) -> Any:
    from course.memory.kvcache import KVCache

    return None if num_blocks is None else KVCache(num_blocks, block_size)


def _lines(path: Path) -> list[str]:
    """The prompts of a file. ValueError for none, and for bytes that are no text."""
    if str(path) == "-":
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"standard input has more than {MOST_BYTES // 2**20} MiB of prompts: use fewer")
        try:
            content = data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text in UTF-8: byte {error.start} is {data[error.start]:#04x}") from None
    else:
        content = textfiles.text(path, "prompts", "text", MOST_BYTES)
    texts = [line.strip() for line in content.splitlines() if line.strip()]
    if not texts:
        raise ValueError(f"{path} has no prompts: write one per line")
    if len(texts) > MOST:
        raise ValueError(f"{path} has {len(texts):,} prompts, and at most {MOST:,} are answered: use fewer")
    return texts


def _chat(model: Any, sampling: Any, max_tokens: int | None) -> None:
    """One conversation after the other, until the input ends."""
    from course import lm
    from course.policies import Continuous

    context = model.config.max_position_embeddings
    if sys.stdin.isatty():
        echo("Ask something, such as: Count from 3 to 9. An empty line starts a new chat, Ctrl-D ends.", err=True)
    turns: list[str] = []
    while (line := _ask()) is not None:
        if not line.strip():
            turns = []
            continue
        turns.append(line)
        # What was said first is forgotten when the context is full; a long answer has 170 tokens.
        while len(turns) > 1 and len(model.tokenizer.prompt(turns)) > context - 170:
            turns = turns[2:]
        try:
            run = lm.serve_live(
                lm.Questions([turns], [0.0], max_tokens), Continuous(1, 512), model, sampling=sampling, heard=_write
            )
        except lm.LMError as error:
            echo(f"course: {error}", err=True)
            turns.pop()
            continue
        echo("")
        turns.append(run.words[0])


def _ask() -> str | None:
    """The next line of the input; None at its end."""
    if sys.stdin.isatty():
        try:
            return input("> ")
        except EOFError:
            echo("")
            return None
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _write(row: int, text: str, ended: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class _Picture:
    """A picture of all answers as they grow, one line each; a dot stands for a token of padding."""

    def __init__(self, prompts: Sequence[str]):
        from rich.console import Console
        from rich.live import Live

        self.prompts, self.last = prompts, 0.0
        self.console = Console()
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.live.start()

    def show(self, answers: Mapping[int, Any]) -> None:
        """Draw the picture, unless one was drawn a moment ago. This is part of the step's time."""
        from rich.text import Text

        now = time.perf_counter()
        if now - self.last < REFRESH:
            return
        self.last = now
        begun = [(row, one) for row, one in answers.items() if len(one.tokens) > one.prompt_tokens]
        lines = []
        for row, one in begun[-(self.console.height - 2) :]:
            line = Text(f"{row:4} {self.prompts[row][:30]:30} ", style="dim" if one.ended else "")
            line.append(" ".join(one.words.split())[-TAIL:])
            line.append("." * min(one.padding, 40), style="red")
            lines.append(line)
        self.live.update(Text("\n").join(lines), refresh=True)

    def close(self) -> None:
        """Restore the terminal."""
        self.live.stop()


def _report(prompts: Sequence[str], run: Any) -> None:
    import numpy as np

    for row in np.argsort(run.response, kind="stable").tolist():
        words = " ".join(run.words[row].split())
        cut = "" if run.ended[row] == "stop" else f" [{run.ended[row]}]"
        echo(f"{run.response[row]:8.3f} s  #{row} {prompts[row]}\n            {words}{cut}")
    tokens = int(run.workload.output_tokens.sum())
    for name in ("ttft", "tpot", "e2e"):
        values = getattr(run, name)
        if np.isfinite(values).any():
            middle, high = np.nanpercentile(values, [50, 95])
            echo(f"{name.upper():5} p50 {1e3 * middle:9.1f} ms   p95 {1e3 * high:9.1f} ms")
    wasted = int(run.steps.wasted.sum())
    echo(
        f"{tokens:,} tokens in {run.makespan:.2f} s, {tokens / run.makespan:,.0f} a second; {len(run.steps):,} steps, "
        f"{wasted:,} tokens of padding, {int(run.preempted.sum()):,} preemptions. Measured now, on this machine."
    )


def _as_dict(name: str, policy: str, run: Any) -> dict[str, Any]:
    rows = [
        {"arrival": arrival, "ttft": ttft, "e2e": e2e, "prompt_tokens": prompt, "output_tokens": output,
         "words": words, "ended": ended}
        for arrival, ttft, e2e, prompt, output, words, ended in zip(
            run.arrival.tolist(), run.ttft.tolist(), run.e2e.tolist(), run.workload.prompt_tokens.tolist(),
            run.workload.output_tokens.tolist(), run.words, run.ended, strict=True,
        )
    ]  # fmt: skip
    return {
        "name": name,
        "policy": policy,
        "steps": len(run.steps),
        "padding_tokens": int(run.steps.wasted.sum()),
        "preemptions": int(run.preempted.sum()),
        "makespan": run.makespan,
        "answers": rows,
    }
