"""A pasted log as facts: what an engine printed at its start, its periodic lines, its refusals, and its command.

Sources of the lines: vllm/v1/worker/gpu_worker.py, core/kv_cache_utils.py and metrics/loggers.py (0.8 to 0.33), and
vllm/worker/worker.py and engine/metrics.py before; sglang/srt/managers/scheduler*.py and model_runner.py (0.4 to 0.5);
the memory lines of TensorRT-LLM 0.17 to 1.2. The time and the process before a line do not matter.
"""

import re
from dataclasses import dataclass, field, replace
from importlib.resources import files

from course import flags
from course.flags.sources import ENGINES
from course.look.number import Number
from course.models import engine_defaults
from course.models.gpus import GPU

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
GOES_ON = re.compile(r"[ \t]*\\\n[ \t]*")
N = r"-?[\d,]*\.?\d+"  # a number as these lines print it
FACTS = tuple(
    re.compile(re.sub(r"(?<!\?P)<(\w+)>", lambda name: f"(?P<{name[1]}>{N})", line))
    for line in (files("course.data") / "log_lines.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith(";")
)
VERSION = re.compile(r"version v?(\d+\.\d+[\w.+]*)|LLM engine \(v(\d+\.\d+[\w.+]*)\)")
RANK = re.compile(r"(?:_TP|rank=|TP)(\d{1,4})\b")
SETTING = re.compile(
    r"['\"]?\b(max_num_seqs|max_running_requests|tensor_parallel_size|tp_size|pipeline_parallel_size|pp_size"
    r"|kv_cache_dtype)['\"]?\s*[=:]\s*['\"]?([\w.-]+)"
)
SAME = {"max_running_requests": "max_num_seqs", "tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size"}
TELLING = ("args", "config:", "Namespace(", "max_total_num_tokens")  # of a line that lists settings
VLLM_ROW = re.compile(
    rf"(?:Engine (?P<engine>\d+): )?Avg prompt throughput: (?P<prompt>{N}) tokens/s, Avg generation throughput: "
    rf"(?P<output>{N}) tokens/s, (?:[^,]{{1,60}}, ){{0,3}}?Running: (?P<running>\d+) reqs?,(?: Swapped: \d+ reqs?,)? "
    rf"(?:Waiting|Pending): (?P<waiting>\d+) reqs?.*?GPU KV cache usage: (?P<usage>{N})%"
)
SGLANG_ROW = re.compile(r"(?:DP(\d+).{0,20})?(Prefill|Decode) batch[.,]? *(.*?)(?=(?:Prefill|Decode) batch|$)")
SGLANG_PAIR = re.compile(rf"(#[a-z-]+|[a-z ]*usage|gen throughput \(token/s\)): ({N})")
PAGE = re.compile(r"^(vllm|sglang):(num_requests_running|num_running_reqs|num_requests_waiting|num_queue_reqs"
                  r"|kv_cache_usage_perc|gpu_cache_usage_perc|token_usage)(?:\{[^}]*\})? ([\d.]+(?:[eE][+-]?\d+)?)\s*$")  # fmt: skip
NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
WORDS = ("KV cache", "max seq len", "throughput:", " batch", "GiB", "version", "engine (v", "blocks", "args", "config:",
         "Namespace(", "sampler", "preempted", "Retract", "equivalent", "max_total_num_tokens", "Maximum concurrency",
         "vllm:", "sglang:", "maxTokensInPaged")  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One periodic line. usage, state_usage: shares of the pool. seats: running, and those who join in this line."""

    running: int
    waiting: int
    usage: float | None
    prompt_rate: float | None = None
    output_rate: float | None = None
    new: int = 0
    new_tokens: int | None = None
    state_usage: float = 0.0

    @property
    def seats(self) -> int:
        """Slots that are taken."""
        return self.running + self.new


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

    def one(self, name: str) -> Number | None:
        """The number under a name, where all that was printed under it is the same."""
        values = set(self.facts.get(name, ()))
        return values.pop() if len(values) == 1 else None


def read(text: str, gpu: GPU | None = None) -> Paste:
    """The facts of a paste. Nothing in it is refused here; `Paste.read` says how many lines were of use.

    gpu: the card, on which the slots depend where the command gives none.
    """
    paste = Paste()
    text = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    paste.all = len(text.splitlines())
    page: dict[tuple[str, str], float] = {}
    for line in GOES_ON.sub(" ", text).split("\n"):
        if ENGINES.search(line) and not re.search(r"File \"|Traceback|import ", line):
            paste.read += _command(paste, line, gpu)
        elif any(word in line for word in WORDS):
            paste.read += bool(_facts(paste, line) + _rows(paste, line) + _page(page, line))
    if gpu is not None and paste.engine == "vLLM":
        paste.settings.setdefault("max_num_seqs", engine_defaults.batch(gpu)[0])
    for kind, name in NAMES.items():
        running, waiting = (page.get((kind, key)) for key in ("running", "waiting"))
        if running is not None and waiting is not None:
            paste.engine = paste.engine or name
            paste.rows.setdefault("page", []).append(Row(int(running), int(waiting), page.get((kind, "usage"))))
    return paste


def _command(paste: Paste, line: str, gpu: GPU | None) -> bool:
    """The settings of a command of an engine. What `course flags` refuses is noted."""
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
    if version:
        paste.version = paste.version or version[1] or version[2]
    settings = SETTING.findall(line) if any(word in line for word in TELLING) else []
    for key, value in settings:
        if value not in ("None", "auto"):
            paste.settings[SAME.get(key, key)] = int(value) if re.fullmatch(r"\d{1,12}", value) else value
    known = len(matches) + bool(version) + len(settings)
    if known and not paste.engine:
        trt, sglang = "TensorRT-LLM" in line, "server_args" in line or "max_total_num_tokens" in line
        paste.engine = "TensorRT-LLM" if trt else "SGLang" if sglang else "vLLM"
    rank = RANK.search(line)
    if rank and matches:
        paste.ranks_seen = max(paste.ranks_seen, int(rank[1]) + 1)
    return known


def _rows(paste: Paste, line: str) -> int:
    """How many periodic lines stand in a line: several, if the ends of lines were lost."""
    rows: list[tuple[str | None, Row]] = []
    for match in VLLM_ROW.finditer(line) if "Avg prompt" in line else ():
        prompt, output, usage = (Number.of(match[name]).value for name in ("prompt", "output", "usage"))
        row = Row(int(match["running"]), int(match["waiting"]), usage / 100, prompt, output)
        rows, paste.engine = [*rows, (match["engine"], row)], paste.engine or "vLLM"
    for match in SGLANG_ROW.finditer(line) if "#running-req" in line else ():
        rank, kind, rest = match.groups()
        pairs = {key.strip(): Number.of(value).value for key, value in SGLANG_PAIR.findall(rest)}
        paste.engine = paste.engine or "SGLang"
        if "#running-req" not in pairs or "#queue-req" not in pairs:
            paste.unqueued += 1
            continue
        row = Row(int(pairs["#running-req"]), int(pairs["#queue-req"]), pairs.get("full token usage", pairs.get("token usage")),
                  output_rate=pairs.get("gen throughput (token/s)"), state_usage=pairs.get("mamba usage", 0.0))  # fmt: skip
        if kind == "Prefill":
            row = replace(row, new=int(pairs.get("#new-seq", 0)), new_tokens=int(pairs.get("#new-token", 0)))
        rows.append((rank, row))
    for engine, row in rows:
        paste.rows.setdefault(f"engine {int(engine or 0)}", []).append(row)
    return len(rows)


def _page(page: dict[tuple[str, str], float], line: str) -> int:
    """A gauge of a metrics page; those of several engines are added up, the fullest pool counts."""
    match = PAGE.match(line)
    if not match:
        return 0
    kind, name, number = match[1], match[2], float(match[3])
    what = "usage" if "usage" in name else "running" if "running" in name else "waiting"
    before = page.get((kind, what), 0.0)
    page[kind, what] = max(before, number) if what == "usage" else before + number
    return 1
