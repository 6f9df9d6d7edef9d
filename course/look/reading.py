"""A pasted log as facts: what an engine printed at its start, its periodic lines, its refusals, and its command.

Sources of the lines: vllm/v1/worker/gpu_worker.py, core/kv_cache_utils.py and metrics/loggers.py (0.8 to 0.33), and
vllm/worker/worker.py and engine/metrics.py before; sglang/srt/managers/scheduler*.py and model_runner.py (0.4 to 0.5);
the memory lines of TensorRT-LLM 0.17 to 1.2. The time and the process before a line do not matter.
"""

import re
from dataclasses import dataclass, field

from course import flags
from course.flags.sources import ENGINES

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
N = r"(-?[\d,]*\.?\d+)"  # a number as these lines print it
FACTS = tuple(
    (names, re.compile(pattern))
    for names, pattern in (
        (("version",), r"version v?(\d+\.\d+[\w.+]*)|LLM engine \(v(\d+\.\d+[\w.+]*)\)"),
        (("kv_gib",), rf"Available KV cache memory: {N} ?GiB"),
        (("tokens",), rf"GPU KV cache size: {N} tokens"),
        (("sglang_tokens",), r"\bmax_total_num_tokens=(\d+)"),
        (("blocks",), r"# (?:GPU|cuda) blocks: (\d+)"),
        (("length", "concurrency"), rf"Maximum concurrency for {N} tokens per request: {N}x"),
        (("weights_gib",), rf"(?:Loading model weights|Model loading) took {N} ?Gi?B"),
        (("total", "share", "usable"), rf"total_gpu_memory \({N}GiB\) x gpu_memory_utilization \({N}\) = {N}GiB"),
        (
            ("weights", "other", "activation", "kv_left"),
            rf"model weights take {N}GiB; non_torch_memory takes {N}GiB; PyTorch activation peak memory takes {N}GiB; "
            rf"the rest of the memory reserved for KV Cache is {N}GiB",
        ),
        (
            ("total", "peak", "other", "kv_left", "share"),
            rf"total_gpu_memory={N}GiB .*peak_torch_memory={N}GiB .*non_torch_memory={N}GiB kv_cache_size={N}GiB "
            rf"gpu_memory_utilization={N}",
        ),
        (
            ("free", "total", "share", "usable", "weights", "activation", "other", "graphs"),
            rf"Free memory on device (?:\S+ )?\({N}/{N} GiB\) on startup\. Desired GPU memory utilization is "
            rf"\({N}, {N} GiB\)\. Actual usage is {N} GiB for weights?, {N} GiB for peak activation, {N} GiB for "
            rf"non-torch memory, and {N} GiB for CUDAGraph memory",
        ),
        (("graphs",), rf"Estimated CUDA graph memory: {N} GiB"),
        (
            ("graph_share", "graph_share_before", "graph_share_to_set"),
            rf"--gpu-memory-utilization={N} is equivalent to --gpu-memory-utilization={N} without .*"
            rf"increase --gpu-memory-utilization to {N}",
        ),
        (
            ("refused_length", "needed_gib", "kv_gib", "longest"),
            rf"max seq len \({N}\),? \(?{N} GiB KV cache is needed, which is larger than the available KV cache memory "
            rf"\({N} GiB\)(?:\.|,)(?:.*estimated maximum model length is {N})?",
        ),
        (
            ("refused_length", "stored_tokens"),
            rf"max seq len \({N}\) is larger than the maximum number of tokens that can be stored in KV cache \({N}\)",
        ),
        (
            ("free", "total", "share", "wanted"),
            rf"Free memory on device (?:\S+ )?\({N}/{N} GiB\) on startup is less than desired GPU memory utilization "
            rf"\({N}, {N} GiB\)",
        ),
        (("asked_slots", "state_slots"), rf"max_num_seqs \({N}\) exceeds available Mamba cache blocks \({N}\)"),
        (("sampler",), r"out of memory occurred when warming up sampler with (\d+) dummy"),
        (("no_blocks",), r"(No available memory for the cache blocks)"),
        (("preempted",), r"(is preempted by PreemptionMode|Retract requests|KV cache pool is full)"),
        (("trt_gib", "trt_tokens"), rf"Allocated {N} GiB for max tokens in paged KV cache \({N}\)"),
    )
)
STARTS = re.compile(r"API server version|Initializing a V\d LLM engine|server_args=|TensorRT-LLM version")
SETTING = re.compile(
    r"['\"]?\b(max_num_seqs|max_running_requests|max_num_batched_tokens|chunked_prefill_size|tensor_parallel_size|tp_size"
    r"|pipeline_parallel_size|pp_size|kv_cache_dtype|max_model_len|max_seq_len|num_gpu_blocks_override|mamba_cache_mode"
    r")['\"]?\s*[=:]\s*['\"]?([\w.-]+)"
)
SAME = {"max_running_requests": "max_num_seqs", "chunked_prefill_size": "max_num_batched_tokens"}
SAME |= {"tp_size": "tensor_parallel_size", "pp_size": "pipeline_parallel_size", "max_seq_len": "max_model_len"}
TELLING = ("args", "config:", "server_args", "Namespace(", "max_total_num_tokens")  # of a line that lists settings
VLLM_ROW = re.compile(
    rf"(?:Engine (\d+): )?Avg prompt throughput: {N} tokens/s, Avg generation throughput: {N} tokens/s, Running: (\d+) "
    rf"reqs?,(?: Swapped: \d+ reqs?,)? (?:Waiting|Pending): (\d+) reqs?.*?GPU KV cache usage: {N}%"
)
SGLANG_ROW = re.compile(r"(?:DP(\d+).{0,20})?(Prefill|Decode) batch[.,]? *(.*?)(?=(?:Prefill|Decode) batch|$)")
SGLANG_PAIR = re.compile(rf"(#[a-z-]+|[a-z ]*usage|gen throughput \(token/s\)): {N}")
PAGE = re.compile(r"^(?:vllm|sglang):(num_requests_running|num_running_reqs|num_requests_waiting|num_queue_reqs"
                  r"|kv_cache_usage_perc|gpu_cache_usage_perc|token_usage)(?:\{[^}]*\})? ([\d.eE+-]+)")  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A printed number with what its digits leave open: it was in [low, high]."""

    value: float
    half: float = 0.0

    @classmethod
    def of(cls, text: str) -> "Number":
        """Half a unit of the last printed digit either way; a whole number is exact."""
        digits = text.replace(",", "")
        places = len(digits.partition(".")[2])
        return cls(float(digits), 0.5 * 10.0**-places if places else 0.0)

    @property
    def low(self) -> float:
        """The least that it may have been."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """The most that it may have been."""
        return self.value + self.half


@dataclass(frozen=True)
class Row:
    """One periodic line. usage, state_usage: shares of the pool. seats: running, and those who join in this line."""

    running: int
    waiting: int
    usage: float | None
    prompt_rate: float | None = None
    output_rate: float | None = None
    new_tokens: int | None = None
    seats: int = 0
    state_usage: float = 0.0


@dataclass
class Paste:
    """What was understood. facts: name -> every number printed under it, in order. rows: engine -> periodic lines.

    settings: what the paste says that the engine was given. read, all: lines. notes: what could not be used.
    """

    facts: dict[str, list[Number]] = field(default_factory=dict)
    settings: dict[str, str | int | float] = field(default_factory=dict)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    engine: str = ""
    version: str | None = None
    ranks_seen: int = 1
    starts: int = 0
    read: int = 0
    all: int = 0
    notes: list[str] = field(default_factory=list)

    def one(self, name: str) -> Number | None:
        """The number under a name, where all that was printed under it is the same."""
        values = set(self.facts.get(name, ()))
        return values.pop() if len(values) == 1 else None


WORDS = ("KV cache", "max seq len", "throughput:", " batch", "took", "GiB", "version", "blocks", "args", "config:", "sampler",
         "preempted", "Retract", "equivalent", "max_total_num_tokens", "Maximum concurrency", "llm:", "lang:")  # fmt: skip


def read(text: str) -> Paste:
    """The facts of a paste. Nothing in it is refused here; `Paste.read` says how many lines were of use."""
    paste = Paste()
    lines = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").splitlines()
    paste.all = len(lines)
    page: dict[str, dict[str, float]] = {}
    for line in _joined(lines):
        if ENGINES.search(line) and not re.search(r"File \"|Traceback|import ", line):
            paste.read += _command(paste, line)
        elif any(word in line for word in WORDS):
            known = _facts(paste, line) + _rows(paste, line) + _page(page, line)
            paste.read += bool(known)
    for kind, values in page.items():
        running, waiting = (values.get(name) for name in ("running", "waiting"))
        if running is not None and waiting is not None:
            paste.engine = paste.engine or kind
            row = Row(int(running), int(waiting), values.get("usage"), seats=int(running))
            paste.rows.setdefault("page", []).append(row)
    return paste


def _joined(lines: list[str]) -> list[str]:
    """Lines, those that end in a backslash with what follows."""
    found: list[str] = []
    going_on = False
    for line in lines:
        if going_on:
            found[-1] = f"{found[-1][:-1]} {line.strip()}"
        else:
            found.append(line)
        going_on = line.rstrip().endswith("\\") and len(found[-1]) < 20_000
        if going_on:
            found[-1] = found[-1].rstrip()
    return found


def _command(paste: Paste, line: str) -> bool:
    """The settings of a command of an engine. What `course flags` refuses is noted."""
    start = ENGINES.search(line)
    assert start is not None
    said = line[start.start() :] if line[start.start() :].startswith("vllm") else line.lstrip("$># ")
    try:
        parsed = flags.parse(said, ignore_unknown=True)
    except (ValueError, OSError) as error:
        paste.notes.append(f"the command could not be read: {' '.join(str(error).split())}")
        return False
    paste.starts += 1
    paste.engine = paste.engine or parsed.engine.split()[0]
    given: dict[str, str | int | float | None] = {"tensor_parallel_size": parsed.kv.tensor_parallel_size}
    for name in ("max_num_seqs", "max_num_batched_tokens"):
        if name not in parsed.defaults:
            given[name] = getattr(parsed.policy, name, None)
    for name in ("max_model_len", "num_gpu_blocks_override"):
        given[name] = getattr(parsed.kv, name, None)
    if parsed.kv.kv_cache_dtype != "auto":
        given["kv_cache_dtype"] = parsed.kv.kv_cache_dtype
    paste.settings |= {name: value for name, value in given.items() if isinstance(value, str | int | float)}
    return True


def _facts(paste: Paste, line: str) -> int:
    """How many facts of a start or of a refusal the line has."""
    known = 0
    for names, pattern in FACTS:
        match = pattern.search(line)
        if not match:
            continue
        known += 1
        if names == ("version",):
            paste.version = paste.version or match[1] or match[2]
            continue
        for name, text in zip(names, match.groups(), strict=True):
            if text is not None:
                number = Number.of(text) if re.fullmatch(N, text) else Number(1)
                paste.facts.setdefault(name, []).append(number)
        paste.engine = paste.engine or ("TensorRT-LLM" if "trt_gib" in names else "")
    if STARTS.search(line):
        paste.starts += 1
        paste.engine = paste.engine or ("SGLang" if "server_args" in line else "vLLM")
    if any(word in line for word in TELLING):
        for key, value in SETTING.findall(line):
            if value not in ("None", "auto"):
                name, known = SAME.get(key, key), known + 1
                paste.settings[name] = int(value) if re.fullmatch(r"-?\d{1,12}", value) else value
    rank = re.search(r"(?:_TP|rank=|TP)(\d{1,4})\b", line)
    if rank and known:
        paste.ranks_seen = max(paste.ranks_seen, int(rank[1]) + 1)
    return known


def _rows(paste: Paste, line: str) -> int:
    known = 0
    for match in VLLM_ROW.finditer(line) if "Avg prompt" in line else ():
        engine, prompt, output, running, waiting, usage = match.groups()
        row = Row(int(running), int(waiting), float(usage) / 100, _rate(prompt), _rate(output), seats=int(running))
        paste.rows.setdefault(f"engine {engine or '0'}", []).append(row)
        paste.engine, known = paste.engine or "vLLM", known + 1
    for match in SGLANG_ROW.finditer(line) if "#running-req" in line else ():
        rank, kind, rest = match.groups()
        pairs = {key.strip(): float(value) for key, value in SGLANG_PAIR.findall(rest)}
        running, waiting = pairs.get("#running-req"), pairs.get("#queue-req")
        if running is None or waiting is None:
            continue
        new = int(pairs.get("#new-seq", 0)) if kind == "Prefill" else 0
        tokens = int(pairs.get("#new-token", 0)) if kind == "Prefill" else None
        row = Row(int(running), int(waiting), pairs.get("full token usage", pairs.get("token usage")),
                  output_rate=pairs.get("gen throughput (token/s)"), new_tokens=tokens, seats=int(running) + new,
                  state_usage=pairs.get("mamba usage", 0.0))  # fmt: skip
        paste.rows.setdefault(f"engine {rank or '0'}", []).append(row)
        paste.engine, known = paste.engine or "SGLang", known + 1
    return known


def _rate(text: str) -> float:
    return float(text.replace(",", ""))


def _page(page: dict[str, dict[str, float]], line: str) -> int:
    """A gauge of a metrics page; those of several engines are added up, the fullest pool counts."""
    match = PAGE.match(line)
    if not match:
        return 0
    values = page.setdefault("SGLang" if line.startswith("sglang") else "vLLM", {})
    try:
        number = float(match[2])
    except ValueError:
        return 0
    if "usage" in match[1]:
        values["usage"] = max(number, values.get("usage", 0.0))
    else:
        name = "running" if "running" in match[1] else "waiting"
        values[name] = values.get(name, 0.0) + number
    return 1
