"""The words of a vLLM command line, and which option each belongs to, as vLLM 0.19 reads them.

--name=value, underscores for dashes, short options, --option.key and -cc.key for parts of a JSON option, unambiguous
beginnings of long options, and an option given twice (the last counts) are all as in vLLM.
"""

import csv
import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from course.base.settings import quote
from course.flags import variables
from course.models import engine_defaults

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
SERVER = "vllm.entrypoints.openai.api_server"
ANOTHER = frozenset({"bench", "chat", "complete", "run-batch", "collect-env", "launch"})
REMOVED_OPTIONS = {
    "--disable-log-requests": "requests are not logged unless --enable-log-requests says so",
    "--swap-space": "preempted requests are computed again, and nothing is swapped",
    "--device": "the platform is found",
    "--guided-decoding-backend": "--structured-outputs-config has it",
    "--num-scheduler-steps": "multi-step scheduling is gone; --async-scheduling overlaps instead",
    "--multi-step-stream-outputs": "multi-step scheduling is gone",
    "--use-v2-block-manager": "there is one block manager",
    "--preemption-mode": "preempted requests are computed again",
    "--max-seq-len-to-capture": "--max-cudagraph-capture-size counts tokens of a step",
    "--enable-reasoning": "--reasoning-parser suffices",
    "--speculative-model": "--speculative-config has it",
    "--num-speculative-tokens": "--speculative-config has it",
    "--disable-async-output-proc": "--no-async-scheduling",
    "--worker-use-ray": "--distributed-executor-backend ray",
    "--engine-use-ray": "there is one engine process",
    "--disable-frontend-multiprocessing": "the engine has a process of its own",
    "--num-lookahead-slots": "--speculative-config has it",
    "--scheduler-delay-factor": "a prompt is scheduled in the next step",
    "--task": "--runner and --convert",
    "--full-cuda-graph": "--compilation-config has cudagraph_mode",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes",
    "--hf-token-path": "--hf-token",
}
"""Options that older versions had, and what has their place in 0.19."""


@dataclass(frozen=True)
class Words:
    """What a command line says. options: name -> value, True or False for a flag. notes: what a reader should know."""

    model: str | None
    options: dict[str, str | bool]
    notes: tuple[str, ...]


@lru_cache
def table() -> tuple[dict[str, str], dict[str, str]]:
    """Long option -> what it takes (flag, switch, value, values, optional), and short option -> long one."""
    text = (files("course") / "data" / "vllm_options.csv").read_text(encoding="utf-8")
    takes, short = {}, {"-O": "--optimization-level"}
    for row in csv.DictReader(text.splitlines()):
        takes[row["option"]] = row["takes"]
        for name in row["short"].split():
            short[name] = row["option"]
    return takes, short


def words(parts: Sequence[str], *, ignore_unknown: bool = False) -> Words:
    """What the words of a command mean. ValueError, in a sentence, if it is no vLLM server's or vLLM refuses it.

    ignore_unknown: options that vLLM 0.19 does not have become a note instead.
    """
    parts, notes = _arguments(list(parts)), []
    options: dict[str, str | bool] = {}
    model, place, unknown = None, 0, []
    while place < len(parts):
        word, place = parts[place], place + 1
        if not word.startswith("-") or word == "-":
            if word.startswith("$") and list(variables.empty(word)):
                notes.append(f"{word} is a shell variable without a value, and what it stands for is not read")
                continue
            if model is not None:
                raise ValueError(f"{quote(word)} belongs to no option, and the model is {quote(model)} already")
            model = word
            continue
        name, equals, value = word.partition("=")
        match = _option(name)
        if match is None:
            if not ignore_unknown:
                raise ValueError(_unknown(name))
            unknown.append(name)
            if not equals and place < len(parts) and not parts[place].startswith("-"):
                place += 1
            continue
        option, on, kind = match
        if kind in ("flag", "switch"):
            if equals and list(variables.empty(value)):
                raise ValueError(
                    f"{name} is {quote(value)}, a variable without a value: write its value "
                    "instead, or give it with --env"
                )
            if equals:
                raise ValueError(f"{name} takes no value: write {option} or --no-{option[2:]}, not {quote(word)}")
            value_text: str | bool = on
        elif equals:
            value_text = value
        else:
            values = [] if place >= len(parts) or _is_option(parts[place]) else [parts[place]]
            if kind == "values":
                while place + len(values) < len(parts) and not _is_option(parts[place + len(values)]):
                    values.append(parts[place + len(values)])
            if not values and kind != "optional":
                raise ValueError(f"{name} needs a value: write it after the option")
            place += len(values)
            value_text = " ".join(values)
        if option in options and "." not in name and options[option] != value_text:
            notes.append(f"{option} is given twice: the last one counts, {_value(option, value_text)}")
        options[option] = value_text
    if unknown:
        notes.append(f"{engine_defaults.VERSION} does not know {', '.join(dict.fromkeys(unknown))}: left out")
    if "--model" in options:
        if model is not None and model != options["--model"]:
            raise ValueError(f"two models are named, {quote(model)} and {quote(options['--model'])}: keep one")
        model = str(options.pop("--model"))
    return Words(model, options, tuple(notes))


