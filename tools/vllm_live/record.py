"""Start vLLM, send it the loads, and keep what it wrote: `run` fills a raw folder, from which `pack` makes the data."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from course import flags, lm
from course.lm.export import NAME, export
from course.lm.prompts import held_out_prompts
from tools.vllm_live.loads import BLOCK, CONTEXT, LOADS, SERVERS, Ask, Load, Server

ROOT = Path(__file__).resolve().parents[2]
START, ANSWER = 900.0, 600.0  # seconds that vLLM may take to start, and for an answer, on a busy machine
PAGES = ("preempted",)  # loads whose /metrics are kept: before, within, after
BENCH = {"num-prompts": 32, "request-rate": 4, "random-input-len": 64, "random-output-len": 32}


def command(server: Server, model: Path, port: int) -> list[str]:
    """The command line: what `course flags` says for the policy, and what a CPU and a recording need."""
    kv = flags.KVSettings(
        block_size=BLOCK,
        max_model_len=CONTEXT,
        num_gpu_blocks_override=server.blocks,
        enable_prefix_caching=server.caching,
    )
    (wanted,) = flags.for_policy(server.policy, kv, model=str(model), engines=["vllm"])
    return [
        *("serve", str(model), *(word for setting in wanted.settings for word in setting.words)),
        *("--host", "127.0.0.1", "--port", str(port), "--served-model-name", NAME, "--dtype", "float32"),
        *("--enforce-eager", "--no-async-scheduling"),
        *("--scheduler-cls", "tools.vllm_live.recorder.Recorder"),
    ]


def environment(folder: Path, key: str = "") -> dict[str, str]:
    """No network, no telemetry, caches in the folder."""
    return {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")},
        **{"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"},
        **{"VLLM_TARGET_DEVICE": "cpu", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOG_STATS_INTERVAL": "1"},
        **{"HOME": str(folder), "VLLM_CACHE_ROOT": str(folder / "cache"), "PYTHONPATH": str(ROOT)},
        **({"VLLM_API_KEY": key} if key else {}),
    }


def run(python: Path, folder: Path, names: Sequence[str] = ()) -> None:
    """Record the servers of these names, all of them by default, into `folder`/raw."""
    raw, model = folder / "raw", folder / "model"
    raw.mkdir(parents=True, exist_ok=True)
    if not model.exists():
        export(model)
    ours = lm.load()
    script = Path(__file__).parent / "read_by_transformers.py"
    if not names or "transformers" in names:
        asked = [{"turns": one.turns, "answer": one.answer} for one in held_out_prompts()]
        (raw / "prompts.json").write_text(json.dumps(asked), encoding="utf-8")
        words = [str(python), str(script), str(model), str(raw / "prompts.json"), str(raw / "transformers.json")]
        subprocess.run(words, check=True, env=environment(folder) | {"OMP_NUM_THREADS": "1"})
    for server in SERVERS:
        if names and server.name not in names:
            continue
        loads = [load for load in LOADS if load.server == server.name]
        with serving(python, folder, server) as (port, key):
            post(port, key, f"warm.{server.name}", {"prompt": ours.prompt("Hello!"), "max_tokens": 8})
            for load in loads:
                print(f"{server.name}: {load.title}", flush=True)
                (raw / f"client_{load.name}.json").write_text(json.dumps(ask(load, load.make(ours), port, key, raw)))
            if server.name == "wide":
                (raw / "chat.json").write_text(json.dumps(committed(port, key)), encoding="utf-8")
                bench(python, folder, port, key)


@contextmanager
def serving(python: Path, folder: Path, server: Server) -> Iterator[tuple[int, str]]:
    """VLLM on a free port of 127.0.0.1: (port, key). SystemExit with its last lines where it does not start."""
    raw, key = folder / "raw", secrets.token_urlsafe(12)
    log, steps = raw / f"serve_{server.name}.log", raw / f"steps_{server.name}.jsonl"
    steps.unlink(missing_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(python.parent / "vllm"), *command(server, folder / "model", port)]
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            words, stdout=out, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True,
            env=environment(folder, key) | {"VLLM_LIVE_RECORD": str(steps)},
        )  # fmt: skip
    try:
        while not healthy(port):
            if process.poll() is not None or time.monotonic() - began > START:
                sys.exit(f"vLLM did not start. The end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(2)
        print(f"{server.name}: started in {time.monotonic() - began:.0f} s", flush=True)
        yield port, key
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own session: the engine and the workers with it


def healthy(port: int) -> bool:
    """Whether it answers."""
    try:
        return get(port, "/health", 5)[0] == 200
    except OSError:
        return False


def get(port: int, path: str, timeout: float = 60) -> tuple[int, str]:
    """Status and text of a page."""
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def post(port: int, key: str, name: str, body: dict[str, Any], path: str = "/v1/completions") -> dict[str, Any]:
    """One streamed answer: when it was sent and each of its tokens came [s on time.monotonic], and the tokens."""
    asked = {"model": NAME, "temperature": 0, "stream": True, "return_token_ids": True, **body}
    headers = {"Content-Type": "application/json", "X-Request-Id": name, "Authorization": f"Bearer {key}"}
    connection = HTTPConnection("127.0.0.1", port, timeout=ANSWER)
    found: dict[str, Any] = {"ids": [], "times": [], "text": ""}
    try:
        found["sent"] = time.monotonic()
        connection.request("POST", path, json.dumps(asked), headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"vLLM refused {name} with {answer.status}: {answer.read(500).decode()}")
        for line in answer:
            if line.startswith(b"data: {"):
                now, piece = time.monotonic(), json.loads(line[6:])
                found["prompt_ids"] = piece.get("prompt_token_ids") or found.get("prompt_ids")
                for choice in piece.get("choices", ()):
                    found["ids"] += choice.get("token_ids") or []
                    found["times"] += [now] * len(choice.get("token_ids") or [])
                    found["text"] += choice.get("text") or (choice.get("delta") or {}).get("content") or ""
        return found
    finally:
        connection.close()


def ask(load: Load, asked: Sequence[Ask], port: int, key: str, raw: Path) -> dict[str, Any]:
    """Send every request when it is due, and keep the clocks of the client, and /metrics if it is one of PAGES."""
    kept = load.name in PAGES

    def page(when: str) -> None:
        if kept:
            (raw / f"metrics_{load.name}_{when}.txt").write_text(get(port, "/metrics")[1], encoding="utf-8")

    def one(place: int) -> dict[str, Any]:
        time.sleep(max(0.0, begin + asked[place].due - time.monotonic()))
        body = {"prompt": asked[place].prompt, "max_tokens": CONTEXT - len(asked[place].prompt)}
        return post(port, key, f"{load.name}.{place}", body)

    with ThreadPoolExecutor(len(asked) + 1) as threads:
        page("before")
        begin = time.monotonic() + 0.5
        jobs = [threads.submit(one, place) for place in range(len(asked))]
        time.sleep(max(0.0, begin + 0.7 * asked[-1].due - time.monotonic()))
        page("within")
        found = [job.result() for job in jobs]
    time.sleep(1.5)  # the last line of its log
    page("after")
    rows = [
        {"due": a.due, "sent": f["sent"], "first": f["times"][0], "last": f["times"][-1], "prompt": a.prompt,
         "ids": f["ids"], "same": f["ids"] == a.answer}
        for a, f in zip(asked, found, strict=True)
    ]  # fmt: skip
    same = sum(row["same"] for row in rows)
    print(f"  {same} of {len(rows)} answers are those of NumPy, in {time.monotonic() - begin:.1f} s", flush=True)
    return {"load": load.name, "begin": begin, "wall": time.time() - time.monotonic(), "rows": rows}


def committed(port: int, key: str) -> list[dict[str, Any]]:
    """The committed prompts as chats, so that vLLM's own tokenizer and template read them."""
    prompts = held_out_prompts()

    def one(place: int) -> dict[str, Any]:
        turns = prompts[place].turns
        messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(turns)]
        found = post(port, key, f"chat.{place}", {"messages": messages}, "/v1/chat/completions")
        return {name: found[name] for name in ("prompt_ids", "ids", "text")}

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(len(prompts))))
    same = sum(f["text"] == p.answer for f, p in zip(found, prompts, strict=True))
    print(f"  {same} of {len(prompts)} committed answers, as chats", flush=True)
    return found


def bench(python: Path, folder: Path, port: int, key: str) -> None:
    """`vllm bench serve` against the server, with its file of details."""
    words = [str(python.parent / "vllm"), "bench", "serve", "--backend", "vllm", "--model", NAME]
    words += ["--tokenizer", str(folder / "model"), "--base-url", f"http://127.0.0.1:{port}"]
    words += ["--dataset-name", "random", "--ignore-eos", "--percentile-metrics", "ttft,tpot,itl,e2el"]
    words += ["--save-result", "--save-detailed", "--result-dir", str(folder / "raw")]
    words += ["--result-filename", "bench_serve.json", "--request-id-prefix", "bench."]
    words += [part for name, value in BENCH.items() for part in (f"--{name}", str(value))]
    with (folder / "raw" / "bench.log").open("w", encoding="utf-8") as out:
        extra = {"OPENAI_API_KEY": key}
        subprocess.run(words, stdout=out, stderr=subprocess.STDOUT, cwd=folder, env=environment(folder) | extra)
    print("  vllm bench serve is done", flush=True)
