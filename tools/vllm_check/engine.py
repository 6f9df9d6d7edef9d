"""vLLM's own Scheduler and KVCacheManager on the CPU, with a model's part played by hand. Imports one release of vLLM.

A step is one call of `schedule` that plans something, and takes one unit of time. A request all of whose known tokens
are computed gets its next one at the end of the step.
"""

import inspect
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import torch
from vllm.config.scheduler import SchedulerConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from tools.vllm_check.stand_ins import Settings
from tools.vllm_check.workloads import tokens_of

init_none_hash(sha256)
MAX_MODEL_LEN = 100_000
MOST_STEPS = 100_000


def scheduler_settings(load: dict[str, Any]) -> Any:
    """A SchedulerConfig of vLLM. Without chunks it refuses this max_model_len, so the same fields stand in for it."""
    given = {
        "max_num_seqs": load["slots"], "max_num_batched_tokens": load["budget"], "max_model_len": MAX_MODEL_LEN,
        "enable_chunked_prefill": load.get("chunked", True), "policy": "fcfs",
        "long_prefill_token_threshold": load.get("threshold", 0), "async_scheduling": load.get("async", False),
        "scheduler_reserve_full_isl": load.get("full_isl", True),
    }  # fmt: skip
    if load.get("watermark"):
        given["watermark"] = load["watermark"]
    if given["enable_chunked_prefill"]:
        return SchedulerConfig(is_encoder_decoder=False, **given)
    return Settings(prefill_schedule_interval=1, watermark=0.0, **given)


def scheduler(load: dict[str, Any]) -> Any:
    """A scheduler with this workload's settings. vLLM keeps one block for itself, so it gets one more."""
    blocks = load["blocks"] + 1
    config = Settings(
        scheduler_config=scheduler_settings(load),
        cache_config=Settings(
            num_gpu_blocks=blocks, block_size=load["size"], enable_prefix_caching=load.get("prefix", False),
            mamba_cache_mode="none",
        ),
        model_config=Settings(max_model_len=MAX_MODEL_LEN, runner_type="generate"),
        parallel_config=Settings(
            data_parallel_index=0, data_parallel_rank=0, data_parallel_size=1, pipeline_parallel_size=1,
            decode_context_parallel_size=1, prefill_context_parallel_size=1,
        ),
        observability_config=Settings(),
        num_speculative_tokens=0, num_lookahead_tokens=0, num_prefill_lookahead_tokens=0, num_hash_lookahead_tokens=0,
        max_in_flight_tokens=2 * load["budget"], max_concurrent_batches=2 if load.get("async") else 1,
        aux_output_config=Settings(enabled=False),
        ec_manager_config=Settings(get_encoder_cache_manager_obj=lambda: None),
    )  # fmt: skip
    spec = FullAttentionSpec(block_size=load["size"], num_kv_heads=1, head_size=1, dtype=torch.float16)
    pool = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return (AsyncScheduler if load.get("async") else Scheduler)(
        config,
        pool,
        SimpleNamespace(should_advance=lambda request: False, accept_tokens=lambda *given, **named: True),
        block_size=load["size"],
        mm_registry=SimpleNamespace(supports_multimodal_inputs=lambda config: False),
        log_stats=False,
    )