def _arguments(parts: list[str]) -> list[str]:
    """What follows `vllm serve`, or the words as they are if they start with an option."""
    if parts and parts[0].startswith("-"):
        return parts
    while parts and (ASSIGNMENT.fullmatch(parts[0]) or parts[0] in ("env", "exec", "nohup", "sudo", "time", "$")):
        parts = parts[1:]
    for place, part in enumerate(parts):
        program = part.rsplit("/", 1)[-1]
        following = parts[place + 1] if place + 1 < len(parts) else ""
        if part == SERVER or "vllm-openai" in program:
            rest = parts[place + 1 :]
            return rest[1:] if rest[:1] == ["serve"] else rest
        if program == "vllm" and following == "serve":
            return parts[place + 2 :]
        if program == "vllm" and following in ANOTHER:
            raise ValueError(f"`vllm {following}` does not start a server: give the line with `vllm serve`")
    what = quote(" ".join(parts)) if parts else "nothing"
    raise ValueError(f"a vLLM command line starts with `vllm serve MODEL`, or with an option; this is {what}")


def _option(name: str) -> tuple[str, bool, str] | None:
    """(long option, whether it turns a flag on, what it takes), or None if vLLM knows no such option.

    ValueError if a beginning fits several.
    """
    takes, short = table()
    if not name.startswith("--"):
        if re.fullmatch(r"-O\d", name):
            return "--optimization-level", True, "switch"  # the level is part of the word
        long = short.get(name.split(".", 1)[0].rstrip("+"))  # -cc.key=value sets one part of a JSON option
        return None if long is None else (long, True, takes[long])
    long = name.split(".", 1)[0].replace("_", "-").rstrip("+")  # --json-option.key sets one part of a JSON option
    options = {option: (option, True, kind) for option, kind in takes.items()}
    options |= {"--no-" + option[2:]: (option, False, "flag") for option, kind in takes.items() if kind == "flag"}
    if long in options:
        return options[long]
    fitting = [option for option in options if option.startswith(long)] if len(long) > 2 else []
    if len(fitting) > 1:
        some = ", ".join(sorted(fitting)[:3]) + (", ..." if len(fitting) > 3 else "")
        raise ValueError(f"{quote(name)} may be {some}: write it out")
    return options[fitting[0]] if fitting else None


def _unknown(name: str) -> str:
    """The sentence about an option that vLLM 0.19 does not have: what became of it, or what it may be meant to be."""
    if " " in name:
        return f"{quote(name)} is one word: an option and its value are two items of a list, or one with = between them"
    plain = "--" + name.lstrip("-").replace("_", "-").removeprefix("no-")
    sentence = f"{engine_defaults.VERSION} has no option {quote(name)}"
    if plain in REMOVED_OPTIONS:
        instead = f" ({REMOVED_OPTIONS[plain]})" if REMOVED_OPTIONS[plain] else ""
        return f"{sentence}: older versions had it{instead}. --ignore-unknown leaves it out"
    return f"{sentence}{_near(name)}; --ignore-unknown leaves it out"


def _near(name: str) -> str:
    near = difflib.get_close_matches(name[:60].replace("_", "-"), table()[0], n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _is_option(word: str) -> bool:
    """Whether a word is an option and no value: "-1" is a number, as argparse has it."""
    return word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-\d+|-\d*\.\d+", word)


def _value(option: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return option if value else f"--no-{option[2:]}"
    return quote(value)
