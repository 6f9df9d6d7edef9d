"""Where a command line comes from: pasted, a script, docker compose, a manifest of Kubernetes, a list in YAML.

Every way ends in the words of one command, the variables that are known beside it, and notes.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.base.textfiles import text as text_of
from course.flags import variables

LONGEST = 100_000
MAX_FILE = 2**22
ENGINES = re.compile(
    r"vllm\s+serve|vllm\.entrypoints\.openai\.api_server|vllm-openai|sglang\.launch_server|sglang\s+serve|trtllm-serve"
)
IMAGES = re.compile(r"vllm|sglang|tensorrt|trtllm", re.IGNORECASE)
YAML_STARTS = re.compile(
    r"^(?:---\s*$|- +[-\"'\w]|(?:apiVersion|kind|services|version|name|spec|containers|args|command|image|x-[\w-]+):"
    r"|[a-z][a-z0-9_-]+:(?: |$))",
    re.MULTILINE,
)
KEY_FIRST = re.compile(r"(?:\s*#.*\n|\s)*[A-Za-z][\w-]*:[ \t]*\n\s")  # a block of YAML whatever its first key is called
HELM = "vllmConfig"  # of the values of vLLM's production stack, whose keys are its options in camelCase
SHELLS = ("sh", "bash", "zsh", "ash")


@dataclass(frozen=True)
class Source:
    """One command: its words, and sentences about how it was read."""

    words: tuple[str, ...]
    notes: tuple[str, ...]


def source(line: str, service: str | None = None, env: Mapping[str, str] | None = None) -> Source:
    """The command in a text, or in the file of that name. ValueError, in a sentence, if there is none or several.

    service: which container or service of a YAML file, if several run an engine. env: values of variables, which count
    before those that the text sets.
    """
    if not isinstance(line, str):
        raise ValueError(f"a command line is text, not {quote(line)}")
    if "\n" not in line and 0 < len(line) < 4_096 and not line.startswith("-") and _is_file(line):
        line = text_of(Path(line), "command line or YAML", "text", MAX_FILE)
    elif re.fullmatch(r"\S+\.(ya?ml|sh)", line.strip()):
        raise ValueError(f"there is no file {quote(line.strip())}")
    if len(line) > LONGEST:
        raise ValueError(f"a command line of {len(line):,} characters is too long: at most {LONGEST:,}")
    line = variables.given(line, env or {})
    if (
        YAML_STARTS.match(line.lstrip())
        or KEY_FIRST.match(line)
        or (YAML_STARTS.search(line) and not ENGINES.match(line.lstrip()))
    ):
        return _from_yaml(line, service)
    if service is not None:
        raise ValueError(f"there is no service {quote(service)}: a command line has none")
    return _from_shell(line, {})


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


# A shell


def _from_shell(script: str, variables_of_image: Mapping[str, str]) -> Source:
    """The words of the first command that starts an engine, or of the first command; what follows it is noted."""
    script = re.sub(r"\\\r?\n", " ", script)  # a line that ends in a backslash goes on in the next one
    script = variables.without_arrays(script)
    match = next((one for one in ENGINES.finditer(script) if not _in_remark(script, one.start())), None)
    head, line = "", script
    if match is None and "\n" in script.strip() and not script.lstrip().startswith("-"):
        raise ValueError("no line of this script starts a server of vLLM, SGLang or TensorRT-LLM, except in comments")
    if match:
        begin = max(script.rfind(mark, 0, match.start()) + len(mark) for mark in ("\n", ";", "&&", "|", "("))
        begin = begin if any(mark in script[: match.start()] for mark in "\n;&|(") else 0
        head, line = script[:begin], script[begin:]
    values = {
        **variables_of_image,
        **variables.assignments(head),
        **(variables.assignments(line[: line.find("-")]) if match else {}),
    }
    fallbacks: dict[str, str] = {}
    end = end_of(line)
    rest = line[end:].split()
    notes = (
        [f"what follows {quote(rest[0])} does not belong to vLLM's command, and is left out"]
        if rest and rest[0][0] != "#"
        else []
    )
    try:
        words = shlex.split(variables.fill(line[:end], values, fallbacks))
    except ValueError as error:
        raise ValueError(
            f"the end of the command line cannot be read ({str(error).lower()}): is a quote missing?"
        ) from None
    if match and match[0] == "vllm-openai" and not any(word == "run" or word.startswith("-") for word in words):
        raise ValueError(
            "vLLM's image is named here, and no command or option of it: paste the command, or the arguments"
        )
    notes += [f"{name} is a variable without a value: its default counts, {quote(value)}"
              for name, value in fallbacks.items()]  # fmt: skip
    return Source(tuple(words), tuple(notes))


def _in_remark(script: str, place: int) -> bool:
    return script[script.rfind("\n", 0, place) + 1 : place].lstrip().startswith("#")


def end_of(line: str) -> int:
    """Where the command ends.

    Before a pipe, a redirection, a semicolon or a remark that no quotes hold, or before a line that does not go on with
    an option, as lines do whose backslashes were lost.
    """
    quote, place = "", 0
    while place < len(line):
        letter = line[place]
        if letter == "\\" and quote != "'":
            place += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "\n" and not re.match(r"\s*([-$#]|\Z)", line[place:]):
            return place
        elif letter in "|&;<>" or (letter == "#" and line[place - 1 : place].strip() == ""):
            number = re.search(r"(?:^|\s)[012]$", line[:place]) if letter in "<>" else None  # of 2>&1
            return number.start() if number else place
        place += 1
    return len(line)


# YAML


def _from_yaml(content: str, service: str | None) -> Source:
    import yaml

    if re.search(r"\{\{.*\}\}", content):
        raise ValueError("this YAML is a template of Helm ({{ ... }}): render it first, with `helm template`")
    try:
        documents = [one for one in yaml.safe_load_all(content) if one is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ValueError(
            f"this looks like YAML and cannot be read{where}: {getattr(error, 'problem', None) or 'broken'}"
        ) from None
    if len(documents) == 1 and _is_config(documents[0]):
        words = tuple(words_of(documents[0]))
        return Source(words, ("read as a file for --config, whose keys are options",))
    containers = [one for document in documents for one in _containers("", document)]
    engines = [one for one in containers if _runs_engine(one)]
    if service is not None:
        engines = [one for one in containers if one[0] == service]
        if not engines:
            raise ValueError(
                f"no service is called {quote(service)}; there are {', '.join(name for name, *_ in containers)}"
            )
    if not engines:
        what = f" Its services are {', '.join(name for name, *_ in containers)}." if containers else ""
        raise ValueError(
            f"this YAML names no container that runs vLLM, SGLang or TensorRT-LLM.{what}{_of_kserve(documents)}"
        )
    if len(engines) > 1:
        names = ", ".join(name or "(no name)" for name, *_ in engines)
        raise ValueError(f"{len(engines)} services of this YAML run an engine, {names}: choose one with --service")
    name, image, command, environment = engines[0]
    found_in = _in_container(image, command, environment)
    where = f"read from {name} of the YAML" if name else "read from the YAML"
    return Source(found_in.words, (where, *found_in.notes))


def _of_kserve(documents: list[Any]) -> str:
    """Which key of KServe's manifest would have an engine's options; empty for other documents."""
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "InferenceService":
            return (
                " It is an InferenceService of KServe: give the options of the engine in spec.predictor.model.args, or "
                "its command in spec.predictor.containers"
            )
    return ""


def _is_config(value: Any) -> bool:
    """Whether a document has options of vLLM for keys, as a file for --config has."""
    from course.flags.command_line import table

    takes = table()[0]
    names = [_option(key) for key in value] if isinstance(value, dict) else []
    return bool(names) and all(name in takes or "--" + name.removeprefix("--no-") in takes for name in names)


def _option(key: Any) -> str:
    return "--" + str(key).lstrip("-").replace("_", "-")


def words_of(settings: Mapping[Any, Any]) -> list[str]:
    """The words of a command line that say what the keys of a file for --config say."""
    words = []
    for key, value in settings.items():
        option = _option(key)
        if value is False:
            words.append("--no-" + option[2:])
        elif value is True or value is None:
            words.append(option)
        elif isinstance(value, list):
            words += [option, *map(str, value)]
        else:
            words.append(f"{option}={'{...}' if isinstance(value, dict) else value}")
    return words


Container = tuple[str, str, list[str], dict[str, str]]


def _containers(name: str, value: Any) -> Iterator[Container]:
    """(name, image, words, environment) of every container in a document: a list of arguments is one, too."""
    if isinstance(value, list):
        if value and all(isinstance(one, str | int | float) for one in value) and str(value[0]).startswith("-"):
            yield name, "", [_plain(one) for one in value], {}
            return
        for one in value:
            yield from _containers(name, one)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get(HELM), dict):
        yield str(value.get("name") or name), "vllm", _helm(value), _environment(value.get("env"))
        return
    if any(key in value for key in ("command", "args", "entrypoint")) and not isinstance(value.get("args"), dict):
        words = [word for key in ("entrypoint", "command", "args") for word in _list(value.get(key))]
        environment = _environment(value.get("environment", value.get("env")))
        yield (
            str(value.get("container_name") or value.get("name") or name),
            str(value.get("image") or ""),
            words,
            environment,
        )
        return
    for key, one in value.items():
        yield from _containers(str(key) if key not in ("containers", "template", "spec") else name, one)


def _helm(value: Mapping[str, Any]) -> list[str]:
    """The words that Helm's values say: the model, the keys of `vllmConfig` as options, and its extraArgs."""
    settings = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", str(key)).lower(): one for key, one in value[HELM].items()}
    extra = _list(settings.pop("extra-args", []))
    model = [str(value["modelURL"])] if isinstance(value.get("modelURL"), str) else []
    return ["vllm", "serve", *model, *words_of(settings), *extra]


