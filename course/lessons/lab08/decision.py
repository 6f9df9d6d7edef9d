"""The decision of lab 08: a queue behind four slots of the real vLLM, with its own log, and one flag to choose."""

from functools import cache

from course.calibration import vllm_live
from course.engine.run import Run
from course.engine.serving import serve
from course.memory.kvcache import KVCache
from course.policies import Continuous
from course.steptime import recorded
from course.workload import Workload

LIVE = vllm_live.read("questions_4")
BLOCKS, FREE, BLOCK_SIZE = (LIVE.engine[name] for name in ("num_gpu_blocks", "free_blocks", "block_size"))
TOKENS = BLOCKS * BLOCK_SIZE  # as the log counts them
PROMPT, ANSWER = 90, 70  # tokens of tomorrow's requests
AT_ITS_END = -(-(PROMPT + ANSWER) // BLOCK_SIZE)  # blocks
SLOTS = FREE // AT_ITS_END
ON_AVERAGE = TOKENS // (PROMPT + ANSWER // 2)


@cache
def log() -> str:
    """The line of its KV cache and the last in which requests waited, shortened to what counts here."""
    lines = (vllm_live.FOLDER / f"serve_{LIVE.engine['server']}.log").read_text(encoding="utf-8").splitlines()
    size = [line.split("] ", 1)[1] for line in lines if "KV cache size" in line]
    busy = [
        "... " + line[line.index("Running") :] for line in lines if "Waiting: " in line and "Waiting: 0" not in line
    ]
    return "\n".join([*size, busy[-1]])


def served(slots: int, load: Workload, budget: int = LIVE.engine["max_num_batched_tokens"]) -> Run:
    """Requests on the recorded pool with so many slots; simulated on steps of an H100, whose seconds decide nothing."""
    return serve(load, Continuous(slots, budget), recorded("h100-llama3-8b"), KVCache(FREE, BLOCK_SIZE))
