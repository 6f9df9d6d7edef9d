"""A small request log of our own making, for the fit of lab 16: sixty requests that the simulator served.

`course/data/results/busy_requests.jsonl`, with its meta file, is in the schema of the vLLM logs that come with
LLMServingSim. Nothing was measured: the step time is `TRUE`, so a fit can be compared with what it should find.
`python -m course.lessons.lab16.own_log` writes both files, always the same bytes.
"""

import json
from pathlib import Path
from typing import Any

from course import policies
from course.engine.run import Run
from course.engine.serving import serve
from course.lessons.lab16.load_test import OUTPUT, PROMPT
from course.lessons.lab16.three_files import FOLDER
from course.steptime import PowerLaw
from course.workload import Workload, lengths

PATH = FOLDER / "busy_requests.jsonl"
META = FOLDER / "busy_meta.json"
REQUESTS, RATE = 60, 60.0
SLOTS, BUDGET, BLOCKS = 256, 2_048, 25_000
TRUE = PowerLaw(t0=5.5e-3, c=30e-6, alpha=1, prefill=25e-6, context=45e-9)


def engine() -> policies.Continuous:
    """The policy that the meta file describes."""
    return policies.Continuous(max_num_seqs=SLOTS, max_num_batched_tokens=BUDGET)


def run() -> Run:
    """The run behind the file: Poisson arrivals at 60 requests/s, prompts of 512 and answers of 128 tokens (CV 1)."""
    load = Workload.poisson(RATE, REQUESTS, lengths.lognormal(PROMPT, 1.0), lengths.lognormal(OUTPUT, 1.0), seed=0)
    return serve(load, engine(), TRUE)


def files() -> dict[Path, str]:
    """What is in the two files: one line a request, times in seconds, and the engine's settings."""
    served = run()
    load = served.workload
    rows = [
        {
            "request_id": f"busy-{i}",
            "input_toks": int(load.prompt_tokens[i]),
            "output_toks": int(load.output_tokens[i]),
            "arrival_time": round(float(load.arrival[i]), 6),
            "queued_ts": round(float(load.arrival[i]), 6),
            "scheduled_ts": round(float(served.admitted[i]), 6),
            "first_token_ts": round(float(served.first_computed[i]), 6),
            "last_token_ts": round(float(served.response[i]), 6),
        }
        for i in range(len(load))
    ]
    meta: dict[str, Any] = {
        "schema_version": 1,
        "model": "meta-llama/Llama-3.1-8B",
        "engine_kwargs": {"tensor_parallel_size": 1, "data_parallel_size": 1, "enable_expert_parallel": False,
                          "max_num_seqs": SLOTS, "max_num_batched_tokens": BUDGET, "dtype": "bfloat16",
                          "kv_cache_dtype": "auto"},
        "num_requests": REQUESTS,
        "kv_cache": {"num_gpu_blocks": BLOCKS, "block_size": 16, "num_kv_tokens": BLOCKS * 16},
        "hardware": {"device_name": "H100 (simulated by this course)"},
    }  # fmt: skip
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return {PATH: lines, META: json.dumps(meta, indent=1) + "\n"}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
