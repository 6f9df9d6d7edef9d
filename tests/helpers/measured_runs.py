"""Runs of the simulator in the clothes of measured ones, for tests of what is fitted to and compared with runs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from course import KVCache, Workload, calibration, policies, results, serve
from course.engine.run import Run
from course.results import Requests, Result
from course.workload import lengths

TRUTH = {"per_step": 0.015, "per_sequence": 1e-4, "per_prompt_token": 6e-5, "per_context_token": 1.2e-7}
SETUP = {"max_num_seqs": 64, "max_num_batched_tokens": 2048}


def telling_load() -> Workload:
    """Few sequences with long prompts, then many with short ones: what a step, a sequence and a token cost differs."""
    long = Workload.poisson(
        rate=0.5,
        num_requests=60,
        prompt_tokens=lengths.lognormal(6000, 0.5),
        output_tokens=lengths.lognormal(150, 0.5),
        seed=1,
    )
    short = Workload.poisson(
        rate=12,
        num_requests=150,
        prompt_tokens=lengths.lognormal(60, 0.5),
        output_tokens=lengths.lognormal(150, 0.5),
        seed=2,
    )
    return long.concat(replace(short, arrival=short.arrival + long.arrival[-1] + 20))


def served(load: Workload, constants: dict[str, float] = TRUTH, cache: KVCache | None = None) -> Run:
    policy = policies.Continuous(SETUP["max_num_seqs"], SETUP["max_num_batched_tokens"])
    return serve(load, policy, calibration.step_time(constants, "known"), cache)


def as_result(run: Run, setup: dict = SETUP, **changed: np.ndarray) -> Result:
    """The run as a reader would hand it over, every request answered."""
    columns = {
        "arrival": run.arrival,
        "prompt_tokens": run.workload.prompt_tokens.astype(float),
        "output_tokens": run.workload.output_tokens.astype(float),
        "ttft": run.ttft,
        "tpot": run.tpot,
        "e2e": run.e2e,
        "queue_wait": run.queue_wait,
        "failed": np.zeros(len(run), dtype=bool),
    }
    table = Requests(**{name: np.array(values) for name, values in {**columns, **changed}.items()})
    return Result("a simulated run", "simulated", table, {}, {}, {}, setup)


def as_log(run: Run, folder: Path, **meta: object) -> Path:
    """The run as a request log of LLMServingSim, with its meta.json; the engine's clock has another zero."""
    rows = [
        {
            "request_id": f"r-{i}",
            "input_toks": int(run.workload.prompt_tokens[i]),
            "output_toks": int(run.workload.output_tokens[i]),
            "arrival_time": 1.7e9 + float(run.arrival[i]),
            "queued_ts": 500 + float(run.arrival[i]),
            "scheduled_ts": 500 + float(run.admitted[i]),
            "first_token_ts": 500 + float(run.first_computed[i]),
            "last_token_ts": 500 + float(run.response[i]),
        }
        for i in range(len(run))
    ]
    log = folder / "run_requests.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    document = {"model": "example", "vllm_version": "0.19.0", "engine_kwargs": SETUP, "num_requests": len(rows), **meta}
    (folder / "run_meta.json").write_text(json.dumps(document), "utf-8")
    return log


def read_log(run: Run, folder: Path, **meta: object) -> Result:
    return results.read(as_log(run, folder, **meta))
