"""A pasted log as facts: what an engine printed at its start, its periodic lines, its refusals, and its command.

The lines and their words are in log_lines.txt and log_words.yaml. The time and the process before a line do not matter.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

import yaml

from course import flags
from course.base.printed_number import Number
from course.flags.shell import ENGINES
from course.models import engine_defaults
from course.models.gpus import GPU
from course.results import exposition

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
GOES_ON = re.compile(r"[ \t]*\\\n[ \t]*")
N = r"-?[\d,]{0,17}\d(?:\.\d{1,12})?"  # a number as these lines print it


def _pattern(line: str) -> re.Pattern[str]:
    """A regular expression in which <name> is a number, the group of that name."""
    return re.compile(re.sub(r"(?<!\?P)<(\w+)>", lambda name: f"(?P<{name[1]}>{N})", line))


PRINTED = (files("course.data") / "log_lines.txt").read_text(encoding="utf-8").splitlines()
FACTS = tuple(_pattern(line) for line in PRINTED if not line.startswith(";"))
WORDS: dict[str, Any] = yaml.safe_load((files("course.data") / "log_words.yaml").read_text(encoding="utf-8"))
LOG = {name: _pattern(text) for name, text in WORDS["log"].items()}
JOINING = ("#new-seq", "#new-token", "#pending-token")  # of a line of prefill
MOST_PARTS, LONGEST = 4, 2_000  # lines and characters of one that was broken
CALLS = 6_000  # characters of a traceback
MOST = 1e9  # requests


class Row(NamedTuple):
    """One periodic line. usage, state_usage: shares of the pool. seats: running, and those who join in this line."""

    seats: int
    running: int
    waiting: int
    usage: float | None
    prompt_rate: float | None = None
    output_rate: float | None = None
    new_tokens: int = 0
    state_usage: float = 0.0
    hits: float = 0.0  # share of the prompt tokens so far that were cached
    pending: int = 0  # prompt tokens that wait to be read


@dataclass
class Paste:
    """What was understood. facts: name -> every number printed under it, in order. rows: engine -> periodic lines.

    settings: what the paste says that the engine was given. read, all: lines. notes: what could not be used. unqueued:
    periodic lines that do not say how many wait.
    """

    facts: dict[str, list[Number]] = field(default_factory=dict)
    settings: dict[str, str | int | float] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    engine: str = ""
    version: str | None = None
    ranks_seen: int = 1
    unqueued: int = 0
    read: int = 0
    all: int = 0
    notes: list[str] = field(default_factory=list)

    def say(self, name: str, number: Number | None = None) -> None:
        """Adds a fact; one without a number counts 1."""
        self.facts.setdefault(name, []).append(number or Number.exact(1))

    def each(self, names: str) -> list[Number | None]:
        """Of each name the number, where all that was printed under it is the same."""
        values = [set(self.facts.get(name, ())) for name in names.split()]
        return [one.pop() if len(one) == 1 else None for one in values]


def read(text: str, gpu: GPU | None = None) -> Paste:
    """The facts of a paste. Nothing in it is refused here; `Paste.read` says how many lines were of use.

    gpu: the card, on which the slots depend where the command gives none.
    """
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    paste = Paste(all=len(text.splitlines()), engine="SGLang" if LOG["sglang_file"].search(text) else "")
    _of_several(paste, text)
    lines = (GOES_ON.sub(" ", text) if "\\\n" in text else text).split("\n")
    command = lru_cache(maxsize=1)(partial(_command, paste, gpu))  # some servers start again and again
    used = 0  # lines before this one are read
    for place, line in enumerate(lines):
        if place < used:
            continue
        if ("serve" in line or "openai" in line) and ENGINES.search(line):
            paste.read += command(line)
        elif _rows(paste, line):
            paste.read += 1
        elif any(word in line for word in WORDS["known"]):
            parts = 1 if _facts(paste, line) else _broken(paste, lines[place : place + MOST_PARTS])
            paste.read, used = paste.read + parts, place + parts
    if gpu is not None and paste.engine == "vLLM":
        paste.settings.setdefault("max_num_seqs", engine_defaults.batch(gpu)[0])
    _of_page(paste, text)
    return paste


def _of_several(paste: Paste, text: str) -> None:
    """What several lines say together: graphs whose capture ran out of memory, and a step that never ended."""
    failed = list(LOG["failed"].finditer(text)) if any(word in text for word in WORDS["failed"]) else []
    # A failure stands at the end of a traceback, behind its last calls; without one the last stage says where it was.
    calls = [text[max(0, one.start() - CALLS) : one.start()].rpartition("Traceback (most")[2] for one in failed]
    stages = list(LOG["stages"].finditer(text)) if failed and "Traceback (most" not in text else []
    if any(map(LOG["capture"].search, calls)) or (stages and stages[-1]["begins"]):
        paste.say("graphs_failed")
    hung = [one["waits"] for one in LOG["hung"].finditer(text)] if "broadcast block" in text else []
    if any(hung) and len(hung) > 1:
        paste.say("no_step")
    paste.read += sum(map(bool, hung))


def _of_page(paste: Paste, text: str) -> None:
    """The state on a metrics page: of several engines all their requests, and the fullest pool."""
    samples = exposition.among(text, ("vllm:", "sglang:")).samples
    gauges = {name: [value for key in keys for value in samples.get(key, {}).values() if 0 <= value < MOST]
              for name, keys in WORDS["page"].items()}  # fmt: skip
    if any(gauges.values()):
        paste.engine = paste.engine or ("vLLM" if any(name.startswith("vllm") for name in samples) else "SGLang")
        paste.read += sum(map(len, gauges.values()))
    if gauges["running"] and gauges["waiting"]:
        seats, waiting = int(sum(gauges["running"])), int(sum(gauges["waiting"]))
        paste.rows["page"] = [Row(seats, seats, waiting, max(gauges["usage"], default=None))]


def _broken(paste: Paste, lines: list[str]) -> int:
    """How many of these lines are one that a terminal broke at its width, and that is known when whole; 0 if none.

    The break stands anywhere in a word, or took the place of a space.
    """
    for parts in range(2, len(lines) + 1):
        if LOG["begins"].match(lines[parts - 1]):
            return 0
        for between in ("", " "):
            whole = between.join(lines[:parts])
            if len(whole) <= LONGEST and (_rows(paste, whole) or _facts(paste, whole)):
                return parts
    return 0


def _command(paste: Paste, gpu: GPU | None, line: str) -> bool:
    """The settings of a command of an engine. What `course flags` refuses is noted."""
    if LOG["no_command"].search(line):
        return False
    start = ENGINES.search(line)
    begin = start.start() if start and start[0].startswith("vllm") else 0
    try:
        parsed = flags.parse(line[begin:].lstrip("$># "), gpu, ignore_unknown=True)
    except (ValueError, OSError) as error:
        paste.notes.append(f"the command could not be read: {' '.join(str(error).split())}")
        return False
    paste.engine = paste.engine or parsed.engine.split()[0]
    said = gpu is not None or "max_num_seqs" not in parsed.defaults
    slots = getattr(parsed.policy, "max_num_seqs", None) if said else None
    dtype = parsed.kv.kv_cache_dtype.removeprefix("auto")
    given = {"tensor_parallel_size": parsed.kv.tensor_parallel_size, "max_num_seqs": slots, "kv_cache_dtype": dtype}
    paste.settings |= {name: value for name, value in given.items() if value}
    return True


def _facts(paste: Paste, line: str) -> int:
    """How many facts of a start or of a refusal the line has."""
    matches = [match for pattern in FACTS if (match := pattern.search(line))]
    for match in matches:
        for name, text in match.groupdict().items():
            if text is not None:
                paste.say(name, Number.of(text) if re.fullmatch(N, text) else None)
    version = LOG["version"].search(line)
    paste.version = paste.version or (version and version[1])
    settings = LOG["setting"].findall(line) if any(word in line for word in WORDS["settings"]) else []
    for key, value in settings:
        if value.isdecimal() != (key == "kv_cache_dtype"):
            paste.settings[WORDS["same"].get(key, key)] = int(value) if value.isdecimal() else value
    known = len(matches) + bool(version) + len(settings)
    if known and not paste.engine:
        signs = WORDS["engines"].items()
        paste.engine = next((name for name, words in signs if any(word in line for word in words)), "vLLM")
    for rank in LOG["rank"].findall(line) if matches else ():
        paste.ranks_seen = max(paste.ranks_seen, int(rank) + 1)
    return known


def _rows(paste: Paste, line: str) -> int:
    """How many periodic lines stand in a line: several, if the ends of lines were lost."""
    rows: list[tuple[str | None, Row]] = []
    for match in LOG["vllm_row"].finditer(line) if "Avg prompt" in line else ():
        prompt, output, running, waiting, usage, hits = map(float, " ".join(match.groups("0")).replace(",", "").split())
        engine = LOG["engine"].search(line, max(0, match.start() - 20), match.start())
        seats, paste.engine = int(running), paste.engine or "vLLM"
        row = Row(seats, seats, int(waiting), usage / 100, prompt, output, 0, 0.0, hits / 100)
        rows.append((engine and engine[1], row))
    for before, after in pairwise(line.split(" batch")) if "#running-req" in line else ():
        prefill = before.endswith("Prefill")
        if not (prefill or before.endswith("Decode")):
            continue
        rank = LOG["sglang_rank"].search(before, max(0, len(before) - 40)) if "DP" in before else None
        pairs = {name: float(number) for name, number in LOG["sglang_number"].findall(f",{after}")}
        paste.engine = paste.engine or "SGLang"
        if "#running-req" not in pairs or "#queue-req" not in pairs:
            paste.unqueued += 1
            continue
        seats, queue = int(pairs["#running-req"]), int(pairs["#queue-req"])
        full = pairs.get("full token usage", pairs.get("token usage"))
        new, chunk, rest = [int(pairs.get(name, 0)) for name in JOINING] if prefill else (0, 0, 0)
        rate, states = pairs.get("gen throughput"), pairs.get("mamba usage", 0.0)
        rows.append((rank and rank[1], Row(seats + new, seats, queue, full, None, rate, chunk, states, 0.0, rest)))
    for number, row in rows:
        paste.rows.setdefault(f"engine {int(number or 0)}", []).append(row)
    return len(rows)
