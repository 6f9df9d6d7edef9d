"""From the raw folder of a recording to the small files in course/data/vllm, without anything that names a machine."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from course.lm.prompts import held_out_prompts
from tools.vllm_live.install import VERSION
from tools.vllm_live.loads import BLOCK, LOADS, SERVERS, Load
from tools.vllm_live.record import PAGES

DATA = Path(__file__).resolve().parents[2] / "course" / "data" / "vllm"
ENGINE = (
    "max_num_seqs", "max_num_batched_tokens", "long_prefill_token_threshold", "scheduler_reserve_full_isl",
    "num_gpu_blocks", "free_blocks", "block_size", "enable_prefix_caching", "async_scheduling",
)  # fmt: skip


def pack(folder: Path, date: str, machine: str) -> dict[str, str]:
    """The text of every file of course/data/vllm, by name, made from `folder`/raw."""
    raw, files = folder / "raw", {}
    steps = {server.name: _lines(raw / f"steps_{server.name}.jsonl") for server in SERVERS}
    for load in LOADS:
        client = json.loads((raw / f"client_{load.name}.json").read_text(encoding="utf-8"))
        files[f"{load.name}.json"] = _dumped(recording(load, steps[load.server], client, date, machine))
    files["loads.json"] = json.dumps({"loads": [load.name for load in LOADS], "date": date, "machine": machine}) + "\n"
    for server in SERVERS:
        files[f"serve_{server.name}.log"] = _log((raw / f"serve_{server.name}.log").read_text(errors="replace"), folder)
    for name in PAGES:
        for when in ("before", "within", "after"):
            files[f"metrics_{name}_{when}.txt"] = _page((raw / f"metrics_{name}_{when}.txt").read_text())
    bench = json.loads((raw / "bench_serve.json").read_text(encoding="utf-8"))
    bench = {key: value for key, value in bench.items() if key not in ("tokenizer_id", "generated_texts")}
    files["bench_serve.json"] = _clean(json.dumps(bench), folder) + "\n"
    rows = words(raw)
    prompts = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in rows.pop("prompts"))
    files["words.json"] = f'{json.dumps(rows)[:-1]},\n "prompts": [\n  {prompts}\n ]\n}}\n'
    return files


def recording(
    load: Load, lines: Sequence[dict[str, Any]], client: dict[str, Any], date: str, machine: str
) -> dict[str, Any]:
    """One load, as course/data/vllm/README.md describes it. Clocks in microseconds since the first arrival."""
    name = load.name
    (engine,) = (line for line in lines if line["kind"] == "engine")
    arrivals = {line["id"]: line for line in lines if line["kind"] == "arrive" and _place(line["id"], name) is not None}
    order = sorted(arrivals, key=lambda one: arrivals[one]["t"])
    number = {one: k for k, one in enumerate(order)}
    steps = [line for line in lines if line["kind"] == "step" and any(one in number for one in line["tokens"])]
    zero = arrivals[order[0]]["t"]
    rows = [client["rows"][_place(one, name)] for one in order]

    def clock(values: Sequence[float]) -> list[int]:
        return [round(1e6 * (value - zero)) for value in values]

    output = [len(row["ids"]) for row in rows]
    requests: dict[str, Any] = {
        "prompt_tokens": [len(row["prompt"]) for row in rows],
        "output_tokens": output,
        "due": clock([client["begin"] + row["due"] for row in rows]),
        "sent": clock([row["sent"] for row in rows]),
        "created": clock([arrivals[one]["created"] for one in order]),
        "arrival": clock([arrivals[one]["t"] for one in order]),
        "client_first": clock([row["first"] for row in rows]),
        "client_last": clock([row["last"] for row in rows]),
        "same_as_numpy": sum(row["same"] for row in rows),
    }
    prefix = _prefixes([row["prompt"] for row in rows])
    if prefix:
        requests["prefix"] = prefix
    return {
        "name": name,
        "title": load.title,
        "engine": {"name": "vLLM", "version": VERSION, "date": date, "machine": machine}
        | {"server": load.server, "began": f"{datetime.fromtimestamp(zero + client['wall']):%m-%d %H:%M:%S}"}
        | {key: engine[key] for key in ENGINE},
        "requests": requests,
        "steps": {
            "looks": clock([step["t0"] for step in steps]),
            "decided": clock([step["t1"] for step in steps]),
            "computed": clock([step["t2"] for step in steps]),
            "done": clock([step["t3"] for step in steps]),
            "running": [step["running"] for step in steps],
            "waiting": [step["waiting"] for step in steps],
            "blocks": [step["blocks"] for step in steps],
            "preempted": [[k, *sorted(number[one] for one in step["preempted"])]
                          for k, step in enumerate(steps) if step["preempted"]],
            "batch": _batches(steps, number),
        },
    }  # fmt: skip


def _batches(steps: Sequence[dict[str, Any]], number: dict[str, int]) -> list[list[Any]]:
    """The requests of each step.

    A number is a request that computes one token behind all it had; else [request, tokens, computed before].
    """
    known, found = dict.fromkeys(number, 0), []
    for step in steps:
        row: list[Any] = []
        for one, tokens in step["tokens"].items():
            before = step["computed"][one]
            row.append(number[one] if (tokens, before) == (1, known[one]) else [number[one], tokens, before])
            known[one] = before + tokens
        found.append(row)
    return found


def _prefixes(prompts: Sequence[Sequence[int]]) -> list[list[int]] | None:
    """For each full block of each prompt a number for all tokens up to its end; None if no two prompts share one."""
    seen: dict[tuple[int, ...], int] = {}
    found = [
        [seen.setdefault(tuple(prompt[:end]), len(seen)) for end in range(BLOCK, len(prompt) + 1, BLOCK)]
        for prompt in prompts
    ]
    return found if len(seen) < sum(map(len, found)) else None


def words(raw: Path) -> dict[str, Any]:
    """The committed prompts through vLLM's chat and through transformers, and how many came out the same."""
    prompts = held_out_prompts()
    chat = json.loads((raw / "chat.json").read_text(encoding="utf-8"))
    theirs = json.loads((raw / "transformers.json").read_text(encoding="utf-8"))
    return {
        "vllm": VERSION,
        **{name: theirs[name] for name in ("transformers", "tokenizers", "torch")},
        "prompts": [{"kind": p.kind, "prompt": c["prompt_ids"], "answer": c["ids"], "transformers": t, "draft": d}
                    for p, c, t, d in zip(prompts, chat, theirs["model"], theirs["draft"], strict=True)],
        "same_text": sum(c["text"] == p.answer for p, c in zip(prompts, chat, strict=True)),
        "same_prompts": sum(c["prompt_ids"] == ids for c, ids in zip(chat, theirs["prompts"], strict=True)),
    }  # fmt: skip


