"""A scheduler class for `vllm serve --scheduler-cls tools.vllm_live.recorder.Recorder`: vLLM's own, which writes down.

It runs inside of vLLM and changes nothing that vLLM decides. One line of JSON each for the engine, a request that
arrives, and a step; clocks are time.monotonic(), which all processes of a machine share.
"""

import json
import os
import time

from vllm.v1.core.sched.scheduler import Scheduler


class Recorder(Scheduler):
    """Writes to the file that VLLM_LIVE_RECORD names.

    Of a step: t0, the scheduler looks; t1, it has decided; t2, the tokens are there; t3, the books are done. tokens:
    scheduled, by request. computed: tokens of it in the cache before. preempted: who lost its blocks. running, waiting:
    requests, after the decision. blocks: in use, of those that requests can have.
    """

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self._file = open(os.environ["VLLM_LIVE_RECORD"], "a", buffering=1, encoding="utf-8")  # noqa: SIM115, as long as vLLM
        config = self.cache_config
        self._note(
            "engine",
            max_num_seqs=self.max_num_running_reqs,
            max_num_batched_tokens=self.max_num_scheduled_tokens,
            num_gpu_blocks=config.num_gpu_blocks,
            free_blocks=self.kv_cache_manager.block_pool.get_num_free_blocks(),
            block_size=config.block_size,
            enable_prefix_caching=bool(config.enable_prefix_caching),
            async_scheduling=bool(self.scheduler_config.async_scheduling),
            scheduler_reserve_full_isl=bool(getattr(self.scheduler_config, "scheduler_reserve_full_isl", False)),
            long_prefill_token_threshold=self.scheduler_config.long_prefill_token_threshold,
        )
        self._usable = self.kv_cache_manager.block_pool.get_num_free_blocks()
        self._step = {}

    def _note(self, kind, **what):
        self._file.write(json.dumps({"kind": kind, **what}) + "\n")

    def add_request(self, request):
        """As vLLM's. created: when the API server had read the request, on the same clock."""
        now, wall = time.monotonic(), time.time()
        self._note(
            "arrive", t=now, created=now - (wall - request.arrival_time), id=request.request_id,
            prompt=request.num_prompt_tokens,
        )  # fmt: skip
        super().add_request(request)

    def schedule(self, *args, **more):
        """As vLLM's."""
        t0 = time.monotonic()
        out = super().schedule(*args, **more)
        if out.total_num_scheduled_tokens:
            cached = out.scheduled_cached_reqs
            self._step = {
                "t0": t0,
                "t1": time.monotonic(),
                "tokens": dict(out.num_scheduled_tokens),
                "computed": {new.req_id: new.num_computed_tokens for new in out.scheduled_new_reqs}
                | dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True)),
                "preempted": sorted(out.preempted_req_ids or ()),
                "running": len(self.running),
                "waiting": len(self.waiting),
                "blocks": self._usable - self.kv_cache_manager.block_pool.get_num_free_blocks(),
            }
        return out

    def update_from_output(self, scheduler_output, model_runner_output):
        """As vLLM's."""
        t2 = time.monotonic()
        out = super().update_from_output(scheduler_output, model_runner_output)
        if scheduler_output.total_num_scheduled_tokens:
            alive = {request.request_id for request in self.running}
            left = [name for name in scheduler_output.num_scheduled_tokens if name not in alive]
            self._note("step", **self._step, t2=t2, t3=time.monotonic(), left=left)
        return out
