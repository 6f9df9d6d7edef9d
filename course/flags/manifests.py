"""The command in a YAML file: compose, Kubernetes, Helm's values, KServe, a list of arguments, a file for --config."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from course.base.settings import quote
from course.flags import variables
from course.flags.shell import ENGINES, Source, from_shell

IMAGES = re.compile(r"vllm|sglang|tensorrt|trtllm", re.IGNORECASE)
HELM = "vllmConfig"  # of the values of vLLM's production stack, whose keys are its options in camelCase
ADDED = ("extraArgs", "extra_args", "additionalArgs", "extraContainerArgs")  # of values of Helm
SHELLS = ("sh", "bash", "zsh", "ash")


def from_yaml(content: str, service: str | None) -> Source:
    """The command in a YAML text. ValueError for a template, for none that runs an engine, and for several.

    service: which container or service, if several run one.
    """
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


# What KServe's server for language models (python/huggingfaceserver) calls options of vLLM, and what is its own: with a
# value, or a flag. Its other options are vLLM's, with underscores.
KSERVE = {"--model-name": "--served-model-name", "--model-id": "--model", "--model-revision": "--revision",
          "--max-length": "--max-model-len"}  # fmt: skip
KSERVE_VALUES = (
    "--model-dir",
    "--backend",
    "--task",
    "--tensor-input-names",
    "--http-port",
    "--grpc-port",
    "--workers",
    "--max-threads",
    "--max-asyncio-workers",
    "--log-config-file",
    "--access-log-format",
)
KSERVE_FLAGS = ("--disable-lower-case", "--disable-special-tokens", "--return-token-type-ids", "--return-probabilities",
                "--disable-log-requests", "--enable-grpc", "--configure-logging")  # fmt: skip

Container = tuple[str, str, list[str], dict[str, str]]


def _containers(name: str, value: Any) -> Iterator[Container]:
    """(name, image, words, environment) of every container in a document: a list of arguments is one, too."""
    if isinstance(value, list):
        if value and all(isinstance(one, str | int | float) for one in value) and str(value[0]).startswith("-"):
            if name in ADDED:
                return  # to a command that is not here
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
    if _is_of_kserve(value):
        yield str(value.get("name") or name), "vllm", _kserve(value), _environment(value.get("env"))
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


def _is_of_kserve(value: Mapping[str, Any]) -> bool:
    """Whether these are arguments for KServe's server of language models: by its format or by its image."""
    format_ = value.get("modelFormat")
    named = isinstance(format_, dict) and format_.get("name") == "huggingface"
    return isinstance(value.get("args"), list) and (named or "huggingfaceserver" in str(value.get("image")))


def _kserve(value: Mapping[str, Any]) -> list[str]:
    """The words that say to vLLM what these arguments say to KServe's server.

    Raises ValueError where another program than vLLM answers.
    """
    words, own = list[str](), {"--backend": "auto"}
    place, given = 0, _list(value["args"])
    while place < len(given):
        name, equals, said = given[place].partition("=")
        place += 1
        option = _option(name) if name.startswith("--") else name
        if option in KSERVE_FLAGS:
            continue
        if option in KSERVE_VALUES:
            own[option] = said if equals else "".join(given[place : place + 1])
            place += not equals
            continue
        option = KSERVE.get(option, option)
        words.append(f"{option}={said}" if equals else option)
    if own["--backend"] not in ("auto", "vllm"):
        raise ValueError(f"--backend {own['--backend']} of KServe is another program: these are no settings of vLLM")
    stored = str(value.get("storageUri") or "")
    if stored.startswith("hf://") and not any(word.partition("=")[0] == "--model" for word in words):
        words = ["--model", stored.removeprefix("hf://").partition(":")[0], *words]
    return ["vllm", "serve", *words]


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
        return from_shell(script, environment)
    if len(words) == 1 and ENGINES.search(words[0]):  # one string for the shell
        return from_shell(words[0], environment)
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
