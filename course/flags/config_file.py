"""The YAML file that --config of an engine names: vLLM, SGLang and TensorRT-LLM each have one."""

from pathlib import Path
from typing import Any

from course.base.settings import quote
from course.base.textfiles import text as text_of

MAX_FILE = 2**20


def settings_of(name: str, example: str, notes: list[str]) -> dict[Any, Any]:
    """The keys and values of the file; one that is elsewhere becomes a note, and {}. example: what a line looks like.

    Raises ValueError: the file is no YAML, or no list of keys and values.
    """
    import yaml

    path = Path(name)
    if not path.is_file():
        notes.append(f"--config names {quote(name)}, which is not here: its settings are not read")
        return {}
    try:
        content = yaml.safe_load(text_of(path, "configuration", "YAML", MAX_FILE))
    except yaml.YAMLError as error:
        raise ValueError(f"{path.name} is not YAML: {getattr(error, 'problem', None) or 'broken'}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name}: a file for --config has keys and values, as in {example}")
    return content
