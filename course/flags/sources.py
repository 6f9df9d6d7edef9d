"""Where a command line comes from: pasted, a script, docker compose, a manifest of Kubernetes, a list in YAML.

Every way ends in the words of one command, the variables that are known beside it, and notes.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from course.base.settings import quote
from course.base.textfiles import text as text_of
from course.flags import variables
from course.flags.manifests import from_yaml
from course.flags.shell import ENGINES, Source, from_shell

LONGEST = 100_000
MAX_FILE = 2**22
YAML_STARTS = re.compile(
    r"^(?:---\s*$|- +[-\"'\w]|(?:apiVersion|kind|services|version|name|spec|containers|args|command|image|x-[\w-]+):"
    r"|[a-z][a-z0-9_-]+:(?: |$))",
    re.MULTILINE,
)
KEY_FIRST = re.compile(r"(?:\s*#.*\n|\s)*[A-Za-z][\w-]*:[ \t]*\n\s")  # a block of YAML whatever its first key is called


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
        return from_yaml(line, service)
    if service is not None:
        raise ValueError(f"there is no service {quote(service)}: a command line has none")
    return from_shell(line, {})


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False