class Engine:
    """What stands around the scheduler: requests that arrive, and a model that gives each the token due.

    With async scheduling a batch is planned before the tokens of the one before are back, as in EngineCore with a queue
    of two batches: schedule, then update with the batch before. If nothing could be planned, no time passes.
    """

    def __init__(self, load: dict[str, Any]):
        self.load, self.scheduler, self.step = load, scheduler(load), 0
        self.text = [tokens_of(load, i) for i in range(len(load["arrival"]))]
        self.times: list[list[int]] = [[] for _ in self.text]
        self.requests: list[Any] = []
        self.chunks: list[list[int]] = []
        self.preempted: list[list[int]] = []
        self.hits: list[list[int]] = []
        self.used: list[int] = []
        self.flying: tuple[Any, list[str]] | None = None
        self.hasher = get_request_block_hasher(load["size"], sha256) if load.get("prefix") else None

    def come_in(self) -> None:
        """Requests that have arrived by this step join the queue."""
        arrival = self.load["arrival"]
        while len(self.requests) < len(arrival) and arrival[len(self.requests)] <= self.step:
            i = len(self.requests)
            given = {
                "request_id": str(i), "prompt_token_ids": self.text[i][: self.load["prompt"][i]],
                "sampling_params": SamplingParams(max_tokens=self.load["output"][i], ignore_eos=True),
                "pooling_params": None, "block_hasher": self.hasher,
            }  # fmt: skip
            if "eos_token_id" in inspect.signature(Request.__init__).parameters:
                given["eos_token_id"] = None
            self.requests.append(Request(**given))
            self.scheduler.add_request(self.requests[-1])

    def plan(self) -> Any:
        """Call `schedule` and write down what it decided; return it with the requests that get a token, or None."""
        before = [request.num_preemptions for request in self.requests]
        ran = {request.request_id for request in self.scheduler.running}
        output = self.scheduler.schedule()
        if not output.num_scheduled_tokens:
            return None
        lost = [i for i, request in enumerate(self.requests) if request.num_preemptions > before[i]]
        self.preempted += [[self.step, i] for i in lost]
        self.used.append(self.load["blocks"] - self.scheduler.kv_cache_manager.block_pool.get_num_free_blocks())
        sampled = []
        for name, tokens in output.num_scheduled_tokens.items():
            i, request = int(name), self.requests[int(name)]
            computed = request.num_computed_tokens - tokens
            if (name not in ran or i in lost) and computed:
                self.hits.append([self.step, i, computed])
            # Tokens in flight count as known; the one that this step is to sample has its place already.
            known = request.num_tokens + (max(0, request.num_output_placeholders - 1) if self.load.get("async") else 0)
            whole = request.num_computed_tokens >= known
            if whole:
                sampled.append(name)
                self.times[i].append(self.step + 1)
            if tokens != 1 or not whole:
                self.chunks.append([self.step, i, tokens])
        return output, sampled

    def feed(self, output: Any, sampled: list[str]) -> None:
        """The tokens of a batch come back from the model."""
        names, answers = list(output.num_scheduled_tokens), []
        for name in names:
            i = int(name)
            place = self.load["prompt"][i] + self.requests[i].num_output_tokens
            answers.append([self.text[i][place]] if name in sampled else [])
        self.scheduler.update_from_output(
            output,
            ModelRunnerOutput(
                req_ids=names, req_id_to_index={name: place for place, name in enumerate(names)},
                sampled_token_ids=answers, logprobs=None, prompt_logprobs_dict={}, pooler_output=[],
            ),
        )  # fmt: skip

    def serve(self) -> dict[str, Any]:
        """Serve all requests to their end, and return what `recorded` says."""
        arrival = self.load["arrival"]
        while len(self.requests) < len(arrival) or self.scheduler.requests or self.flying:
            if not self.scheduler.requests and not self.flying and len(self.requests) < len(arrival):
                self.step = max(self.step, arrival[len(self.requests)])
            self.come_in()
            planned = self.plan()
            if self.load.get("async"):
                self.flying, back = planned, self.flying
            else:
                back = planned
            if back:
                self.feed(*back)
            elif not planned:
                raise RuntimeError(f"nothing planned in step {self.step} of {self.load}")
            self.step += planned is not None
            if self.step > MOST_STEPS:
                raise RuntimeError(f"more than {MOST_STEPS} steps: {self.load}")
        return self.recorded()

    def recorded(self) -> dict[str, Any]:
        """Return the run in few numbers.

        times: for each request (first, how many), the runs of consecutive ends of steps in which it got a token.
        chunks: (first step, request, tokens, how many steps), what was computed besides one token for one: so many in
        each of so many steps. preempted: (step, request). used: blocks in use in each step.
        hits: (step, request, tokens that were in the cache).
        """
        times = [_in_a_row(ends) for ends in self.times]
        chunks = [
            [first, request, tokens, many]
            for request, tokens in dict.fromkeys((request, tokens) for _, request, tokens in self.chunks)
            for first, many in _in_a_row([step for step, *what in self.chunks if what == [request, tokens]])
        ]
        found = {"times": times, "chunks": sorted(chunks), "preempted": self.preempted, "used": self.used}
        return found | ({"hits": self.hits} if self.hits else {})


def _in_a_row(numbers: list[int]) -> list[list[int]]:
    """(first, how many) of the runs of consecutive numbers."""
    runs = [[pair[1] for pair in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return [[run[0], len(run)] for run in runs]