def _place(name: str, load: str) -> int | None:
    """Which request of the load this is, by vLLM's name for it, which holds ours."""
    found = re.search(rf"(?<![a-z0-9_]){load}\.(\d+)(?!\d)", name)
    return int(found[1]) if found else None


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _clean(text: str, folder: Path) -> str:
    """Without the folder, the numbers of processes and ports."""
    text = text.replace(str(folder / "model"), "course-lm").replace(str(folder), "FOLDER")
    text = re.sub(r"\b(APIServer|EngineCore|Worker\w*) pid=\d+", r"\1", text)
    return re.sub(r"(127\.0\.0\.1:|'port': |--port )\d+", r"\1PORT", text)


def _log(text: str, folder: Path) -> str:
    """What vLLM's loggers wrote, without lines on the machine, on routes and on single requests.

    The lines that stay are vLLM's own, in its order, with its date and time.
    """
    logged = re.compile(r"\((?:APIServer|EngineCore|Worker\w*)\) (?:INFO|WARNING|ERROR) \d\d-\d\d ")
    machine = re.compile(
        r"_ip=|file://|https?://(?!127)|ulimit|VLLM_LIVE_RECORD|Route: |routes are|RAM|[Ff]ilesystem|NUMA|OpenMP"
        r"|core ids|reserved_cpus|local_world_size|OMP_THREADS|api_utils.py:\d+\] *$|[▄█▀]|/messages|[Ss]hut|exited"
    )
    lines = [line.rstrip() for line in _clean(text, folder).splitlines()]
    lines = [line for line in lines if logged.match(line) and not machine.search(line)]
    last = max((k for k, line in enumerate(lines) if "throughput:" in line), default=len(lines) - 1)
    return "".join(f"{line}\n" for line in lines[: last + 1])  # what follows is how it was ended


def _page(text: str) -> str:
    """VLLM's own metrics without those of the process and of Python."""
    wanted = re.compile(r"(?:# (?:HELP|TYPE) )?vllm:")
    return "".join(line + "\n" for line in text.splitlines() if wanted.match(line))


def _dumped(document: dict[str, Any]) -> str:
    """JSON with one line for each list, so that a change can be read."""
    parts = [f'"{key}": {json.dumps(value)}' for key, value in document.items() if key not in ("requests", "steps")]
    for key in ("requests", "steps"):
        inner = ",\n  ".join(
            f'"{name}": {json.dumps(values, separators=(",", ":"))}' for name, values in document[key].items()
        )
        parts.append(f'"{key}": {{\n  {inner}\n }}')
    return "{\n " + ",\n ".join(parts) + "\n}\n"
