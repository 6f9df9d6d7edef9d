"""A pasted log as facts: what an engine printed at its start, its periodic lines, its refusals, and its command.

Sources of the lines: vllm/v1/worker/gpu_worker.py, core/kv_cache_utils.py and metrics/loggers.py (0.8 to 0.33), and
vllm/worker/worker.py and engine/metrics.py before; sglang/srt/managers/scheduler*.py and model_runner.py (0.4 to 0.5);
the memory lines of TensorRT-LLM 0.17 to 1.2. The time and the process before a line do not matter.
"""

import re
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from course import flags
from course.base.printed_number import Number
from course.flags.shell import ENGINES
from course.models import engine_defaults
from course.models.gpus import GPU

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
GOES_ON = re.compile(r"[ \t]*\\\n[ \t]*")
N = r"-?[\d,]{0,17}\d(?:\.\d{1,12})?"  # a number as these lines print it


def _pattern(line: str) -> re.Pattern[str]:
    """A regular expression in which <name> is a number, the group of that name."""
    return re.compile(re.sub(r"(?<!\?P)<(\w+)>", lambda name: f"(?P<{name[1]}>{N})", line))


PRINTED = (files("course.data") / "log_lines.txt").read_text(encoding="utf-8").splitlines()
FACTS = tuple(_pattern(line) for line in PRINTED if not line.startswith(";"))
VERSION = re.compile(r"version v?(\d+\.\d+[\w.+]*)|LLM engine \(v(\d+\.\d+[\w.+]*)\)")
RANK = re.compile(r"(?:_TP|rank=|TP)(\d{1,4})\b")
SETTING = re.compile(
    r"['\"]?\b(max_num_seqs|max_running_requests|tensor_parallel_size|tp_size|pipeline_parallel_size|pp_size"
    r"|kv_cache_dtype)['\"]?\s*[=:]\s*['\"]?([\w.-]+)"
)
SAME = {"max_running_requests": "max_num_seqs", "tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size"}
TELLING = ("args", "config:", "Namespace(", "max_total_num_tokens")  # of a line that lists settings
VLLM_ROW = _pattern(
    r"Avg prompt throughput: <prompt> tokens/s, Avg generation throughput: <output> tokens/s, "
    r"(?:[^,]{1,60}, ){0,3}?Running: <running> reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): <waiting> reqs?"
    r".*?GPU KV cache usage: <usage>%(?:, Prefix cache hit rate: <hits>%)?"
)
CAPTURE = re.compile(
    r"capture_model\b|torch\.cuda\.graph\(|capture_end\b|_capture_cudagraphs|capture_one_batch"
)  # of graphs
FAILED = re.compile(
    r"(?:CUDA|HIP|XPU|NPU) (?:runtime )?(?:error: )?(?:out of memory|OOM)|OutOfMemoryError|Tried to allocate \d"
)
# The capture of graphs begins, or it is behind the engine: the last one says where it was.
STAGES = re.compile(
    r"(?P<begins>Captur(?:ing|e) (?:the model for )?(?:CUDA|cuda) ?graph|try setting\s+VLLM_MEMORY_PROFILER_ESTIMATE)"
    r"|(?P<ends>[Gg]raph capturing finished|Capture cuda graph end|startup complete|throughput: "
    r"|Capturing[^\n]{0,60}100%)"
)
HUNG = re.compile(  # a step of more than a minute, twice, or of an engine that is behind its start
    r"(?P<waits>No available shared memory broadcast block found in)|200 OK|startup complete|Capturing[^\n]{0,60}100%"
)
# What a line of a log begins with; the rest of a broken one does not.
BEGINS = re.compile(r"\s*$|[\W_]{0,3}(?:INFO|WARNING|ERROR|DEBUG|20\d\d-|\d\d:\d\d|\w{1,20} pid=|TP\d)")
MOST_PARTS, LONGEST = 4, 2_000  # lines and characters of one that was broken
LONGEST_CALLS = 6_000  # characters of a traceback
ENGINE = re.compile(r"Engine (\d{1,4}): $")
SGLANG_RANK = re.compile(r"DP(\d{1,4})[^,]{0,20}$")
SGLANG_NUMBER = re.compile(
    r"[,.] *(#(?:running-req|queue-req|new-seq|new-token|pending-token)"
    r"|(?:full )?token usage|mamba usage|gen throughput)(?: \(token/s\))?: (\d{1,15}(?:\.\d{1,12})?)"
)
JOINING = ("#new-seq", "#new-token", "#pending-token")  # of a line of prefill
PAGE = re.compile(
    r"^(vllm|sglang):(?:num_requests_|num_)?(running|waiting|queue|(?:kv_cache|gpu_cache|token)_usage)"
    r"(?:_reqs|_perc)?(?:\{[^}\n]*\})? (\d{1,12}(?:\.\d{1,18})?(?:e-\d\d)?)\s*$", re.MULTILINE)  # fmt: skip
NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
SIGNS = {  # of an engine in a line that is known; else it is vLLM's
    "TensorRT-LLM": ("TensorRT-LLM", "TRT-LLM", "tensorrt_llm", "maximum sequence length (", "maximum input length ("),
    "SGLang": (
        "server_args",
        "max_total_num_tokens",
        "--mem-fraction-static",
        "longer than the model",
        "profiled value",
    ),
    "llama.cpp": ("llama_", "llama-", "ggml_", "cudaMalloc", "context size", "exceed context window"),
    "LMDeploy": ("[TM]", "lmdeploy"),
}
SGLANG_FILE = re.compile(r"File \"[^\"\n]{0,300}/sglang/")  # of a traceback, not the folder of a model
WORDS = ("KV cache", "max seq len", "throughput:", "Avg prompt", " batch", "GiB", "version", "engine (v", "blocks",
         "args", "config:", "Namespace(", "sampler", "preempted", "Retract", "equivalent", "max_total_num_tokens",
         "Maximum concurrency", "maxTokensInPaged", "out of memory", "max model len", "context length", "exceed",
         "er than ", "reempt", "allocate", "ot enough memory", "vailable memory", "at least 1, got", "MemoryError",
         "Ran out", "timed out", "atchdog")  # fmt: skip


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

    def each(self, names: str) -> list[Number | None]:
        """Of each name the number, where all that was printed under it is the same."""
        values = [set(self.facts.get(name, ())) for name in names.split()]
        return [one.pop() if len(one) == 1 else None for one in values]


def read(text: str, gpu: GPU | None = None) -> Paste:
    """The facts of a paste. Nothing in it is refused here; `Paste.read` says how many lines were of use.

    gpu: the card, on which the slots depend where the command gives none.
    """
    paste = Paste()
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    paste.all = len(text.splitlines())
    paste.engine = "SGLang" if SGLANG_FILE.search(text) else ""
    ends = any(word in text for word in ("out of memory", "OOM", "MemoryError", "Tried to allocate"))
    failures = list(FAILED.finditer(text)) if ends else []
    for failed in failures:  # at the end of a traceback, whose last calls stand before it
        calls = text[max(0, failed.start() - LONGEST_CALLS) : failed.start()].rpartition("Traceback (most")[2]
        if CAPTURE.search(calls):
            paste.facts["graphs_failed"] = [Number.exact(1)]
    stages = list(STAGES.finditer(text)) if failures and "Traceback (most" not in text else []
    if stages and stages[-1]["begins"]:
        paste.facts["graphs_failed"] = [Number.exact(1)]
    hung = [one["waits"] for one in HUNG.finditer(text)] if "broadcast block" in text else []
    if any(hung) and len(hung) > 1:
        paste.facts["no_step"] = [Number.exact(1)]
    paste.read += sum(map(bool, hung))
    page: dict[str, list[float]] = {"running": [], "waiting": [], "usage": []}
    lines = (GOES_ON.sub(" ", text) if "\\\n" in text else text).split("\n")
    used = 0  # lines before this one are read
    for place, line in enumerate(lines):
        if place < used:
            continue
        if ("serve" in line or "openai" in line) and ENGINES.search(line):
            paste.read += _command(paste, line, gpu)
        elif _rows(paste, line):
            paste.read += 1
        elif any(word in line for word in WORDS):
            parts = 1 if _facts(paste, line) else _broken(paste, lines[place : place + MOST_PARTS])
            paste.read, used = paste.read + parts, place + parts
    if gpu is not None and paste.engine == "vLLM":
        paste.settings.setdefault("max_num_seqs", engine_defaults.batch(gpu)[0])
    for engine, name, value in (
        PAGE.findall(text) if any(f"{one}:" in text for one in NAMES) else ()
    ):  # of several engines: all their requests, the fullest pool
        page["usage" if "usage" in name else name.replace("queue", "waiting")].append(float(value))
        paste.engine, paste.read = paste.engine or NAMES[engine], paste.read + 1
    if page["running"] and page["waiting"]:
        seats, waiting = int(sum(page["running"])), int(sum(page["waiting"]))
        paste.rows["page"] = [Row(seats, seats, waiting, max(page["usage"], default=None))]
    return paste