def _list(value: Any) -> list[str]:
    """The words of a command: a list, or a line for the shell."""
    if isinstance(value, str):
        return _split(value)
    return [_plain(one) for one in value] if isinstance(value, list) else []


def _split(line: str) -> list[str]:
    """Words of a line of compose, whose variables stay in one piece."""
    try:
        return shlex.split(re.sub(r"\\\r?\n", " ", line))
    except ValueError as error:
        raise ValueError(
            f"the end of a command of the YAML cannot be read ({str(error).lower()}): is a quote missing?"
        ) from None


def _plain(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _environment(value: Any) -> dict[str, str]:
    """Variables of compose (an object, or NAME=value) and of Kubernetes (name and value)."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items() if isinstance(one, str | int | float)}
    environment = {}
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and isinstance(one.get("value"), str | int | float):
            environment[str(one.get("name"))] = _plain(one["value"])
        elif isinstance(one, str) and "=" in one:
            key, _, text = one.partition("=")
            environment[key] = text
    return environment


def _runs_engine(one: Container) -> bool:
    _, image, words, _ = one
    line = " ".join(words)
    alone = not image and line.startswith("-") and _are_options(words)
    return bool(ENGINES.search(line) or (IMAGES.search(image) and "-" in line) or alone)


def _are_options(words: list[str]) -> bool:
    """Whether arguments without a command are an engine's: one that several programs have says nothing."""
    from course.flags.command_line import table

    names = {re.split(r"[=\s]", word)[0] for word in words if word.startswith("--")}
    return bool((names - {"--port", "--host", "--config", "--model"}) & table()[0].keys()) or "--model" in names


def _in_container(image: str, words: list[str], environment: Mapping[str, str]) -> Source:
    """The words of what a container runs: a script for a shell, or the words themselves, as the image takes them."""
    if words and words[0].rsplit("/", 1)[-1] in SHELLS and any(word.startswith("-") for word in words[1:2]):
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return _from_shell(script, environment)
    if len(words) == 1 and ENGINES.search(words[0]):  # one string for the shell
        return _from_shell(words[0], environment)
    fallbacks: dict[str, str] = {}
    result: list[str] = []
    for word in words:
        text = variables.fill(word, environment, fallbacks)
        result += shlex.split(text) if text != word and " " in text else [text]
    notes = [f"{name} is a variable without a value: its default counts, {quote(value)}"
             for name, value in fallbacks.items()]  # fmt: skip
    if not ENGINES.search(" ".join(result)):
        if "sglang" in image.lower():
            result = ["python", "-m", "sglang.launch_server", *result]
        elif "tensorrt" in image.lower() or "trtllm" in image.lower():
            result = ["trtllm-serve", *result]
    return Source(tuple(result), tuple(notes))