def _broken(paste: Paste, lines: list[str]) -> int:
    """How many of these lines are one that a terminal broke at its width, and that is known when whole; 0 if none.

    The break stands anywhere in a word, or took the place of a space.
    """
    for parts in range(2, len(lines) + 1):
        if BEGINS.match(lines[parts - 1]):
            return 0
        for between in ("", " "):
            whole = between.join(lines[:parts])
            if len(whole) <= LONGEST and (_rows(paste, whole) or _facts(paste, whole)):
                return parts
    return 0


def _command(paste: Paste, line: str, gpu: GPU | None) -> bool:
    """The settings of a command of an engine. What `course flags` refuses is noted."""
    if re.search(r"File \"|Traceback|import ", line):
        return False
    start = ENGINES.search(line)
    said = line[start.start() :] if start and line[start.start() :].startswith("vllm") else line.lstrip("$># ")
    try:
        parsed = flags.parse(said, gpu, ignore_unknown=True)
    except (ValueError, OSError) as error:
        paste.notes.append(f"the command could not be read: {' '.join(str(error).split())}")
        return False
    paste.engine = paste.engine or parsed.engine.split()[0]
    given: dict[str, str | int | None] = {"tensor_parallel_size": parsed.kv.tensor_parallel_size}
    if gpu is not None or "max_num_seqs" not in parsed.defaults:
        given["max_num_seqs"] = getattr(parsed.policy, "max_num_seqs", None)
    if parsed.kv.kv_cache_dtype != "auto":
        given["kv_cache_dtype"] = parsed.kv.kv_cache_dtype
    paste.settings |= {name: value for name, value in given.items() if value is not None}
    return True


def _facts(paste: Paste, line: str) -> int:
    """How many facts of a start or of a refusal the line has."""
    matches = [match for match in (pattern.search(line) for pattern in FACTS) if match]
    for match in matches:
        for name, text in match.groupdict().items():
            if text is not None:
                number = Number.of(text) if re.fullmatch(N, text) else Number.exact(1)
                paste.facts.setdefault(name, []).append(number)
    version = VERSION.search(line)
    paste.version = paste.version or (version and (version[1] or version[2]))
    settings = SETTING.findall(line) if any(word in line for word in TELLING) else []
    for key, value in settings:
        if key == "kv_cache_dtype" and value not in ("None", "auto"):
            paste.settings[key] = value
        elif re.fullmatch(r"[1-9]\d{0,5}", value):
            paste.settings[SAME.get(key, key)] = int(value)
    known = len(matches) + bool(version) + len(settings)
    if known and not paste.engine:
        paste.engine = next((name for name, words in SIGNS.items() if any(word in line for word in words)), "vLLM")
    for rank in RANK.findall(line) if matches else ():
        paste.ranks_seen = max(paste.ranks_seen, int(rank) + 1)
    return known


def _rows(paste: Paste, line: str) -> int:
    """How many periodic lines stand in a line: several, if the ends of lines were lost."""
    rows: list[tuple[str | None, Row]] = []
    for match in VLLM_ROW.finditer(line) if "Avg prompt" in line else ():
        numbers = " ".join(match.groups("0")).replace(",", "").split()
        prompt, output, running, waiting, usage, hits = map(float, numbers)
        engine = ENGINE.search(line, max(0, match.start() - 20), match.start())
        row = Row(int(running), int(running), int(waiting), usage / 100, prompt, output, hits=hits / 100)
        rows, paste.engine = [*rows, (engine and engine[1], row)], paste.engine or "vLLM"
    for before, after in pairwise(line.split(" batch")) if "#running-req" in line else ():
        prefill = before.endswith("Prefill")
        if not (prefill or before.endswith("Decode")):
            continue
        rank = SGLANG_RANK.search(before, max(0, len(before) - 40)) if "DP" in before else None
        pairs = {name: float(number) for name, number in SGLANG_NUMBER.findall(f",{after}")}
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
